"""What one client knows in one round, and how it begins.

Differs from the paper: nothing.
"""

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from foltr.errors import SpecError
from foltr.secagg import ring
from foltr.secagg.terms import Registry, Terms, context
from foltr.types import Array


class Client(msgspec.Struct, frozen=True, kw_only=True):
    """One client in one round; what a stage has not reached is empty."""

    id: int
    identity: Ed25519PrivateKey
    terms: Terms
    registry: Registry
    round: int
    context: bytes
    vector: Array  # [P] of the ring
    done: int = 0  # stages answered
    channel: bytes = b""  # secret
    mask: bytes = b""  # secret
    seed: bytes = b""  # secret
    advert: bytes = b""  # own signed keys
    threshold: int = 0
    members: bytes = b""  # who takes part, as a set
    neighbours: tuple[int, ...] = ()
    mask_keys: dict[int, bytes] = {}  # of neighbours
    shared: dict[int, bytes] = {}  # secrets of the channels
    held: dict[int, bytes] = {}  # both shares of each neighbour that takes part
    view: bytes = b""  # what it was told of the graph
    survivors: bytes = b""  # the set that was signed

    def __repr__(self) -> str:
        return f"Client(id={self.id}, round={self.round}, done={self.done})"  # no secret reaches a log


def join(
    id: int, identity: Ed25519PrivateKey, vector: Array, *, terms: Terms, registry: Registry, round: int
) -> Client:
    """A client at the beginning of a round; `vector` comes from `ring.encode`."""
    if vector.shape != (terms.length,) or vector.dtype != ring.dtype(terms.bits):
        raise SpecError(f"a vector of {vector.shape} {vector.dtype}; use {terms.length} values of {terms.bits} bits")
    if registry.keys.get(id) != identity.public_key().public_bytes_raw():
        raise SpecError(f"client {id} is not in the registry with this identity; register its public key first")
    return Client(
        id=id,
        identity=identity,
        terms=terms,
        registry=registry,
        round=round,
        context=context(terms, round),
        vector=vector,
    )
