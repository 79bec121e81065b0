"""Messages of a coordinator to all nodes: a round begins with this ranker, or this is the new ranker.

A ranker is public. Its digest is part of the context of every key and signature of a round, so that nodes which were
sent different rankers cannot be summed. The coordinator signs what it announces with the identity that the registry
names; a node acts on nothing else.

    Announcement("round", ...)      a round begins: learn from the own log, starting from this ranker, and take part;
                                    with two operators it carries their statements about the keys of the round
    Announcement("rehearsal", ...)  a round in which every node sends zeros, charges nothing and learns from nothing
    Announcement("version", ...)    the ranker after a round: rank with it

With two operators both carry the steps that lead to the ranker from the one that a node has (`steps`). They are not
under the coordinator's signature: the operators signed them, and a node that slept longer gets more of them.
"""

from hashlib import sha256
from typing import Literal

import msgspec
import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from foltr.errors import SecureAggregationError
from foltr.secagg import crypto
from foltr.secagg.crypto import label
from foltr.secagg.round_keys import MAX_STATEMENT
from foltr.secagg.terms import Registry, Terms
from foltr.types import Array

PROTOCOL = "foltr-announcement"
VERSION = 3
_LONGEST_NAME = 200  # characters of a parameter's name
Kind = Literal["round", "version", "rehearsal"]


class Ranker(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A linear ranker that a federation shares."""

    version: int
    names: tuple[str, ...]  # of the parameters
    values: bytes  # [P] float64, little-endian


class Announcement(msgspec.Struct, frozen=True, array_like=True, tag=PROTOCOL, forbid_unknown_fields=True):
    version: int  # of the protocol
    kind: Kind
    federation: str
    round: int
    ranker: bytes  # a `Ranker`, encoded
    statements: tuple[bytes, ...]  # of both operators about their keys of the round (`secagg.round_keys`)
    signature: bytes
    steps: bytes = b""  # encoded; what they contain was signed by others


def ranker_of(version: int, names: tuple[str, ...], parameters: Array) -> bytes:
    """A ranker as bytes; its digest goes into the context of a round."""
    return msgspec.msgpack.encode(Ranker(version, names, np.asarray(parameters, "<f8").tobytes()))


def parameters_of(ranker: Ranker) -> Array:
    """[P]"""
    return np.frombuffer(ranker.values, "<f8")


def digest_of(ranker: bytes) -> bytes:
    return sha256(ranker).digest()


def window_digest(kind: Kind, ranker: bytes) -> bytes:
    """Of the ranker, in the context of a round. That of a rehearsal is another: zeros are never summed with updates."""
    digest = digest_of(ranker)
    return sha256(label(PROTOCOL, VERSION, "rehearsal", digest)).digest() if kind == "rehearsal" else digest


def announce(
    kind: Kind, ranker: bytes, *, federation: str, round: int, identity: Ed25519PrivateKey,
    statements: tuple[bytes, ...] = (),
) -> bytes:  # fmt: skip
    unsigned = Announcement(VERSION, kind, federation, round, ranker, statements, b"")
    return msgspec.msgpack.encode(msgspec.structs.replace(unsigned, signature=identity.sign(_signed(unsigned))))


def with_steps(message: bytes, steps: bytes) -> bytes:
    """The announcement as it is sent to a node that lacks these steps."""
    announcement = msgspec.msgpack.decode(message, type=Announcement)
    return msgspec.msgpack.encode(msgspec.structs.replace(announcement, steps=steps))


def signed_digest(message: bytes) -> bytes:
    """Of what the coordinator signed, whatever steps go with it; the message was checked before."""
    return _signed(msgspec.msgpack.decode(message, type=Announcement))


def is_announcement(message: bytes) -> bool:
    """Whether a message claims to be an announcement; nothing is verified."""
    return message[1:].startswith(msgspec.msgpack.encode(PROTOCOL))


def checked(message: bytes, *, terms: Terms, registry: Registry, max_steps: int = 0) -> tuple[Announcement, Ranker]:
    """An announcement of this federation's coordinator and its ranker; anything else is refused. `max_steps`: bytes of
    steps at most."""
    limit = terms.length * (8 + 4 * _LONGEST_NAME) + 2 * MAX_STATEMENT + 1024 + max_steps
    if len(message) > limit:
        raise SecureAggregationError(f"an announcement of {len(message)} bytes; {limit} at most")
    try:
        announcement = msgspec.msgpack.decode(message, type=Announcement)
        if not crypto.signed_by(registry.server, announcement.signature, _signed(announcement)):
            raise SecureAggregationError("an announcement that the coordinator of this federation did not sign")
        ranker = msgspec.msgpack.decode(announcement.ranker, type=Ranker)
    except (msgspec.DecodeError, UnicodeDecodeError, OverflowError) as problem:
        raise SecureAggregationError(f"not an announcement ({problem})") from None
    if (announcement.version, announcement.federation) != (VERSION, terms.federation):
        raise SecureAggregationError("an announcement of another federation, or of another version of the protocol")
    if not 0 <= announcement.round < 2**62:
        raise SecureAggregationError(f"an announcement of round {announcement.round}")
    if len(ranker.names) != terms.length or len(ranker.values) != 8 * terms.length:
        raise SecureAggregationError(f"a ranker of {len(ranker.names)} parameters; the terms say {terms.length}")
    if len(set(ranker.names)) < terms.length or not np.isfinite(parameters_of(ranker)).all():
        raise SecureAggregationError("a ranker with two parameters of one name, or with a number that is not finite")
    return announcement, ranker


def announced_round(message: bytes, *, terms: Terms, registry: Registry) -> tuple[int, bytes]:
    """The number of the round that a signed announcement begins, and the digest of its ranker."""
    announcement, _ = checked(message, terms=terms, registry=registry)
    if announcement.kind != "round":
        raise SecureAggregationError(f"an announcement of a {announcement.kind}; a round is joined by its own")
    return announcement.round, digest_of(announcement.ranker)


def _signed(announcement: Announcement) -> bytes:
    statements = [digest_of(statement) for statement in announcement.statements]
    parts = (announcement.kind, announcement.federation, announcement.round, digest_of(announcement.ranker))
    return sha256(label(PROTOCOL, VERSION, *parts, *statements)).digest()
