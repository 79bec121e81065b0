"""All choices of the adversary: what each honest client is told at each stage, and what that gives away.

The adversary is the server with its colluding clients. For every honest client it chooses the ranker, the members, the
root of the keys (and with it the circle), whose shares are delivered, and the survivors; all may differ from client to
client.
Left out are choices that another choice dominates, because a reply adds to the view and never takes from it:

    silence towards a client, late requests      asking is never worse; a client with whom nobody masks and whom nobody
                                                 counts as a survivor has dropped out for all that others compute
    fewer signatures or proofs than there are    more of them never stop a client
    damaged or withheld keys and shares          the client counts the neighbour as absent, as if nothing was delivered
    a colluder that holds back its share         it can be left out of the survivors all the same
    silence after `mask`                         looked at only if what was delivered lets the client sign no set
    the order in which clients are asked         a stage needs only earlier stages of other clients

Symmetry: roots and rankers are named in the order of first use; where all are neighbours, honest clients are
interchangeable, so only profiles whose clients are in the order of what they are told (up to names) are looked at.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

import decisions
from formal import NOBODY, Path, World, everybody, honest, neighbours, unmasks


class Told(NamedTuple):
    """What a client is told before it signs; whose shares it holds is chosen afterwards."""

    shape: tuple[int, ...]  # the same for clients that are told the same up to names
    ranker: int
    root: int
    members: int
    survivors: int
    held: tuple[int, ...]  # alternatives, bits of clients


def choices(world: World, client: int) -> list[Told]:
    """Everything that the rules let a client be told, for one ranker and, where all are neighbours, for one root."""
    found = []
    for members in range(everybody(world) + 1):
        joins = decisions.shares(client, members, everybody(world), world.sizes.min_clients) and members >> client & 1
        if joins and world.shapes[members.bit_count()] is not None:
            for root in range(len(world.circles) or 1):
                found += _told(world, client, members, root)
    return found


def _told(world: World, client: int, members: int, root: int) -> Iterator[Told]:
    around, threshold = neighbours(world, members, root, client), world.shapes[members.bit_count()].threshold
    deliveries = [held | around & world.colluders for held in subsets(around & ~world.colluders)]
    deliveries = [held for held in deliveries if decisions.masks(held, threshold)]
    silent = set(deliveries)  # with which the client signs no set at all
    for survivors in range(1, everybody(world) + 1):
        held = tuple(
            held
            for held in deliveries
            if decisions.agrees(client, members, around, held, survivors, world.sizes, threshold)
        )
        silent.difference_update(held)
        if held:
            yield _told_so(world, client, root, members, survivors, held)
    if silent:
        yield _told_so(world, client, root, members, NOBODY, tuple(sorted(silent)))


def _told_so(world: World, client: int, root: int, members: int, survivors: int, held: tuple[int, ...]) -> Told:
    groups = (members, survivors)
    shape = tuple((group & only).bit_count() for group in groups for only in (-1, world.colluders, 1 << client))
    return Told(shape, 0, root, members, survivors, held)


def subsets(of: int) -> Iterator[int]:
    part = of
    while True:
        yield part
        if not part:
            return
        part = (part - 1) & of


def path(world: World, client: int, told: Told, held: int, copy: int = 0) -> Path:
    context = decisions.context(told.ranker)
    around = neighbours(world, told.members, told.root, client)
    return Path(
        client,
        told.ranker,
        context,
        told.members,
        told.root,
        around,
        world.shapes[told.members.bit_count()].threshold,
        held,
        told.survivors,
        decisions.claim(context, told.members, told.root, told.survivors),
        decisions.sealing(context, told.members, told.root),
        copy,
    )


def named(count: int, kinds: int) -> list[tuple[int, ...]]:
    """All ways to give one of `kinds` names to each of `count`, up to the choice of names."""
    found: list[tuple[int, ...]] = [()]
    for _ in range(count):
        found = [(*names, name) for names in found for name in range(min(kinds, max(names, default=-1) + 2))]
    return found


def profiles(world: World) -> Iterator[list[Told]]:
    """What all honest clients are told, up to symmetry, if somebody may open a share then."""
    clients = honest(world)
    sparse = bool(world.circles)
    names = [
        tuple(zip(roots, rankers, strict=True))
        for roots in named(len(clients), 1 if sparse else world.roots)
        for rankers in named(len(clients), world.rankers)
    ]
    for chosen in _in_order([choices(world, client) for client in clients], sparse):
        if opens_something(world, chosen):  # different names only split the signatures further
            for pairs in names:
                profile = [
                    told._replace(root=told.root if sparse else root, ranker=ranker)
                    for told, (root, ranker) in zip(chosen, pairs, strict=True)
                ]
                if opens_something(world, profile):
                    yield profile


def _in_order(
    options: Sequence[Sequence[Told]], sparse: bool, start: tuple[Told, ...] = ()
) -> Iterator[tuple[Told, ...]]:
    if len(start) == len(options):
        yield start
        return
    for told in options[len(start)]:
        if sparse or not start or start[-1].shape <= told.shape:
            yield from _in_order(options, sparse, (*start, told))


def opens_something(world: World, profile: Sequence[Told]) -> bool:
    """Whether a client has enough signatures: if none has, no share is opened and nothing is determined."""
    paths = [path(world, client, told, 0) for client, told in zip(honest(world), profile, strict=True)]
    signed: dict[tuple[int, ...], int] = {}
    paths = [one for one in paths if one.survivors != NOBODY]
    for one in paths:
        signed[one.claim] = signed.get(one.claim, world.colluders) | 1 << one.client
    return any(unmasks(world, signed[one.claim]) for one in paths)


def deliveries(world: World, profile: Sequence[Told]) -> Iterator[list[Path]]:
    """All ways to deliver the shares of those who are neighbours in the same context and graph."""
    clients = honest(world)
    paths = [path(world, client, told, 0) for client, told in zip(clients, profile, strict=True)]
    alternatives = []
    for receiver, told in zip(paths, profile, strict=True):
        sent = world.colluders | sum(1 << sender.client for sender in paths if delivered(world, sender, receiver))
        alternatives.append([held for held in told.held if not held & ~sent])
    for chosen in product(*alternatives):
        yield [one._replace(held=held) for one, held in zip(paths, chosen, strict=True)]


def delivered(world: World, sender: Path, receiver: Path) -> bool:
    """Whether the sender has sealed shares for the receiver that it can open: both in one context, the sender restored
    and asked to share in the receiver's graph."""
    if sender.context != receiver.context:
        return False
    members, client = receiver.members, sender.client
    if not decisions.shares(client, members, everybody(world), world.sizes.min_clients) or not members >> client & 1:
        return False
    return bool(neighbours(world, members, receiver.root, client) >> receiver.client & 1)
