"""A draw: 32 bytes that neither the server nor any client can choose, and from them the cohort of a round.

    commit    each client sends the digest of 32 random bytes
    close     the server names who takes part and shows the root of a tree over all digests, with the client's place in
              it; the client signs that list, and no other in this attempt
    reveal    on the certificate that more than half of the honest clients signed the same list (`claims`), the client
              opens its value
    settle    whoever is drawn gets all values, computes the root from them again, and from both the seed

A few who committed may open nothing. If more do, the whole draw is repeated without them, with fresh values: `sizes`
says how many, how often, and why.

Guarantee, against a malicious server with `corrupt` of the registry: each attempt has one list at most for which honest
clients open, but for 2^-80 for each hash that is evaluated; all values in it were fixed when the first honest one was
opened; so each of its results is uniform, and the server has `sizes.results` to choose from. Two of them are two
contexts of a round: nobody is in both.

Groups (`secagg.groups`) use the seed of a draw without a cohort. A client that is drawn receives 32 bytes for each
registered client, the others the certificate. `draw_server` has the server's side.

Differs from the literature on public randomness: as `sizes` says.
"""

from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256
from typing import Any, ClassVar

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from foltr.errors import SecureAggregationError
from foltr.secagg import certificate, claims, cohort, crypto, graph, messages, rules
from foltr.secagg.claims import Claim
from foltr.secagg.crypto import SECRET, SIGNATURE, HidesSecrets, label
from foltr.secagg.guarantee import Guarantee
from foltr.secagg.lot.sizes import ATTEMPTS, draw_sizes, most_missing
from foltr.secagg.messages import DRAW_STAGES, Address, Direction, DrawStage, draw_stage
from foltr.secagg.terms import Drawn, Registry, Terms, context, guaranteed, is_by_lot, require_registered, set_of

DIGEST = 32
_REQUESTS: dict[DrawStage, type[messages.Body]] = dict(
    zip(DRAW_STAGES, (messages.Start, messages.Closed, messages.Certificate, messages.Values), strict=True)
)


class Entrant(HidesSecrets, msgspec.Struct, frozen=True, kw_only=True):
    """One client in the draw of one round; what it has not reached is empty."""

    id: int
    identity: Ed25519PrivateKey
    terms: Terms
    registry: Registry
    round: int
    context: bytes  # of the round, before there is a seed
    sizes: Guarantee  # of the draw
    most_bytes: int  # of a request
    attempt: int = -1
    done: int = 0  # stages answered of this attempt
    value: bytes = b""  # secret until it is opened
    members: bytes = b""  # who takes part, as a set
    root: bytes = b""  # of the tree over their commitments
    drawn: Drawn | None = None

    shown: ClassVar[tuple[str, ...]] = ("id", "round", "attempt", "done")


# --- what both sides compute ------------------------------------------------------------------------------------------


def sizes_of(terms: Terms, known: Registry) -> Guarantee:
    return draw_sizes(len(known.clients), dropouts=terms.dropouts, corrupt=terms.corrupt)


def result(terms: Terms, known: Registry, claim: bytes, opened: bytes, values: bytes) -> Drawn:
    """The seed, and the cohort that it draws from those who opened; all of them where cohorts are not drawn."""
    seed, present = sha256(label("draw seed", claim, opened, values)).digest(), set_of(opened, known)
    if not is_by_lot(terms, known):
        return Drawn(seed, present)
    return Drawn(seed, cohort.by_lot(seed, present, guaranteed(terms, known).cohort))


@lru_cache(maxsize=64)
def most_bytes(sizes: Guarantee) -> int:
    """No message of a draw is longer; checked before it is decoded."""
    of_certificate = sizes.cohort + SIGNATURE * certificate.needed(sizes)
    return 4096 + sizes.cohort + max(of_certificate, SECRET * sizes.cohort)


def in_attempt(context: bytes, attempt: int) -> bytes:
    return sha256(label("draw", context, attempt)).digest()


def commitment(context: bytes, client: int, value: bytes) -> bytes:
    """`context` identifies the attempt; a commitment is valid for one attempt only."""
    return sha256(label("draw commitment", context, client, value)).digest()


def tree(commitments: Mapping[int, bytes]) -> list[list[bytes]]:
    """Levels of the hash tree over the commitments, in the order of clients."""
    return graph.merkle_levels([graph.merkle_leaf(commitments[client]) for client in sorted(commitments)])


def claim_of(
    context: bytes, members: bytes, root: bytes, *, attempt: int, terms: Terms, known: Registry, round: int
) -> Claim:
    """`context` identifies the attempt."""
    digest, stage = sha256(label("draw closed", context, members, root)).digest(), draw_stage("close", attempt)
    everybody, sizes = frozenset(known.clients), sizes_of(terms, known)
    return Claim("the list of commitments", digest, context, round, stage, known, everybody, sizes, terms.failure)


def begins_attempt(request: bytes) -> bool:
    """Whether a request claims to begin an attempt; its signature is not checked."""
    header = messages.header_of(request)
    return header is not None and header.stage.split(" ")[0] == DRAW_STAGES[0]


# --- the client -------------------------------------------------------------------------------------------------------


def enter(
    id: int, identity: Ed25519PrivateKey, *, terms: Terms, registry: Registry, round: int, ranker: bytes
) -> Entrant:
    """A client before the draw of a round; `federation.draws` stores its states, and nothing else may answer twice."""
    require_registered(id, identity, registry)
    sizes = sizes_of(terms, registry)
    return Entrant(
        id=id, identity=identity, terms=terms, registry=registry, round=round, sizes=sizes,
        context=context(terms, registry, round, ranker), most_bytes=most_bytes(sizes),
    )  # fmt: skip


def answer(state: Entrant, request: bytes) -> tuple[Entrant, bytes]:
    """The state after a request, and the reply; a request that may not be answered raises."""
    if len(request) > state.most_bytes:
        _require(state, False, f"a request of {len(request)} bytes; {state.most_bytes} at most")
    _require(state, state.drawn is None, "it has its result and takes part in no further attempt")
    stage: DrawStage = "commit"
    if begins_attempt(request):
        attempt = state.attempt + 1
        left = rules.tries_left(attempt, ATTEMPTS)
        _require(state, left, f"attempt {attempt + 1} of a draw, {ATTEMPTS} at most")
        state = msgspec.structs.replace(state, attempt=attempt, done=0, value=b"", members=b"", root=b"")
    else:
        _require(state, state.attempt >= 0, "no attempt has begun")
        stage = DRAW_STAGES[state.done]
    body = messages.receive(request, _address(state, "request", stage), state.registry.server, _REQUESTS[stage])
    state, reply = _HANDLERS[stage](state, body)
    return msgspec.structs.replace(state, done=state.done + 1), messages.send(
        state.identity, _address(state, "reply", stage), reply
    )


def _commit(state: Entrant, _: messages.Start) -> tuple[Entrant, messages.Commitment]:
    state = msgspec.structs.replace(state, value=crypto.new_secret())
    return state, messages.Commitment(commitment(_now(state), state.id, state.value))


def _close(state: Entrant, body: messages.Closed) -> tuple[Entrant, messages.Agreement]:
    members = set_of(body.members, state.registry)
    _require(state, rules.takes_part(state.id, members), "it is asked for its signature but takes no part")
    enough = rules.enough_members(len(members), state.sizes.min_clients)
    _require(state, enough, f"{len(members)} clients take part, at least {state.sizes.min_clients} are needed")
    own = graph.merkle_leaf(commitment(_now(state), state.id, state.value))
    root = graph.merkle_root(own, sorted(members).index(state.id), len(members), body.path)
    _require(state, rules.own_value_counted(body.root, root), "its commitment is not in the list")
    state = msgspec.structs.replace(state, members=body.members, root=body.root)
    return state, messages.Agreement(_closed(state).digest)


def _reveal(state: Entrant, shown: messages.Certificate) -> tuple[Entrant, messages.Value]:
    problem = claims.refusal(_closed(state), shown)
    _require(state, not problem, problem)
    return state, messages.Value(state.value)


def _settle(state: Entrant, body: messages.Values) -> tuple[Entrant, messages.Agreement]:
    members, opened = sorted(set_of(state.members, state.registry)), set_of(body.opened, state.registry)
    each = [body.values[k : k + SECRET] for k in range(0, len(body.values), SECRET)]
    _require(state, len(body.values) == SECRET * len(members), f"{len(body.values)} bytes of {len(members)} values")
    _require(state, rules.takes_part(state.id, opened) and opened <= set(members), "values of others than took part")
    missing, allowed = len(members) - len(opened), most_missing(len(state.registry.clients))
    _require(state, rules.few_missing(missing, allowed), f"{missing} values are missing, {allowed} may be")
    now = _now(state)
    again = {
        client: commitment(now, client, one) if client in opened else one
        for client, one in zip(members, each, strict=True)
    }
    _require(state, rules.values_fit(state.root, tree(again)[-1][0]), "values that nobody committed to")
    drawn = result(state.terms, state.registry, _closed(state).digest, body.opened, body.values)
    return msgspec.structs.replace(state, drawn=drawn, value=b""), messages.Agreement(drawn.seed)


def _closed(state: Entrant) -> Claim:
    return claim_of(
        _now(state), state.members, state.root,
        attempt=state.attempt, terms=state.terms, known=state.registry, round=state.round,
    )  # fmt: skip


def _now(state: Entrant) -> bytes:
    return in_attempt(state.context, state.attempt)


def _address(state: Entrant, direction: Direction, stage: DrawStage) -> Address:
    return Address(_now(state), state.round, direction, draw_stage(stage, state.attempt), state.id)


def _require(state: Entrant, holds: bool, what: str) -> None:
    if not holds:
        raise SecureAggregationError(f"client {state.id}, draw of round {state.round}: {what}; nothing is sent")


_HANDLERS: dict[DrawStage, Any] = {"commit": _commit, "close": _close, "reveal": _reveal, "settle": _settle}
