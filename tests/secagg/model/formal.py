"""A federation of formal clients: sets as bits, secrets as symbols, every decision by the rules of the real client.

A `Path` is what one honest client was asked and answered from `share` to `agree`. What left it on the way is formal: a
masked vector (a form), shares for its neighbours (counted), a signature (the claim), proofs (whom it masked with).

Restores. A client that is restored to before `share` shares the same secrets again, with polynomials and sealing keys
of the new graph. In the model every client has done so in every graph before it goes on in one of them: the adversary
can have no more. A client that is restored to before `mask` or `agree` has several paths with the same keys; one that
is restored to before `advertise` has several `copy` numbers: new keys and masks, the same vector.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import decisions
from view_algebra import Form

from foltr.secagg import certificate
from foltr.secagg.graph import GraphShape
from foltr.secagg.guarantee import Guarantee

NOBODY = 0  # in place of survivors: the client signs nothing


class World(NamedTuple):
    """A small federation and the adversary's part of it."""

    clients: int
    colluders: int  # bits of the clients that work for the server
    sizes: Guarantee
    shapes: tuple[GraphShape | None, ...]  # by number of members
    circles: tuple[tuple[int, ...], ...] = ()  # the order of the circle for each root; empty where all are neighbours
    roots: int = 1  # different roots that the server may show
    rankers: int = 1  # different rankers that the server may send


class Path(NamedTuple):
    """One honest client from `share` to `agree`."""

    client: int
    ranker: int
    context: int
    members: int  # bits of clients
    root: int
    neighbours: int  # bits of clients
    threshold: int
    held: int  # bits of clients
    survivors: int  # bits of clients
    claim: tuple[int, ...]  # what its signature covers
    sealing: tuple[int, ...]  # what the keys of its shares are bound to
    copy: int = 0  # of its keys


class Opened(NamedTuple):
    seeds: frozenset[tuple[int, int]]  # (copy, client) whose self mask is known
    keys: frozenset[tuple[int, int]]  # whose mask key is known


def everybody(world: World) -> int:
    return (1 << world.clients) - 1


def honest(world: World) -> list[int]:
    return [client for client in range(world.clients) if not world.colluders >> client & 1]


def bits(number: int) -> Iterator[int]:
    while number:
        low = number & -number
        yield low.bit_length() - 1
        number ^= low


def neighbours(world: World, members: int, root: int, client: int) -> int:
    """As bits of clients; by the order of the circle that belongs to a root."""
    shape = world.shapes[members.bit_count()]
    if shape.degree >= members.bit_count() - 1:
        return members & ~(1 << client)
    order = [one for one in world.circles[root] if members >> one & 1]
    place, half = order.index(client), shape.degree // 2
    return sum(1 << order[(place + step) % len(order)] for step in range(-half, half + 1) if step)


def opened(world: World, paths: Sequence[Path]) -> Opened:
    """The secrets of honest clients of which the adversary gets a threshold of shares."""
    signed: dict[tuple, int] = {}
    masked: dict[tuple[int, int, int], int] = {}  # by copy, context and client: whom it proved to have masked with
    for path in paths:
        key = (path.copy, *path.claim)
        if path.survivors != NOBODY:
            signed[key] = signed.get(key, 0) | 1 << path.client
        sender = (path.copy, path.context, path.client)
        masked[sender] = masked.get(sender, 0) | path.held
    given: dict[tuple, list[int]] = {}  # by copy, owner and graph: who gave a share of the seed, of the key
    for path in paths:
        signers = signed.get((path.copy, *path.claim), 0) | world.colluders
        if path.survivors != NOBODY and unmasks(world, signers):
            _open(world, path, masked, given)
    found = ([], [])
    for (copy, owner, members, root), both in given.items():
        around = neighbours(world, members, root, owner)
        threshold = world.shapes[members.bit_count()].threshold
        for secrets, givers in zip(found, both, strict=True):
            if (givers | around & world.colluders).bit_count() >= threshold:
                secrets.append((copy, owner))
    return Opened(frozenset(found[0]), frozenset(found[1]))


def unmasks(world: World, signers: int) -> bool:
    """Whether a client opens shares for a claim that these clients signed."""
    return decisions.unmasks(signers, everybody(world), certificate.needed(world.sizes))


def _open(world: World, path: Path, masked: dict, given: dict) -> None:
    """The shares that a client opens if it is sent every proof that there is."""
    around = path.neighbours & path.survivors
    proved = world.colluders
    for other in bits(around & ~world.colluders):
        if masked.get((path.copy, path.context, other), 0) >> path.client & 1:
            proved |= 1 << other
    for kind, whose in enumerate(decisions.opened(around, path.held & ~world.colluders, proved)):
        for other in bits(whose):
            shares = given.setdefault((path.copy, other, path.members, path.root), [0, 0])
            shares[kind] |= 1 << path.client


def forms(world: World, paths: Sequence[Path], known: Opened) -> tuple[list[Form], int]:
    """The masked vectors without known masks, and the number of vector symbols (client times ranker)."""
    vectors, size, found = world.clients * world.rankers, world.clients, set()
    for path in paths:
        own = (path.copy, path.client)
        plus, minus = 1 << path.client * world.rankers + path.ranker, 0
        first = vectors + path.copy * size * (size + 1)
        if own not in known.seeds:
            plus |= 1 << first + path.client
        for other in bits(path.held & ~world.colluders if own not in known.keys else 0):
            if (path.copy, other) not in known.keys:
                bit = 1 << first + size * (1 + min(path.client, other)) + max(path.client, other)
                plus, minus = (plus | bit, minus) if path.client < other else (plus, minus | bit)
        found.add(Form(plus, minus))
    return sorted(found), vectors
