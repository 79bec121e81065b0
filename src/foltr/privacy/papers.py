"""What the papers' mechanisms let out, as events: the facts that their epsilons leave out.

Sources: S0 section 3.3 and Algorithm 3 (FPDGD), S1 section 3.3 (FOLtR-ES).

FPDGD   every client's parameters lie in an L2 ball, so a user who is another moves the sum by up to its diameter; the
        Laplace noise on each coordinate is the sum of everybody's share. The server sees single messages, and one share
        among many is practically no noise: the event holds against recipients of the ranker only.
FOLtR-ES   each outcome is told through a randomised response, before it leaves: it holds against everybody.

Differs from the paper: S0 takes Delta / epsilon for enough in every norm; here the norm that is clipped is stated.
"""

import math

import msgspec

from foltr.privacy.events import EVERYBODY, RECIPIENTS, Event, pure_epsilon
from foltr.privacy.mechanisms import Fpdgd, RandomizedResponse


def fpdgd_event(privacy: Fpdgd, *, holders: int, parameters: int) -> Event:
    """One round."""
    against = EVERYBODY if holders == 1 else RECIPIENTS
    scale = privacy.sensitivity / privacy.epsilon
    return Event("fpdgd", "l2", 2 * privacy.radius, "l2", scale, adjacency="replace", against=against,
                 noise_contributors=holders, present=holders, parameters=parameters)  # fmt: skip


def response_event(privacy: RandomizedResponse, *, outcomes: int) -> Event:
    """One interaction.

    Whoever tells the truth less often than a guess would is taken for an answer to a yes-or-no question that gives away
    as much: no mechanism of that epsilon gives away more (Kairouz, Oh and Viswanath 2015).
    """
    said = Event("randomized-response", "outcome", 1.0, "outcome", privacy.p, unit="interaction", adjacency="replace",
                 outcomes=outcomes)  # fmt: skip
    if privacy.p * outcomes > 1:
        return said
    odds = math.exp(abs(pure_epsilon(said)))
    return msgspec.structs.replace(said, outcomes=2, noise=max(odds / (1 + odds), 0.5 + 1e-9))
