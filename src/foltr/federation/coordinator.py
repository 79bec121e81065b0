"""The coordinator of a deployed federation: collectors of secure sums over a transport, of one server or two operators.

A coordinator never sees an update. It announces the round with the newest ranker, collects what the protocol lets it
collect, and steps by the sum (`round.run_rounds`). A round without a sum is no error: the model stays, `dropped` says
who was missing, and the number of the round is used.

`publish` sends the ranker after a round to all nodes.
"""

import logging
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from foltr.errors import SecureAggregationError
from foltr.federation.announcement import announce, digest_of, ranker_of
from foltr.federation.round import Release, RoundModel, RoundSum
from foltr.federation.schedule import Members
from foltr.federation.two_servers import open_half, read_memory, ring_of
from foltr.secagg import ring
from foltr.secagg.aggregator import Secrets, begin
from foltr.secagg.deadlines import Clock, Transport, conduct, contributions
from foltr.secagg.server import aggregate
from foltr.secagg.terms import Registry, Terms, guaranteed, most_bytes
from foltr.secagg.terms import ring_of as ring_of_terms
from foltr.secagg.two_in_process import agree_on_clients
from foltr.secagg.two_servers import GroupSums, TwoServers, combine, parts

_LOG = logging.getLogger(__name__)  # numbers of rounds and of nodes, never a message or a parameter


class Coordinator(NamedTuple):
    """What both protocols need: whom the coordinator speaks to, and who it is."""

    terms: Terms
    registry: Registry
    identity: Ed25519PrivateKey  # that of `registry.server`
    names: tuple[str, ...]  # of the ranker's parameters
    transport: Transport
    clock: Clock = time.monotonic


class Operator(NamedTuple):
    """One of two aggregators: its secret keys, and where it remembers which sums it opened."""

    secrets: Secrets
    memory: Path
    witness: Path  # in a folder that is not backed up and restored with the first


class OneServer(NamedTuple):
    """Secure sums with one server, in five stages. See `federation.round.Collector`."""

    coordinator: Coordinator

    def collect(self, model: RoundModel, members: Members, round: int, release: Release | None) -> RoundSum:
        if release is None:
            return RoundSum(None, members.clients, {})
        terms, registry = self.coordinator.terms, self.coordinator.registry
        sizes, clients = guaranteed(terms, registry), members.clients.tolist()
        ranker = _announce_round(self.coordinator, model, clients, round)
        asking = aggregate(
            clients, terms=terms, registry=registry, identity=self.coordinator.identity, round=round, ranker=ranker
        )
        try:
            summed = conduct(
                asking, self.coordinator.transport, seconds=terms.stage_seconds,
                most_bytes=most_bytes(terms, sizes, len(registry.clients)), clock=self.coordinator.clock,
            )  # fmt: skip
        except SecureAggregationError as problem:
            return _no_sum(clients, problem)
        delta = ring.decode(summed.total, ring_of_terms(terms, sizes)) / len(summed.included)
        _LOG.info("round %d: %d nodes in the sum, %d dropped", round, len(summed.included), len(summed.dropped))
        return RoundSum(delta, np.array(summed.included), dict(summed.dropped))


class TwoOperators(NamedTuple):
    """Secure sums by two operators, one upload of each node. See `federation.round.Collector`."""

    coordinator: Coordinator
    setup: TwoServers
    operators: tuple[Operator, Operator]

    def collect(self, model: RoundModel, members: Members, round: int, release: Release | None) -> RoundSum:
        if release is None:
            return RoundSum(None, members.clients, {})
        clients, clock = members.clients.tolist(), self.coordinator.clock
        ranker = _announce_round(self.coordinator, model, clients, round)
        arrived = contributions(self.coordinator.transport, setup=self.setup, round=round, clock=clock)
        try:
            sums, refused = self._sums(arrived, round, ranker)
        except SecureAggregationError as problem:
            return _no_sum(clients, problem)
        if sums.beyond.any():
            return _no_sum(clients, SecureAggregationError("a sum that honest nodes cannot have sent is not applied"))
        included = sorted(client for group in sums.members for client in group)
        total = ring.decode(sums.totals.sum(axis=0, dtype=sums.totals.dtype), ring_of(self.setup))
        missing = {client: refused.get(client, "no contribution") for client in clients if client not in included}
        _LOG.info("round %d: %d nodes in the sum, %d missing", round, len(included), len(missing))
        return RoundSum(total / len(included), np.array(included), missing)

    def _sums(self, arrived: dict[int, bytes], round: int, ranker: bytes) -> tuple[GroupSums, dict[int, str]]:
        inboxes: tuple[dict[int, bytes], dict[int, bytes]] = ({}, {})
        refused = {}
        for client, message in arrived.items():
            try:
                inboxes[0][client], inboxes[1][client] = parts(message, setup=self.setup)
            except SecureAggregationError as problem:
                refused[client] = str(problem)
        first, second = (
            begin(
                index, one.secrets, read_memory(one.memory, one.witness, self.setup.terms.federation),
                setup=self.setup, round=round, ranker=ranker,
            )
            for index, one in enumerate(self.operators)
        )  # fmt: skip
        agreed = agree_on_clients((first, second), inboxes)
        halves = [
            open_half(agreed.states[index], agreed.messages[1 - index], path=one.memory, witness=one.witness)
            for index, one in enumerate(self.operators)
        ]
        sums = combine((halves[0], halves[1]), setup=self.setup, round=round, ranker=ranker)
        return sums, refused | agreed.refused[0] | agreed.refused[1]


def publish(coordinator: Coordinator, model: RoundModel, clients: Iterable[int], *, round: int) -> None:
    """Sends the ranker after a round to these nodes."""
    message = announce(
        "version", ranker_of(model.version, coordinator.names, model.parameters),
        federation=coordinator.terms.federation, round=round, identity=coordinator.identity,
    )  # fmt: skip
    coordinator.transport.send(dict.fromkeys(clients, message))


def _announce_round(coordinator: Coordinator, model: RoundModel, clients: list[int], round: int) -> bytes:
    """Sends the ranker that a round begins with; returns its digest."""
    ranker = ranker_of(model.version, coordinator.names, model.parameters)
    message = announce(
        "round", ranker, federation=coordinator.terms.federation, round=round, identity=coordinator.identity
    )
    coordinator.transport.send(dict.fromkeys(clients, message))
    return digest_of(ranker)


def _no_sum(clients: list[int], problem: SecureAggregationError) -> RoundSum:
    _LOG.warning("a round of %d nodes has no sum; the model stays", len(clients))
    return RoundSum(None, np.empty(0, np.int64), dict.fromkeys(clients, f"no sum: {problem}"))
