"""Identities of parties, and the group that shares the key of the hashes; the server that carries it can make none.

Source: S3 section IV-B step 1 ("securely generated, e.g. with Diffie-Hellman key agreement"). A party has an Ed25519
key for signatures and an X25519 key for agreement. Before anything is sent the parties agree, without the server, on a
`GroupPlan`: name, maker, members. The maker draws the hash key, seals it for every member and signs all of it:

    context   = SHA-256 of protocol, version, name, epoch, maker, all members, salt
    box(m)    = ChaCha20-Poly1305 under HKDF-SHA256(X25519(maker, m), salt, "hash key", context, m)
    signature = Ed25519 of context and all boxes, by the maker

`open_group` compares what the server carried with the plan: another version, name, maker or list of members is refused,
and so is an epoch below one that this party has opened, or another group of the same epoch (`Opened` is stored by the
party). The context goes into every key and every signature of `envelopes`, so no message of one group, epoch or version
is valid in another. All secrets come from the operating system; `repr` shows none.

Not covered: a member who gives the key away. Every member can compute every hash.

Differs from the paper: it names no protocol.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

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
    signed_by,
)
from foltr.silo.sketches import KEY_BYTES, new_key

PROTOCOL, VERSION = "foltr-silo", 3  # 2: without questions to an index
MAX_EPOCH = 2**32
_NEW_GROUP = "ask its maker for a new one"


class Member(NamedTuple):
    """The public keys of a party; members get each other's without the server."""

    signing: bytes  # Ed25519
    agreement: bytes  # X25519


@dataclass(frozen=True)
class Identity:
    """The secret keys of a party."""

    signing: bytes = field(repr=False)
    agreement: bytes = field(repr=False)


class GroupPlan(NamedTuple):
    """The agreement of the parties without the server: whom a party expects."""

    name: str
    maker: bytes  # signing key
    members: tuple[Member, ...]  # the maker too, sorted


class Group(NamedTuple):
    """The group that the server carries from its maker to all members."""

    version: int
    name: str
    epoch: int  # rises with every new key of the group
    maker: bytes  # signing key
    members: tuple[Member, ...]
    salt: bytes
    boxes: tuple[bytes, ...]  # [members] the hash key, sealed for each
    signature: bytes  # by the maker


class Opened(NamedTuple):
    """The newest group that a party has opened; it stores this and gives it at the next opening."""

    epoch: int
    context: bytes


@dataclass(frozen=True)
class Membership:
    """A member's view of an open group."""

    name: str
    epoch: int
    context: bytes  # 32 bytes: protocol, version, name, epoch, maker, members, salt
    members: tuple[Member, ...]
    place: int  # of this party among the members
    in_process: bool  # of a simulation: no member is another organisation
    key: bytes = field(repr=False)  # of the hashes
    signing: bytes = field(repr=False)
    shared: tuple[bytes, ...] = field(repr=False)  # [members] the X25519 secret with each


def new_identity() -> Identity:
    """The secret keys of a party; `public` is what it gives to the others."""
    return Identity(new_secret(), new_secret())


def public(identity: Identity) -> Member:
    signing = Ed25519PrivateKey.from_private_bytes(identity.signing).public_key().public_bytes_raw()
    return Member(signing, public_of(agreement_key(identity.agreement)))


def group_plan(name: str, maker: Member, members: Iterable[Member]) -> GroupPlan:
    """The plan of a group; `members` may or may not have the maker among them."""
    everybody = tuple(sorted({maker, *members}))
    if len(everybody) < 2:
        raise SpecError("a group of one shares nothing; give the public keys of the other parties")
    for keys in zip(*everybody, strict=True):
        if len(set(keys)) < len(everybody) or any(len(key) != SECRET for key in keys):
            raise SpecError("two members have one public key, or a key is not of 32 bytes; every party needs its own")
    return GroupPlan(name, maker.signing, everybody)


def make_group(plan: GroupPlan, maker: Identity, *, epoch: int, key: bytes | None = None) -> Group:
    """The group of a plan with a new hash key, which `open_group` gives to every member, the maker too.

    `key`: only of a key that the parties share already, or of a simulation.
    """
    if public(maker).signing != plan.maker:
        raise SpecError(f"this party is not the maker of the group {plan.name!r}; only its maker can make it")
    if not 1 <= epoch <= MAX_EPOCH:
        raise SpecError(f"epoch = {epoch}; the first group of a plan has epoch 1, a later one a higher number")
    chosen, salt = key or new_key(), new_secret()
    context = _context(VERSION, plan, epoch, salt)
    private = agreement_key(maker.agreement)
    boxes = tuple(
        encrypt(_sealing_key(agree(private, member.agreement), salt, context, member), chosen, context)
        for member in plan.members
    )
    signature = sign(maker.signing, _signed(context, boxes))
    return Group(VERSION, plan.name, epoch, plan.maker, plan.members, salt, boxes, signature)


def open_group(
    group: Group, identity: Identity, plan: GroupPlan, newest: Opened | None = None
) -> tuple[Membership, Opened]:
    """The membership of this party, and what it stores for the next opening. `newest`: what it stored last."""
    _require_as_planned(group, plan)
    context = _context(group.version, plan, group.epoch, group.salt)
    if not signed_by(plan.maker, group.signature, _signed(context, group.boxes)):
        raise SpecError(
            f"the group {group.name!r} is not signed by its maker: somebody else made or changed it; {_NEW_GROUP}"
        )
    _require_newer(group, context, newest)
    own = public(identity)
    if own not in plan.members:
        raise SpecError(
            f"this party is no member of the group {group.name!r}: its public key {own.signing.hex()[:16]} is not on "
            "the agreed list; agree on a list with it, then ask the maker for a new group"
        )
    place, maker = plan.members.index(own), next(one for one in plan.members if one.signing == plan.maker)
    private = agreement_key(identity.agreement)
    shared = tuple(agree(private, member.agreement) for member in plan.members)
    sealing_key = _sealing_key(shared[plan.members.index(maker)], group.salt, context, own)
    try:
        key = decrypt(sealing_key, group.boxes[place], context)
    except SecureAggregationError:
        raise SpecError(f"the hash key of the group {group.name!r} does not open; {_NEW_GROUP}") from None
    if len(key) != KEY_BYTES:
        raise SpecError(f"the hash key of the group {group.name!r} has {len(key)} bytes; {_NEW_GROUP}")
    member = Membership(group.name, group.epoch, context, plan.members, place, False, key, identity.signing, shared)
    return member, Opened(group.epoch, context)


def group_in_process(parties: int, key: bytes) -> list[Membership]:
    """[parties] members of one group that are all in this process: for simulations, and for an owner that asks itself.

    With a single party a dummy member is added, because a group needs two.
    """
    identities = [new_identity() for _ in range(max(parties, 2))]
    plan = group_plan("in process", public(identities[0]), [public(one) for one in identities])
    group = make_group(plan, identities[0], epoch=1, key=key)
    return [replace(open_group(group, one, plan)[0], in_process=True) for one in identities[:parties]]


def own_secret(member: Membership, purpose: str) -> bytes:
    """A secret that only this member has, the same in every session of the group's epoch.

    It follows from the stored identity (the agreement of its key with itself), so that nothing more has to be stored.
    """
    return hkdf(member.shared[member.place], salt=member.context, info=label(PROTOCOL, "own secret", purpose))


def sign(secret: bytes, message: bytes) -> bytes:
    return Ed25519PrivateKey.from_private_bytes(secret).sign(message)


def _require_as_planned(group: Group, plan: GroupPlan) -> None:
    if group.version != VERSION:
        raise SpecError(
            f"a group of version {group.version}; this program speaks version {VERSION}: {_NEW_GROUP}, made with this "
            "version of foltr"
        )
    if group.name != plan.name or group.maker != plan.maker:
        raise SpecError(
            f"a group {group.name!r} made by {group.maker.hex()[:16]}; expected {plan.name!r} made by "
            f"{plan.maker.hex()[:16]}: whoever carried it may have made it; {_NEW_GROUP}"
        )
    if group.members != plan.members:
        strangers, missing = set(group.members) - set(plan.members), set(plan.members) - set(group.members)
        raise SpecError(
            f"the members of the group {group.name!r} are not the agreed ones: {len(strangers)} unexpected, "
            f"{len(missing)} missing; agree on the list again, then {_NEW_GROUP}"
        )
    if len(group.boxes) != len(group.members) or len(group.salt) != SECRET or not 1 <= group.epoch <= MAX_EPOCH:
        raise SpecError(f"the group {group.name!r} is damaged; ask its maker for it again")


def _require_newer(group: Group, context: bytes, newest: Opened | None) -> None:
    if newest is None or group.epoch > newest.epoch:
        return
    if group.epoch < newest.epoch:
        raise SpecError(
            f"the group {group.name!r} of epoch {group.epoch} is an old one: this party has opened epoch "
            f"{newest.epoch}; {_NEW_GROUP}"
        )
    if context != newest.context:
        raise SpecError(f"a second group {group.name!r} of epoch {group.epoch}; its maker must count the epoch up")


def _context(version: int, plan: GroupPlan, epoch: int, salt: bytes) -> bytes:
    members = label(*(key for member in plan.members for key in member))
    return sha256(label(PROTOCOL, version, plan.name, epoch, plan.maker, members, salt)).digest()


def _sealing_key(shared: bytes, salt: bytes, context: bytes, receiver: Member) -> bytes:
    return hkdf(shared, salt=salt, info=label(PROTOCOL, "hash key", context, receiver.signing, receiver.agreement))


def _signed(context: bytes, boxes: tuple[bytes, ...]) -> bytes:
    return label(PROTOCOL, "group", context, *boxes)
