"""Time and bytes of a round of secure aggregation, with all clients and the server in one process.

A tenth of the clients shares its secrets and then drops out, the most expensive moment. In one process a signature that
many clients verify is verified once; `client_ms` is the time of one client that verifies every signature it receives.
One thread: nearly half of the work is key agreement, which `cryptography` does under the GIL; it releases the GIL only
while it verifies signatures.
"""

import time
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from foltr.secagg.certificate import samples
from foltr.secagg.client import Client, join
from foltr.secagg.crypto import forget_verified, new_identity
from foltr.secagg.in_process import run_in_memory
from foltr.secagg.messages import Direction, Stage
from foltr.secagg.ring import Ring, encode
from foltr.secagg.server import Sum, aggregate
from foltr.secagg.terms import Terms, guaranteed, new_federation, registry, shape_of
from foltr.types import Array

PARAMETERS = 136
RANKER = bytes(32)
SIZES = (1_000, 10_000)
_USUAL, _SMOKE = (1_000,), (50,)


def measure_secagg(*, smoke: bool = False, sizes: tuple[int, ...] | None = None) -> dict[str, Any]:
    """Seconds of a round for each number of clients, milliseconds of one client, kilobytes of the busiest client."""
    return {f"secagg_{clients}x{PARAMETERS}": _round(clients) for clients in sizes or (_SMOKE if smoke else _USUAL)}


def _round(clients: int) -> dict[str, float]:
    terms, ring = Terms(new_federation(), PARAMETERS), Ring(clients=clients)
    vectors = encode(np.sin(np.arange(clients * PARAMETERS, dtype=float)).reshape(clients, PARAMETERS), ring)
    members, server = _federation(terms, vectors)
    dropped, timer = set(range(0, clients, 10)), ClientTimer(clients - 1)
    known = members[0].registry
    began, worked = time.perf_counter(), time.process_time()
    found = run_in_memory(
        aggregate(range(clients), terms=terms, registry=known, identity=server, round=1, ranker=RANKER),
        members,
        drop={"mask": dropped},
        mutate=timer,
    )
    seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - worked
    _check(found, vectors, dropped)
    sizes = guaranteed(terms, known)
    shape = shape_of(terms, sizes, clients)
    return {
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,  # other programs share the machine
        "client_ms": 1000 * timer.seconds,
        "up_kb": max(found.up.values()) / 1000,
        "down_kb": max(found.down.values()) / 1000,
        "neighbours": shape.degree,
        "threshold": shape.threshold,
        "signatures": samples(clients - len(dropped), sizes, failure=terms.failure),  # of a certificate
    }


def _federation(terms: Terms, vectors: Array) -> tuple[dict[int, Client], Ed25519PrivateKey]:
    """Clients that are ready for a round, and the server's identity."""
    identities, server = [new_identity() for _ in vectors], new_identity()
    keys = {client: one.public_key().public_bytes_raw() for client, one in enumerate(identities)}
    known = registry(server.public_key().public_bytes_raw(), keys)
    return {
        client: join(client, one, vectors[client], terms=terms, registry=known, round=1, ranker=RANKER)
        for client, one in enumerate(identities)
    }, server


class ClientTimer:
    """Measures the time of one client without signatures that others have verified."""

    def __init__(self, client: int) -> None:
        self.client, self.seconds = client, 0.0

    def __call__(self, _: Stage, direction: Direction, client: int, message: bytes) -> bytes:
        if client == self.client:
            if direction == "request":
                forget_verified()
            self.seconds += (-1 if direction == "request" else 1) * time.process_time()
        return message


def _check(found: Sum, vectors: Array, dropped: set[int]) -> None:
    """The secure sum must equal the plain sum."""
    left = [client for client in range(len(vectors)) if client not in dropped]
    expected = vectors[left].sum(axis=0, dtype=vectors.dtype)
    if found.included != tuple(left) or not np.array_equal(found.total, expected):
        raise RuntimeError("the secure sum is not the plain sum")
