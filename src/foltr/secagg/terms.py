"""What server and clients agree on before any round: the parameters of the sum and the identities.

A client never takes these from a request: a server that could set the threshold could read every vector.

Differs from the paper: nothing.
"""

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Annotated, Literal, NamedTuple

import msgspec
import numpy as np

from foltr.errors import SecureAggregationError, SpecError
from foltr.secagg.crypto import label
from foltr.secagg.graph import FEWEST, GraphShape, degree_for
from foltr.types import Array

PROTOCOL = "foltr-secagg"
VERSION = 1
Share = Annotated[float, msgspec.Meta(ge=0, lt=1)]


class Terms(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The same for all clients of a federation."""

    federation: str
    length: int  # numbers in a vector
    bits: Literal[32, 64] = 32
    min_clients: int = FEWEST  # fewest clients whose sum may be opened
    dropouts: Share = 0.1  # of the clients, at any stages together
    corrupt: Share = 0.1  # of the clients, working for the server
    failure: Share = 2**-40  # probability that a vector is revealed
    stall: Share = 2**-20  # probability of no sum within the tolerated dropouts

    def __post_init__(self) -> None:
        if self.length < 1:
            raise SpecError(f"length={self.length}; a vector has at least one number")
        if self.min_clients < FEWEST:
            raise SpecError(
                f"min_clients={self.min_clients}; use {FEWEST} or more: of two, each would learn the other's vector"
            )


class Registry(NamedTuple):
    """Identities: Ed25519 public keys distributed without the server."""

    server: bytes
    keys: dict[int, bytes]  # by client
    clients: tuple[int, ...]  # sorted
    places: dict[int, int]  # of each client in that order


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
    return Registry(server, dict(keys), clients, {client: place for place, client in enumerate(clients)})


def shape_of(terms: Terms, clients: int) -> GraphShape:
    """The neighbour graph of a round with so many clients."""
    return degree_for(clients, dropouts=terms.dropouts, corrupt=terms.corrupt, failure=terms.failure, stall=terms.stall)


def context(terms: Terms, round: int) -> bytes:
    """Goes into every key and every signature, so that no message of one round is valid in another. 32 bytes"""
    return sha256(label(PROTOCOL, VERSION, terms.federation, round, msgspec.msgpack.encode(terms))).digest()


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
