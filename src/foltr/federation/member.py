"""A node as a member of a federation."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from foltr.secagg.terms import Registry, Terms

Clock: TypeAlias = Callable[[], float]  # seconds since 1970


class Member(NamedTuple):
    """What a node knows of its federation, from elsewhere than the server."""

    id: int
    identity: Ed25519PrivateKey
    terms: Terms
    registry: Registry

    def __repr__(self) -> str:
        return f"Member(id={self.id}, federation={self.terms.federation!r})"  # no secret reaches a log
