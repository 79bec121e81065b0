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

from foltr.errors import SpecError
from foltr.federation.centres import median
from foltr.federation.ordering import middle
from foltr.types import Array

ALARM = 6.0
WARM_UP = 30  # rounds before anybody is judged
EVERY = 10  # rounds between two judgements; averages over a hundred change little in fewer
MEMORY = 0.01  # weight of a new round in an average, once there were 100
FLOORS = np.array([0.1, 0.2, 0.2, 0.3])  # of agreement, length, direction, persistence
_TO_SD = 1.4826  # of a normal distribution, from its MAD


class Watch(NamedTuple):
    """What is remembered of the rounds so far."""

    rounds: int
    moved: Array  # [n] rounds in which the client took a step at all
    habits: Array  # [n, 2] mean agreement and mean log length
    step: Array  # [n, P] averaged
    score: Array  # [n] how unlike the rest a client is


def begin(clients: int, parameters: int) -> Watch:
    if clients < 3:
        raise SpecError(f"a watch over {clients} clients cannot tell who is unlike the rest; use at least 3")
    return Watch(0, np.zeros(clients), np.zeros((clients, 2)), np.zeros((clients, parameters)), np.zeros(clients))


def observe(watch: Watch, updates: Array, start: Array) -> tuple[Watch, bool]:
    """The watch after one more round of updates [n, P], and whether somebody looks bad."""
    if updates.shape != watch.step.shape:
        raise SpecError(f"updates {updates.shape} for a watch over {watch.step.shape}; everybody takes part in a round")
    finite = np.logical_and.reduce(np.isfinite(updates), axis=1)
    steps = np.where(finite[:, None], updates - start, 0.0)
    agreement, length, moves = against_median(steps)
    rounds, moved = watch.rounds + 1, watch.moved + moves
    fresh = np.where(moves, _weight(np.maximum(moved, 1.0)), 0.0)[:, None]
    habits = watch.habits + fresh * (np.stack([agreement, length], axis=1) - watch.habits)
    step = watch.step + _weight(rounds) * (steps - watch.step)
    judged = _scores(habits, step, moved) if rounds % EVERY == 0 else watch.score
    score = np.where(finite, judged, np.inf)
    return Watch(rounds, moved, habits, step, score), bool(score.max() > ALARM)


def suspects(watch: Watch) -> Array:
    """[n] bool: who raises the alarm."""
    return watch.score > ALARM


def against_median(steps: Array) -> tuple[Array, Array, Array]:
    """[n] cosine with the median step, [n] log length over the median length, [n] who moves at all.

    Where the median step is nothing, nobody counts as moving: there is no common direction to be compared with.
    """
    lengths = np.sqrt(np.einsum("np,np->n", steps, steps))
    common = median(steps, lengths, bad=0, start=steps[0])
    size = np.sqrt(common @ common)
    moves = lengths > 0
    if size == 0.0:
        return np.zeros(len(steps)), np.zeros(len(steps)), np.zeros_like(moves)
    safe = np.where(moves, lengths, 1.0)
    return steps @ common / (safe * size), np.log(safe / middle(lengths[moves], int(moves.sum()))), moves


def _weight(rounds: Array | int) -> Array:
    """Of the newest round: a plain mean at first, later one that forgets."""
    return np.maximum(1.0 / rounds, MEMORY)


def _scores(habits: Array, step: Array, moved: Array) -> Array:
    judged = moved >= WARM_UP
    if judged.sum() < 3:
        return np.zeros(len(moved))
    direction, persistence, _ = against_median(step)
    traits = np.column_stack([habits, direction, persistence])  # [n, 4]
    apart = np.abs(traits - np.median(traits[judged], axis=0))
    spread = _TO_SD * np.median(apart[judged], axis=0)
    return np.where(judged, (apart / np.sqrt(spread**2 + FLOORS**2)).max(axis=1), 0.0)
