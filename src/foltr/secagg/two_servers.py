"""Secure sums by two aggregators that do not work together: what all parties agree on, and the client's only message.

Source: additive secret sharing between two servers, as in Corrigan-Gibbs and Boneh, "Prio: private, robust, and
scalable computation of aggregate statistics" (NSDI 2017), section 3. A client splits its vector x of the ring,

    x = first + PRG(seed)      modulo 2^bits,

seals `first` for aggregator 0 and `seed` (32 bytes) for aggregator 1, signs the digests of both and sends once. Each
share for itself is uniform, whatever x is. `aggregator` has the other side, `combine` adds up the two halves.

A share is sealed under an ephemeral X25519 key, HKDF-SHA256 and ChaCha20-Poly1305, for a key that the aggregator has
for this round only and erases afterwards (`round_keys`). Key and associated data name the context, the client and the
aggregator: a share is valid for one client in one round of one federation, and nobody can send a copy of it as his own.

What is hidden from whom: one aggregator, together with the network and any clients, sees a sum that carries the full
noise of the other one. Both aggregators together see everything. Neither the sum nor a vector is checked: a client
adds any vector of the ring, an aggregator reports any half. Sums in `groups` limit a client to one group
(`secagg.groups`); a liar among the aggregators changes the result as he likes.

Differs from the paper: no proofs that vectors are well formed; each aggregator adds noise.
"""

import math
from hashlib import sha256
from typing import Annotated, Literal, NamedTuple, TypeAlias, TypeVar

import msgspec
import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from foltr.errors import SecureAggregationError, SpecError
from foltr.secagg import crypto, ring
from foltr.secagg.crypto import label
from foltr.secagg.groups import assign
from foltr.secagg.guarantee import FEWEST
from foltr.secagg.messages import Body
from foltr.secagg.ring import Ring
from foltr.secagg.terms import TAIL, Registry, Terms, encoded, from_set
from foltr.types import Array

PROTOCOL = "foltr-two-servers"
VERSION = 3
DIGEST = 32
_OVERHEAD = 512  # bytes of a message beside its vectors, digests and sets: keys, tags, signature, numbers
_AGGREGATORS = 2
_ROUNDING = 1e-9  # a tenth of 1,000 is 100 in spite of rounding
Struct = TypeVar("Struct", bound=msgspec.Struct)
Kind = Literal["contribution", "listing", "agreement", "half"]
Bytes32 = Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]


Pair: TypeAlias = tuple[bytes, bytes]  # of aggregator 0 and aggregator 1


class TwoServers(NamedTuple):
    """Agreement of clients and aggregators before any round; nobody takes it from a message. See `two_servers`."""

    terms: Terms
    registry: Registry
    operators: Pair  # Ed25519 identities of the aggregators, compared over another channel than the coordinator's
    groups: int  # sums of a round, each of other clients


class Window(NamedTuple):
    """One round, as it was announced."""

    setup: TwoServers
    round: int
    ranker: bytes  # digest of the ranker that the round begins with
    keys: Pair  # X25519 keys of the aggregators for this round and no other


def two_servers(terms: Terms, registry: Registry, operators: Pair, *, groups: int = 1) -> TwoServers:
    """Refuses one operator in two places, groups in which nobody hides, and sums that do not fit the ring."""
    first, second = operators
    if first == second:
        raise SpecError("both aggregators have the same key; two servers need two operators with keys of their own")
    if not all(crypto.is_identity(identity) for identity in operators):
        raise SpecError("an aggregator's identity is an Ed25519 public key of 32 bytes that is not of small order")
    if terms.cohort:
        raise SpecError(f"cohort={terms.cohort}; with two servers every client sends once, leave it out")
    setup = TwoServers(terms, registry, (first, second), groups)
    if not 1 <= groups <= min_clients(setup) // FEWEST:
        raise SpecError(f"{groups} groups of {min_clients(setup)} clients; use 1 to {min_clients(setup) // FEWEST}")
    if largest_sum(setup, len(registry.clients)) >= 2.0 ** (terms.bits - 1 - terms.fraction):
        raise SpecError(
            f"sums of {len(registry.clients)} vectors clipped to {terms.clip:g} with noise_multiplier="
            f"{terms.noise_multiplier:g} do not fit {terms.bits} bits with fraction={terms.fraction}; lower fraction "
            f"or use 64 bits"
        )
    return setup


def min_clients(setup: TwoServers) -> int:
    """Fewest clients whose sum an aggregator opens its half of. The share of corrupt ones does not count: noise is full
    whoever sends."""
    return fewest_of(len(setup.registry.clients), setup.terms)


def fewest_of(clients: int, terms: Terms) -> int:
    """Fewest clients in a sum of a registry of this size: the quorum, or all but the dropouts."""
    if terms.quorum:
        return max(FEWEST, math.ceil(terms.quorum * clients - _ROUNDING))
    return max(FEWEST, clients - math.ceil(terms.dropouts * clients - _ROUNDING))


def largest_sum(setup: TwoServers, clients: int) -> float:
    """Bound on a number of an honest sum with both noises."""
    terms = setup.terms
    return terms.clip * (clients + TAIL * _AGGREGATORS**0.5 * terms.noise_multiplier)


def largest_norm(setup: TwoServers, clients: int) -> float:
    """Bound on the L2 norm of an honest sum with both noises, exceeded once in 10^17 sums."""
    terms = setup.terms
    noise = _AGGREGATORS**0.5 * terms.noise_multiplier * (terms.length**0.5 + TAIL)
    return terms.clip * (clients + noise)


def context(window: Window) -> bytes:
    """Goes into every key and every signature of a round. 32 bytes"""
    setup, round, ranker, keys = window
    if round < 1 or len(ranker) != DIGEST:
        raise SpecError(f"round {round} of a ranker with a digest of {len(ranker)} bytes; use rounds from 1, 32 bytes")
    if keys[0] == keys[1] or not all(crypto.usable(key) for key in keys):
        raise SpecError("the aggregators' keys of a round are two X25519 public keys of 32 bytes, not of small order")
    sizes = (len(setup.registry.clients), min_clients(setup), setup.groups)
    terms = encoded(setup.terms)
    parts = (*sizes, *setup.operators, *keys, round, ranker)
    return sha256(label(PROTOCOL, VERSION, terms, setup.registry.digest, *parts)).digest()


# --- signed messages ------------------------------------------------------------------------------------------------


class Signed(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    version: int
    round: int
    kind: str
    sender: int  # a client, or 0 and 1 for the aggregators
    body: bytes
    signature: bytes


class Claim(Body, frozen=True):
    """Statement that a client signs: the key that both shares are sealed under, and digests of the sealed shares."""

    ephemeral: Bytes32
    first: Bytes32
    second: Bytes32


class Contribution(Body, frozen=True):
    """The one message of a client; `parts` divides it between the aggregators."""

    claim: bytes  # signed
    first: bytes  # vector minus mask, sealed for aggregator 0
    second: bytes  # seed of the mask, sealed for aggregator 1


class Part(Body, frozen=True):
    """Part of a contribution for one aggregator."""

    claim: bytes  # signed
    sealed: bytes


class Half(Body, frozen=True):
    """The sums of one aggregator's shares, with its noise."""

    members: bytes  # whose shares were added, as a set
    seed: Bytes32  # of the groups
    totals: bytes  # [groups, P] of the ring


class At(NamedTuple):
    """The context in which a message is valid."""

    context: bytes
    round: int
    kind: Kind
    sender: int


def sign(identity: Ed25519PrivateKey, at: At, body: Body) -> bytes:
    content = msgspec.msgpack.encode(body)
    signature = identity.sign(_signed(at, content))
    return msgspec.msgpack.encode(Signed(VERSION, at.round, at.kind, at.sender, content, signature))


def verified(data: bytes, at: At, signer: bytes, kind: type[Struct], *, limit: int) -> Struct:
    """The body of a message of this context, of at most `limit` bytes; anything else is refused."""
    envelope = decoded(data, Signed, limit=limit, what=_named(at))
    found = (envelope.version, envelope.round, envelope.kind, envelope.sender)
    expected = (VERSION, at.round, at.kind, at.sender)
    if found != expected:
        raise SecureAggregationError(f"{_named(at)}: version, round, kind and sender are {found}, expected {expected}")
    if not crypto.signed_by(signer, envelope.signature, _signed(at, envelope.body)):
        raise SecureAggregationError(f"{_named(at)}: the signature is not its sender's in this federation and round")
    return decoded(envelope.body, kind, limit=limit, what=_named(at))


def decoded(data: bytes, kind: type[Struct], *, limit: int, what: str) -> Struct:
    """Sizes are bounded before decoding."""
    if len(data) > limit:
        raise SecureAggregationError(f"{what}: {len(data)} bytes, at most {limit} are expected")
    try:
        return msgspec.msgpack.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise SecureAggregationError(f"{what}: not a {kind.__name__} ({problem})") from None


def _signed(at: At, content: bytes) -> bytes:
    return sha256(crypto.between(at.context, at.sender, len(content), at.kind) + content).digest()


def _named(at: At) -> str:
    return f"{at.kind} of {'client' if at.kind == 'contribution' else 'aggregator'} {at.sender}"


# --- the client -----------------------------------------------------------------------------------------------------


def contribute(vector: Array, client: int, identity: Ed25519PrivateKey, *, window: Window) -> bytes:
    """A client's message of a round; `vector` is clipped and encoded. Sent once: asked again, the same bytes go out."""
    setup, terms = window.setup, window.setup.terms
    if vector.shape != (terms.length,) or vector.dtype != ring.dtype(terms.bits):
        raise SpecError(f"a vector of {vector.shape} {vector.dtype}; use {terms.length} values of {terms.bits} bits")
    if setup.registry.keys.get(client) != identity.public_key().public_bytes_raw():
        raise SpecError(f"client {client} is not in the registry with this identity; register its public key first")
    seed, ephemeral = crypto.new_secret(), crypto.agreement_key(crypto.new_secret())
    first = vector - crypto.self_mask(seed, terms.length, terms.bits)
    now, public = context(window), crypto.public_of(ephemeral)
    sealed = [
        crypto.encrypt(
            box_key(crypto.agree(ephemeral, key), now, client, index, public, key), share, box_label(now, client)
        )
        for index, (key, share) in enumerate(zip(window.keys, (first.tobytes(), seed), strict=True))
    ]
    claim = sign(identity, At(now, window.round, "contribution", client), Claim(public, *map(_digest, sealed)))
    return msgspec.msgpack.encode(Contribution(claim, *sealed))


def box_key(shared: bytes, context: bytes, client: int, index: int, ephemeral: bytes, key: bytes) -> bytes:
    """The key of one sealed share; `index` and `key` are the aggregator's."""
    return crypto.hkdf(shared, info=label(PROTOCOL, "share", context, client, index, ephemeral, key))


def box_label(context: bytes, client: int) -> bytes:
    """Associated data of a sealed share."""
    return label(context, client)


def parts(message: bytes, *, setup: TwoServers) -> tuple[bytes, bytes]:
    """Parts that a relay without keys passes on to aggregator 0 and to aggregator 1."""
    found = decoded(message, Contribution, limit=max_contribution(setup), what="contribution")
    return (
        msgspec.msgpack.encode(Part(found.claim, found.first)),
        msgspec.msgpack.encode(Part(found.claim, found.second)),
    )


def is_contribution(message: bytes, client: int, *, setup: TwoServers, round: int) -> bool:
    """Whether a message claims to be this client's contribution to the round; nothing is verified."""
    limit, what = max_contribution(setup), "contribution"
    try:
        claim = decoded(decoded(message, Contribution, limit=limit, what=what).claim, Signed, limit=limit, what=what)
    except SecureAggregationError:
        return False
    return (claim.version, claim.round, claim.kind, claim.sender) == (VERSION, round, "contribution", client)


def checked_part(
    data: bytes, client: int, index: int, *, setup: TwoServers, context: bytes, round: int
) -> tuple[Claim, bytes, bytes]:
    """For aggregator `index`: the claim, its digest and the sealed share, if this client signed them for this round."""
    part = decoded(data, Part, limit=max_contribution(setup), what=f"contribution of client {client}")
    signer = setup.registry.keys.get(client)
    if signer is None:
        raise SecureAggregationError(f"contribution of client {client}: nobody of that number is registered")
    claim = verified(part.claim, At(context, round, "contribution", client), signer, Claim, limit=_OVERHEAD)
    if _digest(part.sealed) != (claim.first, claim.second)[index]:
        raise SecureAggregationError(f"contribution of client {client}: the share is not the one that was signed")
    return claim, _digest(msgspec.msgpack.encode(claim)), part.sealed


def max_contribution(setup: TwoServers) -> int:
    """Bytes of the largest valid contribution."""
    return setup.terms.length * setup.terms.bits // 8 + _OVERHEAD


def _digest(data: bytes) -> bytes:
    return sha256(data).digest()


# --- the sum --------------------------------------------------------------------------------------------------------


class GroupSums(NamedTuple):
    totals: Array  # [groups, P] of the ring, each with the noise of both aggregators
    members: tuple[tuple[int, ...], ...]  # clients of each group, sorted
    beyond: Array  # [groups] bool, a sum that honest clients and aggregators cannot have: somebody lied


def combine(halves: Pair, *, window: Window) -> GroupSums:
    """The sums of all groups from the aggregators' signed halves; both must have added the shares of the same clients.

    Anybody who holds the registry can check and add them up.
    """
    setup, now = window.setup, context(window)
    first, second = (
        verified(data, At(now, window.round, "half", index), signer, Half, limit=max_half(setup))
        for index, (data, signer) in enumerate(zip(halves, setup.operators, strict=True))
    )
    if (first.members, first.seed) != (second.members, second.seed):
        raise SecureAggregationError("the aggregators did not add up the shares of the same clients; no sum")
    total = _totals(first, setup) + _totals(second, setup)  # [groups, P]
    members = groups_of(first.members, first.seed, setup)
    norms = np.linalg.norm(
        ring.decode(total, Ring(len(setup.registry.clients), setup.terms.bits, setup.terms.fraction)), axis=1
    )
    return GroupSums(total, members, norms > [largest_norm(setup, len(group)) for group in members])


def groups_of(members: bytes, seed: bytes, setup: TwoServers) -> tuple[tuple[int, ...], ...]:
    """The clients of each group: a public function of the set of clients and the seed."""
    included = np.flatnonzero(from_set(members, setup.registry)).tolist()
    if len(included) < min_clients(setup):
        raise SecureAggregationError(f"{len(included)} clients, at least {min_clients(setup)} are needed; no sum")
    return assign(seed, [setup.registry.clients[place] for place in included], setup.groups)


def max_half(setup: TwoServers) -> int:
    """Bytes of the largest valid half."""
    return setup.groups * setup.terms.length * setup.terms.bits // 8 + max_listing(setup)


def max_listing(setup: TwoServers) -> int:
    """Bytes of the largest valid list of clients with their digests."""
    return (DIGEST + 1) * len(setup.registry.clients) + _OVERHEAD


def _totals(half: Half, setup: TwoServers) -> Array:
    terms = setup.terms
    if len(half.totals) != setup.groups * terms.length * terms.bits // 8:
        raise SecureAggregationError(f"a half of {len(half.totals)} bytes is not {setup.groups} x {terms.length}")
    return np.frombuffer(half.totals, ring.dtype(terms.bits)).reshape(setup.groups, terms.length)
