"""Buffered asynchronous rounds: the server releases a new model whenever enough updates have arrived.

Source: Nguyen et al. 2022, "Federated learning with buffered asynchronous aggregation" (FedBuff). A client trains from
the model that was current when it began, and sends its update after its searches; the server waits for `buffer`
updates, scales each by a staleness weight (releases since the model it started from), averages, and steps.

When people search is simulated: rates differ between clients (log-normal), and the intensity of each follows the day,
rate * (1 + day_rhythm * cos(2 pi (t - peak))), with t in days. None of this depends on data or models, so the
members of every release are known before the first.

One release holds at most one update of a client: a second one waits for the next release. So the
sensitivity of a release to one user is one clip, as in synchronous rounds. `max_releases` caps how often a client takes
part: people who search more often would otherwise spend more privacy than the noise is calibrated for.

Differs from the paper: the buffer holds a client once; clients are never idle: they start again after sending.
"""

import heapq
import math
from typing import NamedTuple

import numpy as np

from foltr.errors import SpecError
from foltr.federation.schedule import Members, Schedule, interactions_of
from foltr.rng import stream
from foltr.types import Array, Updates

_PEAK = 0.6  # of a day, when people search most: early afternoon


class Arrivals(NamedTuple):
    """The arrival process of searches."""

    clients: int
    interactions: int | tuple[int, ...]  # searches behind an update
    searches_per_day: float = 10.0  # of the mean client
    rate_spread: float = 1.0  # standard deviation of the logarithm of clients' rates
    day_rhythm: float = 0.8  # 0: the same at every hour; 1: nobody searches at the quietest one
    seed: int = 0


def buffered(arrivals: Arrivals, *, buffer: int, releases: int, max_releases: int | None = None) -> Schedule:
    """Every release as a round, with the version that each of its updates started from."""
    if not 1 <= buffer <= arrivals.clients:
        raise SpecError(f"buffer = {buffer}: a release holds a client once; use 1 to {arrivals.clients}, the clients")
    if max_releases is not None and max_releases * arrivals.clients < releases * buffer:
        raise SpecError(
            f"{releases} releases of {buffer} updates need more than {arrivals.clients} clients that take part "
            f"{max_releases} times each; use fewer releases, a smaller buffer or a larger privacy.releases"
        )
    clients, versions = _filled(arrivals, buffer, releases, max_releases)
    oldest = np.minimum.accumulate(versions.min(axis=1)[::-1])[::-1]  # [releases]

    def members(round: int) -> Members:
        chosen = clients[round - 1]
        interactions = interactions_of(chosen, arrivals.interactions)
        return Members(chosen, interactions, versions[round - 1], int(oldest[round - 1]))

    return Schedule(range(1, releases + 1), members, fixed=False)


def _filled(arrivals: Arrivals, buffer: int, releases: int, max_releases: int | None) -> tuple[Array, Array]:
    """[releases, buffer] clients in rising order, and the version that each started from."""
    rates = client_rates(arrivals)
    needed = interactions_of(np.arange(arrivals.clients), arrivals.interactions)
    sent, begun = np.zeros(arrivals.clients, np.int64), np.zeros(arrivals.clients, np.int64)
    queue = [(_finish(0.0, arrivals, rates[c], int(needed[c]), c, 0), c) for c in range(arrivals.clients)]
    heapq.heapify(queue)
    clients, versions = np.empty((releases, buffer), np.int64), np.empty((releases, buffer), np.int64)
    for release in range(releases):
        inside: dict[int, int] = {}  # client -> version
        waiting: list[tuple[float, int]] = []
        while len(inside) < buffer:
            if not queue:
                raise SpecError("no client is left who may take part; use a larger privacy.releases or fewer releases")
            time, client = heapq.heappop(queue)
            if client in inside:  # its second update waits for the next release
                waiting.append((time, client))
                continue
            inside[client] = int(begun[client])
            sent[client] += 1
            begun[client] = release
            if max_releases is None or sent[client] < max_releases:
                finish = _finish(time, arrivals, rates[client], int(needed[client]), client, int(sent[client]))
                heapq.heappush(queue, (finish, client))
        for late in waiting:
            heapq.heappush(queue, late)
        chosen = sorted(inside)
        clients[release], versions[release] = chosen, [inside[client] for client in chosen]
    return clients, versions


def client_rates(arrivals: Arrivals) -> Array:
    """[clients] searches a day, with the mean that was asked for."""
    spread = arrivals.rate_spread
    normal = stream(arrivals.seed, purpose="users").normal(arrivals.clients)
    return arrivals.searches_per_day * np.exp(spread * normal - spread**2 / 2)


def _finish(start: float, arrivals: Arrivals, rate: float, searches: int, client: int, number: int) -> float:
    """When a client that begins at `start` has made so many searches: a Poisson process whose rate follows the day."""
    draws = stream(arrivals.seed, round=number + 1, client=client, purpose="users").uniform(searches)
    target = float(-np.log1p(-draws).sum()) / rate  # of the integrated rhythm
    low, high = start, start + target + 2.0
    while _rhythm(high, arrivals.day_rhythm) - _rhythm(start, arrivals.day_rhythm) < target:
        high += 1.0
    for _ in range(40):
        midpoint = 0.5 * (low + high)
        reached = _rhythm(midpoint, arrivals.day_rhythm) - _rhythm(start, arrivals.day_rhythm) >= target
        low, high = (low, midpoint) if reached else (midpoint, high)
    return high


def _rhythm(time: float, amplitude: float) -> float:
    """Integral of 1 + amplitude * cos(2 pi (t - peak)) up to a time."""
    return time + amplitude / (2 * math.pi) * math.sin(2 * math.pi * (time - _PEAK))


def staleness_weights(updates: Updates, version: int, *, kind: str, exponent: float) -> Array:
    """[n] 1 for all, or (1 + staleness)^-exponent."""
    if kind == "constant":
        return np.ones(len(updates.clients))
    return (1.0 + version - updates.base_versions) ** -exponent


def weigh_staleness(updates: Updates, version: int, *, kind: str, exponent: float) -> Updates:
    """Updates scaled by the weight of their staleness; the mean still divides by their number, as in FedBuff."""
    weights = staleness_weights(updates, version, kind=kind, exponent=exponent)
    return updates._replace(values=updates.values * weights[:, None])
