"""The search for a leak: a view that determines more of the honest vectors than is promised.

The promise, for one round: every combination of honest vectors that the view determines is a multiple of ONE sum with
equal coefficients over at least `honest` clients, all of whose vectors belong to one ranker; also if clients are
restored to before `share`, as often as the adversary likes. Restores to later stages, and to before
`advertise`, are refused (`decisions.in_order`); a mutant that allows them is searched with them.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import decisions
from adversary import Told, choices, deliveries, path, profiles
from formal import Opened, Path, World, forms, honest, opened
from view_algebra import Determined, determined, parities

from foltr.errors import SpecError
from foltr.secagg.graph import GraphShape, degree_for
from foltr.secagg.guarantee import guarantee


class Leak(NamedTuple):
    clients: tuple[tuple[int, ...], ...]  # of each combination in a basis: whose vectors are in it
    why: str
    paths: tuple[Path, ...]


class Search(NamedTuple):
    profiles: int  # in which somebody may open a share
    views: int  # with all deliveries
    sums: int  # views that determine one promised sum
    leak: Leak | None


def world(clients: int, *, dropouts: float, corrupt: float, roots: int = 1, rankers: int = 1) -> World:
    """A federation with the sizes and thresholds of the real one; the last clients collude."""
    sizes = guarantee(clients, dropouts=dropouts, corrupt=corrupt)
    return World(
        clients,
        ((1 << sizes.colluders) - 1) << clients - sizes.colluders,
        sizes,
        tuple(_shape(members, sizes) for members in range(clients + 1)),
        roots=roots,
        rankers=rankers,
    )


def _shape(members: int, sizes) -> GraphShape | None:
    """Of a member count below `min_clients` too: a client without that check would use it."""
    try:
        return degree_for(members, sizes._replace(min_clients=min(sizes.min_clients, members)))
    except SpecError:  # the client refuses as well
        return None


def search(world: World, limit: int | None = None) -> Search:
    """Every profile and delivery; stops at the first leak."""
    num_profiles = views = sums = 0
    for profile in profiles(world):
        num_profiles += 1
        for paths in _restored(world, profile):
            views += 1
            found, leak = judged(world, paths)
            sums += found
            if leak is not None:
                return Search(num_profiles, views, sums, leak)
        if limit is not None and views >= limit:
            break
    return Search(num_profiles, views, sums, None)


def judged(world: World, paths: Sequence[Path]) -> tuple[bool, Leak | None]:
    """Whether the view determines anything, and the leak if it is more than promised."""
    known = Opened(*[frozenset((0, client) for client in honest(world))] * 2) if broken(world) else opened(world, paths)
    if not known.seeds:
        return False, None
    rows, vectors = forms(world, paths, known)
    if len(rows) == len(honest(world)) and not parities([row.plus | row.minus for row in rows], vectors):
        return False, None  # each mask stands in two rows: the two elements decide
    found = determined(rows, vectors)
    return bool(found.parity or found.rational), _excess(world, found, tuple(paths))


def broken(world: World) -> bool:
    """Whether a restored client seals different shares under one key: such a key counts as known."""
    members = (1 << world.clients) - 1
    return decisions.sealing(0, members, 0) in (decisions.sealing(0, members, 1), decisions.sealing(0, members >> 1, 0))


def _excess(world: World, found: Determined, paths: tuple[Path, ...]) -> Leak | None:
    symbols = [[bit for bit in range(world.clients * world.rankers) if row >> bit & 1] for row in found.parity]
    symbols = symbols or [[symbol for symbol, _ in row] for row in found.rational]
    clients = tuple(tuple(bit // world.rankers for bit in row) for row in symbols)
    if not found.same_rank:
        return Leak(clients, "a parity leaks", paths)
    if len(found.parity) > 1 or len(found.rational) > 1:
        return Leak(clients, f"{len(found.rational)} independent combinations", paths)
    for row in found.rational:
        if len({value for _, value in row}) > 1:
            return Leak(clients, "unequal coefficients", paths)
        if len(row) < world.sizes.honest:
            return Leak(clients, f"a sum of {len(row)} honest vectors, {world.sizes.honest} promised", paths)
        if len({symbol % world.rankers for symbol, _ in row}) > 1:
            return Leak(clients, "vectors of different rankers in one sum", paths)
    return None


def _restored(world: World, profile: Sequence[Told]) -> Iterator[list[Path]]:
    """The deliveries of a profile, and what else restored clients answer where the rules let them."""
    for paths in deliveries(world, profile):
        yield paths
        if decisions.answers_again("mask"):
            yield from _asked_again(world, profile, paths, same_held=False)
        if decisions.answers_again("agree"):
            yield from _asked_again(world, profile, paths, same_held=True)
        if decisions.answers_again("advertise"):
            yield from _second_round(world, profile, paths)


def _asked_again(world: World, profile: Sequence[Told], paths: list[Path], same_held: bool) -> Iterator[list[Path]]:
    """All clients are restored, and answer everything that the rules let them in the same graph."""
    found = list(paths)
    for told, first in zip(profile, paths, strict=True):
        for other in _same_graph(world, first.client, told):
            if same_held and first.held not in other.held:
                continue
            for held in (first.held,) if same_held else other.held:
                found.append(path(world, first.client, other, held))
    yield found


def _same_graph(world: World, client: int, told: Told) -> list[Told]:
    return [
        other._replace(root=told.root, ranker=told.ranker)
        for other in choices(world, client)
        if other.members == told.members and (not world.circles or other.root == told.root)
    ]


def _second_round(world: World, profile: Sequence[Told], paths: list[Path]) -> Iterator[list[Path]]:
    """All clients are restored to before the round and join it again with other survivors."""
    for told in {told.survivors: told for told in _same_graph(world, paths[0].client, profile[0])}.values():
        second = []
        for first in paths:
            same = [one for one in _same_graph(world, first.client, told) if one.survivors == told.survivors]
            second += [path(world, first.client, one, one.held[0], copy=1) for one in same]
        yield [*paths, *second]
