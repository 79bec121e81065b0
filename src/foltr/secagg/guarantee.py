"""Number of honest vectors in every sum that a client lets the server open, from public numbers alone.

The server is malicious and works with up to the share `corrupt` of ALL registered clients, wherever they are asked.
A cohort is the whole registry up to `LARGEST_COHORT` clients; above that, the two halves of the registry alternate and
every colluder is counted into the half that is asked. A smaller one may be asked for (`cohort`). A client demands that
members and survivors number at least `min_clients`, so the colluders' vectors subtracted, `honest` vectors remain.
Clients derive these numbers from their own registry; they never take them from a request.

A secret that is shared among all others comes back from t shares, and nobody can have t shares of both secrets of a
client if 2 t > (cohort - 1) + colluders; the `min_clients` - 1 others that remain must be t or more (`graph`). So 3 and
4 clients with one colluder demand all of them, and larger federations (1 - `dropouts`) of the cohort.

A client's noise is a share for `honest` contributors: the colluders' shares are known to the server.
"""

import math
from typing import NamedTuple

from foltr.errors import SpecError

FEWEST = 3  # of two, each would learn the other's vector from the sum
LARGEST_COHORT = 1000
_ROUNDING = 1e-9  # a tenth of 1,000 is 100 in spite of rounding


class Guarantee(NamedTuple):
    cohort: int  # clients that a round asks
    min_clients: int  # members, and survivors, that every client demands
    colluders: int  # that work for the server, all of them in the cohort
    honest: int  # vectors, and shares of noise, in every sum that is opened


def guarantee(registered: int, *, dropouts: float, corrupt: float, cohort: int = 0) -> Guarantee:
    """The guarantee of a federation that counts all colluders into a cohort; refused where it would be none.

    A cohort of 0: the registry, or its halves.
    """
    for name, share in (("dropouts", dropouts), ("corrupt", corrupt)):
        if not 0 <= share < 1:
            raise SpecError(f"{name}={share}; use a share from 0 to below 1")
    if registered < FEWEST:
        raise SpecError(f"{registered} clients; a sum needs at least {FEWEST}")
    cohort = min(cohort, registered) or (registered if registered <= LARGEST_COHORT else registered // 2)
    return with_colluders(cohort, colluders_among(registered, corrupt), dropouts=dropouts)


def with_colluders(cohort: int, colluders: int, *, dropouts: float) -> Guarantee:
    """The guarantee of a cohort with so many colluders in it."""
    min_clients = _min_clients(cohort, dropouts, colluders)
    honest = min_clients - colluders
    if honest < 2:
        raise SpecError(
            f"{cohort} clients of which {colluders} may work for the server and sums of {min_clients} leave "
            f"{max(honest, 0)} honest in a sum; use more clients, or lower shares of dropouts and corrupt ones"
        )
    return Guarantee(cohort, min_clients, colluders, honest)


def colluders_among(registered: int, corrupt: float) -> int:
    """A server always has one at least: it may register a client of its own."""
    return max(1, math.ceil(corrupt * registered - _ROUNDING))


def survivors_of(clients: int, dropouts: float) -> int:
    """Those who remain when the tolerated share of them drops out; a fraction of a client is one."""
    return max(FEWEST, clients - math.ceil(dropouts * clients - _ROUNDING))


def fewest_survivors(members: int, colluders: int) -> int:
    """Of so many members who all hold shares of each other's secrets: fewer survivors could open nothing."""
    return (members - 1 + min(colluders, members - 1)) // 2 + 2


def _min_clients(cohort: int, dropouts: float, colluders: int) -> int:
    """Dropouts are rounded up, so that a fraction of a client is one; but not above what the masks allow."""
    wanted, needed = survivors_of(cohort, dropouts), fewest_survivors(cohort, colluders)
    stated = int(dropouts * cohort + _ROUNDING)
    if needed > cohort - stated:
        raise SpecError(
            f"{cohort} clients cannot tolerate {stated} dropouts and {colluders} corrupt ones: {needed} must survive; "
            f"use more clients, or lower shares of dropouts and corrupt ones"
        )
    return max(wanted, needed)
