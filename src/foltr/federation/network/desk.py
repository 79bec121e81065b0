"""The coordinator's desk: a request of an authenticated key in, a reply out, whatever the transport.

`handle` is a function of the database, the endpoint, the key that signed the request, the body and the time. HTTPS
(`network.server`) and tests in memory (`in_memory`) call the same function. A refusal is `errors.Refused`, with a
reason for the person at the other machine; everything durable is on the disk before a reply leaves.
"""

from collections.abc import Callable

import msgspec

from foltr.errors import FoltrError, Refused
from foltr.federation.announcement import announce, with_steps
from foltr.federation.network import enrolment, inbox, rounds, shared_ranker, wire
from foltr.federation.network.charter import Clock, Desk
from foltr.federation.network.wire import Post, decode, encode
from foltr.federation.opening import checked_question, opening
from foltr.federation.registries import Link

MOST_PARTS = 8_000_000  # bytes of parts in one reply to the second operator
SMALL = 4096  # bytes of a request that is no contribution and no answer
_MOST_FATES = 50


def handle(desk: Desk, endpoint: str, sender: bytes, body: bytes, now: float) -> bytes:
    """The reply to a request that `sender` signed."""
    answer = _ENDPOINTS.get(endpoint)
    if answer is None:
        raise Refused(f"there is no endpoint {endpoint[:40]!r}")
    if len(body) > body_limit(desk, endpoint):
        raise Refused(
            f"a request of {len(body):,} bytes to {endpoint}; at most {body_limit(desk, endpoint):,} are read"
        )
    return answer(desk, sender, body, now)


def body_limit(desk: Desk, endpoint: str) -> int:
    """Bytes of the longest request to an endpoint; a transport reads no more."""
    terms = desk.charter.terms
    if endpoint == "contribute":
        return terms.length * terms.bits // 8 + SMALL
    if endpoint == "operator/answer":  # a list: digests of all members and reasons; a half: the vector
        members = desk.store.value("SELECT COUNT(*) FROM members") or 0
        return terms.length * terms.bits // 8 + 300 * members + SMALL
    return SMALL


def in_memory(desk: Desk, sender: bytes, clock: Clock) -> Post:
    """A connection to a desk in the same process."""
    return lambda endpoint, body: handle(desk, endpoint, sender, body, clock())


# --- of a node ------------------------------------------------------------------------------------------------------


def _join(desk: Desk, sender: bytes, body: bytes, now: float) -> bytes:
    request = decode(body, wire.JoinRequest)
    _require_protocol(request.protocol)
    return encode(enrolment.join(desk, sender, request, now))


def _announcement(desk: Desk, sender: bytes, body: bytes, now: float) -> bytes:
    request, client = _synced(desk, sender, body, now)
    current = rounds.open_round(desk)
    message = b""
    if current is not None and client in enrolment.known(desk, current.registry).keys and now < current.closes:
        message = _with_steps(desk, rounds.announcement_of(desk, current.round), request.version)
    return encode(_current(desk, client, request, message))


def _open(desk: Desk, sender: bytes, body: bytes, now: float) -> bytes:
    client, current = _member(desk, sender, now), rounds.open_round(desk)
    if current is None or now >= current.closes:
        raise Refused("no round is open")
    if client not in enrolment.known(desk, current.registry).keys:
        raise Refused(f"member {client} is not in the registry of round {current.round}")
    message = rounds.announcement_of(desk, current.round)
    question = checked_question(body, client, message, federation=desk.charter.terms.federation)
    if question is None:
        raise Refused(f"not a question of member {client} about round {current.round}")
    inbox.note_opening(desk, current.round, client)
    return opening(question, desk.identity)


def _contribute(desk: Desk, sender: bytes, body: bytes, now: float) -> bytes:
    client = _member(desk, sender, now)
    round, digest, received = inbox.receive(desk, client, body, now)
    return encode(
        wire.receipt(
            desk.identity, desk.charter.terms.federation, round=round, client=client, digest=digest, received=received
        )
    )


def _version(desk: Desk, sender: bytes, body: bytes, now: float) -> bytes:
    request, client = _synced(desk, sender, body, now)
    message = b""
    newest = shared_ranker.newest_shared(desk)
    if newest.version > request.version:
        plain = announce(
            "version", shared_ranker.newest_ranker(desk), federation=desk.charter.terms.federation, round=newest.round,
            identity=desk.identity,
        )  # fmt: skip
        message = _with_steps(desk, plain, request.version)
    return encode(_current(desk, client, request, message))


def _fates(desk: Desk, sender: bytes, body: bytes, now: float) -> bytes:
    request, client = decode(body, wire.RoundsRequest), _member(desk, sender, now)
    found = []
    rows = desk.store.rows(
        "SELECT round, state, reason, included, registry FROM rounds ORDER BY round DESC LIMIT ?",
        max(1, min(request.most, _MOST_FATES)),
    )
    for round, state, reason, included, registry in rows:
        inside = included is not None and client in msgspec.msgpack.decode(included, type=list[int])
        fate = desk.store.value("SELECT reason FROM receipts WHERE round = ? AND client = ?", round, client)
        if not inside and not reason and state in ("opened", "published"):
            member = registry and client in enrolment.known(desk, registry).keys
            reason = fate or ("no contribution arrived in time" if member else "not in the registry of the round")
        found.append(wire.Fate(round, state, fate is not None, inside, reason))
    return encode(wire.Fates(tuple(found)))


def _leave(desk: Desk, sender: bytes, body: bytes, now: float) -> bytes:  # noqa: ARG001
    client = enrolment.client_of(desk, sender)
    if client is None:
        raise Refused("this key is no member")
    enrolment.leave(desk, client, now)
    return b""


def _synced(desk: Desk, sender: bytes, body: bytes, now: float) -> tuple[wire.SyncRequest, int]:
    request, client = decode(body, wire.SyncRequest), _member(desk, sender, now)
    _require_protocol(request.protocol)
    newest = shared_ranker.newest_shared(desk).version
    if not 0 <= request.version <= newest:
        raise Refused(
            f"this node has version {request.version} of the shared ranker and the coordinator {newest}: the "
            f"coordinator was restored from a backup; nothing is sent until it says what happened"
        )
    return request, client


def _current(desk: Desk, client: int, request: wire.SyncRequest, message: bytes) -> wire.Current:
    newest = rounds.newest_round(desk)
    editions = enrolment.editions_after(desk, request.registry, shared_ranker.oldest_registry(desk, request.version))
    return wire.Current(
        _standing(desk, client), client, editions, message, newest.round if newest else 0,
        newest.state if newest else "none", newest.closes if newest else 0.0,
        rehearsal=newest is not None and rounds.is_rehearsal(desk, newest.round),
    )  # fmt: skip


def _standing(desk: Desk, client: int) -> wire.Standing:
    admitted, removed = desk.store.rows("SELECT admitted, removed FROM members WHERE client = ?", client)[0]
    number = enrolment.effective(desk)
    if removed:
        return "removed"
    if number and client in enrolment.known(desk, number).keys:
        return "member"
    before = any(client in enrolment.known(desk, earlier).keys for earlier in range(max(1, number - 3), number))
    return "dormant" if admitted and before else "waiting"


def _with_steps(desk: Desk, message: bytes, version: int) -> bytes:
    return with_steps(message, msgspec.msgpack.encode(shared_ranker.steps_after(desk, version)))


def _member(desk: Desk, sender: bytes, now: float) -> int:
    """The number of the node whose key signed; a stranger, and one that left, are refused."""
    row = desk.store.row("SELECT client, removed, seen FROM members WHERE key = ?", sender)
    if row is None:
        raise Refused("this key is no member of the federation; join with an invitation")
    client, removed, seen = row
    if removed:
        raise Refused(f"member {client} left or was removed")
    if now - seen > _SEEN_SECONDS:
        desk.store.execute("UPDATE members SET seen = ? WHERE client = ?", now, client)
    return int(client)


_SEEN_SECONDS = 3600.0  # a member is seen at most so often: not every request is a write


# --- of the second operator -----------------------------------------------------------------------------------------


def _operator_join(desk: Desk, sender: bytes, body: bytes, now: float) -> bytes:
    request = decode(body, wire.OperatorJoin)
    _require_protocol(request.protocol)
    return encode(enrolment.join_operator(desk, sender, request, now))


def _work(desk: Desk, sender: bytes, body: bytes, now: float) -> bytes:
    _require_second(desk, sender)
    _require_protocol(decode(body, wire.WorkRequest).protocol)
    enrolment.note_second(desk, now)
    rounds.advance(desk, now)
    between = rounds.open_round(desk) is None and rounds.waiting_round(desk) is None
    proposal = enrolment.proposal(desk) if between else None
    return encode(wire.Work(rounds.statements_from(desk), proposal, inbox.work_for_second(desk, now)))


def _statements(desk: Desk, sender: bytes, body: bytes, now: float) -> bytes:
    _require_second(desk, sender)
    try:
        rounds.store_statements(desk, 1, decode(body, tuple[bytes, ...]))
    except FoltrError as problem:
        raise Refused(str(problem)) from None
    rounds.advance(desk, now)
    return b""


def _registry(desk: Desk, sender: bytes, body: bytes, now: float) -> bytes:
    _require_second(desk, sender)
    enrolment.countersigned(desk, decode(body, Link), now)
    rounds.advance(desk, now)
    return b""


def _parts(desk: Desk, sender: bytes, body: bytes, now: float) -> bytes:  # noqa: ARG001
    _require_second(desk, sender)
    request = decode(body, wire.PartsRequest)
    return encode(wire.Parts(inbox.parts_for_second(desk, request.round, request.after, MOST_PARTS)))


def _answer(desk: Desk, sender: bytes, body: bytes, now: float) -> bytes:
    _require_second(desk, sender)
    inbox.answer_of_second(desk, decode(body, wire.OperatorAnswer))
    rounds.advance(desk, now)
    return b""


def _require_second(desk: Desk, sender: bytes) -> None:
    if sender != enrolment.second_operator(desk):
        raise Refused("this key is not the second operator's")


def _require_protocol(number: int) -> None:
    if not wire.OLDEST_PROTOCOL <= number <= wire.PROTOCOL:
        raise Refused(
            f"protocol {number} is not spoken here ({wire.OLDEST_PROTOCOL} to {wire.PROTOCOL} are); use neighbouring "
            f"versions of foltr on all machines"
        )


_ENDPOINTS: dict[str, Callable[[Desk, bytes, bytes, float], bytes]] = {
    "join": _join, "announcement": _announcement, "open": _open, "contribute": _contribute, "version": _version,
    "rounds": _fates, "leave": _leave, "operator/join": _operator_join, "operator/work": _work,
    "operator/statements": _statements, "operator/registry": _registry, "operator/parts": _parts,
    "operator/answer": _answer,
}  # fmt: skip
