"""Promises that a federation of a given size can keep: the smallest epsilon that leaves something to learn from.

Adversary: a malicious server with the share `corrupt` of all nodes. Unit: one node. Adjacency: zero-out. The sizes are
those of `secagg.guarantee`: every sum has at least `min_clients` messages, `honest` of which are of nobody's colluders.

The noise of a release is sized for the honest shares. Its standard deviation on the mean of the fewest messages is, per
coordinate, z clip / sqrt(min_clients honest), and its norm over P parameters sqrt(P) times that; z is the multiplier
that epsilon, delta and the releases of one node ask for. Updates are clipped to the norm `clip`, so the mean that
clients agree on has at most that norm:

    usable       the norm of the noise is at most 1/2 of the clip: a release says more than its noise hides
    unnoticed    at most 1/8 of it: the noise of `foltr reproduce privacy/user-level`, where 1,000 clients at epsilon 1
                 rank as well as without privacy

An epsilon above 4 is called no promise: it lets a release change the odds about a user by a factor of 55.
"""

import math
from typing import Any, NamedTuple

from foltr.errors import SpecError
from foltr.privacy.calibration import gaussian_epsilon
from foltr.secagg.guarantee import FEWEST, Guarantee, guarantee

SIZES = (5, 20, 100, 1000, 10_000)
RELEASES = (1, 5, 20)  # of one node
USABLE, UNNOTICED = 1 / 2, 1 / 8  # norm of the noise on the mean, over the clip
LARGEST_EPSILON = 4.0
PARAMETERS = 46  # of a linear ranker on MQ2007


class Promise(NamedTuple):
    """Epsilons are None where no epsilon up to `LARGEST_EPSILON` fits."""

    clients: int
    releases: int
    sizes: Guarantee
    usable: float | None
    unnoticed: float | None


def promise(
    clients: int, releases: int, *, parameters: int = PARAMETERS, delta: float = 1e-5, dropouts: float = 0.1,
    corrupt: float = 0.1,
) -> Promise:  # fmt: skip
    """The smallest epsilons of a federation of this size; refused below three clients."""
    if clients < FEWEST:
        raise SpecError(f"clients = {clients}: a federation needs at least three clients: of two, each reads the other")
    sizes = guarantee(clients, dropouts=dropouts, corrupt=corrupt)
    found = (smallest_epsilon(sizes, releases, level, parameters=parameters, delta=delta) for level in
             (USABLE, UNNOTICED))  # fmt: skip
    return Promise(clients, releases, sizes, *(one if one <= LARGEST_EPSILON else None for one in found))


def smallest_epsilon(sizes: Guarantee, releases: int, level: float, *, parameters: int, delta: float) -> float:
    """The epsilon at which the noise on the mean reaches this level."""
    multiplier = level / relative_noise(sizes, 1.0, parameters)
    return gaussian_epsilon(math.sqrt(releases) / multiplier, delta)


def relative_noise(sizes: Guarantee, multiplier: float, parameters: int) -> float:
    """Norm of the noise on the mean of the fewest messages, over the clip."""
    return multiplier * math.sqrt(parameters / (sizes.min_clients * sizes.honest))


def check_promised(clients: int, *, parameters: int, delta: float, dropouts: float, corrupt: float) -> None:
    """Refuses a federation that can promise no epsilon, not even for one release, and says what it can promise."""
    one = promise(clients, 1, parameters=parameters, delta=delta, dropouts=dropouts, corrupt=corrupt)
    if one.usable is None:
        least = smallest_epsilon(one.sizes, 1, USABLE, parameters=parameters, delta=delta)
        raise SpecError(f"clients = {clients}: {words(one)} The noise of one release drowns {parameters} parameters "
                        f"below epsilon {least:.1f}; use more clients")  # fmt: skip


def words(one: Promise) -> str:
    """A promise, with its adversary."""
    sizes = one.sizes
    said = f"sums of {sizes.min_clients:,} or more ({sizes.honest:,} with the help of {_nodes(sizes.colluders)})"
    if one.usable is None:
        return f"{said} and no epsilon."
    times = "one release" if one.releases == 1 else f"{one.releases} releases"
    return (
        f"{said} and epsilon {one.usable:.2g} for {times} of a node, against the server and {_nodes(sizes.colluders)} "
        f"(zero-out)."
    )


def _nodes(count: int) -> str:
    return "one node" if count == 1 else f"{count:,} nodes"


def promises(*, parameters: int = PARAMETERS, delta: float = 1e-5, dropouts: float = 0.1,
             corrupt: float = 0.1) -> list[Promise]:  # fmt: skip
    """The table: all sizes, all numbers of releases."""
    about = {"delta": delta, "dropouts": dropouts, "corrupt": corrupt}
    return [promise(clients, releases, parameters=parameters, **about) for clients in SIZES for releases in RELEASES]


def as_data(found: list[Promise]) -> list[dict[str, Any]]:
    return [one._asdict() | {"sizes": one.sizes._asdict()} for one in found]
