"""A watch over rounds: who keeps behaving unlike the rest, so that a costly rule runs only once an attack is seen.

S2 section 5.7 finds that robust rules cost quality where nobody attacks and asks for such a detector; the method is
this project's own. One round's step of a client is a few clicks and nearly all noise, so what is judged are averages
over about the last 100 rounds. Four traits of a client:

    agreement     mean cosine between its step and the coordinate-wise median step: copies of one crafted update agree
                  more with the median than anybody honest, since they are part of it
    length        mean logarithm of its step's length over the median length: stretched or shrunken steps
    direction     cosine between its averaged step and the median of averaged steps: whoever pulls the other way, which
                  only shows once the noise is averaged out (sign flipping, poisoned clicks)
    persistence   logarithm of its averaged step's length over the median: whoever always pulls the same way, while
                  honest steps cancel out

A client's score is the largest distance of a trait from the median client's, in units of the spread between clients
(MAD) and of a floor: how far honest people with different habits were seen to be apart in trials. Above 6 the alarm
is raised. Median and MAD hold while fewer than half of the clients attack. O(n P) a round; judged every tenth round.

Steps of length 0 have no cosine and no length and are passed over there. A client that sends NaN or infinity scores
infinity at once. The same clients take part in every round, in the same order. Not seen: what looks honest, such as
one LIE attacker, which sends its own update.

Floors, memory and level were chosen on trials with FedAvg, 10 clients, 5 interactions, synthetic data of MQ2007's
shape. False alarms on data not used for choosing (MQ2007, 85 % sample, and MQ2008; three kinds of users, five folds,
two seeds): none in 60 honest runs of 10,000 rounds, the highest score 5.9. At 95 % that shows no more than 5 % of such
runs with a false alarm. Mixtures of users were tried for 2,000 rounds only (19 runs on synthetic data, up to 5.5).
Attacks from the first round, in one full trial of 300 rounds for each (judged in every round then, so now up to nine
rounds later): seen between rounds 30, the first possible, and 273, except LIE by one, or by two with partial
knowledge; Fang by two with partial knowledge among informational users; sign flipping among informational users, who
agree least; poisoned clicks by four of ten among these; and what changes nothing (one attacker of Fang's or min-max
with partial knowledge).

Differs from the paper: there is none.
"""

from typing import NamedTuple

import numpy as np

from foltr._kernels.detector import DetectorWorkspace, compare, follow
from foltr.errors import SpecError
from foltr.types import Array

ALARM = 6.0
WARM_UP = 30  # rounds before anybody is judged
EVERY = 10  # rounds between two judgements; averages over a hundred change little in fewer
FLOORS = np.array([0.1, 0.2, 0.2, 0.3])  # of agreement, length, direction, persistence
_TO_SD = 1.4826  # of a normal distribution, from its MAD


class DetectorState(NamedTuple):
    """What is remembered of the rounds so far."""

    rounds: int
    moved: Array  # [n] rounds in which the client took a step at all
    habits: Array  # [n, 2] mean agreement and mean log length
    step: Array  # [n, P] averaged
    score: Array  # [n] how unlike the rest a client is


def begin(clients: int, parameters: int) -> DetectorState:
    if clients < 3:
        raise SpecError(f"a watch over {clients} clients cannot tell who is unlike the rest; use at least 3")
    return DetectorState(
        0, np.zeros(clients), np.zeros((clients, 2)), np.zeros((clients, parameters)), np.zeros(clients)
    )


def observe(watch: DetectorState, updates: Array, start: Array) -> tuple[DetectorState, bool]:
    """The watch after one more round of updates [n, P], and whether somebody looks bad."""
    if updates.shape != watch.step.shape:
        raise SpecError(f"updates {updates.shape} for a watch over {watch.step.shape}; everybody takes part in a round")
    rounds, room = watch.rounds + 1, _room(*updates.shape)
    moved, habits, step = watch.moved.copy(), watch.habits.copy(), watch.step.copy()
    steps, finite = np.empty(updates.shape), np.empty(len(updates), dtype=np.bool_)
    follow(updates, start, rounds, room, steps, finite, moved, habits, step)
    judged = _scores(habits, step, moved, room) if rounds % EVERY == 0 else watch.score
    score = np.where(finite, judged, np.inf)
    return DetectorState(rounds, moved, habits, step, score), bool(score.max() > ALARM)


def suspects(watch: DetectorState) -> Array:
    """[n] bool: who raises the alarm."""
    return watch.score > ALARM


def _room(clients: int, parameters: int) -> DetectorWorkspace:
    each = np.empty((4, clients))
    return DetectorWorkspace(each[0], each[1], np.empty(parameters), each[2], each[3])


def _scores(habits: Array, step: Array, moved: Array, room: DetectorWorkspace) -> Array:
    judged = moved >= WARM_UP
    if judged.sum() < 3:
        return np.zeros(len(moved))
    if not compare(step, room):
        room.agreement[:], room.stretch[:] = 0.0, 0.0
    traits = np.column_stack([habits, room.agreement, room.stretch])  # [n, 4]
    apart = np.abs(traits - np.median(traits[judged], axis=0))
    spread = _TO_SD * np.median(apart[judged], axis=0)
    return np.where(judged, (apart / np.sqrt(spread**2 + FLOORS**2)).max(axis=1), 0.0)
