"""Promises that a command deploys, what several rounds add to them, and the words that documents and commands use.

    open      two operators with noise: epsilon composes over rounds, whoever is a member
    circle    two operators without noise, all members or no sum: no epsilon
    server    one server, five stages: deployed by no command

Without noise the question is what several sums tell about one member. Every sum has all members of a registry, and a
ranker has one sum, so two sums differ in their members only where the registry changed between them. If nobody learned
anything new, the difference of two such sums is the update of the member who joined or left. Otherwise `explained` is
the share of the variance of its update that the best linear combination of sums explains (conditioning of Gaussians):
updates of one node in rounds s and t have the correlation c^|s - t|, and members are independent.

A node learns from its whole log in every round, so its updates hardly change: five nodes with twelve choices each and
nothing new had correlations of .99 to 1.00 between consecutive rounds (`tests/federation/test_nodes_in_rounds.py`).

Differs from the literature on differencing attacks: nothing; sums over the same people are its oldest example.
"""

import math
from typing import Literal, NamedTuple

import numpy as np

from foltr.errors import SpecError
from foltr.federation.lifetime import round_event
from foltr.privacy.calibration import gaussian_epsilon
from foltr.privacy.events import SERVERS
from foltr.privacy.ledger import closed_epsilon
from foltr.privacy.promise import LARGEST_EPSILON, SIZES, UNNOTICED, USABLE
from foltr.secagg.guarantee import FEWEST
from foltr.secagg.terms import Terms

Kind = Literal["open", "circle", "server"]
CIRCLES = (5, 10, 20)  # members
ROUNDS = (1, 12, 52)
_ROUNDING = 1e-9
CORRELATIONS = (0.5, 0.9, 0.99, 1.0)
MEASURED = 0.99  # correlation of a node's updates in consecutive rounds without new choices, the smallest of five nodes

DEPLOYED: dict[Kind, str] = {
    "open": "two operators with noise: `foltr coordinator init --kind open`",
    "circle": "two operators without noise, a closed circle: `foltr coordinator init --kind circle`",
    "server": "one server in five stages: no command deploys it",
}


def explained(others: int, *, correlation: float, before: int = 1, after: int = 1) -> float:
    """Share of the variance of the newest member's update, in its first round, that the sums before and after it joined
    explain together. `others`: honest members in all of these sums; colluders subtract their own updates."""
    if others < 0 or before < 0 or after < 1 or not 0 <= correlation <= 1:
        raise SpecError(
            f"{others} others, {before} sums before and {after} after, correlation {correlation:g}: use 0 others or "
            f"more, at least one sum after, and a correlation from 0 to 1"
        )
    times = np.arange(before + after)
    correlations = correlation ** np.abs(times[:, None] - times[None, :])  # [sums, sums] of one member's updates
    present = (times >= before).astype(float)
    sums = correlations * (others + np.outer(present, present))
    with_target = correlations[before] * present
    return float(with_target @ np.linalg.lstsq(sums, with_target, rcond=None)[0])


class OpenPromise(NamedTuple):
    """Epsilons are None where none up to 4 leaves a release usable, or its noise unnoticed (`privacy.promise`)."""

    members: int
    fewest: int  # in a sum
    rounds: int
    usable: float | None
    unnoticed: float | None


def open_promises(*, parameters: int, delta: float, missing: float) -> list[OpenPromise]:
    """The smallest epsilons of two operators with noise. `missing`: share of the members that may stay away."""
    found = []
    for members in SIZES:
        fewest = max(FEWEST, members - math.ceil(missing * members - _ROUNDING))
        for rounds in ROUNDS:
            epsilons = [
                gaussian_epsilon(math.sqrt(rounds * SERVERS * parameters) / (level * fewest), delta)
                for level in (USABLE, UNNOTICED)
            ]
            usable, unnoticed = (epsilon if epsilon <= LARGEST_EPSILON else None for epsilon in epsilons)
            found.append(OpenPromise(members, fewest, rounds, usable, unnoticed))
    return found


# --- in words -------------------------------------------------------------------------------------------------------


def several_rounds(terms: Terms, *, members: int, rounds: int, delta: float) -> list[str]:
    """What several rounds of these terms tell about one node: for documents, and for whoever is asked to join."""
    if terms.noise_multiplier:
        one, all_rounds = (
            closed_epsilon({round_event(terms, members): times}, delta, "malicious") for times in (1, rounds)
        )
        return [
            f"One round costs epsilon {one:.2g}, {rounds:,} rounds together {all_rounds:.3g}, at delta {delta:g}, "
            f"against one operator with any number of members and everybody who gets the ranker; unit: one node; "
            f"adjacency: its updates replaced by zero. The ledger of the node stops at its budget."
        ]
    return circle_words(members)


def circle_words(members: int) -> list[str]:
    """What sums without noise tell, in a circle of this size."""
    if members < 2:
        raise SpecError(f"{members} members; a circle has at least two")
    share = explained(members - 1, correlation=MEASURED)
    return [
        "No epsilon is promised. One operator sees sums of all members, and how the sum changes from round to round: "
        "if one member alone learned something new in between, the change is what that member learned.",
        f"Where the circle changes by one member between two sums, their difference is that member's update, but for "
        f"what the others learned in between: with {members} members it explains {share:.0%} of the update if nodes "
        f"learned little (correlation {MEASURED:g} of their updates), and all of it if they learned nothing.",
        "Members who work for an operator subtract their own updates, as if the circle were smaller by their number.",
    ]
