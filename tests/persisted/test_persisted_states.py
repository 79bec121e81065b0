"""Files of earlier versions load, and whoever wrote them goes on: charges again, answers, joins the next round."""

import shutil
from pathlib import Path

import msgspec
import numpy as np
import pytest
from parties import (
    BY_LOT,
    EVENT,
    IDENTITIES,
    LIMITS,
    NOW,
    OTHER_EVENT,
    PAIR,
    PLAN,
    ROUND,
    TEXTS,
    VICTIM,
    federated_ledger,
    member,
)
from silos import index_of
from small_operators import exchange, window_of
from small_rounds import announced
from small_two_servers import contributions, inboxes

from foltr.errors import DataError, FoltrError, PrivacyError, SecureAggregationError, SpecError
from foltr.federation import draws, participant, two_servers
from foltr.federation.membership import Member, Storage
from foltr.federation.operator import Operator
from foltr.privacy.ledger_file import open_ledger
from foltr.silo.allowance import open_allowance, spend
from foltr.silo.group_files import decode_group, open_delivered
from foltr.silo.keys import open_group
from foltr.silo.releases import release_times, release_to_file

BEFORE = Path(__file__).parent / "before"
EXPECTED = msgspec.msgpack.decode((BEFORE / "expected.msgpack").read_bytes())


@pytest.fixture
def before(tmp_path):
    """A copy: states that are loaded are also written to."""
    return Path(shutil.copytree(BEFORE, tmp_path / "before"))


@pytest.mark.parametrize(
    ("name", "counts", "rounds"),
    [
        ("repaired", {EVENT: 2, OTHER_EVENT: 1}, {"a": 2, "b": 4}),
        ("ahead", {EVENT: 2}, {"a": 2}),
        ("torn", {EVENT: 2}, {"a": 1}),  # the release of the torn record never left, and counts
    ],
)
def test_a_ledger_keeps_its_charges_and_takes_more(before, name, counts, rounds):
    ledger = federated_ledger(before / "ledgers" / name)
    assert ledger.counts() == counts
    assert {federation: ledger.highest_round(federation) for federation in rounds} == rounds
    with pytest.raises(PrivacyError, match="rounds only rise"):
        ledger.charge(EVENT, federation="a", round=rounds["a"])
    ledger.charge(EVENT, federation="a", round=9)
    assert federated_ledger(before / "ledgers" / name).counts() == {**counts, EVENT: counts[EVENT] + 1}


def test_a_ledger_without_a_witness_goes_on_and_can_get_one(before):
    path = before / "ledgers" / "alone" / "ledger"
    open_ledger(path, delta=1e-5, budget=None).charge(EVENT, federation="a", round=4)
    witnessed = open_ledger(path, delta=1e-5, budget=None, witness=before / "elsewhere" / "ledger")
    witnessed.charge(EVENT, federation="a", round=5)
    assert witnessed.counts() == {EVENT: 5}
    with pytest.raises(FoltrError, match="this ledger has a witness"):
        open_ledger(path, delta=1e-5, budget=None)


def node_of(before, name):
    home = before / name
    storage = Storage(home / "state", home / "witness")
    return {"ledger": federated_ledger(home), "storage": storage, "clock": lambda: NOW + 1}


def test_a_node_answers_the_rest_of_a_round_with_the_bytes_of_before(before):
    known, node = node_of(before, "round/before-mask"), member(ROUND, VICTIM)
    replies = [participant.answer(node, request, **known) for request in EXPECTED["round"]["requests"]]
    assert replies == EXPECTED["round"]["replies"]
    assert sum(known["ledger"].counts().values()) == 1  # charged by the answer to `mask`


@pytest.mark.parametrize("state", ["before-mask", "over", "erased"])
def test_a_node_joins_the_next_round_and_no_earlier_one(before, state):
    known, node = node_of(before, f"round/{state}"), member(ROUND, VICTIM)
    if state != "before-mask":
        assert sum(known["ledger"].counts().values()) == 1
    with pytest.raises(SecureAggregationError, match="already joined round 1; rounds only rise"):
        participant.join_round(node, announced(ROUND, 1), np.full(6, 0.1), **known)
    known["clock"] = lambda: NOW + 10**6  # the round of before is over
    participant.join_round(node, announced(ROUND, 2), np.full(6, 0.1), **known)


def test_a_node_ends_the_round_that_it_joined_before(before):
    known, node = node_of(before, "round/before-mask"), member(ROUND, VICTIM)
    late = {**known, "clock": lambda: NOW + 10**6}
    del late["ledger"]
    assert participant.end_if_late(node, **late)
    assert not (known["storage"].folder / "round.state").exists()


def test_a_draw_goes_on_with_the_bytes_of_before(before):
    known, node = node_of(before, "draw/committed"), member(BY_LOT, VICTIM)
    more = {"storage": known["storage"], "clock": known["clock"]}
    replies = [draws.answer_draw(node, request, **more) for request in EXPECTED["draw"]["requests"]]
    assert replies == EXPECTED["draw"]["replies"]
    with pytest.raises(SecureAggregationError, match="already took part in round 1"):
        draws.enter_draw(node, announced(BY_LOT, 1), **known)
    draws.enter_draw(node, announced(BY_LOT, 2), **known)


def contribution(before, round):
    home = before / "two-servers" / "node"
    return two_servers.contribute_once(
        np.full(6, 0.1), Member(VICTIM, PAIR.identities[VICTIM], PAIR.setup.terms, PAIR.setup.registry),
        window=PAIR.window(round),
        path=home / "state" / "contribution", ledger=federated_ledger(home),
    )  # fmt: skip


def test_a_node_of_two_servers_contributes_to_the_next_round_and_to_no_earlier_one(before):
    """What it sent had protocol version 2, which nobody opens any more: it is not sent again."""
    for round in (2, 3):
        with pytest.raises(SecureAggregationError, match="has sent its update of round 3"):
            contribution(before, round)
    assert contribution(before, 4) != EXPECTED["two_servers"]["sent"]
    assert sum(federated_ledger(before / "two-servers" / "node").counts().values()) == 2


def test_aggregators_send_their_halves_again_and_open_the_next_round_once(before):
    pair = tuple(
        Operator(place, identity, PAIR.setup, Storage(home / "state", home / "witness"), lambda: NOW)
        for place, identity in enumerate(PAIR.operators)
        if (home := before / "two-servers" / f"aggregator-{place}")
    )
    assert [operator.half(PAIR.window(3), b"") for operator in pair] == EXPECTED["two_servers"]["halves"]
    with pytest.raises(SecureAggregationError, match="sum of round 2 is refused"):
        pair[0].half(PAIR.window(2), b"")
    window = window_of(PAIR, pair, 4)
    boxes = inboxes(PAIR, contributions(PAIR, window=window))
    assert exchange(pair, window, boxes) == exchange(pair, window, boxes)


def group(before, epoch):
    return (before / "silo" / f"group-{epoch}.msgpack").read_bytes()


def test_an_allowance_remembers_its_numbers_and_entries(before):
    owner = open_group(decode_group(group(before, 1)), IDENTITIES[1], PLAN)[0]
    allowance = open_allowance(before / "silo" / "allowance.json", LIMITS, owner, lambda: NOW)
    with pytest.raises(DataError, match="question 8 of this asker is not above its last one, 8"):
        spend(allowance, bytes(32), 8, 1)
    spend(allowance, bytes(32), 9, 30)
    with pytest.raises(PrivacyError, match="has 0 left"):
        spend(allowance, bytes(32), 10, 1)


def test_a_party_remembers_the_newest_epoch(before):
    epochs = before / "silo" / "epochs.json"
    with pytest.raises(SpecError, match="this party has opened epoch 2"):
        open_delivered(group(before, 1), IDENTITIES[1], PLAN, epochs)
    assert open_delivered(group(before, 2), IDENTITIES[1], PLAN, epochs).epoch == 2


def test_accounts_of_released_documents_go_on(before):
    names = [f"{number}.txt" for number in range(len(TEXTS))]
    accounts = before / "silo" / "releases.json"
    same = release_to_file(accounts, index_of([*TEXTS[:-1], "rash"]), names, epsilon=0.5)
    assert release_times(same).tolist() == [1, 1, 1, 1, 2]
    edited = release_to_file(accounts, index_of([*TEXTS[:-1], "cough"]), names, epsilon=0.5)
    assert release_times(edited).tolist() == [1, 1, 1, 1, 3]
    assert edited.secret == same.secret
