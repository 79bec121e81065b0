"""Detector of attacks over rounds: a robust aggregator, which costs quality, is used only after a detection.

S2 section 5.7 finds that robust aggregators cost quality where nobody attacks and asks for such a detector; the method
is this project's own. One delta of a client comes from a few clicks and is nearly all noise, so averages over about the
last 100 rounds are judged. Four traits of a client:

    agreement     mean cosine between its delta and the coordinate-wise median delta: copies of one crafted update agree
                  more with the median than honest updates, since they are part of it
    length        mean logarithm of its delta's norm over the median norm: stretched or shrunken deltas
    direction     cosine between its averaged delta and the median of averaged deltas: clients that push in the opposite
                  direction, visible only after the noise is averaged out (sign flipping, poisoned clicks)
    persistence   logarithm of its averaged delta's norm over the median: clients that always push in the same
                  direction, while honest deltas cancel out

A client's score is the largest distance of a trait from the median client's, in units of the spread between clients
(MAD) and of a floor: how far honest users with different click models were apart in trials. A score above 6 raises the
alarm. Median and MAD hold while fewer than half of the clients attack. O(n P) a round; judged every tenth round.

Deltas of length 0 have no cosine and no log length and are left out of both. A client that sends NaN or infinity scores
infinity at once. The same clients take part in every round, in the same order. Not detected: attackers whose updates
look honest, such as one LIE attacker, which sends its own update.

Floors, memory and level were chosen on trials with FedAvg, 10 clients, 5 interactions, synthetic data of MQ2007's
shape. False alarms on data not used for choosing (MQ2007, 85 % sample, and MQ2008; three kinds of users, five folds,
two seeds): none in 60 honest runs of 10,000 rounds, the highest score 5.9. At 95 % that shows no more than 5 % of such
runs with a false alarm. Mixtures of users were tried for 2,000 rounds only (19 runs on synthetic data, up to 5.5).
Attacks from the first round, in one full trial of 300 rounds for each (judged in every round then, so now up to nine
rounds later): seen between rounds 30, the first possible, and 273, except LIE by one, or by two with partial
knowledge; Fang by two with partial knowledge among informational users; sign flipping among informational users, who
agree least; poisoned clicks by four of ten among these; and what changes nothing (one attacker of Fang's or min-max
with partial knowledge).

Differs from the paper: there is no paper.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from foltr._kernels.detector import Workspace, compare, follow, workspace_for
from foltr.errors import SpecError
from foltr.types import Array

ALARM = 6.0
WARM_UP = 30  # rounds before anybody is judged
EVERY = 10  # rounds between two judgements; averages over a hundred change little in fewer
MEMORY = 0.01  # weight of a new round in an average, once there were 100
FLOORS = np.array([0.1, 0.2, 0.2, 0.3])  # of agreement, length, direction, persistence
_TO_SD = 1.4826  # of a normal distribution, from its MAD


class DetectorState(NamedTuple):
    """Statistics of the rounds so far."""

    rounds: int
    moved: Array  # [n] rounds in which the client sent a delta other than zero
    habits: Array  # [n, 2] mean agreement and mean log length
    average: Array  # [n, P] of deltas
    score: Array  # [n] how unlike the others a client is


def begin(clients: int, parameters: int) -> DetectorState:
    if clients < 3:
        raise SpecError(f"among {clients} clients the detector cannot tell who is unlike the others; use at least 3")
    return DetectorState(
        0, np.zeros(clients), np.zeros((clients, 2)), np.zeros((clients, parameters)), np.zeros(clients)
    )


def observe(state: DetectorState, deltas: Array) -> tuple[DetectorState, bool]:
    """The state after one more round of deltas [n, P], and whether the alarm is raised."""
    if deltas.shape != state.average.shape:
        raise SpecError(
            f"deltas {deltas.shape} for a detector of {state.average.shape}; everybody takes part in every round"
        )
    rounds, workspace = state.rounds + 1, workspace_for(*deltas.shape)
    moved, habits, average = state.moved.copy(), state.habits.copy(), state.average.copy()
    newest = max(1.0 / rounds, MEMORY)  # a plain mean at first, later an exponential one
    follow(deltas, newest, MEMORY, workspace, moved, habits, average)
    judged = _scores(habits, average, moved, workspace) if rounds % EVERY == 0 else state.score
    score = np.where(workspace.finite, judged, np.inf)
    return DetectorState(rounds, moved, habits, average, score), bool(score.max() > ALARM)


def _scores(habits: Array, average: Array, moved: Array, workspace: Workspace) -> Array:
    judged = moved >= WARM_UP
    if judged.sum() < 3:
        return np.zeros(len(moved))
    if not compare(average, workspace):
        workspace.agreement[:], workspace.stretch[:] = 0.0, 0.0
    traits = np.column_stack([habits, workspace.agreement, workspace.stretch])  # [n, 4]
    distances = np.abs(traits - np.median(traits[judged], axis=0))
    spread = _TO_SD * np.median(distances[judged], axis=0)
    return np.where(judged, (distances / np.sqrt(spread**2 + FLOORS**2)).max(axis=1), 0.0)


def defended(aggregator: Any, mean: Any, shape: tuple[int, int], num_byzantine: int) -> Callable[[Array, Array], Array]:
    """(deltas [n, P], weights [n]) -> [P]: the mean until the detector sees an attack, and from then on the aggregator.

    `shape`: clients and parameters.
    """
    state, alarmed = begin(*shape), False

    def aggregate(deltas: Array, weights: Array) -> Array:
        nonlocal state, alarmed
        if not alarmed:
            state, alarmed = observe(state, deltas)
        result: Array = (aggregator if alarmed else mean)(deltas, weights, num_byzantine=num_byzantine)
        return result

    return aggregate
