"""Who is asked in a round: everybody, some by turns, or a small cohort that neither server nor clients can choose.

Up to 1,000 clients a cohort is the registry, above that its halves alternate; `Terms.cohort` asks for fewer. As long as
a cohort has three times as many clients as there are colluders, all colluders are counted into it and nothing has to be
random (`by_turns`). A smaller one is drawn by lot (`needs_lot`): its order is a hash of secret values that clients
commit to before any of them is opened (`draw`).

A hash of the registry alone would not do: whoever chooses keys or registers late tries thousands of registries a
second, offline. Of a draw nobody knows the result before the last honest value is opened; then the server knows it
first, and can have the draw repeated by keeping a value back, its colluder's or anybody's. So each attempt is a try,
and clients take part in `attempts(colluders)` of a round at most. Without repetition, c colluders could choose among
2^c results by opening or not.

The server also decides who seems to be absent. Clients demand that `draw_sizes` of the registry take part, and the
colluders are counted among the fewest: the colluders in a cohort are a hypergeometric draw in each try, and its tail is
taken at 2^-100 over all tries, exactly.

Differs from the literature on public randomness: nothing is delayed; tries are counted instead.
"""

from collections.abc import Iterable
from fractions import Fraction
from functools import lru_cache
from hashlib import sha256

from foltr.errors import SpecError
from foltr.secagg.crypto import label
from foltr.secagg.graph import most_drawn
from foltr.secagg.guarantee import Guarantee, colluders_among, survivors_of, with_colluders

_TAIL = Fraction(1, 2**100)


def needs_lot(registered: int, colluders: int, cohort: int) -> bool:
    """Whether a cohort is too small to count all colluders into it. 0: the registry or its halves, which never are."""
    return 0 < cohort < min(registered, 3 * colluders)


def attempts(colluders: int) -> int:
    """How often a draw may be repeated and begun: colluders that keep their values back are soon used up, and what
    remains is an outage."""
    return colluders + 1


@lru_cache(maxsize=64)
def draw_sizes(registered: int, *, dropouts: float, corrupt: float) -> Guarantee:
    """Of a draw: all registered clients are asked, and so many must commit."""
    colluders, least = colluders_among(registered, corrupt), survivors_of(registered, dropouts)
    if least - colluders < 2:
        raise SpecError(
            f"{registered} clients of which {registered - least} may be absent and {colluders} may work for the server "
            f"draw nothing fairly; use more clients, or lower shares"
        )
    return Guarantee(registered, least, colluders, least - colluders)


@lru_cache(maxsize=64)
def sizes_by_lot(registered: int, *, cohort: int, dropouts: float, corrupt: float) -> Guarantee:
    """The guarantee of a drawn cohort: its colluders at most, but for 2^-100 over all tries."""
    draw = draw_sizes(registered, dropouts=dropouts, corrupt=corrupt)
    if not 3 <= cohort <= draw.min_clients:
        raise SpecError(f"a cohort of {cohort}; draw 3 to {draw.min_clients} of {registered} clients")
    odds = _TAIL / attempts(draw.colluders)
    within = max(1, most_drawn(draw.min_clients, draw.colluders, cohort, odds))
    try:
        return with_colluders(cohort, within, dropouts=dropouts)
    except SpecError as problem:
        raise SpecError(f"a cohort by lot, {draw.colluders} of {registered} corrupt: {problem}") from None


def by_turns(digest: bytes, clients: tuple[int, ...], size: int, round: int) -> frozenset[int]:
    """The cohort of a round from public numbers. The order is that of a hash; it need not be unpredictable, because
    every colluder is counted into any cohort. An odd one out waits for one round."""
    if len(clients) <= size:
        return frozenset(clients)
    order, start = _order("halves", digest, clients), round * size
    return frozenset(order[(start + k) % len(order)] for k in range(size))


def by_lot(seed: bytes, clients: Iterable[int], size: int) -> frozenset[int]:
    """The cohort that a draw gives; `clients` are those who took part in it."""
    return frozenset(_order("cohort", seed, tuple(sorted(clients)))[:size])


@lru_cache(maxsize=8)
def _order(purpose: str, seed: bytes, clients: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(clients, key=lambda client: sha256(label(purpose, seed, client)).digest()))
