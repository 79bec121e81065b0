"""The protocol with one check removed or weakened at a time, and the attack that each of these mutants permits.

A mutant replaces a function of `foltr.secagg.rules` (which changes the real client as well), or a binding of the model:
what signatures, sealing keys and contexts cover, or a size. `SINGLE` are caught alone. `PAIRS` are two checks that stop
the same attack: the model finds none as long as one of them stands, and finds it when both are gone. `STAGED` has an
attack that is too large to be searched for.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import decisions
from adversary import Told, path
from formal import Path, World
from search import world

from foltr.secagg import certificate, rules


class Mutant(NamedTuple):
    removed: str  # the check, in words
    attack: str  # what it permits
    changes: tuple[tuple[Any, str, Callable[..., Any]], ...]  # module, function, replacement
    world: World  # a federation in which it shows
    weakened: Callable[[World], World] = lambda same: same  # sizes of the mutant


def always(*_: Any) -> bool:
    return True


def answers_twice(stage: str) -> Callable[[int, int], bool]:
    place = decisions.STAGES[stage]
    return lambda asked, answered: asked in (answered, place)


def with_threshold(real: World, threshold: int) -> World:
    return real._replace(shapes=tuple(shape and shape._replace(threshold=threshold) for shape in real.shapes))


def sums_of_three(real: World) -> World:
    """The smallest sum from the list of members that the server sends; certificates still count the cohort."""
    shapes = tuple(
        shape or (real.shapes[-1]._replace(degree=members - 1, threshold=members - 1) if members > 1 else None)
        for members, shape in enumerate(real.shapes)
    )
    return real._replace(shapes=shapes, sizes=real.sizes._replace(min_clients=3))


def _all_sizes_of_three(real: World) -> World:
    found = sums_of_three(real)
    return found._replace(sizes=found.sizes._replace(cohort=3))


FIVE = world(5, dropouts=0, corrupt=0.1, roots=4)  # all five survive, four honest in the sum
FIVE_LESS_ONE = world(5, dropouts=0.2, corrupt=0.1, roots=2)  # one may drop out, three honest in the sum
FIVE_TWO_RANKERS = world(5, dropouts=0.2, corrupt=0.1, rankers=2)
SIX = world(6, dropouts=0.1, corrupt=0.1)
SIX_TWO_COLLUDERS = world(6, dropouts=0.1, corrupt=0.3)
ELEVEN = world(11, dropouts=0.36, corrupt=0.05)  # four may drop out, six honest in the sum

SINGLE: dict[str, Mutant] = {
    "held": Mutant(
        "a client signs survivors only if it masked with those around it (survivors_are_held)",
        "a group is told that the others shared nothing and masks among itself; all sign the full set; its sum opens",
        ((rules, "survivors_are_held", always),),
        FIVE,
    ),
    "survivors": Mutant(
        "the signed set has min_clients or more (enough_survivors)",
        "one client too many is declared dropped out: a sum of fewer honest vectors opens",
        ((rules, "enough_survivors", always),),
        FIVE,
    ),
    "outsiders": Mutant(
        "survivors are members (survivors_took_part)",
        "a registered client that takes no part is counted among the survivors in place of one that dropped out",
        ((rules, "survivors_took_part", always),),
        SIX,
    ),
    "signatures": Mutant(
        "a certificate names so many signers that no other claim can have as many (enough_signers)",
        "some are told that a client survived, the others that it dropped out: both of its secrets open",
        ((rules, "enough_signers", always),),
        FIVE_LESS_ONE,
    ),
    "samples": Mutant(
        "the sampled signatures of a certificate hold and fit their tags (certified)",
        "everybody is named as a signer of two sets: both secrets of the client that is in one of them only open",
        ((rules, "certified", always),),
        FIVE_LESS_ONE,
    ),
    "both shares": Mutant(
        "one share of each neighbour (share_to_open)",
        "self mask and mask key of every client open: every single vector",
        ((rules, "share_to_open", lambda *_: ("seed", "mask")),),
        FIVE,
    ),
    "wrong share": Mutant(
        "the self mask of survivors, the mask key of the others (share_to_open)",
        "the vector of a client that is declared dropped out after it sent it",
        ((rules, "share_to_open", lambda other, around: "mask" if other in around else "seed"),),
        FIVE_LESS_ONE,
    ),
    "mask twice": Mutant(
        "no stage is answered twice (client, participant), at mask",
        "a restored client masks with ever other neighbours: the differences are its masks, then its vector",
        ((decisions, "in_order", answers_twice("mask")),),
        FIVE_LESS_ONE,
    ),
    "agree twice": Mutant(
        "no stage is answered twice (client, participant), at agree",
        "restored clients sign a second set and open the other secret of the client that is in one of them only",
        ((decisions, "in_order", answers_twice("agree")),),
        FIVE_LESS_ONE,
    ),
    "round twice": Mutant(
        "no round is joined twice (participant), at advertise",
        "the same vectors are summed with and without one client: the difference is its vector",
        ((decisions, "in_order", answers_twice("advertise")),),
        FIVE_LESS_ONE,
    ),
    "signed set": Mutant(
        "signatures cover the set of survivors (messages.agreement)",
        "signatures on one set open the shares of another: as without signatures",
        ((decisions, "claim", lambda context, members, root, survivors: (context, members, root)),),
        FIVE_LESS_ONE,
    ),
    "ranker": Mutant(
        "the context covers the round's ranker (terms.context)",
        "vectors relative to different rankers stand in one sum: the victim's can be told from the others'",
        ((decisions, "context", lambda ranker: 0),),
        FIVE_TWO_RANKERS,
    ),
    "sealing": Mutant(
        "sealing keys are bound to the graph of the request (client)",
        "a client that is restored to before share seals other shares under the same key and nonce; taken as read",
        ((decisions, "sealing", lambda context, members, root: (context,)),),
        FIVE,
    ),
    "threshold": Mutant(
        "2 t > k + c (graph): as few shares as there are colluders",
        "the colluders open both secrets of a client by themselves",
        (),
        FIVE_LESS_ONE,
        lambda real: with_threshold(real, real.sizes.colluders),
    ),
    "sizes": Mutant(
        "the cohort and the smallest sum follow from the registry (guarantee), not from the request: any three",
        "rounds as small as the server likes, in the end one victim and two colluders",
        (),
        SIX_TWO_COLLUDERS,
        _all_sizes_of_three,
    ),
}

_PROOFS = (rules, "may_open", always)
_NEIGHBOURS = (rules, "enough_neighbours", always)

PAIRS: dict[str, Mutant] = {
    "proofs": Mutant(
        "a survivor's self mask is opened only if it proved that it masked with the opener (may_open), and a client "
        "masks only with a threshold of neighbours (enough_neighbours)",
        "the victim is told that all honest neighbours shared nothing, and the neighbours that it survived: it stands "
        "without a mask when they open its self mask",
        (_PROOFS, _NEIGHBOURS),
        FIVE,
    ),
}

# too large for a search: the attack is written down, and judged like any other view
STAGED: dict[str, tuple[Mutant, Callable[[], list[Path]]]] = {
    "cohort": (
        Mutant(
            "a certificate needs more than half of the honest clients of the cohort (certificate.needed), not of the "
            "eight members that a claim names",
            "two groups are told different members, and each has a majority of its own; of a client that was restored "
            "to before share and counts as dropped out in one group, both secrets open",
            ((certificate, "needed", lambda sizes: (8 + sizes.colluders) // 2 + 1),),
            ELEVEN,
        ),
        lambda: two_memberships(ELEVEN),
    ),
}


def two_memberships(world: World) -> list[Path]:
    """Honest clients 0 to 4 and 5 to 9 of 11; client 5 is a member in both graphs, and drops out in the first."""
    first, second = _bits(0, 1, 2, 3, 4, 5, 6, 10), _bits(5, 6, 7, 8, 9, 0, 1, 10)
    paths = []
    for client in range(10):
        members, survivors = (first, first & ~_bits(5)) if client < 5 else (second, second)
        held = members & ~_bits(client)
        paths.append(path(world, client, Told((), 0, 0, members, survivors, (held,)), held))
    return paths


def _bits(*clients: int) -> int:
    return sum(1 << client for client in clients)


@contextmanager
def applied(mutant: Mutant, only: int | None = None) -> Iterator[World]:
    """The federation of a mutant while its checks are replaced; `only`: one of its changes."""
    changes = mutant.changes if only is None else mutant.changes[only : only + 1]
    originals = [(module, name, getattr(module, name)) for module, name, _ in changes]
    try:
        for module, name, replacement in changes:
            setattr(module, name, replacement)
        decisions.forget()
        yield mutant.weakened(mutant.world)
    finally:
        for module, name, original in originals:
            setattr(module, name, original)
        decisions.forget()
