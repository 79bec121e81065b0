"""Two aggregators: exact sums, one message of a client, and what one aggregator sees."""

import itertools

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2
from small_two_servers import agreed, begun, contributions, federation, inboxes, listed, plain_sum, vectors

from foltr.errors import SecureAggregationError, SpecError
from foltr.lab.bench.two_servers import measure_two_servers
from foltr.secagg import aggregator, crypto, ring, two_servers
from foltr.secagg.aggregator import Memory
from foltr.secagg.terms import Terms, new_federation
from foltr.secagg.two_in_process import run_round, two_server_sum
from foltr.secagg.two_servers import combine, contribute, parts

SEVEN = federation(7)


def run(fed, sent=None, **options):
    sent = contributions(fed) if sent is None else sent
    return run_round(sent, fed.secrets(), window=fed.window(), **options)


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("clients", [3, 4, 10, 33])
def test_the_sum_is_that_of_all_who_sent(clients, bits):
    fed = federation(clients, bits=bits)
    found = run(fed).sums
    assert np.array_equal(found.totals[0], plain_sum(fed, fed.identities))
    assert found.members == (tuple(fed.identities),)
    assert not found.beyond.any()


def test_those_who_drop_out_are_not_in_the_sum():
    fed = federation(20)
    sent = contributions(fed)
    for lost in (10, 40):
        del sent[lost]
    assert np.array_equal(run(fed, sent).sums.totals[0], plain_sum(fed, sent))
    del sent[13]
    with pytest.raises(SecureAggregationError, match="of 17 clients, at least 18 are needed"):
        run(fed, sent)


@given(seed=st.integers(0, 2**32), clients=st.integers(3, 9), groups=st.integers(1, 3))
@settings(max_examples=25, deadline=None)
def test_any_vectors_of_the_ring_are_added_up_in_their_groups(seed, clients, groups):
    groups = min(groups, clients // 3)
    fed = federation(clients, groups=groups, dropouts=0.0)
    words = np.frombuffer(crypto.expand(seed.to_bytes(32, "big"), clients * 20), "<u4").reshape(clients, 5)
    rows = dict(zip(fed.identities, words, strict=True))
    found = run(fed, contributions(fed, rows=rows)).sums
    assert sorted(itertools.chain(*found.members)) == list(fed.identities)
    for total, members in zip(found.totals, found.members, strict=True):
        assert np.array_equal(total, np.sum([rows[name] for name in members], axis=0, dtype=np.uint32))


def test_a_client_sends_one_message_little_longer_than_its_vector():
    fed = federation(3, length=136)
    sent = contributions(fed)
    whole, (first, second) = len(sent[10]), parts(sent[10], setup=fed.setup)
    assert whole < 136 * 4 + 300
    assert len(first) < 136 * 4 + 260
    assert len(second) < 300
    assert whole <= two_servers.max_contribution(fed.setup)


# what one aggregator sees


def uniform(words):
    """Probability of a chi-square as large as that of the bytes of these words, if they are uniform."""
    counts = np.bincount(np.frombuffer(words.tobytes(), np.uint8), minlength=256)
    expected = counts.sum() / 256
    return chi2.sf(np.square(counts - expected).sum() / expected, 255)


@pytest.mark.parametrize("value", [0, 1, 2**31])
def test_the_shares_of_one_aggregator_are_uniform_whatever_the_vector(value):
    """40 vectors of 1,000 equal numbers: 160,000 bytes at each aggregator; a false alarm once in 10^6 each.

    Fails if a share carries the vector, or if two clients have the same mask.
    """
    fed = federation(3, length=1000, dropouts=0.0)
    rows = dict.fromkeys(fed.identities, np.full(1000, value, np.uint32))
    for index in (0, 1):
        seen = []
        for round in range(1, 14):
            boxes = inboxes(fed, contributions(fed, round, rows=rows))
            state, _ = aggregator.accept_all(begun(fed, index, round), boxes[index])
            seen += [aggregator.share(state, name) for name in state.sealed]
        assert uniform(np.array(seen)) > 1e-6
        assert len({one.tobytes() for one in seen}) == 39


def test_the_view_of_each_aggregator_fits_every_vector_equally_well():
    """Exact algebra: for each share that an aggregator holds and each vector there is one share of the other."""
    states, _ = listed(SEVEN)
    rows = vectors(SEVEN)
    for name in SEVEN.identities:
        first, second = (aggregator.share(state, name) for state in states)
        assert np.array_equal(first + second, rows[name])
        for other in rows.values():  # the same view of aggregator 0, another vector
            assert np.array_equal(first + (other - first), other)
    # a one-time pad on a ring of 8 elements: every (share, vector) is hit by exactly one mask
    size = 8
    assert {((x - mask) % size, x) for x in range(size) for mask in range(size)} == set(
        itertools.product(range(size), repeat=2)
    )


def test_one_aggregator_and_the_final_sum_give_only_the_sum_with_the_noise_of_the_other():
    """A lying aggregator that adds no noise: what it finds is the sum plus the honest noise, exactly."""
    fed = federation(7, noise_multiplier=2.0)
    states, agreements = agreed(fed)
    drawn = np.array([5, -7, 11, 0, -3])
    _, message = aggregator.half(
        states[1], agreements[0], Memory(fed.setup.terms.federation), lambda size: drawn[:size]
    )
    honest = msgspec.msgpack.decode(
        msgspec.msgpack.decode(message, type=two_servers.Signed).body, type=two_servers.Half
    )
    known = np.sum([aggregator.share(states[0], name) for name in fed.identities], axis=0, dtype=np.uint32)
    found = known + np.frombuffer(honest.totals, "<u4")
    assert np.array_equal((found - plain_sum(fed, fed.identities)).view("<i4"), drawn)


def test_every_group_gets_noise_of_its_own_and_both_noises_are_in_the_result():
    fed = federation(9, groups=3, noise_multiplier=1.0, dropouts=0.0)
    calls = []

    def noise(size):
        calls.append(size)
        return np.arange(size, dtype=np.int64) * (1000 if len(calls) == 1 else 1)

    found = run(fed, noise=noise).sums
    assert calls == [15, 15]
    rest = np.stack(
        [total - plain_sum(fed, members) for total, members in zip(found.totals, found.members, strict=True)]
    )
    assert np.array_equal(rest.ravel(), np.arange(15) * 1001)


@pytest.mark.parametrize(
    ("multiplier", "noise", "says"),
    [
        (0.0, lambda size: np.zeros(size, np.int64), "noise_multiplier=0"),
        (1.0, None, "noise_multiplier=1"),
        (1.0, lambda size: np.zeros(size - 1, np.int64), "noise of"),
        (1.0, lambda size: np.zeros(size), "integers of 64 bits"),
    ],
)
def test_noise_is_drawn_exactly_where_the_terms_have_it(multiplier, noise, says):
    with pytest.raises(SpecError, match=says):
        run(federation(3, noise_multiplier=multiplier), noise=noise)


# what a setup refuses


def test_one_operator_in_two_places_is_refused():
    one, _ = SEVEN.setup.operators
    with pytest.raises(SpecError, match="two operators"):
        two_servers.two_servers(SEVEN.setup.terms, SEVEN.setup.registry, (one, one))
    window = SEVEN.window()
    for keys in ((window.keys[0], window.keys[0]), (window.keys[0], bytes(32)), (window.keys[0], b"short")):
        with pytest.raises(SpecError, match="keys of a round"):
            two_servers.context(window._replace(keys=keys))


@pytest.mark.parametrize(
    ("terms", "more", "says"),
    [
        ({}, {"groups": 3}, "use 1 to 2"),
        ({"clip": 4700.0}, {}, "do not fit 32 bits"),
        ({"clip": 1.0, "noise_multiplier": 2600.0}, {}, "do not fit 32 bits"),
    ],
)
def test_a_setup_whose_sums_hide_nobody_or_overflow_is_refused(terms, more, says):
    known = SEVEN.setup
    with pytest.raises(SpecError, match=says):
        two_servers.two_servers(Terms(new_federation(), 5, **terms), known.registry, known.operators, **more)


def test_the_largest_honest_sum_fits_the_ring():
    """n clip + 9 sqrt(2) z clip, by hand: 7 x 4 + 9 x 1.41421 x 3 x 4 = 180.7"""
    fed = federation(7, clip=4.0, noise_multiplier=3.0)
    assert two_servers.largest_sum(fed.setup, 7) == pytest.approx(180.735, abs=1e-3)


def test_an_aggregator_needs_its_own_keys_and_its_own_memory():
    with pytest.raises(SpecError, match="not the keys of aggregator 1"):
        aggregator.begin(1, SEVEN.secrets()[0], Memory(SEVEN.setup.terms.federation), window=SEVEN.window())
    with pytest.raises(SpecError, match="memory of federation"):
        begun(SEVEN, 0, memory=Memory("another"))


def test_a_client_needs_its_identity_and_a_vector_of_the_ring():
    row = vectors(SEVEN)[10]
    with pytest.raises(SpecError, match="not in the registry"):
        contribute(row, 13, SEVEN.identities[10], window=SEVEN.window())
    with pytest.raises(SpecError, match="5 values of 32 bits"):
        contribute(row[:4], 10, SEVEN.identities[10], window=SEVEN.window())
    with pytest.raises(SpecError, match="32 bytes"):
        contribute(row, 10, SEVEN.identities[10], window=SEVEN.window(ranker=b"short"))


def test_no_secret_is_shown():
    state = begun(SEVEN, 0)
    for secret in (SEVEN.secrets()[0].sealing, state.coin):
        assert secret.hex() not in repr(state)
        assert repr(secret)[2:-1] not in repr(state) + repr(SEVEN.secrets())


def test_the_whole_protocol_in_one_process():
    rows = np.array([[1.5, -2.25], [0.125, 4.0], [3.0, 7.0], [1e-12, 0.0]])
    assert two_server_sum(rows) == pytest.approx(rows.sum(axis=0), abs=4 * 2**-32)
    assert two_server_sum(rows, dropped=[2]).tolist() == [1.625, 1.75]
    for wrong, says in ((np.full((3, 2), np.nan), "not finite"), (rows[:2], "or more must send")):
        with pytest.raises(SecureAggregationError, match=says):
            two_server_sum(wrong)


def test_halves_of_other_clients_are_no_sum():
    """A result names whose vectors are in it: halves of different rounds or sets do not add up."""
    fed = federation(7)
    memory = Memory(fed.setup.terms.federation)
    states, agreements = agreed(fed)
    good = [aggregator.half(states[k], agreements[1 - k], memory, None)[1] for k in (0, 1)]
    assert np.array_equal(combine(tuple(good), window=fed.window()).totals[0], plain_sum(fed, fed.identities))
    sent = contributions(fed)
    del sent[10]
    other, others = agreed(fed, sent=sent)
    mixed = aggregator.half(other[1], others[0], memory, None)[1]
    with pytest.raises(SecureAggregationError, match="same clients"):
        combine((good[0], mixed), window=fed.window())
    with pytest.raises(SecureAggregationError, match="half of aggregator 0"):
        combine((good[1], good[0]), window=fed.window())


def test_the_ring_that_clients_encode_for_is_that_of_the_sum():
    fed = federation(3, clip=2.0)
    encoded = ring.encode(np.array([1.5, -1.25, 0.0, 0.5, 0.25]), ring.Ring(3))
    rows = dict.fromkeys(fed.identities, encoded)
    total = run(fed, contributions(fed, rows=rows)).sums.totals[0]
    assert ring.decode(total, ring.Ring(3)).tolist() == [4.5, -3.75, 0.0, 1.5, 0.75]


def test_a_small_round_is_measured():
    (found,) = measure_two_servers(sizes=(20,)).values()
    assert min(found.values()) > 0
    assert 0.6 < found["up_kb"] < 0.9  # 136 numbers of 4 bytes, keys, tags and a signature
