"""Agreements of server and clients before any round: terms, registry, and what follows from both.

Terms are the parameters of the sum and of the noise in it, a registry holds the identities. A client never takes these
from a request: a server that could set the threshold could read every vector. The smallest sum, the threshold and the
share of noise follow from them (`guaranteed`). All of it, and the digest of the round's ranker, is hashed into the
context of every key and signature, so that clients who were told different things cannot be summed.
"""

import math
import os
from collections.abc import Iterable, Mapping
from functools import lru_cache
from hashlib import sha256
from typing import Annotated, Literal, NamedTuple

import msgspec
import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from foltr.errors import SecureAggregationError, SpecError
from foltr.secagg.certificate import needed
from foltr.secagg.cohort import by_turns
from foltr.secagg.crypto import SIGNATURE, is_identity, label
from foltr.secagg.graph import COMPLETE, GraphShape, degree_for
from foltr.secagg.guarantee import FEWEST, Guarantee, colluders_among, guarantee
from foltr.secagg.lot.sizes import needs_lot, sizes_by_lot
from foltr.secagg.ring import Ring, require_range
from foltr.types import Array

PROTOCOL = "foltr-secagg"
VERSION = 4
_NEIGHBOUR_BYTES = 160  # the longest entry is a signed pair of keys
_LONGEST_STAGE = 7 * 86_400  # seconds
TAIL = 9.0  # standard deviations of noise that a sum may reach: exceeded once in 10^18 numbers
Share = Annotated[float, msgspec.Meta(ge=0, lt=1)]


class Terms(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters that all clients of a federation share."""

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
    cohort: int = 0  # clients that a round asks; 0: all, or halves by turns of more than 1,000
    stage_seconds: float = 120.0  # the server waits so long for the replies of a stage; the window with two operators
    quorum: Share = 0.0  # of the registry, in a sum of two operators; 0: all but `dropouts`

    def __post_init__(self) -> None:
        if len(self.federation) != 32 or not set(self.federation) <= set("0123456789abcdef"):
            raise SpecError(f"federation={self.federation!r}; use an identifier from secagg.terms.new_federation()")
        if self.cohort and self.cohort < FEWEST:
            raise SpecError(f"cohort={self.cohort}; use 0 for all clients, or at least {FEWEST}")
        if self.length < 1:
            raise SpecError(f"length={self.length}; a vector has at least one number")
        if not 0 <= self.fraction < self.bits:
            raise SpecError(f"fraction={self.fraction}; use 0 to {self.bits - 1} binary digits of {self.bits}")
        if not (0 < self.clip < math.inf and 0 <= self.noise_multiplier < math.inf):
            raise SpecError(f"clip={self.clip}, noise_multiplier={self.noise_multiplier}; use finite numbers, clip > 0")
        if not 0 < self.failure < 1 or not 0 < self.stall < 1:
            raise SpecError(f"failure={self.failure}, stall={self.stall}; use probabilities between 0 and 1")
        if not 1 <= self.stage_seconds <= _LONGEST_STAGE:
            raise SpecError(f"stage_seconds={self.stage_seconds}; use 1 second to {_LONGEST_STAGE}, seven days")
        for name, kind in Terms.__annotations__.items():
            if kind in (float, Share):  # a clip of 1 is a clip of 1.0, and -0.0 is 0.0: one encoding, one context
                msgspec.structs.force_setattr(self, name, float(getattr(self, name)) + 0.0)


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
    """Refuses two names for one key, and what is no key."""
    if not is_identity(server):
        raise SecureAggregationError("the server's identity is not an Ed25519 public key of 32 bytes; make a new one")
    names: dict[bytes, int] = {}
    for client, key in keys.items():
        if client < 0:
            raise SpecError(f"client {client}; use numbers from 0")
        if not is_identity(key):
            raise SecureAggregationError(
                f"client {client}: its identity is not an Ed25519 public key of 32 bytes, or one of small order; let "
                f"the client make a new one"
            )
        if key in names or key == server:
            other = f"client {names[key]}" if key in names else "the server"
            raise SecureAggregationError(f"client {client} has the identity of {other}; every party needs its own key")
        names[key] = client
    clients = tuple(sorted(keys))
    listed = [part for client in clients for part in (client, keys[client])]
    digest = sha256(label("registry", server, *listed)).digest()
    return Registry(server, dict(keys), clients, {client: place for place, client in enumerate(clients)}, digest)


def require_registered(client: int, identity: Ed25519PrivateKey, known: Registry) -> None:
    if known.keys.get(client) != identity.public_key().public_bytes_raw():
        raise SpecError(f"client {client} is not in the registry with this identity; register its public key first")


def guaranteed(terms: Terms, known: Registry) -> Guarantee:
    """The sizes of a federation, derived from public numbers alone; refuses terms whose sums could overflow."""
    size = sizes_by_lot if is_by_lot(terms, known) else guarantee
    sizes = size(len(known.clients), cohort=terms.cohort, dropouts=terms.dropouts, corrupt=terms.corrupt)
    require_range(ring_of(terms, sizes), clip=terms.clip, multiplier=terms.noise_multiplier, honest=sizes.honest)
    return sizes


def largest_norm(terms: Terms, sizes: Guarantee, clients: int) -> float:
    """What the L2 norm of an honest sum of so many vectors with their shares of noise does not exceed, but once in
    10^17 sums: each share has the variance of the whole noise over the guaranteed honest ones."""
    noise = terms.noise_multiplier * math.sqrt(clients / max(1, sizes.honest)) * (math.sqrt(terms.length) + TAIL)
    return terms.clip * (clients + noise)


def is_by_lot(terms: Terms, known: Registry) -> bool:
    """Whether the cohort of a round is drawn (`secagg.lot.draw`) before it begins."""
    registered = len(known.clients)
    return needs_lot(registered, colluders_among(registered, terms.corrupt), terms.cohort)


def ring_of(terms: Terms, sizes: Guarantee) -> Ring:
    return Ring(sizes.cohort, terms.bits, terms.fraction)


def shape_of(terms: Terms, sizes: Guarantee, members: int) -> GraphShape:
    """The neighbour graph of a round with so many members."""
    return degree_for(members, sizes, failure=terms.failure, stall=terms.stall)


class Drawn(NamedTuple):
    """Result of a draw, for those who took part in it."""

    seed: bytes  # 32 bytes that nobody chose
    cohort: frozenset[int]


def cohort_of(terms: Terms, known: Registry, round: int, drawn: Drawn | None = None) -> frozenset[int]:
    """Clients that are asked in a round: by turns, or as it was drawn."""
    if is_by_lot(terms, known) != (drawn is not None):
        raise SpecError(
            "the cohorts of this federation are drawn by lot; take part in the draw of the round first"
            if drawn is None
            else "the cohorts of this federation are not drawn by lot; leave the draw out"
        )
    return drawn.cohort if drawn else by_turns(known.digest, known.clients, guaranteed(terms, known).cohort, round)


@lru_cache(maxsize=64)
def most_bytes(terms: Terms, sizes: Guarantee, registered: int) -> int:
    """No message of a round is longer; checked before it is decoded."""
    degree = max(min(COMPLETE, sizes.cohort), 2 * shape_of(terms, sizes, sizes.cohort).degree)
    certificate = sizes.cohort + SIGNATURE * needed(sizes)
    return 4096 + registered + terms.length * terms.bits // 8 + _NEIGHBOUR_BYTES * degree + certificate


def encoded(terms: Terms) -> bytes:
    """Terms in a context. A quorum of 0 is left out: rounds that were stored before there were quorums go on."""
    return msgspec.msgpack.encode(
        {name: getattr(terms, name) for name in Terms.__struct_fields__ if name != "quorum" or terms.quorum}
    )


def context(terms: Terms, known: Registry, round: int, ranker: bytes, seed: bytes = b"") -> bytes:
    """Goes into every key and every signature: a message is valid in one round, under one set of terms, one registry,
    one ranker and one draw. `ranker`: the SHA-256 digest of the round's ranker; `seed`: of the draw. 32 bytes"""
    if len(ranker) != 32:
        raise SpecError(f"the digest of a ranker has {len(ranker)} bytes; use the 32 of SHA-256")
    if not 0 <= round < 2**63:
        raise SpecError(f"round={round}; use numbers from 0")
    sizes = guaranteed(terms, known)
    parts = (encoded(terms), known.digest, *sizes, round, ranker, seed)
    return sha256(label(PROTOCOL, VERSION, terms.federation, *parts)).digest()


def to_set(clients: Iterable[int], known: Registry) -> bytes:
    """A set of clients as one bit for each in the registry."""
    bits = np.zeros(len(known.clients), np.uint8)
    bits[[known.places[client] for client in clients]] = 1
    return np.packbits(bits).tobytes()


def from_set(bits: bytes, known: Registry) -> Array:
    """Membership of a set, [registry] bool; refuses an invalid encoding."""
    size = len(known.clients)
    flags = np.unpackbits(np.frombuffer(bits, np.uint8)).astype(bool)
    if len(bits) != (size + 7) // 8 or flags[size:].any():
        raise SecureAggregationError(f"a set of clients does not fit the registry of {size}")
    return flags[:size]


def set_of(bits: bytes, known: Registry) -> frozenset[int]:
    return frozenset(known.clients[place] for place in np.flatnonzero(from_set(bits, known)))
