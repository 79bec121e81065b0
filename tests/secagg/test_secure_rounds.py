"""A round: the exact sum for any dropouts that leave a threshold, a clear failure below it."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare
from small_rounds import RANKER, content, counted, federation, members, plain_sum, run, server_of, sizes, vectors

from foltr.errors import SecureAggregationError, SpecError
from foltr.secagg import crypto as primitives
from foltr.secagg import messages
from foltr.secagg.certificate import needed
from foltr.secagg.client import join
from foltr.secagg.in_process import run_in_memory
from foltr.secagg.messages import STAGES
from foltr.secagg.terms import Terms, new_federation, registry, shape_of

SEVEN = federation(7, dropouts=0.3, corrupt=0.0)  # 6 neighbours each, threshold 4, sums of 5
WIDE = federation(6, length=3, bits=64, dropouts=1 / 6, corrupt=1 / 6)  # 5 neighbours each, threshold 4, sums of 5
SPARSE = federation(120, length=3, dropouts=0.02, corrupt=0.02, failure=2**-10, stall=2**-10)
dropouts = st.fixed_dictionaries(
    {stage: st.sets(st.sampled_from(sorted(SEVEN.identities)), max_size=3) for stage in STAGES}
)


@pytest.mark.parametrize("fed", [SEVEN, WIDE, SPARSE], ids=["seven", "wide", "sparse"])
def test_the_sum_is_exact(fed):
    found = run(fed)
    assert found.included == tuple(fed.identities)
    np.testing.assert_array_equal(found.total, plain_sum(fed, fed.identities))


def test_the_sparse_round_is_sparse():
    degree, threshold, _ = shape_of(SPARSE.terms, sizes(SPARSE), 120)
    assert threshold < degree < 60


@settings(max_examples=100)
@given(drop=dropouts)
def test_the_sum_is_exact_for_any_dropouts_down_to_the_threshold(drop):
    """Who is left at each stage decides, by counting, whether there is a sum and whose it is."""
    left = [set(SEVEN.identities)]
    for stage in STAGES:
        left.append(left[-1] - drop[stage])
    _, advertised, shared, masked, agreed, opened = left
    possible = len(advertised) >= sizes(SEVEN).min_clients and enough(shared, masked, agreed, opened, len(advertised))
    if possible:
        found = run(SEVEN, drop=drop)
        assert found.included == tuple(sorted(masked))
        np.testing.assert_array_equal(found.total, plain_sum(SEVEN, sorted(masked)))
    else:
        with pytest.raises((SecureAggregationError, SpecError), match=r"needed|cannot tolerate"):
            run(SEVEN, drop=drop)


def enough(shared, masked, agreed, opened, advertised):
    """Everybody is everybody's neighbour: an owner needs a threshold of others at every stage."""
    try:
        threshold = shape_of(SEVEN.terms, sizes(SEVEN), advertised).threshold
    except SpecError:
        return False
    convinced = opened if len(agreed) >= needed(sizes(SEVEN)) else set()
    return (
        len(masked) >= sizes(SEVEN).min_clients
        and all(len(shared - {owner}) >= threshold for owner in shared)
        and all(len(masked - {owner}) >= threshold for owner in shared)
        and all(len(convinced - {owner}) >= threshold for owner in shared)
    )


@pytest.mark.parametrize("stage", STAGES)
def test_a_sparse_round_stands_dropouts_at_every_stage(stage):
    names = sorted(SPARSE.identities)
    gone = {names[5], names[77]}
    found = run(SPARSE, drop={stage: gone})
    late = stage in ("agree", "unmask")  # their vectors had arrived
    included = [name for name in names if late or name not in gone]
    assert found.included == tuple(included)
    np.testing.assert_array_equal(found.total, plain_sum(SPARSE, included))


@pytest.mark.parametrize("stage", STAGES)
def test_when_nearly_all_fall_away_there_is_no_sum(stage):
    with pytest.raises(SecureAggregationError, match="needed"):
        run(SEVEN, drop={stage: sorted(SEVEN.identities)[2:]})


def test_fewer_than_the_agreed_number_are_never_summed():
    fed = federation(7, dropouts=0.0, corrupt=0.0)
    with pytest.raises(SecureAggregationError, match="6 clients sent their vectors, at least 7"):
        run(fed, drop={"mask": {10}})


def test_bytes_are_counted_in_both_directions():
    sent = {"request": dict.fromkeys(SEVEN.identities, 0), "reply": dict.fromkeys(SEVEN.identities, 0)}

    def count(_stage, direction, client, message):
        sent[direction][client] += len(message)
        return message

    found = run(SEVEN, mutate=count)
    assert (found.down, found.up) == (sent["request"], sent["reply"])


def masked_vectors(fed, round=1, rows=None):
    """What each client sends at the third stage."""
    seen = []

    def look(stage, direction, _client, message):
        if (stage, direction) == ("mask", "reply"):
            seen.append(np.frombuffer(content(message, messages.Masked).vector, np.uint8))
        return message

    found = run_in_memory(server_of(fed, round), members(fed, round, rows), mutate=look)
    return np.array(seen), found.total


def test_the_masked_vector_of_one_client_is_uniform(monkeypatch):  # false alarm 1 in 1,000 each, bytes fixed
    """All clients send zeros: 20,000 bytes of each masked vector against 256 equal chances."""
    fed = federation(3, length=5000, corrupt=0.0, dropouts=0.0)
    counted(monkeypatch, 0)
    seen, total = masked_vectors(fed, rows={name: np.zeros(5000, "<u4") for name in fed.identities})
    assert not total.any()
    for one in seen:
        assert chisquare(np.bincount(one, minlength=256)).pvalue > 1e-3


def test_the_same_vectors_look_different_in_every_round():
    first, second = (masked_vectors(SEVEN, round)[0] for round in (1, 2))
    assert (first != second).mean() > 0.8  # of 140 bytes; below once in 10^35


def test_vectors_and_identities_are_checked_at_the_door():
    identity = SEVEN.identities[10]
    known = {"terms": SEVEN.terms, "registry": SEVEN.registry, "round": 1, "ranker": RANKER}
    with pytest.raises(SpecError, match="use 5 values of 32 bits"):
        join(10, identity, np.zeros(4, "<u4"), **known)
    with pytest.raises(SpecError, match="use 5 values of 32 bits"):
        join(10, identity, np.zeros(5), **known)
    with pytest.raises(SpecError, match="not in the registry"):
        join(13, identity, np.zeros(5, "<u4"), **known)


def test_a_state_shows_no_secret():
    assert repr(members(SEVEN)[10]) == "Client(id=10, round=1, done=0)"


def test_one_identity_under_two_names_is_refused():
    with pytest.raises(SecureAggregationError, match="client 2 has the identity of client 1"):
        registry(b"s" * 32, {1: b"k" * 32, 2: b"k" * 32})
    with pytest.raises(SecureAggregationError, match="identity of the server"):
        registry(b"s" * 32, {1: b"s" * 32})


@pytest.mark.parametrize("clients", [[10, 13], [10, 13, 999]])
def test_a_cohort_must_be_known_and_large_enough(clients):
    with pytest.raises(SpecError, match=r"needs 5 or more|not in the registry"):
        next(server_of(SEVEN, clients=clients))


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"length": 0}, "at least one number"),
        ({"federation": "mine"}, "new_federation"),
        ({"fraction": 32}, "0 to 31"),
        ({"clip": 0.0}, "clip > 0"),
        ({"noise_multiplier": -1.0}, "finite"),
        ({"failure": 0.0}, "between 0 and 1"),
        ({"stage_seconds": 0.5}, "use 1 second to 604800, seven days"),
        ({"stage_seconds": 604_801.0}, "use 1 second"),
        ({"stage_seconds": float("nan")}, "use 1 second"),
    ],
)
def test_terms_that_cannot_be_are_refused(wrong, says):
    with pytest.raises(SpecError, match=says):
        Terms(**{"federation": "0" * 32, "length": 1, **wrong})


def test_a_federation_has_a_random_name():
    assert len({new_federation() for _ in range(100)}) == 100


def test_signatures_are_not_checked_twice_in_one_process():
    primitives.forget_verified()
    run(SEVEN)
    # 7 clients x 5 stages x 2 directions; the keys and agreements that neighbours check again are known by then
    assert primitives._verified.cache_info().misses == 70


def test_names_need_not_be_places():
    assert all(b - a == 3 for a, b in pairwise(vectors(SEVEN)))
