"""Agreement on the key of the hashes among the parties; the server that carries their messages does not learn it.

Source: S3 section IV-B step 1 ("securely generated, e.g. with Diffie-Hellman key agreement"). Every party has an X25519
key. One of them generates the group's key and encrypts it for each member under the secret that the two share:

    HKDF-SHA256(X25519(maker, member), salt, label(group, maker, member, all members))   ->   ChaCha20-Poly1305

The salt is fresh, so that no sealing key is used twice. All secrets come from the operating system. A box opens only
for its member, in its group, and only if both ends have the same list of members.

Members must get each other's public keys without the server: an adversary who replaces them can read the key. Every
member can compute every hash: a member who colludes with the server reveals the terms to it.

Differs from the paper: it names no protocol.
"""

from collections.abc import Sequence
from typing import NamedTuple

from foltr.errors import SecureAggregationError, SpecError
from foltr.secagg.crypto import (
    SECRET,
    agree,
    agreement_key,
    decrypt,
    encrypt,
    hkdf,
    label,
    new_secret,
    public_of,
)
from foltr.silo.sketches import new_key


class Group(NamedTuple):
    """What the server carries from the maker to all members."""

    name: str
    maker: bytes  # public key
    members: tuple[bytes, ...]  # public keys, the maker's too, sorted
    salt: bytes
    boxes: tuple[bytes, ...]  # [members] the hash key, sealed for each


def new_member() -> bytes:
    """The secret of a party; `public` is what it publishes."""
    return new_secret()


def public(secret: bytes) -> bytes:
    return public_of(agreement_key(secret))


def make_group(name: str, maker: bytes, members: Sequence[bytes]) -> tuple[bytes, Group]:
    """A new hash key, and the same sealed for everybody; `members`: public keys of the others."""
    own = public(maker)
    everybody = tuple(sorted({own, *members}))
    if len(everybody) < 2:
        raise SpecError("a group of one shares nothing; give the public keys of the other parties")
    key, salt = new_key(), new_secret()
    empty = Group(name, own, everybody, salt, ())
    boxes = tuple(encrypt(_sealing_key(maker, other, empty, other), key, _terms(empty)) for other in everybody)
    return key, empty._replace(boxes=boxes)


def open_group(group: Group, secret: bytes) -> bytes:
    """The hash key, for a member."""
    own = public(secret)
    if own not in group.members:
        raise SpecError(
            f"this party has no hash key of the group {group.name!r}: none was sealed for its public key "
            f"{own.hex()[:16]}...; ask the maker to make the group again with it"
        )
    if len(group.boxes) != len(group.members) or len(group.salt) != SECRET:
        raise SpecError(f"the group {group.name!r} is damaged; ask its maker for it again")
    box = group.boxes[group.members.index(own)]
    try:
        return decrypt(_sealing_key(secret, group.maker, group, own), box, _terms(group))
    except SecureAggregationError:
        raise SpecError(
            f"the hash key of the group {group.name!r} does not open: it was changed on the way, or its members are "
            "others than its maker meant; ask its maker for it again"
        ) from None


def _sealing_key(secret: bytes, other: bytes, group: Group, receiver: bytes) -> bytes:
    shared = agree(agreement_key(secret), other)
    return hkdf(shared, salt=group.salt, info=label("foltr silo hash key", group.maker, receiver, _terms(group)))


def _terms(group: Group) -> bytes:
    """What must be equal at both ends."""
    return label(group.name, group.maker, *group.members)
