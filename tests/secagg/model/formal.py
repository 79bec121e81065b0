"""A federation of formal clients: sets as bits, secrets as symbols, every decision by the functions of the real client.

An honest client answers stage by stage. A `Path` is what it was asked and answered from `share` to `agree`, and what left
it on the way: a masked vector (a form), shares for its neighbours (counted), a signature (the claim), proofs (the set of
those it masked with). Without restores a client has one path. A client that is restored to before

    advertise   has a second instance: new keys, new masks, the same vector;
    share       has a second sharing of the same keys, with new polynomials;
    mask        has further paths with other neighbours held;
    agree       has further paths with other survivors.

`opened` adds up which secrets the paths of all clients open to the adversary, `forms` what it then sees.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import decisions
from view_algebra import Form

from foltr.secagg.graph import GraphShape
from foltr.secagg.guarantee import Guarantee


class World(NamedTuple):
    """A small federation and the adversary's part of it."""

    clients: int
    colluders: int  # bits of the clients that work for the server
    sizes: Guarantee
    shapes: dict[int, GraphShape]  # by number of members
    circles: tuple[tuple[int, ...], ...] = ()  # the order of the circle for each root; empty where all are neighbours
    roots: int = 1  # different roots that the server may show
    rankers: int = 1  # different rankers that the server may send


class Sharing(NamedTuple):
    """One answer to `share`: whose, and under which keys."""

    client: int
    instance: int  # of its keys


class Path(NamedTuple):
    """One honest client from `share` to `agree`."""

    sharing: int  # its place among the sharings of the federation
    client: int
    ranker: int
    context: int
    members: int  # bits of clients
    root: int
    neighbours: int  # bits of clients
    threshold: int
    held: int  # bits of sharings, colluders by their own number
    survivors: int  # bits of clients
    claim: tuple[int, ...]  # what its signature covers


class Opened(NamedTuple):
    seeds: frozenset[int]  # instances whose self mask is known
    keys: frozenset[int]  # instances whose mask key is known


def bits(number: int) -> Iterable[int]:
    while number:
        low = number & -number
        yield low.bit_length() - 1
        number ^= low


def neighbours(world: World, members: int, root: int, client: int) -> int:
    """As bits of clients; in the order of the circle that belongs to a root."""
    shape = world.shapes[members.bit_count()]
    if shape.degree >= members.bit_count() - 1:
        return members & ~(1 << client)
    order = [one for one in world.circles[root] if members >> one & 1]
    place, half = order.index(client), shape.degree // 2
    return sum(1 << order[(place + step) % len(order)] for step in range(-half, half + 1) if step)


def opened(world: World, sharings: Sequence[Sharing], paths: Sequence[Path]) -> Opened:
    """The secrets of honest clients of which the adversary gets a threshold of shares."""
    signed: dict[tuple[int, ...], int] = {}
    masked: dict[tuple[int, int], int] = {}  # by sharing and context: whom it proved that it masked with them
    for path in paths:
        signed[path.claim] = signed.get(path.claim, 0) | 1 << path.client
        masked[path.sharing, path.context] = masked.get((path.sharing, path.context), 0) | path.held
    given = {True: {}, False: {}}  # bits of the clients that opened, by sharing
    for path in paths:
        if _opens(world, sharings, path, signed[path.claim], masked):
            for other in bits(path.held & ~world.colluders):
                survived = bool(path.survivors >> sharings[other].client & 1)
                for seed in decisions.opens(survived):
                    given[seed][other] = given[seed].get(other, 0) | 1 << path.client
    recipients = {path.sharing: (path.neighbours & world.colluders, path.threshold) for path in paths}
    return Opened(*(_recovered(sharings, recipients, given[seed]) for seed in (True, False)))


def _opens(world, sharings, path: Path, signers: int, masked) -> bool:
    """Whether a client opens shares, if it is sent every signature and every proof that there is."""
    signers = (signers | world.colluders) & path.neighbours
    around = path.neighbours & path.survivors
    proven = around & world.colluders
    for other in bits(path.held & ~world.colluders):
        if masked.get((other, path.context), 0) >> path.sharing & 1:
            proven |= 1 << sharings[other].client
    return decisions.unmasks(signers, around, proven & around, path.threshold)


def _recovered(sharings, recipients, given) -> frozenset[int]:
    found = set()
    for sharing, (corrupt, threshold) in recipients.items():
        if (given.get(sharing, 0) | corrupt).bit_count() >= threshold:
            found.add(sharings[sharing].instance)
    return frozenset(found)


def forms(world: World, sharings: Sequence[Sharing], paths: Iterable[Path], known: Opened) -> tuple[list[Form], int]:
    """The masked vectors without known masks, and the number of vector symbols (client times ranker)."""
    vectors = world.clients * world.rankers
    instances = 1 + max(sharing.instance for sharing in sharings)
    found = set()
    for path in paths:
        own = sharings[path.sharing].instance
        plus, minus = 1 << path.client * world.rankers + path.ranker, 0
        if own not in known.seeds:
            plus |= 1 << vectors + own
        if own not in known.keys:
            for other in bits(path.held & ~world.colluders):
                theirs = sharings[other].instance
                if theirs not in known.keys:
                    low, high = min(own, theirs), max(own, theirs)
                    bit = 1 << vectors + instances * (1 + low) + high
                    if path.client < sharings[other].client:
                        plus |= bit
                    else:
                        minus |= bit
        found.add(Form(plus, minus))
    return list(found), vectors
