"""The coordinator of a deployed federation: collectors of secure sums over a transport, of one server or two operators.

A coordinator never sees an update. It announces the round with the newest ranker, collects what the protocol lets it
collect, and steps by the sum (`round.run_rounds`). A round without a sum is no error: the model stays, `dropped` says
who was missing, and the number of the round is used.

`publish` sends the ranker after a round to all nodes.
"""

import logging
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec
import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from foltr.errors import SecureAggregationError
from foltr.federation.announcement import announce, digest_of, ranker_of, with_steps
from foltr.federation.journal import ClosedRound, Journal, read_journal, steps_for, window_of, write_journal
from foltr.federation.opening import checked_question, is_question, opening
from foltr.federation.round import Release, RoundModel, RoundSum
from foltr.federation.schedule import Members
from foltr.federation.server import ServerState
from foltr.federation.steps import SignedSum, Step, delta_of, mean_of, step_back
from foltr.secagg import ring
from foltr.secagg.deadlines import Clock, Transport, conduct, contributions
from foltr.secagg.round_keys import checked_keys, round_of
from foltr.secagg.server import aggregate
from foltr.secagg.terms import Registry, Terms, guaranteed, largest_norm, most_bytes
from foltr.secagg.terms import ring_of as ring_of_terms
from foltr.secagg.two_servers import TwoServers, Window, combine, parts

_LOG = logging.getLogger(__name__)  # numbers of rounds and of nodes, never a message or a parameter
_MOST_QUESTIONS = 10  # of a node in a window


class Coordinator(NamedTuple):
    """The coordinator of either protocol: its identity, its federation and its transport."""

    terms: Terms
    registry: Registry
    identity: Ed25519PrivateKey  # that of `registry.server`
    names: tuple[str, ...]  # of the ranker's parameters
    transport: Transport
    clock: Clock = time.monotonic


class OperatorSide(Protocol):
    """One of two operators; `operator.Operator` where it runs in this process. One that cannot be reached raises
    ConnectionError: its round waits, and the next window opens."""

    def statements(self, first: int) -> tuple[bytes, ...]: ...
    def listing(self, window: Window, parts: Mapping[int, bytes]) -> tuple[bytes, dict[int, str]]: ...
    def agreement(self, window: Window, theirs: bytes) -> bytes: ...
    def half(self, window: Window, agreement: bytes) -> bytes: ...


class Answering(NamedTuple):
    """The transport while a window is open: answers the questions of nodes, and hands on everything else."""

    coordinator: Coordinator
    announcement: bytes
    asked: Counter[int]  # questions of each node
    versions: dict[int, int]  # of the shared ranker that each node has, by its question

    def receive(self, seconds: float) -> tuple[int, bytes] | None:
        coordinator = self.coordinator
        deadline = coordinator.clock() + seconds
        while (left := deadline - coordinator.clock()) > 0 and (received := coordinator.transport.receive(left)):
            client, message = received
            if not is_question(message):
                return received
            self.asked[client] += 1
            question = checked_question(message, client, self.announcement, federation=coordinator.terms.federation)
            if question is not None and self.asked[client] <= _MOST_QUESTIONS:
                self.versions[client] = question.version
                coordinator.transport.send({client: opening(question, coordinator.identity)})
        return None


class OneServer(NamedTuple):
    """Secure sums with one server, in five stages. See `federation.round.Collector`."""

    coordinator: Coordinator

    def collect(self, model: RoundModel, members: Members, round: int, release: Release | None) -> RoundSum:
        if release is None:
            return RoundSum(None, members.clients, {})
        terms, registry = self.coordinator.terms, self.coordinator.registry
        sizes, clients = guaranteed(terms, registry), members.clients.tolist()
        ranker, message = _round_message(self.coordinator, model, round)
        self.coordinator.transport.send(self.addressed(message, clients))
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
        total = ring.decode(summed.total, ring_of_terms(terms, sizes))
        if np.linalg.norm(total) > largest_norm(terms, sizes, len(summed.included)):
            return _no_sum(clients, SecureAggregationError("a sum that honest nodes cannot have sent is not applied"))
        delta = total / len(summed.included)
        _LOG.info("round %d: %d nodes in the sum, %d dropped", round, len(summed.included), len(summed.dropped))
        return RoundSum(delta, np.array(summed.included), dict(summed.dropped))

    def addressed(self, message: bytes, clients: Iterable[int]) -> dict[int, bytes]:
        """The same announcement for each node."""
        return dict.fromkeys(clients, message)


class TwoOperators(NamedTuple):
    """Secure sums by two operators, one upload of each node. See `federation.round.Collector`.

    A round whose second operator is away waits in the journal, and its sum is in the step of a later round. A round is
    announced only while both operators have left statements about its keys.
    """

    coordinator: Coordinator
    setup: TwoServers
    operators: tuple[OperatorSide, OperatorSide]
    journal: Path
    clock: Clock = time.time  # seconds since 1970; that of `coordinator` measures waiting

    def collect(self, model: RoundModel, members: Members, round: int, release: Release | None) -> RoundSum:
        if release is None:
            return RoundSum(None, members.clients, {})
        clients = members.clients.tolist()
        journal = self._with_statements(read_journal(self.journal, self.setup.terms.federation), round)
        try:
            statements = _statements_of(journal, round)
            keys = checked_keys(statements, setup=self.setup, round=round, now=self.clock())
        except SecureAggregationError as problem:
            _LOG.warning("round %d is not announced: an operator left no key for it", round)
            missing, arrived = dict.fromkeys(clients, f"round {round} is not announced: {problem}"), {}
        else:
            ranker, message = _round_message(self.coordinator, model, round, statements)
            self.coordinator.transport.send(self.addressed(message, clients))
            answering = Answering(self.coordinator, message, Counter(), {})
            arrived = contributions(answering, setup=self.setup, round=round, clock=self.coordinator.clock)
            missing = dict.fromkeys((client for client in clients if client not in arrived), "no contribution")
            journal = msgspec.structs.replace(
                journal, waiting=(*journal.waiting, ClosedRound(round, ranker, keys, arrived)),
                versions=journal.versions | answering.versions,
            )  # fmt: skip
            write_journal(self.journal, journal)
        return self._sum_of_waiting(journal, model, clients, missing)

    def addressed(self, message: bytes, clients: Iterable[int]) -> dict[int, bytes]:
        """The announcement for each node, with the steps that it lacks."""
        journal = read_journal(self.journal, self.setup.terms.federation)
        return {client: with_steps(message, steps_for(journal, client)) for client in clients}

    def _with_statements(self, journal: Journal, round: int) -> Journal:
        """The journal with the keys of the next rounds; of an operator that is away, with those that it left."""
        left = []
        for stored, operator in zip(journal.statements, self.operators, strict=True):
            try:
                fresh = {round_of(statement): statement for statement in operator.statements(round)}
            except ConnectionError:
                fresh = {}
            left.append({number: statement for number, statement in (stored | fresh).items() if number >= round})
        return write_journal(self.journal, msgspec.structs.replace(journal, statements=(left[0], left[1])))

    def _sum_of_waiting(
        self, journal: Journal, model: RoundModel, clients: list[int], missing: dict[int, str]
    ) -> RoundSum:
        """Asks for the halves of all rounds that wait, oldest first; their means add up to one step."""
        for waiting in journal.waiting:
            summed = journal.summed
            try:
                signed, _, refused = signed_sum(waiting, self.setup, self.operators)
            except ConnectionError as problem:
                reason = f"round {waiting.round} waits for an operator: {problem}"
                missing = dict.fromkeys(waiting.arrived, reason) | missing
                break
            except SecureAggregationError as problem:
                missing |= dict.fromkeys(clients, f"no sum: {problem}")
                _LOG.warning("round %d of %d nodes has no sum; the model stays", waiting.round, len(clients))
            else:
                summed, missing = (*summed, signed), missing | refused
            journal = msgspec.structs.replace(journal, waiting=journal.waiting[1:], summed=summed)
            write_journal(self.journal, journal)
        if not journal.summed:
            return RoundSum(None, np.empty(0, np.int64), missing)
        delta, included = delta_of(journal.summed, self.setup)
        step = Step(model.version + 1, journal.summed)
        write_journal(self.journal, msgspec.structs.replace(journal, summed=(), steps=(*journal.steps, step)))
        _LOG.info("version %d: %d nodes in its sums", step.version, len(included))
        out = {client: reason for client, reason in missing.items() if client not in included}
        return RoundSum(delta, np.array(included, np.int64), out)


def signed_sum(
    waiting: ClosedRound, setup: TwoServers, operators: tuple[OperatorSide, OperatorSide]
) -> tuple[SignedSum, list[int], dict[int, str]]:
    """The halves of a round, the nodes in it, and which are not; refuses a sum that honest nodes cannot have sent.

    Asked again after a ConnectionError of an operator, it goes on where it was: both store what they signed."""
    window = window_of(waiting, setup)
    inboxes: tuple[dict[int, bytes], dict[int, bytes]] = ({}, {})
    refused = {}
    for client, message in waiting.arrived.items():
        try:
            inboxes[0][client], inboxes[1][client] = parts(message, setup=setup)
        except SecureAggregationError as problem:
            refused[client] = str(problem)
    lists = [operator.listing(window, inbox) for operator, inbox in zip(operators, inboxes, strict=True)]
    agreements = [operators[index].agreement(window, lists[1 - index][0]) for index in (0, 1)]
    first, second = (operators[index].half(window, agreements[1 - index]) for index in (0, 1))
    _, included = mean_of(combine((first, second), window=window), setup)
    signed = SignedSum(waiting.round, waiting.ranker, waiting.keys, (first, second))
    return signed, included, refused | lists[0][1] | lists[1][1]


def go_back(collector: TwoOperators, state: ServerState, earlier: ServerState, reason: str) -> ServerState:
    """A new version with the parameters of an earlier one; nodes are told the reason, and go back ten at most."""
    coordinator, version = collector.coordinator, state.version + 1
    step = step_back(
        coordinator.identity, federation=coordinator.terms.federation, version=version, back_to=earlier.version,
        reason=reason,
    )  # fmt: skip
    journal = read_journal(collector.journal, coordinator.terms.federation)
    write_journal(collector.journal, msgspec.structs.replace(journal, steps=(*journal.steps, step)))
    return state._replace(version=version, parameters=earlier.parameters)


def _statements_of(journal: Journal, round: int) -> tuple[bytes, ...]:
    """Of both operators about their keys of a round; fewer where one left none."""
    return tuple(left[round] for left in journal.statements if round in left)


def publish(collector: OneServer | TwoOperators, model: RoundModel, clients: Iterable[int], *, round: int) -> None:
    """Sends the ranker after a round to these nodes."""
    coordinator = collector.coordinator
    message = announce(
        "version", ranker_of(model.version, coordinator.names, model.parameters),
        federation=coordinator.terms.federation, round=round, identity=coordinator.identity,
    )  # fmt: skip
    coordinator.transport.send(collector.addressed(message, clients))


def _round_message(
    coordinator: Coordinator, model: RoundModel, round: int, statements: tuple[bytes, ...] = ()
) -> tuple[bytes, bytes]:
    """The digest of the ranker that a round begins with, and the announcement."""
    ranker = ranker_of(model.version, coordinator.names, model.parameters)
    message = announce(
        "round", ranker, federation=coordinator.terms.federation, round=round, identity=coordinator.identity,
        statements=statements,
    )  # fmt: skip
    return digest_of(ranker), message


def _no_sum(clients: list[int], problem: SecureAggregationError) -> RoundSum:
    _LOG.warning("a round of %d nodes has no sum; the model stays", len(clients))
    return RoundSum(None, np.empty(0, np.int64), dict.fromkeys(clients, f"no sum: {problem}"))
