"""What server and clients agree on before any round, and the messages of a round.

Terms are the parameters of the sum and of the noise in it, a registry holds the identities. A client never takes these
from a request: a server that could set the threshold could read every vector. The smallest sum, the threshold and the
share of noise follow from them (`guaranteed`). All of it, and the digest of the round's ranker, is hashed into the
context of every key and signature, so that clients who were told different things cannot be summed.

Messages are msgpack envelopes, each signed by its sender for one round, stage, direction and client.

Differs from the paper: the server signs as well, so that nobody on the network can change a request.
"""

import math
import os
from collections.abc import Iterable, Mapping
from functools import lru_cache
from hashlib import sha256
from typing import Annotated, Literal, NamedTuple, TypeVar

import msgspec
import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from foltr.errors import SecureAggregationError, SpecError
from foltr.secagg.certificate import SIGNATURE, needed
from foltr.secagg.crypto import between, label, signed_by
from foltr.secagg.graph import COMPLETE, GraphShape, degree_for
from foltr.secagg.guarantee import Guarantee, guarantee
from foltr.secagg.ring import Ring, require_range
from foltr.types import Array

PROTOCOL = "foltr-secagg"
VERSION = 4
_NEIGHBOUR_BYTES = 160  # the longest entry is a signed pair of keys
_DAY = 86_400  # seconds
Share = Annotated[float, msgspec.Meta(ge=0, lt=1)]


class Terms(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The same for all clients of a federation."""

    federation: str  # random: `new_federation`
    length: int  # numbers in a vector
    bits: Literal[32, 64] = 32
    fraction: int = 16  # binary digits behind the point
    clip: float = 1.0  # L2 norm of an update
    noise_multiplier: float = 0.0  # standard deviation of the noise of all honest shares over the clip; 0: no noise
    dropouts: Share = 0.1  # of a cohort, at any stages together
    corrupt: Share = 0.1  # of all registered clients, working for the server
    failure: Share = 2**-80  # probability that one try of a graph or certificate lets fewer be summed than promised
    stall: Share = 2**-20  # probability of no sum within the tolerated dropouts
    stage_seconds: float = 120.0  # the server waits so long for the replies of a stage

    def __post_init__(self) -> None:
        if len(self.federation) != 32 or not set(self.federation) <= set("0123456789abcdef"):
            raise SpecError(f"federation={self.federation!r}; use an identifier from secagg.messages.new_federation()")
        if self.length < 1:
            raise SpecError(f"length={self.length}; a vector has at least one number")
        if not 0 <= self.fraction < self.bits:
            raise SpecError(f"fraction={self.fraction}; use 0 to {self.bits - 1} binary digits of {self.bits}")
        if not (0 < self.clip < math.inf and 0 <= self.noise_multiplier < math.inf):
            raise SpecError(f"clip={self.clip}, noise_multiplier={self.noise_multiplier}; use finite numbers, clip > 0")
        if not 0 < self.failure < 1 or not 0 < self.stall < 1:
            raise SpecError(f"failure={self.failure}, stall={self.stall}; use probabilities between 0 and 1")
        if not 1 <= self.stage_seconds <= _DAY:
            raise SpecError(f"stage_seconds={self.stage_seconds}; use 1 second to {_DAY}, a day")


def new_federation() -> str:
    """A random identifier: no message or ledger entry of one federation counts in another."""
    return os.urandom(16).hex()


class Registry(NamedTuple):
    """Identities: Ed25519 public keys distributed without the server."""

    server: bytes
    keys: dict[int, bytes]  # by client
    clients: tuple[int, ...]  # sorted
    places: dict[int, int]  # of each client in that order
    digest: bytes  # of all of it


def registry(server: bytes, keys: Mapping[int, bytes]) -> Registry:
    """Refuses two names for one key."""
    names: dict[bytes, int] = {}
    for client, key in keys.items():
        if client < 0:
            raise SpecError(f"client {client}; use numbers from 0")
        if key in names or key == server:
            other = f"client {names[key]}" if key in names else "the server"
            raise SecureAggregationError(f"client {client} has the identity of {other}; every party needs its own key")
        names[key] = client
    clients = tuple(sorted(keys))
    listed = [part for client in clients for part in (client, keys[client])]
    digest = sha256(label("registry", server, *listed)).digest()
    return Registry(server, dict(keys), clients, {client: place for place, client in enumerate(clients)}, digest)


def guaranteed(terms: Terms, known: Registry) -> Guarantee:
    """The sizes of a federation, derived from public numbers alone; refuses terms whose sums could overflow."""
    sizes = guarantee(len(known.clients), dropouts=terms.dropouts, corrupt=terms.corrupt)
    require_range(ring_of(terms, sizes), clip=terms.clip, multiplier=terms.noise_multiplier, honest=sizes.honest)
    return sizes


def ring_of(terms: Terms, sizes: Guarantee) -> Ring:
    return Ring(sizes.cohort, terms.bits, terms.fraction)


def shape_of(terms: Terms, sizes: Guarantee, members: int) -> GraphShape:
    """The neighbour graph of a round with so many members."""
    return degree_for(members, sizes, failure=terms.failure, stall=terms.stall)


def cohort_of(known: Registry, sizes: Guarantee, round: int) -> frozenset[int]:
    """The cohort of a round: everybody, or in a large registry one half. The order is that of a hash; it need not be
    unpredictable, because every colluder is counted into either half. An odd one out waits for one round."""
    if len(known.clients) <= sizes.cohort:
        return frozenset(known.clients)
    order, start = _order(known.digest, known.clients), round * sizes.cohort
    return frozenset(order[(start + k) % len(order)] for k in range(sizes.cohort))


@lru_cache(maxsize=8)
def _order(digest: bytes, clients: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(clients, key=lambda client: sha256(label("halves", digest, client)).digest()))


@lru_cache(maxsize=64)
def most_bytes(terms: Terms, sizes: Guarantee) -> int:
    """No message of a round is longer; checked before it is decoded."""
    degree = max(min(COMPLETE, sizes.cohort), 2 * shape_of(terms, sizes, sizes.cohort).degree)
    certificate = sizes.cohort + SIGNATURE * needed(sizes)
    return 4096 + sizes.cohort + terms.length * terms.bits // 8 + _NEIGHBOUR_BYTES * degree + certificate


def context(terms: Terms, known: Registry, round: int, ranker: bytes) -> bytes:
    """Goes into every key and every signature: a message is valid in one round, under one set of terms, one registry
    and one ranker. `ranker`: the SHA-256 digest of the round's ranker. 32 bytes"""
    if len(ranker) != 32:
        raise SpecError(f"the digest of a ranker has {len(ranker)} bytes; use the 32 of SHA-256")
    if not 0 <= round < 2**63:
        raise SpecError(f"round={round}; use numbers from 0")
    sizes = guaranteed(terms, known)
    parts = (msgspec.msgpack.encode(terms), known.digest, *sizes, round, ranker)
    return sha256(label(PROTOCOL, VERSION, terms.federation, *parts)).digest()


def to_set(clients: Iterable[int], known: Registry) -> bytes:
    """A set of clients as one bit for each in the registry."""
    bits = np.zeros(len(known.clients), np.uint8)
    bits[[known.places[client] for client in clients]] = 1
    return np.packbits(bits).tobytes()


def from_set(bits: bytes, known: Registry) -> Array:
    """Who of the registry is in a set, [registry] bool; refuses an invalid encoding."""
    size = len(known.clients)
    flags = np.unpackbits(np.frombuffer(bits, np.uint8)).astype(bool)
    if len(bits) != (size + 7) // 8 or flags[size:].any():
        raise SecureAggregationError(f"a set of clients does not fit the registry of {size}")
    return flags[:size]


def set_of(bits: bytes, known: Registry) -> frozenset[int]:
    return frozenset(known.clients[place] for place in np.flatnonzero(from_set(bits, known)))


# --- messages -------------------------------------------------------------------------------------------------------


Stage = Literal["advertise", "share", "mask", "agree", "unmask"]
STAGES: tuple[Stage, ...] = ("advertise", "share", "mask", "agree", "unmask")
Direction = Literal["request", "reply"]


def round_seconds(terms: Terms) -> float:
    """The longest duration of a round: every stage up to its deadline."""
    return len(STAGES) * terms.stage_seconds


class Envelope(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    version: int
    round: int
    direction: str
    stage: str
    client: int
    body: bytes
    signature: bytes


class Body(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What a stage carries."""


class Start(Body, frozen=True):
    """Request of `advertise`: a round begins."""


class Keys(Body, frozen=True):
    """Reply: fresh public keys."""

    channel: bytes  # for shares and tags between clients; never revealed
    mask: bytes  # for masks; its secret is revealed if the client drops out before it sends its vector

    def __post_init__(self) -> None:
        if any(len(key) != 32 or key[31] > 127 for key in (self.channel, self.mask)):  # one spelling of each key
            raise ValueError("an X25519 public key is 32 bytes, the last of them below 128")


class Neighbourhood(Body, frozen=True):
    """Request of `share`: who takes part, and the signed keys of the client's neighbours."""

    members: bytes  # as a set
    root: bytes  # of the tree over all signed keys
    path: bytes  # proof that the client's own keys are in it
    keys: list[bytes]  # `signed_keys` of each neighbour, in the order of neighbours


class Shares(Body, frozen=True):
    """Reply: both secrets in shares, each sealed for one neighbour, and what the server checks them by."""

    sealed: list[bytes]  # in the order of neighbours
    seed: bytes  # commitment to the self mask
    commitments: list[bytes]  # to the two shares of each neighbour, in the order of neighbours


class Deliveries(Body, frozen=True):
    """Request of `mask`: what the neighbours sealed for this client, empty for those who dropped out."""

    sealed: list[bytes]  # in the order of neighbours


class Masked(Body, frozen=True):
    """Reply: the vector under all its masks, and for each neighbour the proof that its mask is among them."""

    vector: bytes
    proofs: list[bytes]  # in the order of neighbours, empty for those who dropped out


class Survivors(Body, frozen=True):
    """Request of `agree`: whose vectors the server has."""

    members: bytes  # as a set


class Agreement(Body, frozen=True):
    """Reply: the client's signature is on this set and no other."""

    digest: bytes  # of the graph as the client saw it, and of the set of survivors


def view(members: bytes, root: bytes) -> bytes:
    """A digest of the graph as the server described it; it seeds the order of the circle."""
    return sha256(label(members, root)).digest()


def agreement(seen: bytes, survivors: bytes) -> Agreement:
    """Those who agree saw the same graph and the same survivors."""
    return Agreement(sha256(label(seen, survivors)).digest())


class Certificate(Body, frozen=True):
    """That more than half of the honest clients signed the same claim; the same for all clients."""

    signers: bytes  # as a set
    tags: bytes  # one byte for each signer, in the order of clients
    signatures: bytes  # of the sampled signers, in the order of clients


class Opening(Body, frozen=True):
    """Request of `unmask`: why shares may be opened, and what survivors proved to this client."""

    certificate: Certificate
    proofs: list[bytes]  # in the order of neighbours, empty for those who dropped out


class Revealed(Body, frozen=True):
    """Reply: of a neighbour that survived its share of the self mask, of another its share of the mask key."""

    shares: list[bytes]  # in the order of neighbours, empty for those who never shared


REQUESTS: dict[Stage, type[Body]] = dict(
    zip(STAGES, (Start, Neighbourhood, Deliveries, Survivors, Opening), strict=True)
)


class Address(NamedTuple):
    """The context in which a message is valid."""

    context: bytes
    round: int
    direction: Direction
    stage: Stage
    client: int  # the one that sends or receives it; the server is at the other end


Kind = TypeVar("Kind", bound=Body)
_envelope = msgspec.msgpack.Decoder(Envelope)


def send(identity: Ed25519PrivateKey, to: Address, body: Body) -> bytes:
    content = msgspec.msgpack.encode(body)
    signature = identity.sign(_signed(to, content))
    return msgspec.msgpack.encode(Envelope(VERSION, to.round, to.direction, to.stage, to.client, content, signature))


def receive(data: bytes, at: Address, signer: bytes, kind: type[Kind]) -> Kind:
    """The body of a message of this context; anything else is refused."""
    envelope = opened(data, at)
    if not signed_by(signer, envelope.signature, _signed(at, envelope.body)):
        raise SecureAggregationError(f"{_named(at)}: the signature is not its sender's in this federation and round")
    try:
        return msgspec.msgpack.decode(envelope.body, type=kind)
    except msgspec.DecodeError as problem:
        raise SecureAggregationError(f"{_named(at)}: not a {kind.__name__} ({problem})") from None


def opened(data: bytes, at: Address) -> Envelope:
    """An envelope that claims this context; its signature is not checked."""
    try:
        envelope = _envelope.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise SecureAggregationError(f"{_named(at)}: not a message ({problem})") from None
    found = (envelope.version, envelope.round, envelope.stage, envelope.direction, envelope.client)
    expected = (VERSION, at.round, at.stage, at.direction, at.client)
    if found != expected:
        names = ("version", "round", "stage", "direction", "client")
        wrong = [f"{n} is {f!r}, expected {e!r}" for n, f, e in zip(names, found, expected, strict=True) if f != e]
        raise SecureAggregationError(f"{_named(at)}: {'; '.join(wrong)}")
    return envelope


def vouches(signature: bytes, at: Address, signer: bytes, body: Body) -> bool:
    """Whether the signature is that of a message with this body."""
    return signed_by(signer, signature, _signed(at, msgspec.msgpack.encode(body)))


def signed_keys(advert: bytes) -> bytes:
    """The reply of `advertise` as its neighbours are sent it: two keys and the signature, without the envelope."""
    envelope = _envelope.decode(advert)
    keys = msgspec.msgpack.decode(envelope.body, type=Keys)
    return keys.channel + keys.mask + envelope.signature


def keys_of(signed: bytes, at: Address, signer: bytes) -> Keys | None:
    """The keys of a neighbour; None where they are not its own in this round."""
    try:
        keys = Keys(signed[:32], signed[32:64])
    except ValueError:
        return None
    return keys if vouches(signed[64:], at, signer, keys) else None


def _signed(at: Address, content: bytes) -> bytes:
    return sha256(between(at.context, at.client, len(content), f"{at.direction} {at.stage}") + content).digest()


def _named(at: Address) -> str:
    return f"{at.direction} of stage {at.stage!r} {'to' if at.direction == 'request' else 'from'} client {at.client}"
