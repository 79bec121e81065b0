"""A small random cohort that no server and no client can choose: commit, close, reveal, strike.

Up to 1,000 clients a cohort is the registry, above that its halves alternate (`messages.cohort_of`): all colluders are
counted into the half, so nothing has to be random. Only where a half would be smaller than three times the colluders
is a cohort drawn by lot (`needs_lot`). Its order is the hash of one secret value of every registered client:

    commit    each client sends a commitment to 32 random bytes
    close     the server publishes all commitments; each client checks that its own is among them and signs the digest
    reveal    each client opens its commitment, to those who signed the same digest
    strike    whoever does not open, or opens wrongly, is struck from the registry for this draw, and the WHOLE draw is
              repeated with fresh values

Nobody knows the result before the last honest value is opened; after that, the last to open knows it first and may stay
silent. If the draw went on without the silent ones, c colluders could choose among 2^c results; as it is repeated
without them, each try costs one colluder and they have c + 1 tries. A hash of the registry alone has no secret in it:
whoever chooses keys or registers late tries thousands of registries a second, offline.

The colluders in a cohort are a hypergeometric draw in each try, so the tail is taken at 2^-100 / (c + 1), exactly.

Differs from the literature on public randomness: nothing is delayed; silence has a price instead. The functions decide;
sending, signing and clocks are the caller's.
"""

from collections.abc import Mapping
from fractions import Fraction
from hashlib import sha256
from typing import NamedTuple

from foltr.errors import SecureAggregationError, SpecError
from foltr.secagg.crypto import SECRET, label, new_secret
from foltr.secagg.graph import most_drawn
from foltr.secagg.guarantee import LARGEST_COHORT, Guarantee, fewest_survivors

_TAIL = Fraction(1, 2**100)


class Draw(NamedTuple):
    """One draw of a round, the same for all who take part in it."""

    context: bytes  # `messages.context` of the round
    attempt: int  # from 0; clients struck in earlier ones are not in `clients`
    clients: tuple[int, ...]  # sorted


class Outcome(NamedTuple):
    cohort: tuple[int, ...]  # sorted; empty where the draw must be repeated
    struck: tuple[int, ...]  # who did not open: the next draw is without them


def needs_lot(registered: int, colluders: int) -> bool:
    """Whether halves by turns would leave too few honest clients."""
    return registered > LARGEST_COHORT and registered // 2 < 3 * colluders


def sizes_by_lot(registered: int, colluders: int, *, cohort: int = LARGEST_COHORT, dropouts: float) -> Guarantee:
    """The guarantee of a drawn cohort: its colluders at most, but for 2^-100 over all tries."""
    if not 3 <= cohort <= registered or not 0 <= colluders < registered:
        raise SpecError(f"a cohort of {cohort} and {colluders} colluders among {registered} clients; use 3 or more")
    within = max(1, most_drawn(registered, colluders, cohort, _TAIL / (colluders + 1)))
    least = cohort - int(dropouts * cohort)
    if fewest_survivors(cohort, within) > least or least - within < 2:
        raise SpecError(
            f"{within} of {cohort} may work for the server when {colluders} of {registered} do; draw a larger cohort, "
            f"or lower the share of corrupt clients"
        )
    return Guarantee(cohort, least, within, least - within)


def new_value() -> bytes:
    """What a client commits to; used in one draw only."""
    return new_secret()


def commit(draw: Draw, client: int, value: bytes) -> bytes:
    if len(value) != SECRET:
        raise SpecError(f"a value of {len(value)} bytes; use {SECRET} from `new_value`")
    return sha256(label("cohort commitment", draw.context, draw.attempt, client, value)).digest()


def close(draw: Draw, commitments: Mapping[int, bytes]) -> bytes:
    """The digest that every client signs once: no commitment changes after it. Clients without one are struck first."""
    missing = set(draw.clients) ^ set(commitments)
    if missing:
        raise SecureAggregationError(
            f"the list of commitments and the draw differ in clients {sorted(missing)[:5]}; strike those who sent none"
        )
    listed = [part for client in draw.clients for part in (client, commitments[client])]
    return sha256(label("cohort closed", draw.context, draw.attempt, *listed)).digest()


def may_reveal(draw: Draw, commitments: Mapping[int, bytes], own: tuple[int, bytes], *, signed: int) -> bool:
    """A client opens its value only if its own commitment is in the list and ALL of the draw signed that list."""
    client, value = own
    return commitments.get(client) == commit(draw, client, value) and signed == len(draw.clients)


def settle(draw: Draw, commitments: Mapping[int, bytes], values: Mapping[int, bytes], *, size: int) -> Outcome:
    """The cohort if all opened; otherwise nobody, and who is struck."""
    struck = tuple(
        client
        for client in draw.clients
        if len(values.get(client, b"")) != SECRET or commit(draw, client, values[client]) != commitments[client]
    )
    if struck:
        return Outcome((), struck)
    seed = sha256(label("cohort seed", close(draw, commitments), *(values[one] for one in draw.clients))).digest()
    order = sorted(draw.clients, key=lambda client: sha256(label("cohort", seed, client)).digest())
    return Outcome(tuple(sorted(order[:size])), ())


def repeated(draw: Draw, outcome: Outcome, *, colluders: int) -> Draw:
    """The next draw. More struck clients than there can be colluders are an outage, not an attack: wait, and begin
    again in a later round."""
    left = tuple(client for client in draw.clients if client not in outcome.struck)
    if draw.attempt + 1 > colluders:
        raise SecureAggregationError(f"{draw.attempt + 1} draws failed with {colluders} colluders at most; no cohort")
    return Draw(draw.context, draw.attempt + 1, left)
