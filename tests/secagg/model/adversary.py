"""All choices of the adversary: what each honest client is told at each stage, and what that gives away.

The adversary is the server with its colluding clients. For every honest client it chooses the ranker, the members, the
root of the keys (and with it the circle), whose shares are delivered, the survivors; these may differ between clients.
Left out are choices that another choice dominates, because every reply adds to the view and never takes from it:

    silence towards a client, late requests     asking it is never worse, and a client that nobody masks with or counts
                                                 as a survivor is dropped out for all that others compute
    fewer signatures or proofs than there are    the client decides on what it is sent; more never stops it
    a colluder that holds back shares or keys    it can be left out of the survivors all the same
    the order in which clients are asked         a stage needs only earlier stages of other clients

Symmetry: roots and rankers are named in the order of first use; where all are neighbours, honest clients are
interchangeable, so only profiles whose clients' choices are in sorted order of their shape are looked at.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

import decisions
from formal import Path, Sharing, World, forms, neighbours, opened
from view_algebra import Determined, determined, parities


class Leak(NamedTuple):
    """A view that determines more than is promised."""

    vectors: tuple[tuple[int, ...], ...]  # bases of the combinations: clients with an odd coefficient
    why: str
    paths: tuple[Path, ...]


class Told(NamedTuple):
    """What a client is told before it signs; `held` is chosen afterwards."""

    shape: tuple[int, ...]  # the same for clients that are told the same up to names
    ranker: int
    root: int
    members: int
    survivors: int
    held: tuple[int, ...]  # alternatives, bits of clients


def honest(world: World) -> list[int]:
    return [client for client in range(world.clients) if not world.colluders >> client & 1]


def choices(world: World, client: int) -> list[Told]:
    """Everything that the rules let a client be told, for one root and one ranker: the names come later."""
    everybody = (1 << world.clients) - 1
    found = []
    for members in range(everybody + 1):
        if decisions.shares(client, members, world.sizes) and members.bit_count() in world.shapes:
            found += [told for root in range(len(world.circles) or 1) for told in _told(world, client, members, root)]
    return found


def _told(world: World, client: int, members: int, root: int) -> Iterator[Told]:
    around, threshold = neighbours(world, members, root, client), world.shapes[members.bit_count()].threshold
    deliveries = [held | around & world.colluders for held in subsets(around & ~world.colluders)]
    deliveries = [held for held in deliveries if decisions.masks(held, threshold)]
    for survivors in range(1 << world.clients):
        held = tuple(
            held
            for held in deliveries
            if decisions.agrees(client, members, around, held, survivors, world.sizes, threshold)
        )
        if held:
            shape = tuple((group & mask).bit_count() for group in (members, survivors) for mask in (-1, world.colluders))
            yield Told(shape, 0, root, members, survivors, held)


def subsets(of: int) -> Iterator[int]:
    part = of
    while True:
        yield part
        if not part:
            return
        part = (part - 1) & of


def path(world: World, client: int, told: Told, held: int, sharing: int | None = None) -> Path:
    context = decisions.context(told.ranker)
    around = neighbours(world, told.members, told.root, client)
    threshold = world.shapes[told.members.bit_count()].threshold
    claim = decisions.claim(context, told.members, told.root, told.survivors)
    return Path(
        client if sharing is None else sharing, client, told.ranker, context, told.members, told.root, around, threshold,
        held, told.survivors, claim,
    )  # fmt: skip


def named(count: int, kinds: int) -> list[tuple[int, ...]]:
    """All ways to give one of `kinds` names to each of `count`, up to the choice of names."""
    found: list[tuple[int, ...]] = [()]
    for _ in range(count):
        found = [(*names, name) for names in found for name in range(min(kinds, max(names, default=-1) + 2))]
    return found


def profiles(world: World) -> Iterator[list[Told]]:
    """What all honest clients are told, up to symmetry."""
    clients = honest(world)
    options = [choices(world, client) for client in clients]
    sparse = bool(world.circles)
    names = [
        pair
        for roots in named(len(clients), 1 if sparse else world.roots)
        for rankers in named(len(clients), world.rankers)
        for pair in [list(zip(roots, rankers, strict=True))]
    ]
    for chosen in _sorted_products(options, sparse):
        for pairs in names:
            yield [
                told._replace(root=told.root if sparse else root, ranker=ranker)
                for told, (root, ranker) in zip(chosen, pairs, strict=True)
            ]


def _sorted_products(options: Sequence[Sequence[Told]], sparse: bool) -> Iterator[tuple[Told, ...]]:
    if sparse:
        yield from product(*options)
        return

    def extend(start: tuple[Told, ...]) -> Iterator[tuple[Told, ...]]:
        if len(start) == len(options):
            yield start
            return
        for told in options[len(start)]:
            if not start or start[-1].shape <= told.shape:
                yield from extend((*start, told))

    yield from extend(())


def deliveries(world: World, profile: Sequence[Told]) -> Iterator[list[Path]]:
    """All ways to deliver shares under which somebody opens something."""
    clients = honest(world)
    first = [path(world, client, told, told.held[0]) for client, told in zip(clients, profile, strict=True)]
    if not _somebody_opens(world, first):
        return
    exist = [
        sum(1 << sender.client for sender in first if _delivered(sender, receiver)) | world.colluders
        for receiver in first
    ]
    alternatives = [[held for held in told.held if not held & ~sent] for told, sent in zip(profile, exist, strict=True)]
    for chosen in product(*alternatives):
        yield [one._replace(held=held) for one, held in zip(first, chosen, strict=True)]


def _delivered(sender: Path, receiver: Path) -> bool:
    return decisions.sealed_for(sender, receiver)


def _somebody_opens(world: World, paths: Sequence[Path]) -> bool:
    """With proofs from everybody: without an opened share nothing is determined."""
    for one in paths:
        signers = sum(1 << other.client for other in paths if other.claim == one.claim) | world.colluders
        around = one.neighbours & one.survivors
        if decisions.unmasks(signers & one.neighbours, around, around, one.threshold):
            return True
    return False


def judged(world: World, sharings: Sequence[Sharing], paths: Sequence[Path]) -> Leak | None:
    """None if the view determines nothing, or one sum of as many honest vectors as promised."""
    known = opened(world, sharings, paths)
    if not known.seeds:
        return None
    rows, vectors = forms(world, sharings, paths, known)
    if not parities([row.plus | row.minus for row in rows], vectors) and len(rows) == len(sharings):
        return None
    return _excess(world, determined(rows, vectors), tuple(paths))


def _excess(world: World, found: Determined, paths: tuple[Path, ...]) -> Leak | None:
    seen = tuple(tuple(symbol for symbol in range(world.clients * world.rankers) if row >> symbol & 1) for row in found.parity)
    clients = tuple(tuple(symbol // world.rankers for symbol in row) for row in seen)
    if not found.same_rank:
        return Leak(clients, "a parity leaks", paths)
    if len(found.parity) > 1 or len(found.rational) > 1:
        return Leak(clients, "two different sums", paths)
    for row in found.rational:
        if len({value for _, value in row}) > 1:
            return Leak(clients, "unequal coefficients", paths)
        if len({symbol // world.rankers for symbol, _ in row}) < world.sizes.honest:
            return Leak(clients, f"{len(row)} honest vectors, {world.sizes.honest} promised", paths)
        if len({symbol % world.rankers for symbol, _ in row}) > 1:
            return Leak(clients, "vectors of different rankers in one sum", paths)
    return None


def singles(world: World) -> list[Sharing]:
    """Without restores: one sharing for each client, at the place of its number."""
    return [Sharing(client, client) for client in range(world.clients)]


class Search(NamedTuple):
    profiles: int
    views: int
    sums: int  # views that determine one promised sum
    leak: Leak | None


def search(world: World) -> Search:
    """Every profile and every delivery; stops at the first leak."""
    sharings, num_profiles, views = singles(world), 0, 0
    for profile in profiles(world):
        num_profiles += 1
        for paths in deliveries(world, profile):
            views += 1
            leak = judged(world, sharings, paths)
            if leak is not None:
                return Search(num_profiles, views, 0, leak)
    return Search(num_profiles, views, 0, None)
