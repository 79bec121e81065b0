"""Who is in the federation: invitations, joining, admission, leaving, and the registries that follow from them.

A registry is proposed between rounds, kept until the second operator countersigned it, and takes effect between rounds:
one that waits for its sum keeps the registry that it was announced with. A proposal that left is never replaced, since
the second operator signs one registry a number.
"""

import os
from hashlib import sha256

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from foltr.errors import InputError, Refused
from foltr.federation.announcement import digest_of as ranker_digest
from foltr.federation.network import wire
from foltr.federation.network.charter import DAY, Desk
from foltr.federation.network.invitation import Invitation
from foltr.federation.network.wire import Proposal
from foltr.federation.registries import Edition, Held, Link, changed_members, propose
from foltr.federation.registries import digest_of as head_digest
from foltr.secagg import crypto
from foltr.secagg.terms import Registry, registry
from foltr.secagg.two_servers import Pair, TwoServers, two_servers

_SECOND, _SEEN, _PROPOSAL, _EFFECTIVE = "second operator", "second operator seen", "proposal", "effective registry"
_SEEN_SECONDS = 60.0


def public(identity: Ed25519PrivateKey) -> bytes:
    return identity.public_key().public_bytes_raw()


# --- invitations ----------------------------------------------------------------------------------------------------


def invite(
    desk: Desk, certificate: bytes, now: float, *, version: int, round: int, ranker: bytes
) -> tuple[int, Invitation]:
    """An invitation of one node and its number. `ranker`: of `version`, encoded."""
    operators = pair(desk)
    return _invited(desk, "node", operators, certificate, now, (version, round, ranker))


def invite_operator(desk: Desk, certificate: bytes, now: float, ranker: bytes) -> tuple[int, Invitation]:
    """The invitation of the second operator; there is one at a time."""
    if second_operator(desk) is not None:
        raise InputError("this federation has its second operator; `foltr coordinator status` shows its fingerprint")
    with desk.store.transaction():
        desk.store.execute("UPDATE invitations SET revoked = 1 WHERE role = 'operator'")
        return _invited(desk, "operator", (public(desk.operator), b""), certificate, now, (0, 0, ranker))


def _invited(
    desk: Desk, role: str, operators: Pair, certificate: bytes, now: float, start: tuple[int, int, bytes]
) -> tuple[int, Invitation]:
    store, settings, charter = desk.store, desk.settings, desk.charter
    code, expires = os.urandom(wire.CODE_BYTES), now + settings.invitation_days * DAY
    version, round, ranker = start
    with store.transaction():
        number = (store.value("SELECT MAX(number) FROM invitations") or 0) + 1
        store.execute(
            "INSERT INTO invitations (code, role, number, expires, version) VALUES (?, ?, ?, ?, ?)",
            _stored(code),
            role,
            number,
            expires,
            version,
        )
        store.put(f"ranker {version}", ranker)
        store.note(now, f"invitation {number} ({role}) was written; it expires after {settings.invitation_days:g} days")
    return number, Invitation(
        "operator" if role == "operator" else "node", charter.kind, settings.name, settings.address, certificate, code,
        expires, charter.terms, public(desk.identity), operators, version, round, ranker_digest(ranker),
        charter.server_learning_rate,
    )  # fmt: skip


def revoke_invitation(desk: Desk, number: int, now: float) -> None:
    with desk.store.transaction():
        used = desk.store.row("SELECT used, role FROM invitations WHERE number = ?", number)
        if used is None:
            raise InputError(f"there is no invitation {number}; `foltr coordinator status` lists them")
        desk.store.execute("UPDATE invitations SET revoked = 1 WHERE number = ?", number)
        desk.store.note(now, f"invitation {number} was revoked")


def _use_code(desk: Desk, code: bytes, role: str, sender: bytes, now: float) -> None:
    """Refuses a code that is unknown, over, revoked or was used by another key; within a transaction."""
    row = desk.store.row(
        "SELECT expires, used, revoked, number FROM invitations WHERE code = ? AND role = ?", _stored(code), role
    )
    if row is None:
        raise Refused("this invitation is unknown here; ask the coordinator for another")
    expires, used, revoked, number = row
    if revoked:
        raise Refused("this invitation was revoked; ask the coordinator for another")
    if used is not None and used != sender:
        raise Refused("this invitation was used by another machine; ask the coordinator for another, and tell it")
    if used is None and now > expires:
        raise Refused("this invitation is over; ask the coordinator for another")
    if used is None:
        desk.store.execute("UPDATE invitations SET used = ? WHERE code = ?", sender, _stored(code))
        desk.store.note(now, f"invitation {number} was used")


def _stored(code: bytes) -> bytes:
    return sha256(b"foltr code" + code).digest()


# --- joining and leaving --------------------------------------------------------------------------------------------


def join(desk: Desk, sender: bytes, request: wire.JoinRequest, now: float) -> wire.JoinReply:
    """The number of a node; asked again by the same key, the same."""
    parties = {public(desk.identity), *pair(desk)}
    if not crypto.is_identity(sender) or sender in parties:
        raise Refused("a node needs an Ed25519 key of its own")
    with desk.store.transaction():
        client = client_of(desk, sender)
        if client is None:
            _use_code(desk, request.code, "node", sender, now)
            client = (desk.store.value("SELECT MAX(client) FROM members") or 0) + 1
            admitted = int(desk.settings.admission == "invitation")
            desk.store.execute(
                "INSERT INTO members (client, key, joined, seen, admitted) VALUES (?, ?, ?, ?, ?)",
                client, sender, now, now, admitted,
            )  # fmt: skip
        elif desk.store.value("SELECT removed FROM members WHERE client = ?", client):
            raise Refused(f"member {client} left or was removed; a new invitation needs a new key")
        version = desk.store.value("SELECT version FROM invitations WHERE code = ?", _stored(request.code))
        ranker = desk.store.get(f"ranker {version}")
    if ranker is None:
        raise Refused("this key has joined with another invitation")
    return wire.JoinReply(client, ranker)


def client_of(desk: Desk, sender: bytes) -> int | None:
    return desk.store.value("SELECT client FROM members WHERE key = ?", sender)


def leave(desk: Desk, client: int, now: float, *, by: str = "the node left") -> None:
    """The key is not in the next registry; contributions that are in no sum yet are deleted."""
    with desk.store.transaction():
        if desk.store.value("SELECT client FROM members WHERE client = ?", client) is None:
            raise InputError(f"there is no member {client}; `foltr coordinator status` lists them")
        desk.store.execute("UPDATE members SET removed = 1 WHERE client = ?", client)
        for table in ("inbox", "receipts"):
            desk.store.execute(
                f"DELETE FROM {table} WHERE client = ? AND round IN "  # noqa: S608
                "(SELECT round FROM rounds WHERE state IN ('announced', 'open'))",
                client,
            )
        desk.store.note(now, f"member {client} is removed: {by}")


def admit(desk: Desk, clients: list[int], now: float) -> list[int]:
    """Admits these nodes, all that wait where none is named; they are in the next registry."""
    waiting = [client for (client,) in desk.store.rows("SELECT client FROM members WHERE admitted = 0 AND removed = 0")]
    unknown = sorted(set(clients) - set(waiting))
    if unknown:
        raise InputError(
            f"nobody of number {unknown[0]} waits for admission; waiting: {', '.join(map(str, waiting)) or 'none'}"
        )
    admitted = clients or waiting
    with desk.store.transaction():
        for client in admitted:
            desk.store.execute("UPDATE members SET admitted = 1 WHERE client = ?", client)
        desk.store.note(now, f"members {', '.join(map(str, admitted)) or 'none'} are admitted")
    return admitted


def join_operator(desk: Desk, sender: bytes, request: wire.OperatorJoin, now: float) -> wire.OperatorTerms:
    if not crypto.is_identity(sender) or sender in (public(desk.identity), public(desk.operator)):
        raise Refused("the second operator needs an Ed25519 key of its own")
    with desk.store.transaction():
        known = second_operator(desk)
        if known is not None and known != sender:
            raise Refused("this federation has another second operator")
        if known is None:
            _use_code(desk, request.code, "operator", sender, now)
            desk.store.put(_SECOND, sender)
            desk.store.note(now, "the second operator joined")
    return wire.OperatorTerms(desk.charter.terms, public(desk.identity), (public(desk.operator), sender))


def second_operator(desk: Desk) -> bytes | None:
    return desk.store.get(_SECOND)


def note_second(desk: Desk, now: float) -> None:
    """The second operator was here; stored at most once a minute."""
    if now - second_seen(desk) > _SEEN_SECONDS:
        desk.store.put(_SEEN, str(now).encode())


def second_seen(desk: Desk) -> float:
    """When the second operator was here; 0: never."""
    return float(desk.store.get(_SEEN) or b"0")


def pair(desk: Desk) -> Pair:
    """Identities of both operators."""
    second = second_operator(desk)
    if second is None:
        raise Refused("the federation has no second operator yet; it joins with `foltr aggregator join`")
    return public(desk.operator), second


# --- registries -----------------------------------------------------------------------------------------------------


def effective(desk: Desk) -> int:
    """Number of the registry of new rounds; 0 before the first."""
    return int(desk.store.get(_EFFECTIVE) or b"0")


def held(desk: Desk, number: int) -> Held:
    """A registry with its members."""
    cached = desk.cache.get(("held", number))
    if cached is None:
        edition = _edition(desk, number)
        before = held(desk, number - 1).members if number > 1 else {}
        cached = Held(edition.link, changed_members(before, edition.added, edition.removed))
        desk.cache["held", number] = cached
    return cached


def known(desk: Desk, number: int) -> Registry:
    cached = desk.cache.get(("registry", number))
    if cached is None:
        cached = desk.cache["registry", number] = registry(public(desk.identity), held(desk, number).members)
    return cached


def setup(desk: Desk, number: int) -> TwoServers:
    return two_servers(desk.charter.terms, known(desk, number), pair(desk))


def editions_after(desk: Desk, number: int, oldest: int) -> tuple[Edition, ...]:
    """The editions up to the effective one that a node lacks which holds registry `number`. One that holds none gets
    all members of registry `oldest` first."""
    last = effective(desk)
    if number > last:
        raise Refused(
            f"registry {number} is newer than the coordinator's, {last}; the coordinator was restored from a backup"
        )
    if last and not number:
        first = held(desk, oldest)
        return (Edition(first.link, first.members), *editions_after(desk, oldest, oldest))
    return tuple(_edition(desk, later) for later in range(number + 1, last + 1))


def _edition(desk: Desk, number: int) -> Edition:
    stored = desk.store.value("SELECT edition FROM registries WHERE number = ?", number)
    if stored is None:
        raise Refused(f"there is no registry {number}")
    return msgspec.msgpack.decode(stored, type=Edition)


def proposal(desk: Desk) -> Proposal | None:
    """The registry that waits for the second operator's signature."""
    stored = desk.store.get(_PROPOSAL)
    return msgspec.msgpack.decode(stored, type=Proposal) if stored else None


def next_members(desk: Desk, now: float) -> dict[int, bytes]:
    """Members of the next registry: admitted, not removed, and seen within `dormant_days`. A circle has all of them."""
    seen = now - desk.settings.dormant_days * DAY if desk.charter.kind == "open" else 0.0
    rows = desk.store.rows(
        "SELECT client, key FROM members WHERE admitted = 1 AND removed = 0 AND seen >= ? ORDER BY client", seen
    )
    return dict(rows)


def propose_registry(desk: Desk, now: float) -> None:
    """Stores a proposal where members changed; only between rounds, and while none waits for its signature."""
    if proposal(desk) is not None or second_operator(desk) is None:
        return
    newest = desk.store.value("SELECT MAX(number) FROM registries") or 0
    members = next_members(desk, now)
    before = held(desk, newest).members if newest else {}
    if members == before or len(members) < (desk.settings.first_members if not newest else 3):
        return
    head, signature = propose(
        desk.charter.terms.federation, registry(public(desk.identity), members),
        held(desk, newest).link.head if newest else None, desk.identity,
    )  # fmt: skip
    added = {client: key for client, key in members.items() if before.get(client) != key}
    removed = tuple(sorted(set(before) - set(members)))
    with desk.store.transaction():
        desk.store.put(_PROPOSAL, msgspec.msgpack.encode(Proposal(head, signature, added, removed)))
        desk.store.note(
            now, f"registry {head.number} of {head.members} members is proposed: {len(added)} new, {len(removed)} gone"
        )


def countersigned(desk: Desk, link: Link, now: float) -> None:
    """Stores the registry that the second operator signed; it takes effect between rounds."""
    stored = desk.store.value("SELECT edition FROM registries WHERE number = ?", link.head.number)
    if stored is not None and msgspec.msgpack.decode(stored, type=Edition).link == link:
        return
    waiting, second = proposal(desk), second_operator(desk)
    if waiting is None or waiting.head != link.head or second is None:
        raise Refused(f"registry {link.head.number} is not the one that waits for a signature")
    if link.coordinator != waiting.signature or not crypto.signed_by(second, link.second, head_digest(link.head)):
        raise Refused(f"registry {link.head.number}: the signature is not the second operator's")
    edition = Edition(link, waiting.added, waiting.removed)
    with desk.store.transaction():
        desk.store.execute("INSERT INTO registries VALUES (?, ?)", link.head.number, msgspec.msgpack.encode(edition))
        desk.store.execute("DELETE FROM meta WHERE key = ?", _PROPOSAL)
        desk.store.note(now, f"registry {link.head.number} is countersigned")


def take_effect(desk: Desk) -> None:
    """The newest countersigned registry is that of the rounds to come; called between rounds."""
    newest = desk.store.value("SELECT MAX(number) FROM registries") or 0
    if newest > effective(desk):
        desk.store.put(_EFFECTIVE, str(newest).encode())
