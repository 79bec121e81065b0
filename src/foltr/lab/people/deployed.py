"""Simulated people as nodes of a deployed federation: its coordinator, both operators and all nodes in one process.

The people are simulated, the rest is what machines of their own run: announcements, `member.respond`, policies, ledgers
and messages on the disk, a registry that the coordinator and the second operator signed, two operators that remember
which sums they opened (`federation.coordinator`). Nothing but bytes passes between a node and the coordinator.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from foltr.federation.announcement import Ranker, parameters_of
from foltr.federation.coordinator import Coordinator, TwoOperators
from foltr.federation.in_memory import InMemory
from foltr.federation.member import NodeSide, respond
from foltr.federation.membership import Member, Storage
from foltr.federation.operator import Operator
from foltr.federation.policy import Guarded, Limits, Policy, accept
from foltr.federation.registries import countersign, follow, propose
from foltr.federation.round import RoundResult
from foltr.privacy.ledger_file import open_ledger
from foltr.secagg.crypto import new_identity
from foltr.secagg.guarantee import FEWEST
from foltr.secagg.terms import Registry, Terms, new_federation, registry
from foltr.secagg.two_servers import Pair, two_servers
from foltr.types import Array

DROPOUTS = 0.0  # without noise a sum has all people or does not exist (`federation.policy`)
_ROUNDS_PER_WEEK = 10_000  # a simulated week is a moment
_DELTA = 1e-5  # of ledgers; without noise no release has an epsilon, and there is no budget


class Deployed(NamedTuple):
    collector: TwoOperators
    transport: InMemory


def deployed(
    learn: Callable[[int, int, Array], Array], people: int, start: Ranker, *, clip: float, server_learning_rate: float,
    folder: Path,
) -> Deployed:  # fmt: skip
    """A federation of these people, with its state below `folder`. `learn`: (person, round, parameters [P]) -> the
    update [P] of the person's log."""
    names = start.names
    identities, server = [new_identity() for _ in range(people)], new_identity()
    keys = {person: identity.public_key().public_bytes_raw() for person, identity in enumerate(identities)}
    coordinator_key = server.public_key().public_bytes_raw()
    known = registry(coordinator_key, keys)
    terms = Terms(new_federation(), len(names), bits=64, fraction=32, clip=clip, dropouts=DROPOUTS)
    pair = new_identity(), new_identity()
    first, second = (identity.public_key().public_bytes_raw() for identity in pair)
    setup = two_servers(terms, known, (first, second))

    head, signature = propose(terms.federation, known, None, server)
    link = countersign(
        head, signature, keys, coordinator=coordinator_key, identity=pair[1], path=folder / "operator-1" / "registry",
        round_open=False,
    )  # fmt: skip

    def node(person: int) -> Callable[[bytes], bytes | None]:
        home = folder / f"person-{person}"
        ledger = open_ledger(home / "data" / "ledger", delta=_DELTA, budget=None, witness=home / "state" / "ledger")

        def learned(ranker: Ranker) -> Array:
            return learn(person, ranker.version + 1, parameters_of(ranker))

        registered = follow(
            [link], keys, federation=terms.federation, coordinator=coordinator_key, second=second,
            path=home / "data" / "registry",
        )  # fmt: skip
        side = NodeSide(
            Member(person, identities[person], terms, registered), Storage(home / "data", home / "state"), ledger,
            learn=learned, adopt=lambda _ranker: None, operators=(first, second), start=start,
            server_learning_rate=server_learning_rate, policy=_joined(home / "state", terms, known, (first, second)),
        )  # fmt: skip
        return lambda message: respond(side, message)

    transport = InMemory({person: node(person) for person in range(people)})
    operators = [
        Operator(index, identity, setup, Storage(folder / f"operator-{index}", folder / f"witness-{index}"))
        for index, identity in enumerate(pair)
    ]
    coordinator = Coordinator(terms, known, server, names, transport)
    collector = TwoOperators(coordinator, setup, (operators[0], operators[1]), folder / "coordinator" / "journal")
    return Deployed(collector, transport)


def _joined(folder: Path, terms: Terms, known: Registry, operators: Pair) -> Guarded:
    """The policy of a person who confirmed the fingerprints of all members: sums have no noise, and all of them."""
    guarded = Guarded(folder)
    limits = Limits(rounds_per_week=_ROUNDS_PER_WEEK, min_clients=FEWEST)
    guarded.save(accept(Policy(limits), terms.federation, operators, circle=known))
    return guarded


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
