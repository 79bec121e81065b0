"""A round of two aggregators as `foltr bench` measures it: a tenth of the clients sends nothing, noise as deployed.

Everything is timed: clients split, seal and sign; both aggregators verify, open, agree, add noise from the operating
system and sign; the halves are combined. One thread, all parties in one process.
"""

import time
from typing import Any

import numpy as np

from foltr.federation.two_servers import noise_of
from foltr.secagg.crypto import new_identity
from foltr.secagg.ring import Ring, encode
from foltr.secagg.terms import Terms, new_federation, registry
from foltr.secagg.two_in_process import identities_of, keys_of, new_secrets, run_round
from foltr.secagg.two_servers import Window, contribute, two_servers

PARAMETERS = 136
MULTIPLIER = 20.0  # of the noise, over the clip; its size changes the time of its draws hardly
_USUAL, _SMOKE = (1_000,), (50,)
_RANKER = bytes(32)


def measure_two_servers(*, smoke: bool = False, sizes: tuple[int, ...] | None = None) -> dict[str, Any]:
    """Seconds of a round for each number of clients, milliseconds and kilobytes of one client."""
    return {f"two_servers_{n}x{PARAMETERS}": _round(n) for n in sizes or (_SMOKE if smoke else _USUAL)}


def _round(clients: int) -> dict[str, float]:
    identities, server = [new_identity() for _ in range(clients)], new_identity()
    known = registry(
        server.public_key().public_bytes_raw(),
        {client: one.public_key().public_bytes_raw() for client, one in enumerate(identities)},
    )
    secrets = new_secrets()
    terms = Terms(new_federation(), PARAMETERS, noise_multiplier=MULTIPLIER)
    setup = two_servers(terms, known, identities_of(secrets))
    window = Window(setup, 1, _RANKER, keys_of(secrets))
    values = np.sin(np.arange(clients * PARAMETERS, dtype=float)).reshape(clients, PARAMETERS) / PARAMETERS**0.5
    vectors = encode(values, Ring(clients))
    present = [client for client in range(clients) if client % 10]
    began, worked = time.perf_counter(), time.process_time()
    sent = {client: contribute(vectors[client], client, identities[client], window=window) for client in present}
    of_clients = time.process_time() - worked
    found = run_round(sent, secrets, window=window, noise=noise_of(setup))
    seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - worked
    distance = (found.sums.totals[0] - vectors[present].sum(axis=0, dtype=vectors.dtype)).view("<i4")
    if found.sums.members != (tuple(present),) or np.abs(distance).max() > 9 * 2**0.5 * MULTIPLIER * 2**16:
        raise RuntimeError("the sum of two servers is not the plain sum with noise")
    return {
        "seconds": seconds,
        "cpu_seconds": cpu_seconds,  # other programs share the machine
        "client_ms": 1000 * of_clients / len(present),
        "up_kb": max(map(len, sent.values())) / 1000,
    }
