"""Sparse graphs and larger federations: random lies instead of all of them, from a fixed seed.

A proposal takes one to three claims (members, root, survivors). The honest clients along the circle are cut into as
many arcs, each told one claim; some are told another, and some are told that neighbours shared nothing. What the rules
refuse is left out: such a client masks and signs nothing. The circles of all roots are random, as if the server could
choose them.
"""

from collections.abc import Iterator
from typing import NamedTuple

import decisions
from adversary import Told, path
from formal import NOBODY, Path, World, everybody, honest, neighbours
from search import judged

from foltr.rng import Stream, stream
from foltr.secagg.graph import GraphShape
from foltr.secagg.guarantee import Guarantee


class Sample(NamedTuple):
    views: int
    opened: int  # in which some sum is determined
    leaks: list


def circle_world(clients: int, degree: int, colluders: int, dropouts: int, seed: int) -> World:
    """With thresholds by 2 t > k + c, where all colluders may be neighbours of one client."""
    threshold = (degree + colluders) // 2 + 1
    shapes = tuple(
        GraphShape(min(degree, members - 1), threshold, colluders) if members > degree else None
        for members in range(clients + 1)
    )
    draws = stream(seed, purpose="choice")
    circles = tuple(tuple(draws.skip(k * clients).permutation(clients).tolist()) for k in range(2))
    demanded = clients - dropouts
    sizes = Guarantee(clients, demanded, colluders, demanded - colluders)
    return World(clients, ((1 << colluders) - 1) << clients - colluders, sizes, shapes, circles)


def sample(world: World, count: int, seed: int) -> Sample:
    views, determined, leaks = 0, 0, []
    for number in range(count):
        paths = proposal(world, stream(seed, round=number, purpose="attack"))
        found, leak = judged(world, paths) if paths else (False, None)
        views += 1
        determined += found
        if leak is not None:
            leaks.append(leak)
    return Sample(views, determined, leaks)


def proposal(world: World, draws: Stream) -> list[Path]:
    numbers = _numbers(draws)
    claims = [_claim(world, numbers) for _ in range(1 + int(3 * next(numbers) ** 2))]
    around = list(world.circles[claims[0][1]])
    start = int(next(numbers) * len(around))
    cuts = sorted(next(numbers) for _ in claims[1:])
    told = {}
    for place, client in enumerate(around[start:] + around[:start]):
        arc = sum(place / len(around) >= cut for cut in cuts)
        told[client] = claims[int(next(numbers) * len(claims)) if next(numbers) < 0.03 else arc]
    lied_to = next(numbers) < 0.5
    paths = [_answered(world, client, told[client], numbers, lied_to) for client in honest(world)]
    return [one for one in paths if one is not None]


def _numbers(draws: Stream) -> Iterator[float]:
    while True:
        yield from draws.uniform(256).tolist()
        draws = draws.skip(256)


def _claim(world: World, numbers: Iterator[float]) -> tuple[int, int, int]:
    missing = world.clients - world.sizes.min_clients
    members = everybody(world)
    if next(numbers) < 0.2:
        members &= ~_some(world, missing, numbers)
    survivors = members & ~_some(world, missing, numbers)
    return members, int(2 * next(numbers)) if next(numbers) < 0.3 else 0, survivors


def _some(world: World, at_most: int, numbers: Iterator[float]) -> int:
    return sum({1 << int(next(numbers) * world.clients) for _ in range(int(next(numbers) * (at_most + 1)))})


def _answered(world: World, client: int, claim: tuple, numbers: Iterator[float], lied_to: bool) -> Path | None:
    members, root, survivors = claim
    if not decisions.shares(client, members, everybody(world), world.sizes.min_clients):
        return None
    around, threshold = neighbours(world, members, root, client), world.shapes[members.bit_count()].threshold
    held = around
    if lied_to and next(numbers) < 0.4:
        held &= ~_some(world, 3, numbers) | world.colluders
    elif next(numbers) < 0.5:
        held &= survivors | world.colluders
    if not decisions.masks(held, threshold):
        return None
    if not decisions.agrees(client, members, around, held, survivors, world.sizes, threshold):
        survivors = NOBODY
    return path(world, client, Told((), 0, root, members, survivors, (held,)), held)
