"""Writes the sample files of `before/`: every state that nodes, aggregators and silos keep on the disk.

Run once, with the code of the commit that the README names:

    export PYTHONPATH=tests/secagg:tests/silo:tests/persisted
    .venv/bin/python tests/persisted/write_states.py tests/persisted/before

Keys follow from fixed bytes (`parties`), so that a test can go on as the same node. Replies that were given before and
after a state was stored are in `expected.msgpack`: a node that goes on must give the same ones.
"""

import shutil
import sys
from pathlib import Path

import msgspec
import numpy as np
from parties import (
    BY_LOT,
    EVENT,
    GROUP,
    IDENTITIES,
    LIMITS,
    MEMBERS,
    NOW,
    OTHER_EVENT,
    PAIR,
    PLAN,
    RANKER,
    ROUND,
    TEXTS,
    VICTIM,
    federated_ledger,
    member,
)
from silos import index_of
from small_draws import drawing
from small_operators import exchange, window_of
from small_rounds import announced, answers, members, server_of
from small_two_servers import contributions, inboxes

from foltr.federation import draws, participant, two_servers
from foltr.federation.membership import Member, Storage
from foltr.federation.operator import Operator
from foltr.privacy.ledger_file import open_ledger
from foltr.privacy.ledger_repair import repair_ledger
from foltr.secagg.lot import draw
from foltr.secagg.messages import STAGES
from foltr.silo.allowance import open_allowance, spend
from foltr.silo.group_files import encode_group, open_delivered
from foltr.silo.keys import make_group
from foltr.silo.releases import release_to_file


def write_ledgers(folder: Path) -> None:
    """A ledger with a repair and two federations; one without a witness; one after a crash; one with a torn record."""
    repaired = federated_ledger(folder / "repaired", budget=9.0)
    repaired.charge(EVENT, federation="a", round=1)
    shutil.copy(folder / "repaired" / "state" / "ledger", folder / "backup")
    repaired.charge(OTHER_EVENT, federation="b", round=4)
    shutil.move(folder / "backup", folder / "repaired" / "state" / "ledger")
    repair_ledger(folder / "repaired" / "state" / "ledger", witness=folder / "repaired" / "witness" / "ledger")
    federated_ledger(folder / "repaired", budget=9.0).charge(EVENT, federation="a", round=2)

    alone = open_ledger(folder / "alone" / "ledger", delta=1e-5, budget=None)
    for round in (1, 2, 3):
        alone.charge(EVENT, federation="a", round=round)

    for name in ("ahead", "torn"):
        ledger, files = federated_ledger(folder / name), folder / name
        ledger.charge(EVENT, federation="a", round=1)
        shutil.copy(files / "witness" / "ledger", folder / "backup")
        ledger.charge(EVENT, federation="a", round=2)
        shutil.move(folder / "backup", files / "witness" / "ledger")
    whole = (folder / "torn" / "state" / "ledger").read_bytes()
    (folder / "torn" / "state" / "ledger").write_bytes(whole[:-40])


def write_round(folder: Path) -> dict[str, object]:
    """A node that has answered the first two stages; returns its requests and its replies of the whole round."""
    ledger, node = federated_ledger(folder), member(ROUND, VICTIM)
    storage = Storage(folder / "state", folder / "witness")
    known = {"ledger": ledger, "storage": storage, "clock": lambda: NOW}
    participant.join_round(node, announced(ROUND), np.full(ROUND.terms.length, 0.1), **known)
    server, states, requests, replies = server_of(ROUND), members(ROUND), [], []
    del states[VICTIM]
    asked = next(server)
    for stage in STAGES:
        if stage == "mask":
            shutil.copytree(folder, folder.parent / "before-mask")
        requests.append(asked[VICTIM])
        replies.append(participant.answer(node, asked[VICTIM], **known))
        others = answers(states, {name: request for name, request in asked.items() if name != VICTIM})
        try:
            asked = server.send({VICTIM: replies[-1], **others})
        except StopIteration:
            break
    shutil.copytree(folder, folder.parent / "erased")
    participant.end_round(Storage(folder.parent / "erased" / "state", folder.parent / "erased" / "witness"))
    return {"requests": requests, "replies": replies}


def write_draw(folder: Path) -> dict[str, object]:
    """A node that has committed to its value in the draw of round 1."""
    ledger, node = federated_ledger(folder), member(BY_LOT, VICTIM)
    storage = Storage(folder / "state", folder / "witness")
    known = {"ledger": ledger, "storage": storage, "clock": lambda: NOW}
    draws.enter_draw(node, announced(BY_LOT), **known)
    states = {
        name: draw.enter(name, identity, terms=BY_LOT.terms, registry=BY_LOT.registry, round=1, ranker=RANKER)
        for name, identity in BY_LOT.identities.items()
        if name != VICTIM
    }
    server, requests, replies = drawing(BY_LOT), [], []
    asked = next(server)
    while True:
        sent = {}
        for name, request in asked.items():
            if name != VICTIM:
                states[name], sent[name] = draw.answer(states[name], request)
                continue
            requests.append(request)
            sent[name] = draws.answer_draw(node, request, storage=storage, clock=lambda: NOW)
            replies.append(sent[name])
            if len(replies) == 1:
                shutil.copytree(folder, folder.parent / "committed")
        try:
            asked = server.send(sent)
        except StopIteration:
            return {"requests": requests, "replies": replies}


def write_two_servers(folder: Path) -> dict[str, object]:
    """A node and both aggregators after round 3."""
    ledger = federated_ledger(folder / "node")
    sent = two_servers.contribute_once(
        np.full(PAIR.setup.terms.length, 0.1),
        Member(VICTIM, PAIR.identities[VICTIM], PAIR.setup.terms, PAIR.setup.registry), window=PAIR.window(3),
        path=folder / "node" / "state" / "contribution", ledger=ledger,
    )  # fmt: skip
    pair = tuple(
        Operator(place, identity, PAIR.setup, Storage(home / "state", home / "witness"), lambda: NOW)
        for place, identity in enumerate(PAIR.operators)
        if (home := folder / f"aggregator-{place}")
    )
    window = window_of(PAIR, pair, 3)
    *_, halves = exchange(pair, window, inboxes(PAIR, contributions(PAIR, window=window)))
    return {"sent": sent, "halves": list(halves)}


def write_silo(folder: Path) -> None:
    """The allowance of an owner, the newest epochs of a party, and the accounts of released documents."""
    folder.mkdir(parents=True)
    groups = [GROUP, make_group(PLAN, IDENTITIES[0], epoch=2)]  # sealed with random numbers: files, not constants
    spend(open_allowance(folder / "allowance.json", LIMITS, MEMBERS[1], lambda: NOW), bytes(32), 8, 70)
    for group in groups:
        open_delivered(encode_group(group), IDENTITIES[1], PLAN, folder / "epochs.json")
        (folder / f"group-{group.epoch}.msgpack").write_bytes(encode_group(group))
    names = [f"{number}.txt" for number in range(len(TEXTS))]
    release_to_file(folder / "releases.json", index_of(TEXTS), names, epsilon=0.5)
    release_to_file(folder / "releases.json", index_of([*TEXTS[:-1], "rash"]), names, epsilon=0.5)


def main(folder: Path) -> None:
    write_ledgers(folder / "ledgers")
    expected = {
        "round": write_round(folder / "round" / "over"),
        "draw": write_draw(folder / "draw" / "over"),
        "two_servers": write_two_servers(folder / "two-servers"),
    }
    write_silo(folder / "silo")
    (folder / "expected.msgpack").write_bytes(msgspec.msgpack.encode(expected))
    for lock in folder.rglob(".*.lock"):
        lock.unlink()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
