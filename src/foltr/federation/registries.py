"""Registries over time: numbered, chained by digest, signed by the coordinator and by the second operator.

A coordinator that could show different registries to different nodes, or a new one in every round, could surround one
honest node with members of its own. So a registry has a `Head`: its number, the digest of the head before it, and the
digest of its members. The second operator signs one head a number and stores it before the signature leaves
(`countersign`), and changes happen between rounds. A node goes from the head that it holds to a newer one along the
chain (`follow`), with both signatures on every link, and stores where it is.

Not prevented: a coordinator invites people of its own, one by one and in public. A node's policy bounds the growth of a
week, and sizes count from the largest registry that the node ever accepted (`policy`).
"""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from foltr.errors import SecureAggregationError, StorageError
from foltr.files import locked, private_folders, write_durably
from foltr.secagg import crypto
from foltr.secagg.crypto import SIGNATURE, label
from foltr.secagg.terms import Registry, registry

PROTOCOL = "foltr-registry"
VERSION = 1
MOST_LINKS = 10_000  # that a node follows at once: years of daily changes
_NONE = b"\0" * 32  # before the first head
_FIRST = 1
Digest = Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]
Signature = Annotated[bytes, msgspec.Meta(min_length=SIGNATURE, max_length=SIGNATURE)]


class Head(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One registry of a federation."""

    federation: str
    number: int  # from 1, without gaps
    previous: Digest  # of the head before
    members: int
    registry: Digest


class Link(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A head with the signatures of both operators."""

    head: Head
    coordinator: Signature
    second: Signature


class Edition(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A registry as a change of the one before; the first that a party gets has all members."""

    link: Link
    added: dict[int, bytes]  # keys by client; a changed key stands here too
    removed: tuple[int, ...] = ()


class Held(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A registry with its members, as a party stores it."""

    link: Link
    members: dict[int, bytes]  # keys by client


def digest_of(head: Head) -> bytes:
    parts = (head.federation, head.number, head.previous, head.members, head.registry)
    return sha256(label(PROTOCOL, VERSION, *parts)).digest()


def propose(federation: str, members: Registry, before: Head | None, identity: Ed25519PrivateKey) -> tuple[Head, bytes]:
    """The coordinator's next registry and its signature, for the second operator."""
    number, previous = (before.number + 1, digest_of(before)) if before else (_FIRST, _NONE)
    head = Head(federation, number, previous, len(members.clients), members.digest)
    return head, identity.sign(digest_of(head))


def countersign(
    head: Head, signature: bytes, members: Mapping[int, bytes], *, coordinator: bytes, identity: Ed25519PrivateKey,
    path: Path, round_open: bool,
) -> Link:  # fmt: skip
    """The second operator's signature of one registry a number, stored before it is returned; asked again, the same.

    `members`: the keys by client, which the digest must fit. `round_open`: a registry changes between rounds only.
    """
    known = registry(coordinator, members)
    if not crypto.signed_by(coordinator, signature, digest_of(head)):
        raise SecureAggregationError(f"registry {head.number}: the coordinator of this federation did not sign it")
    _require_members(head, known)
    private_folders(path.parent)
    with locked(path):
        newest = newest_link(path)
        if newest is not None and newest.head == head:
            return newest
        _require_next(head, newest.head if newest else None)
        if round_open:
            raise SecureAggregationError(f"registry {head.number}: a round is open; registries change between rounds")
        link = Link(head, signature, identity.sign(digest_of(head)))
        write_durably(path, msgspec.msgpack.encode(link))
    return link


def newest_link(path: Path) -> Link | None:
    """The newest registry that a party holds; None before the first."""
    try:
        return msgspec.msgpack.decode(path.read_bytes(), type=Link)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise StorageError(
            f"{path}: the newest registry cannot be read ({problem}); nothing is signed without it"
        ) from None


def follow(
    links: Sequence[Link],
    members: Mapping[int, bytes],
    *,
    federation: str,
    coordinator: bytes,
    second: bytes,
    path: Path,
) -> Registry:
    """The registry at the end of a chain, stored as the newest; `members` are the keys of that one.

    A chain begins behind the registry that the node holds, or is empty or ends with it where nothing changed; a node
    without one begins with the first link that it is given, which is part of its invitation. `coordinator` and `second`
    are the identities that the invitation named.
    """
    if len(links) > MOST_LINKS:
        raise SecureAggregationError(
            f"a chain of {len(links):,} registries; at most {MOST_LINKS:,} are followed at once"
        )
    for link in links:
        _require_signed(link, federation, coordinator, second)
    private_folders(path.parent)
    with locked(path):
        held = newest_link(path)
        newer = [link for link in links if held is None or link.head.number > held.head.number]
        if held is not None:
            if any(link.head != held.head for link in links if link.head.number == held.head.number):
                raise SecureAggregationError(
                    f"registry {held.head.number}: another one of this number was accepted before; an operator shows "
                    "different members to different nodes, and nothing is sent"
                )
            newer_heads = [held.head, *(link.head for link in newer)]
        else:
            newer_heads = [link.head for link in newer]
        if not newer_heads:
            raise SecureAggregationError("this node holds no registry of the federation; join with an invitation")
        for before, after in pairwise(newer_heads):
            _require_next(after, before)
        last, known = newer_heads[-1], registry(coordinator, members)
        if (last.registry, last.members) != (known.digest, len(known.clients)):
            raise SecureAggregationError(
                f"registry {last.number}: its digest is not that of the members that were sent"
            )
        if newer:
            write_durably(path, msgspec.msgpack.encode(newer[-1]))
    return known


def follow_editions(
    editions: Sequence[Edition], held: Held | None, *, federation: str, coordinator: bytes, second: bytes
) -> list[Held]:
    """The registries from the held one to the newest, oldest first; nothing is stored.

    A node first takes the steps of an announcement, which may be of any of these, and then stores the last one
    (`store_held`). Without a held one the first edition has all members.
    """
    if len(editions) > MOST_LINKS:
        raise SecureAggregationError(
            f"a chain of {len(editions):,} registries; at most {MOST_LINKS:,} are followed at once"
        )
    chain = [held] if held is not None else []
    for edition in editions:
        _require_signed(edition.link, federation, coordinator, second)
        if chain:
            _require_next(edition.link.head, chain[-1].link.head)
        members = changed_members(chain[-1].members if chain else {}, edition.added, edition.removed)
        _require_members(edition.link.head, registry(coordinator, members))
        chain.append(Held(edition.link, members))
    if not chain:
        raise SecureAggregationError(
            "this node holds no registry of the federation, and was sent none; ask again later"
        )
    return chain


def changed_members(
    before: Mapping[int, bytes], added: Mapping[int, bytes], removed: Sequence[int]
) -> dict[int, bytes]:
    gone = set(removed)
    return {client: key for client, key in before.items() if client not in gone} | dict(added)


def read_held(path: Path) -> Held | None:
    """The registry that a party holds; None before the first."""
    try:
        return msgspec.msgpack.decode(path.read_bytes(), type=Held)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise StorageError(
            f"{path}: the registry cannot be read ({problem}); delete the file, then it is fetched anew"
        ) from None


def store_held(path: Path, newest: Held) -> None:
    """Never replaces a registry by an older one, or by another of the same number."""
    with locked(path):
        before = read_held(path)
        number = before.link.head.number if before else 0
        if before is not None and before.link.head != newest.link.head and newest.link.head.number <= number:
            raise SecureAggregationError(
                f"registry {newest.link.head.number}: this node holds registry {number} already"
            )
        write_durably(path, msgspec.msgpack.encode(newest))


def _require_members(head: Head, known: Registry) -> None:
    if (head.registry, head.members) != (known.digest, len(known.clients)):
        raise SecureAggregationError(f"registry {head.number}: its digest is not that of its members")


def _require_next(head: Head, before: Head | None) -> None:
    expected = (before.federation, before.number + 1, digest_of(before)) if before else (head.federation, _FIRST, _NONE)
    if (head.federation, head.number, head.previous) != expected:
        raise SecureAggregationError(
            f"registry {head.number} does not follow registry {expected[1] - 1} of federation {expected[0]}; each "
            "number has one registry, and none is left out"
        )


def _require_signed(link: Link, federation: str, coordinator: bytes, second: bytes) -> None:
    head, digest = link.head, digest_of(link.head)
    if head.federation != federation:
        raise SecureAggregationError(f"registry {head.number} is one of federation {head.federation}, not {federation}")
    if not crypto.signed_by(coordinator, link.coordinator, digest):
        raise SecureAggregationError(f"registry {head.number}: the coordinator of this federation did not sign it")
    if not crypto.signed_by(second, link.second, digest):
        raise SecureAggregationError(f"registry {head.number}: the second operator did not countersign it")
