"""Random streams: the same address gives the same numbers, whoever asks and in whatever order."""

import math
from collections import Counter

import numpy as np
import pytest
from by_hand import far, fit
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest

from foltr.rng import PURPOSES, stream

MANY = 20_000
MASK = 2**64 - 1
WHOLE = st.integers(0, 2**62)


def mixed(word: int) -> int:
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & MASK
    return word ^ (word >> 31)


def number(seed: int, round: int, client: int, purpose: int, index: int) -> float:
    """The index-th number of a stream in whole numbers of any size, cut to 64 bits by hand."""
    word = mixed((seed + 0x9E3779B97F4A7C15) & MASK)
    for part, factor, salt in (
        (round, 0xD1B54A32D192ED03, 1),
        (client, 0xABC98388FB8FAC03, 2),
        (purpose, 0x8CB92BA72F3D8DD7, 3),
    ):
        word = mixed(word ^ ((part * factor + salt) & MASK))
    stride = mixed((word + 0x9E3779B97F4A7C15) & MASK) | 1
    return (mixed((word + index * stride) & MASK) >> 11) / 2**53


# numbers that were published depend on these
NUMBERED = {
    "queries": 1, "ranking": 2, "clicks": 3, "noise": 4, "privatise": 5,
    "cohort": 6, "perturbation": 7, "start": 8, "data": 9, "choice": 10,
}  # fmt: skip


@given(seed=WHOLE, round=WHOLE, client=WHOLE, purpose=st.sampled_from(sorted(NUMBERED)), index=st.integers(0, 2**50))
def test_numbers_are_those_of_the_written_arithmetic(seed, round, client, purpose, index):
    got = stream(seed, round=round, client=client, purpose=purpose).skip(index).uniform(3)
    assert got.tolist() == [number(seed, round, client, NUMBERED[purpose], index + i) for i in range(3)]


def test_the_same_address_gives_the_same_numbers():
    assert np.array_equal(
        stream(3, round=4, client=5, purpose="clicks").uniform(100),
        stream(3, round=4, client=5, purpose="clicks").uniform(100),
    )


def test_any_other_address_gives_other_numbers():
    address = {"seed": 3, "round": 4, "client": 5, "purpose": "clicks"}
    others = [{"seed": 4}, {"round": 5}, {"client": 6}, {"seed": 4, "round": 3}, {"round": 5, "client": 4}]
    others += [{"purpose": purpose} for purpose in PURPOSES if purpose != "clicks"]
    seen = {tuple(stream(**{**address, **change}).uniform(4)) for change in [{}, *others]}
    assert len(seen) == 1 + len(others)


@given(st.permutations(range(12)))
def test_numbers_do_not_depend_on_the_order_in_which_they_are_asked_for(order):
    draws = stream(1, purpose="queries")
    one_by_one = {index: draws.skip(index).uniform(1)[0] for index in order}
    assert [one_by_one[index] for index in range(12)] == draws.uniform(12).tolist()


@given(st.integers(0, 50).map(lambda pairs: 2 * pairs), st.integers(1, 9))
def test_normal_numbers_go_on_from_any_pair(skipped, size):
    draws = stream(1, purpose="perturbation")
    assert np.array_equal(draws.skip(skipped).normal(size), draws.normal(skipped + size)[skipped:])


def test_a_stream_does_not_change_when_it_is_used():
    draws = stream(1, purpose="queries")
    draws.skip(3)
    assert np.array_equal(draws.uniform(5), draws.uniform(5))


def test_uniform_numbers_are_uniform():
    numbers = stream(11, round=2, client=3, purpose="ranking").uniform(MANY)
    assert numbers.min() >= 0
    assert numbers.max() < 1
    assert kstest(numbers, "uniform").pvalue > 1e-3  # false alarm 1 in 1,000
    # a uniform number has variance 1/12, its squared distance from 1/2 has mean 1/12 and variance 1/80 - 1/144
    square = (numbers - 0.5) ** 2
    assert abs(numbers.mean() - 1 / 2) < far(1e-3) * math.sqrt(1 / 12 / MANY)  # 1 in 1,000
    assert abs(square.mean() - 1 / 12) < far(1e-3) * math.sqrt((1 / 80 - 1 / 144) / MANY)  # 1 in 1,000


@pytest.mark.parametrize("size", [MANY, MANY + 1])
def test_normal_numbers_are_normal(size):
    numbers = stream(12, purpose="start").normal(size)
    assert kstest(numbers, "norm").pvalue > 1e-3  # false alarm 1 in 1,000
    # the two of a pair come from the same uniforms and must still be unrelated, in size too: 1 in 1,000 each
    one, two = numbers[:MANY:2], numbers[1:MANY:2]
    for change in (lambda x: x, np.abs):
        assert abs(np.corrcoef(change(one), change(two))[0, 1]) < far(1e-3) / math.sqrt(MANY / 2)


def test_whole_numbers_are_uniform():
    drawn = stream(13, purpose="queries").integers(7, MANY)
    assert fit(drawn.tolist(), dict.fromkeys(range(7), 1 / 7)) > 1e-3  # false alarm 1 in 1,000


@given(st.integers(1, 2**52), st.integers(0, 1000))
def test_whole_numbers_stay_below_their_bound(below, client):
    drawn = stream(13, client=client, purpose="queries").integers(below, 20)
    assert drawn.min() >= 0
    assert drawn.max() < below


def test_permutations_are_uniform():
    orders = [tuple(stream(14, client=c, purpose="choice").permutation(3).tolist()) for c in range(3000)]
    six = {(a, b, 3 - a - b): 1 / 6 for a in range(3) for b in range(3) if a != b}
    assert fit(orders, six) > 1e-3  # false alarm 1 in 1,000


def test_neighbouring_streams_are_unrelated():
    here = {"seed": 21, "round": 8, "client": 100, "purpose": "clicks"}
    near = [{"seed": 22}, {"round": 9}, {"client": 101}, {"purpose": "noise"}, {"purpose": "ranking"}, {"round": 7}]
    mine = stream(**here).uniform(MANY)
    for change in near:
        theirs = stream(**{**here, **change}).uniform(MANY)
        for lag in (0, 1, 2):  # 18 looks, together a false alarm 1 in 1,000
            related = np.corrcoef(mine[lag:], theirs[: MANY - lag])[0, 1]
            assert abs(related) < far(1e-3, looks=18) / math.sqrt(MANY - lag)


@pytest.mark.parametrize("along", ["seed", "round", "client"])
def test_the_first_numbers_of_neighbouring_streams_are_uniform_and_unrelated(along):
    address = {"seed": 1, "round": 1, "client": 1, "purpose": "queries"}
    first = np.array([stream(**{**address, along: i}).uniform(1)[0] for i in range(5000)])
    assert kstest(first, "uniform").pvalue > 1e-3  # false alarm 1 in 1,000
    assert abs(np.corrcoef(first[1:], first[:-1])[0, 1]) < far(1e-3) / math.sqrt(len(first) - 1)  # 1 in 1,000


def test_a_stride_never_makes_a_stream_short():
    assert all(int(stream(seed, purpose="data").stride) % 2 == 1 for seed in range(100))
    assert Counter(stream(5, purpose="data").uniform(MANY).tolist()).most_common(1)[0][1] == 1


def test_a_wrong_purpose_lists_the_right_ones():
    with pytest.raises(KeyError, match="no purpose 'coffee'; there are queries, ranking, clicks, noise"):
        stream(1, purpose="coffee")
