"""A node's membership in a federation of machines: what it was invited to, its key, and joining.

    folder/identity      Ed25519 key of this node in this federation, made here (0600), erased when the node leaves
    folder/membership    the invitation without its code, the node's number, the ranker that it began with
    folder/registry      members of the federation as both operators signed them last (`registries.Held`)
    folder/receipt       the coordinator's signature that it has the newest contribution
    folder/synced        the newest sync: when, and what came of it, in words

A membership is stored before the coordinator is asked, and says whether it has answered: `sync` ends what a kill or an
unreachable coordinator interrupted. What the invitation pins (terms, identities, certificate, ranker) never changes.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from foltr.errors import InputError, PrivacyError, Refused, SecureAggregationError, StateError
from foltr.federation.announcement import Ranker, digest_of
from foltr.federation.membership import Storage, prepare
from foltr.federation.network.invitation import Invitation
from foltr.federation.network.wire import CODE_BYTES, JoinReply, JoinRequest, Post, decode, encode
from foltr.files import create_private, erase_file, sync_folder, write_durably
from foltr.secagg.crypto import new_identity

NOT_YET = -1  # number of a node that the coordinator has not answered
_USED = bytes(CODE_BYTES)
_MEMBERSHIP, _IDENTITY = "membership", "identity"
_SECRETS = ("contribution", "question")  # overwritten before they are deleted, as the key is


class Joined(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A membership on the disk."""

    invitation: Invitation  # its code is overwritten when it was used
    accepted: float  # when the person accepted it, seconds since 1970
    client: int = NOT_YET
    start: bytes = b""  # the ranker that the node began with, encoded
    left: float = 0.0  # when the person left; the coordinator is told by the next sync

    @property
    def federation(self) -> str:
        return self.invitation.federation


class Membership(NamedTuple):
    """A membership with its key and its folders."""

    joined: Joined
    identity: Ed25519PrivateKey
    storage: Storage

    def __repr__(self) -> str:
        return f"Membership(federation={self.joined.federation!r})"  # no secret reaches a log

    @property
    def key(self) -> bytes:
        return self.identity.public_key().public_bytes_raw()


def accept_invitation(invitation: Invitation, storage: Storage, now: float) -> Membership:
    """Makes the key of this node and stores the membership; the same invitation again goes on where it stopped."""
    if invitation.role != "node":
        raise InputError("this invitation is the second operator's; it is used with `foltr aggregator join`")
    if now > invitation.expires:
        raise InputError("this invitation is over; ask the coordinator for another")
    prepare(storage)
    before = read_membership(storage)
    if before is not None:
        return _again(before, invitation)
    if not (storage.folder / _IDENTITY).exists():
        create_private(storage.folder / _IDENTITY, new_identity().private_bytes_raw())
    joined = Joined(invitation, now)
    _store(storage, joined)
    return Membership(joined, _identity(storage), storage)


def _again(before: Membership, invitation: Invitation) -> Membership:
    """A membership that another invitation of the same federation goes on with: a coordinator may move to another
    address or get another certificate, and nothing else that an invitation pins may change."""
    joined = before.joined
    if joined.left:
        raise InputError("this node is leaving the federation; `foltr node sync` ends that, then join anew")
    if not same_parties(joined.invitation, invitation):
        raise InputError(
            f"this node has joined {joined.invitation.name} with other terms or operators; leave it first "
            f"(`foltr node leave {invitation.federation[:8]}`)"
        )
    if joined.client == NOT_YET:
        pinned = invitation
    else:
        reach = {"name": invitation.name, "address": invitation.address, "certificate": invitation.certificate}
        pinned = msgspec.structs.replace(joined.invitation, **reach)
    joined = msgspec.structs.replace(joined, invitation=pinned)
    _store(before.storage, joined)
    return before._replace(joined=joined)


def same_parties(before: Invitation, after: Invitation) -> bool:
    """Whether two invitations name the same federation: terms, kind, identities and rate."""
    named = [(one.terms, one.kind, one.coordinator, one.operators, one.server_learning_rate) for one in (before, after)]
    return named[0] == named[1]


def ask_to_join(membership: Membership, post: Post) -> Membership:
    """The membership after the coordinator answered; one that it has answered before stays as it is."""
    joined, storage = membership.joined, membership.storage
    if joined.client != NOT_YET:
        return membership
    reply = decode(post("join", encode(JoinRequest(joined.invitation.code))), JoinReply)
    ranker = _ranker(reply.ranker)
    if digest_of(reply.ranker) != joined.invitation.ranker or ranker.version != joined.invitation.version:
        raise SecureAggregationError("the coordinator sent another ranker than the invitation names; nothing is sent")
    if reply.client < 0:
        raise SecureAggregationError(f"the coordinator gave this node the number {reply.client}")
    used = msgspec.structs.replace(joined.invitation, code=_USED)
    joined = msgspec.structs.replace(joined, invitation=used, client=reply.client, start=reply.ranker)
    _store(storage, joined)
    return membership._replace(joined=joined)


def start_of(joined: Joined) -> Ranker:
    return _ranker(joined.start)


def mark_left(membership: Membership, now: float) -> Membership:
    """Stores that the person left, before the coordinator is told: nothing is contributed from now on."""
    joined = msgspec.structs.replace(membership.joined, left=membership.joined.left or now)
    _store(membership.storage, joined)
    return membership._replace(joined=joined)


def tell_leaving(membership: Membership, post: Post) -> None:
    """Has the key revoked; a coordinator that does not know it (any more) has nothing to revoke."""
    if membership.joined.client != NOT_YET:
        try:
            post("leave", b"")
        except Refused as problem:
            if "no member" not in str(problem) and "left or was removed" not in str(problem):
                raise


def erase_membership(storage: Storage) -> None:
    """Erases the key and everything that was stored of a federation; the ledger is not here and stays."""
    for name in (*_SECRETS, _IDENTITY):
        erase_file(storage.folder / name)
    for file in storage.folder.iterdir():
        if file.name != _MEMBERSHIP:
            file.unlink()
    sync_folder(storage.folder)
    (storage.folder / _MEMBERSHIP).unlink(missing_ok=True)  # last: a kill on the way is ended by the next visit
    sync_folder(storage.folder)
    storage.folder.rmdir()
    sync_folder(storage.folder.parent)


# --- reading ----------------------------------------------------------------------------------------------------------


def read_membership(storage: Storage) -> Membership | None:
    """The membership in a folder; None where there is none."""
    path = storage.folder / _MEMBERSHIP
    try:
        joined = msgspec.msgpack.decode(path.read_bytes(), type=Joined)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError, ValueError) as problem:
        raise StateError(f"{path}: the membership cannot be read ({problem}); restore it, or join anew") from None
    if joined.left and not (storage.folder / _IDENTITY).exists():  # killed while it was erased
        erase_membership(storage)
        return None
    return Membership(joined, _identity(storage), storage)


def memberships(data: Path, witnesses: Path) -> Iterator[Membership]:
    """All memberships of a node; `data` and `witnesses` have a folder for each federation."""
    for path in sorted(data.glob(f"*/{_MEMBERSHIP}")):
        found = read_membership(Storage(path.parent, witnesses / path.parent.name))
        if found is not None:
            yield found


def chosen(members: list[Membership], prefix: str) -> Membership:
    """The membership whose federation begins with these digits; the only one where none is given."""
    fitting = [member for member in members if member.joined.federation.startswith(prefix.lower())]
    if len(fitting) == 1:
        return fitting[0]
    if not members:
        raise InputError("this node is in no federation; join one with `foltr node join INVITATION`")
    names = ", ".join(f"{member.joined.federation[:8]} ({member.joined.invitation.name})" for member in members)
    raise InputError(f"name one federation by the beginning of its number: {names}")


def _identity(storage: Storage) -> Ed25519PrivateKey:
    path = storage.folder / _IDENTITY
    try:
        secret = path.read_bytes()
        if path.stat().st_mode & 0o077:
            raise PrivacyError(f"{path}: others can read the key of this node; leave the federation and join anew")
        return Ed25519PrivateKey.from_private_bytes(secret)
    except (OSError, ValueError) as problem:
        raise StateError(
            f"{path}: the key of this node cannot be read ({problem}); join anew with an invitation"
        ) from None


def _ranker(encoded: bytes) -> Ranker:
    try:
        return msgspec.msgpack.decode(encoded, type=Ranker)
    except (msgspec.DecodeError, ValueError) as problem:
        raise SecureAggregationError(f"a ranker that cannot be read ({problem})") from None


def _store(storage: Storage, joined: Joined) -> None:
    write_durably(storage.folder / _MEMBERSHIP, msgspec.msgpack.encode(joined))
