"""A malicious server with colluders, against clients that trust their registry, their terms and their ranker only."""

import hashlib
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest
from small_rounds import (
    RANKER,
    answers,
    asked,
    content,
    federation,
    members,
    plain_sum,
    public,
    run,
    server_of,
    sizes,
    until,
)

from foltr.errors import SecureAggregationError, SpecError
from foltr.secagg import crypto, graph, messages
from foltr.secagg.client import answer, join
from foltr.secagg.in_process import run_in_memory
from foltr.secagg.ring import Ring, decode, encode
from foltr.secagg.server import aggregate
from foltr.secagg.terms import Terms, cohort_of, context, guaranteed, new_federation, registry, to_set

changed = msgspec.structs.replace


# members and survivors: the size of a sum is not the server's word


@pytest.fixture(scope="module")
def thousand():
    return federation(1000, length=2)


def small_round(fed, size):
    """The victim, and a server that says that only so many take part: all the others are its own."""
    names = list(fed.identities)[:size]
    victim = names[0]
    states = {
        name: join(name, fed.identities[name], np.zeros(2, "<u4"), terms=fed.terms, registry=fed.registry, round=1,
                   ranker=RANKER)
        for name in names
    }  # fmt: skip
    adverts = {}
    for name in names:
        states[name], adverts[name] = answer(states[name], asked(fed, "advertise", name, messages.Start()))
    levels = graph.merkle_levels([graph.merkle_leaf(one) for one in adverts.values()])
    body = messages.Neighbourhood(
        to_set(names, fed.registry),
        levels[-1][0],
        graph.merkle_path(levels, 0),
        [messages.signed_keys(one) for one in adverts.values()][1:150],
    )
    return states[victim], asked(fed, "share", victim, body)


@pytest.mark.parametrize("size", [3, 101, 899])
def test_a_victim_among_colluders_shares_nothing(thousand, size):
    """One victim and two colluders; the smallest sum of 101 with 100 colluders; one client too few."""
    with pytest.raises(SecureAggregationError, match=f"{size} clients take part, at least 900 are needed"):
        answer(*small_round(thousand, size))


def test_the_honest_in_every_sum_of_a_thousand(thousand):
    assert sizes(thousand) == (1000, 900, 100, 800)


def test_survivors_fewer_than_the_registry_demands_are_not_signed():
    fed = federation(20, length=2)
    assert sizes(fed) == (20, 18, 2, 16)
    _, states, _ = until(fed, "agree")
    names = list(fed.identities)
    for count in (3, 17):
        with pytest.raises(SecureAggregationError, match=f"{count} clients survive, at least 18"):
            answer(states[10], asked(fed, "agree", 10, messages.Survivors(to_set(names[:count], fed.registry))))
    answer(states[10], asked(fed, "agree", 10, messages.Survivors(to_set(names[:18], fed.registry))))


def halves():
    """A registry above 1,000, with real keys for one client of each half only."""
    one, other, server = crypto.new_identity(), crypto.new_identity(), crypto.new_identity()
    keys = {k: hashlib.sha256(str(k).encode()).digest() for k in range(1200)}
    terms = Terms(new_federation(), 2)
    for first in range(1200):
        known = registry(public(server), {**keys, first: public(one), (first + 1) % 1200: public(other)})
        turns = [cohort_of(terms, known, round) for round in (0, 1)]
        if first in turns[1] and (first + 1) % 1200 in turns[0]:
            return SimpleNamespace(
                identities={first: one}, server=server, registry=known, terms=terms, turns=turns, me=first,
                stranger=(first + 1) % 1200,
            )  # fmt: skip
    raise AssertionError


def test_above_a_thousand_only_the_half_whose_turn_it_is_takes_part():
    fed = halves()
    known = {"terms": fed.terms, "registry": fed.registry, "ranker": RANKER}
    with pytest.raises(SpecError, match="not the turn of client"):
        join(fed.me, fed.identities[fed.me], np.zeros(2, "<u4"), round=2, **known)
    state = join(fed.me, fed.identities[fed.me], np.zeros(2, "<u4"), round=1, **known)
    state, advert = answer(state, asked(fed, "advertise", fed.me, messages.Start()))
    mixed = sorted(fed.turns[1] | {fed.stranger})
    body = messages.Neighbourhood(to_set(mixed, fed.registry), bytes(32), b"", [messages.signed_keys(advert)])
    with pytest.raises(SecureAggregationError, match="whose turn it is not"):
        answer(state, asked(fed, "share", fed.me, body))
    with pytest.raises(SpecError, match="not their turn"):
        next(aggregate(mixed, identity=fed.server, round=1, **known))


# contexts: whoever was told something else is in no sum


TWENTY = federation(20, length=6, noise_multiplier=4.0)
LAST = list(TWENTY.identities)[-1]
OTHER_TERMS = {
    "federation": "0" * 32, "length": 7, "bits": 64, "fraction": 15, "clip": 0.5, "noise_multiplier": 0.0,
    "dropouts": 0.11, "corrupt": 0.11, "failure": 2**-79, "stall": 2**-19, "stage_seconds": 60.0, "cohort": 20,
    "quorum": 0.6,
}  # fmt: skip


def told_otherwise(terms=TWENTY.terms, known=TWENTY.registry, ranker=RANKER, names=(LAST,)):
    """Twenty clients, some of which agreed to other terms, hold another registry or have another ranker."""
    states = members(TWENTY)
    for name in names:
        vector = np.zeros(terms.length, f"<u{terms.bits // 8}")
        states[name] = join(name, TWENTY.identities[name], vector, terms=terms, registry=known, round=1, ranker=ranker)
    return states


def test_every_field_of_the_terms_is_tried():
    assert OTHER_TERMS.keys() == set(Terms.__struct_fields__)


def test_the_same_terms_in_other_words_are_the_same():
    said = changed(TWENTY.terms, clip=1, noise_multiplier=2, stage_seconds=120)
    meant = changed(TWENTY.terms, clip=1.0, noise_multiplier=2.0, stage_seconds=120.0)
    assert context(said, TWENTY.registry, 1, RANKER) == context(meant, TWENTY.registry, 1, RANKER)


@pytest.mark.parametrize("field", OTHER_TERMS)
def test_one_client_with_another_term_is_in_no_sum(field):
    found = run_in_memory(server_of(TWENTY), told_otherwise(changed(TWENTY.terms, **{field: OTHER_TERMS[field]})))
    assert found.included == tuple(TWENTY.identities)[:-1]
    np.testing.assert_array_equal(found.total, plain_sum(TWENTY, found.included))


@pytest.mark.parametrize("field", OTHER_TERMS)
def test_nineteen_clients_with_another_term_give_no_sum(field):
    """Nineteen that were told to add no noise, say, while one has charged its ledger for a noisy sum."""
    other = changed(TWENTY.terms, **{field: OTHER_TERMS[field]})
    states = told_otherwise(other, names=list(TWENTY.identities)[:-1])
    with pytest.raises(SecureAggregationError, match="1 clients sent keys"):
        run_in_memory(server_of(TWENTY), states)
    if field not in ("length", "bits"):
        server = aggregate(TWENTY.identities, terms=other, registry=TWENTY.registry, identity=TWENTY.server, round=1,
                           ranker=RANKER)  # fmt: skip
        assert LAST not in run_in_memory(server, states).included


def another_registry():
    keys = {**TWENTY.registry.keys, 10: public(crypto.new_identity())}
    return registry(TWENTY.registry.server, keys)


@pytest.mark.parametrize("other", [{"known": another_registry()}, {"ranker": hashlib.sha256(b"other").digest()}])
def test_one_client_with_another_registry_or_ranker_is_in_no_sum(other):
    found = run_in_memory(server_of(TWENTY), told_otherwise(**other))
    assert found.included == tuple(TWENTY.identities)[:-1]


def test_a_server_that_sends_one_node_another_ranker_gets_no_sum_with_it():
    """It signs for either context. The others cannot use the victim's keys, nor it theirs."""
    other = hashlib.sha256(b"a ranker that makes the victim's update stand out").digest()
    states = told_otherwise(ranker=other)
    keyed = {}
    for name, state in states.items():
        address = messages.Address(state.context, 1, "request", "advertise", name)
        states[name], keyed[name] = answer(state, messages.send(TWENTY.server, address, messages.Start()))
    levels = graph.merkle_levels([graph.merkle_leaf(one) for one in keyed.values()])
    bits, names = to_set(keyed, TWENTY.registry), list(keyed)
    for place, name in ((0, names[0]), (19, LAST)):
        around = [messages.signed_keys(keyed[one]) for one in names if one != name]
        body = messages.Neighbourhood(bits, levels[-1][0], graph.merkle_path(levels, place), around)
        address = messages.Address(states[name].context, 1, "request", "share", name)
        request = messages.send(TWENTY.server, address, body)
        if name == LAST:
            with pytest.raises(SecureAggregationError, match="0 neighbours have usable keys"):
                answer(states[name], request)
        else:
            after, _ = answer(states[name], request)
            assert LAST not in after.shared


def test_a_context_has_all_of_it():
    seen = {context(TWENTY.terms, TWENTY.registry, 1, RANKER)}
    for field, value in OTHER_TERMS.items():
        seen.add(context(changed(TWENTY.terms, **{field: value}), TWENTY.registry, 1, RANKER))
    server = registry(b"s" * 32, TWENTY.registry.keys)
    fewer = registry(TWENTY.registry.server, {k: v for k, v in TWENTY.registry.keys.items() if k != 10})
    moved = registry(TWENTY.registry.server, {k + 1: v for k, v in TWENTY.registry.keys.items()})
    for known in (another_registry(), server, fewer, moved):
        seen.add(context(TWENTY.terms, known, 1, RANKER))
    seen |= {context(TWENTY.terms, TWENTY.registry, 2, RANKER), context(TWENTY.terms, TWENTY.registry, 1, bytes(32))}
    assert len(seen) == 1 + len(OTHER_TERMS) + 4 + 2


def test_the_digest_of_a_registry_knows_no_order():
    keys = TWENTY.registry.keys
    assert registry(b"s" * 32, dict(reversed(keys.items()))).digest == registry(b"s" * 32, keys).digest


@pytest.mark.parametrize("wrong", [{"ranker": b"short"}, {"round": -1}])
def test_what_is_no_context_is_refused(wrong):
    with pytest.raises(SpecError, match=r"32 of SHA-256|numbers from 0"):
        context(TWENTY.terms, TWENTY.registry, **{"round": 1, "ranker": RANKER, **wrong})


# the ring has room for the noise


def test_terms_whose_noisy_sums_change_their_sign_are_refused():
    for fraction, bits in ((24, 32), (16, 32), (24, 64)):
        terms = changed(TWENTY.terms, bits=bits, fraction=fraction, noise_multiplier=300.0)
        if fraction == 24 and bits == 32:
            with pytest.raises(SpecError, match=r"64 bits \(recommended\)"):
                guaranteed(terms, TWENTY.registry)
            with pytest.raises(SpecError, match="reaches"):
                context(terms, TWENTY.registry, 1, RANKER)
        else:
            guaranteed(terms, TWENTY.registry)


def test_no_client_stops_a_round_because_of_its_data():
    """An update that diverged is sent as zeros and bounds; the round goes on."""
    fed = federation(5, length=4)
    rows = {name: encode(np.array([np.nan, np.inf, -1e308, 0.5]), Ring(5)) for name in fed.identities}
    found = run_in_memory(server_of(fed), members(fed, rows=rows))
    assert decode(found.total, Ring(5))[[0, 3]].tolist() == [0.0, 2.5]


def test_an_honest_round_of_twenty_is_exact():
    found = run(TWENTY, drop={"mask": {LAST}})
    np.testing.assert_array_equal(found.total, plain_sum(TWENTY, list(TWENTY.identities)[:-1]))
    assert found.dropped == {LAST: "no reply of stage 'mask' within 120 s"}


def test_answers_are_those_of_clients():
    _, states, requests = until(TWENTY, "share")
    assert len(content(answers(states, requests)[10], messages.Shares).sealed) == 19
