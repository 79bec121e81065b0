"""Sizes of a cohort that is drawn by lot, which neither server nor clients can choose.

A cohort with fewer than three times as many clients as there are colluders (`needs_lot`) is drawn: its order is a hash
of secret values that clients commit to before any of them is opened (`draw`).

A hash of the registry alone would not do: whoever chooses keys or registers late tries thousands of registries a
second, offline. Of a draw nobody knows the result before the last honest value is opened. Then the server knows it
first, and chooses: it can leave values out, a colluder's or anybody's, or have the draw repeated. If any value could be
left out, c colluders alone had 2^c results to choose from; if none, one client of thousands that goes away would end
every draw. So `most_missing` may be left out, more are struck and the draw repeated, and `ATTEMPTS` are made in a round
at most: `results` counts all that the server can choose from.

The server also decides who seems to be absent at the beginning. Clients demand that `draw_sizes` of the registry take
part, and the colluders are counted among the fewest that can be left. The colluders in a cohort are a hypergeometric
draw for each result, and its tail is taken at 2^-100 over all results, exactly.

Differs from the literature on public randomness: nothing is delayed; results are counted instead.
"""

from fractions import Fraction
from functools import lru_cache
from math import comb

from foltr.errors import SpecError
from foltr.secagg.graph import most_drawn
from foltr.secagg.guarantee import Guarantee, colluders_among, survivors_of, with_colluders

ATTEMPTS = 8  # of a draw; more are an outage
_TAIL = Fraction(1, 2**100)


def needs_lot(registered: int, colluders: int, cohort: int) -> bool:
    """Whether a cohort is too small to count all colluders into it. 0: the registry or its halves, which never are."""
    return 0 < cohort < min(registered, 3 * colluders)


def most_missing(registered: int) -> int:
    """Number of those who committed that may open nothing: a half of a percent go away within some minutes. The cost in
    colluders grows with this number, so it is bounded."""
    return max(1, min(registered // 200, 50))


@lru_cache(maxsize=64)
def results(registered: int) -> int:
    """Largest number of results of a draw that the server can choose from."""
    return ATTEMPTS * sum(comb(registered, missing) for missing in range(most_missing(registered) + 1))


@lru_cache(maxsize=64)
def draw_sizes(registered: int, *, dropouts: float, corrupt: float) -> Guarantee:
    """Sizes of a draw: all registered clients are asked, and so many must commit."""
    colluders, least = colluders_among(registered, corrupt), survivors_of(registered, dropouts)
    if least - colluders < 2:
        raise SpecError(
            f"{registered} clients of which {registered - least} may be absent and {colluders} may work for the server "
            f"draw nothing fairly; use more clients, or lower shares"
        )
    return Guarantee(registered, least, colluders, least - colluders)


@lru_cache(maxsize=64)
def sizes_by_lot(registered: int, *, cohort: int, dropouts: float, corrupt: float) -> Guarantee:
    """The guarantee of a drawn cohort: its colluders at most, but for 2^-100 over all results."""
    draw = draw_sizes(registered, dropouts=dropouts, corrupt=corrupt)
    fewest = draw.min_clients - most_missing(registered)  # of whom the cohort is drawn
    if not 3 <= cohort <= fewest:
        raise SpecError(f"a cohort of {cohort}; draw 3 to {fewest} of {registered} clients")
    if fewest < draw.colluders:
        raise SpecError(
            f"a cohort may be drawn from {fewest} clients, of whom {draw.colluders} may work for the server; use more "
            f"clients, or lower shares"
        )
    within = max(1, most_drawn(fewest, draw.colluders, cohort, _TAIL / results(registered)))
    try:
        return with_colluders(cohort, within, dropouts=dropouts)
    except SpecError as problem:
        raise SpecError(f"a cohort by lot, {draw.colluders} of {registered} corrupt: {problem}") from None
