"""Simulated people as nodes of a deployed federation: its coordinator, both operators and all nodes in one process.

The people are simulated, the rest is what machines of their own run: announcements, `member.respond`, ledgers and
messages on the disk, two operators that remember which sums they opened (`federation.coordinator`). Nothing but bytes
passes between a node and the coordinator.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from foltr.federation.announcement import Ranker, parameters_of
from foltr.federation.coordinator import Coordinator, Operator, TwoOperators
from foltr.federation.in_memory import InMemory
from foltr.federation.member import NodeSide, respond
from foltr.federation.membership import Member, Storage
from foltr.federation.round import RoundResult
from foltr.privacy.ledger_file import open_ledger
from foltr.secagg.crypto import new_identity
from foltr.secagg.terms import Terms, new_federation, registry
from foltr.secagg.two_in_process import new_aggregator
from foltr.secagg.two_servers import two_servers
from foltr.types import Array

DROPOUTS = 0.1  # share of the people that may be missing in a sum
_DELTA = 1e-5  # of ledgers; without noise no release has an epsilon, and there is no budget


class Deployed(NamedTuple):
    collector: TwoOperators
    transport: InMemory


def deployed(
    learn: Callable[[int, int, Array], Array], people: int, names: tuple[str, ...], *, clip: float, folder: Path
) -> Deployed:
    """A federation of these people, with its state below `folder`. `learn`: (person, round, parameters [P]) -> the
    update [P] of the person's log."""
    identities, server = [new_identity() for _ in range(people)], new_identity()
    keys = {person: identity.public_key().public_bytes_raw() for person, identity in enumerate(identities)}
    known = registry(server.public_key().public_bytes_raw(), keys)
    terms = Terms(new_federation(), len(names), bits=64, fraction=32, clip=clip, dropouts=DROPOUTS)
    (first, one), (second, other) = new_aggregator(), new_aggregator()
    setup = two_servers(terms, known, (first, second))

    def node(person: int) -> Callable[[bytes], bytes | None]:
        home = folder / f"person-{person}"
        ledger = open_ledger(home / "data" / "ledger", delta=_DELTA, budget=None, witness=home / "state" / "ledger")

        def learned(ranker: Ranker) -> Array:
            return learn(person, ranker.version + 1, parameters_of(ranker))

        side = NodeSide(
            Member(person, identities[person], terms, known), Storage(home / "data", home / "state"), ledger,
            learn=learned, adopt=lambda _ranker: None, operators=(first, second),
        )  # fmt: skip
        return lambda message: respond(side, message)

    transport = InMemory({person: node(person) for person in range(people)})
    operators = [
        Operator(secrets, folder / f"operator-{index}" / "memory", folder / f"witness-{index}" / "memory")
        for index, secrets in enumerate((one, other))
    ]
    coordinator = Coordinator(terms, known, server, names, transport)
    return Deployed(TwoOperators(coordinator, setup, (operators[0], operators[1])), transport)


def with_traffic(
    rounds: Iterator[RoundResult], transport: InMemory, traffic: list[tuple[int, int]]
) -> Iterator[RoundResult]:
    """The rounds; notes after each what the busiest person sent and received in it, in bytes."""
    before = np.zeros((2, len(transport.up)), np.int64)
    for done in rounds:
        now = np.array([list(transport.up.values()), list(transport.down.values())])
        sent, received = (now - before).max(axis=1).tolist()
        traffic.append((sent, received))
        before = now
        yield done
