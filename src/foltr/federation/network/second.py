"""The second operator: asks the coordinator for work over connections of its own, signs, and forgets nothing.

It never listens. Every few seconds it asks; the coordinator answers with a registry to countersign, rounds whose keys
are missing, or a closed round that needs its list, agreement or half. It holds every registry that it countersigned and
works on no other, so a coordinator that shows nodes another registry gets no half for it. What leaves is stored before
(`operator`, `registries.countersign`); asked again, it sends the same bytes.
"""

import logging
from pathlib import Path
from typing import NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from foltr.errors import SecureAggregationError, SpecError
from foltr.federation.membership import Clock, Storage
from foltr.federation.network import wire
from foltr.federation.network.wire import OperatorAnswer, Post, RoundWork, decode, encode
from foltr.federation.operator import Operator
from foltr.federation.registries import Held, changed_members, countersign, read_held, store_held
from foltr.secagg.terms import Terms, registry
from foltr.secagg.two_servers import Pair, TwoServers, Window, two_servers

_LOG = logging.getLogger(__name__)  # numbers of rounds and registries only
_KEPT = 20  # registries on the disk
_MOST_ASKED = 8  # requests for work in one turn: a round takes four


class SecondOperator(NamedTuple):
    identity: Ed25519PrivateKey
    terms: Terms
    coordinator: bytes  # identity that signs registries; from the invitation
    operators: Pair
    storage: Storage
    post: Post
    clock: Clock

    def __repr__(self) -> str:
        return f"SecondOperator(federation={self.terms.federation!r})"  # no secret reaches a log


def work(second: SecondOperator) -> int:
    """Does everything that the coordinator asks for now; the number of tasks. ConnectionError where it is away."""
    done = 0
    for _ in range(_MOST_ASKED):
        asked = decode(second.post("operator/work", encode(wire.WorkRequest())), wire.Work)
        tasks = _statements(second, asked) + _registry(second, asked) + sum(_round(second, one) for one in asked.rounds)
        done += tasks
        if not tasks:
            break
    return done


def _statements(second: SecondOperator, asked: wire.Work) -> int:
    if not asked.statements_from:
        return 0
    newest = newest_held(second)
    if newest is None:
        return 0
    statements = _operator(second, _setup(second, newest)).statements(asked.statements_from)
    if not statements:
        return 0
    second.post("operator/statements", encode(statements))
    return 1


def _registry(second: SecondOperator, asked: wire.Work) -> int:
    """Countersigns a registry; the members are on the disk before the signature."""
    proposal = asked.proposal
    if proposal is None:
        return 0
    before = _held(second, proposal.head.number - 1)
    if before is None and proposal.head.number > 1:
        raise SecureAggregationError(
            f"registry {proposal.head.number} is to follow one that this operator does not hold; its folder was "
            f"restored from an old backup: restore a newer one, or take a new identity"
        )
    members = changed_members(before.members if before else {}, proposal.added, proposal.removed)
    link = countersign(
        proposal.head, proposal.signature, members, coordinator=second.coordinator, identity=second.identity,
        path=second.storage.witness / "registry", round_open=bool(asked.rounds),
    )  # fmt: skip
    store_held(_path(second, proposal.head.number), Held(link, members))
    _path(second, proposal.head.number - _KEPT).unlink(missing_ok=True)
    second.post("operator/registry", encode(link))
    _LOG.info("registry %d of %d members is countersigned", link.head.number, link.head.members)
    return 1


def _round(second: SecondOperator, asked: RoundWork) -> int:
    held = _held(second, asked.registry)
    try:
        if held is None:
            raise SecureAggregationError(f"this operator has not countersigned registry {asked.registry}")
        setup = _setup(second, held)
        answer = _answer(second, _operator(second, setup), Window(setup, asked.round, asked.ranker, asked.keys), asked)
    except (SecureAggregationError, SpecError) as problem:
        _LOG.warning("round %d has no sum: %s", asked.round, problem)
        answer = OperatorAnswer(asked.round, "failure", str(problem)[:200].encode())
    second.post("operator/answer", encode(answer))
    return 1


def _answer(second: SecondOperator, operator: Operator, window: Window, asked: RoundWork) -> OperatorAnswer:
    if asked.stage == "list":
        listing, refused = operator.listing(window, _parts(second, asked.round))
        return OperatorAnswer(asked.round, "listing", listing, refused)
    if asked.stage == "agree":
        return OperatorAnswer(asked.round, "agreement", operator.agreement(window, asked.theirs))
    return OperatorAnswer(asked.round, "half", operator.half(window, asked.theirs))


def _parts(second: SecondOperator, round: int) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    while True:
        request = encode(wire.PartsRequest(round, max(found, default=-1)))
        more = decode(second.post("operator/parts", request), wire.Parts).parts
        if not more or set(more) <= set(found):
            return found
        found |= more


def newest_held(second: SecondOperator) -> Held | None:
    """The newest registry that this operator countersigned."""
    folder = second.storage.folder / "registries"
    numbers = [int(path.name) for path in folder.glob("*") if path.name.isdecimal()]
    return _held(second, max(numbers)) if numbers else None


def _held(second: SecondOperator, number: int) -> Held | None:
    return read_held(_path(second, number)) if number > 0 else None


def _path(second: SecondOperator, number: int) -> Path:
    return second.storage.folder / "registries" / str(number)


def _setup(second: SecondOperator, held: Held) -> TwoServers:
    return two_servers(second.terms, registry(second.coordinator, held.members), second.operators)


def _operator(second: SecondOperator, setup: TwoServers) -> Operator:
    return Operator(1, second.identity, setup, second.storage, clock=second.clock)
