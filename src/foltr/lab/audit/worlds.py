"""For each mechanism two neighbouring worlds that are as far apart as its clipping allows, and how to tell them apart.

The adversary knows everybody's updates but one and subtracts them, so that a sum is one update and the noise of all
shares. In the first world it is an update far beyond the clip; in the second nothing (the neighbour is removed) or the
opposite (it is replaced). Both go through the real clipping and noise of `mechanisms`. The statistics are likelihood
ratios (up to a rising function), which no other statistic beats; those of several releases add up.

FPDGD clips the PARAMETERS in L2 and adds Laplace noise to each of P coordinates: two users at opposite ends of the
diagonal differ by 2 C sqrt(P) in L1, so a sum is worth 2 C sqrt(P) / scale and not the nominal epsilon. A single
message holds one of n gamma shares, nearly all of them zero: whoever sees it reads the parameters off the coordinates
without noise.
"""

from collections.abc import Callable

import numpy as np

from foltr._kernels.noise import add_gamma_shares
from foltr.federation.round import Release as ReleaseTerms
from foltr.lab.audit.epsilon import Trials
from foltr.lab.simulation.protection import protect_rows
from foltr.privacy.events import Event
from foltr.privacy.mechanisms import Fpdgd, UserLevelDP
from foltr.rng import Stream, stream
from foltr.types import Array

# (the one update [P], number of the release) -> what is released, in every trial anew [trials, P]
Release = Callable[[Array, int], Array]
# (released [trials, P], first [P], second [P]) -> [trials], higher where the first world is likelier
Statistic = Callable[[Array, Array, Array], Array]


def two_worlds(release: Release, first: Array, second: Array, statistic: Statistic, *, releases: int = 1) -> Trials:
    """Trials in both worlds, of so many releases each."""
    digit = _DIGITS * float(np.ptp(statistic(np.stack([first, second]), first, second)))  # of what lies between them

    def seen(update: Array, world: int) -> Array:
        each = [statistic(release(update, 2 * one + world), first, second) for one in range(releases)]
        return np.round(np.sum(each, axis=0) / digit)

    return Trials(seen(first, 0), seen(second, 1))


# The last digits of doubles tell worlds apart that have the same noise (Mironov 2012): adding a number to noise leaves
# other digits in one world than in the other. Statistics are rounded so that they see the mechanism and not that; what
# is deployed draws its noise in the integers.
_DIGITS = 1e-9


def along(released: Array, first: Array, second: Array) -> Array:
    """Likelihood ratio of Gaussian noise: the projection on the difference."""
    return released @ (first - second)


def by_absolute(released: Array, first: Array, second: Array) -> Array:
    """Likelihood ratio of Laplace noise: nearer to which, in L1."""
    return np.abs(released - second).sum(axis=1) - np.abs(released - first).sum(axis=1)


def by_match(released: Array, first: Array, second: Array) -> Array:
    """Noise that is mostly zero: how many coordinates hold the one value, less how many hold the other."""
    near = 1e-6 * np.abs(first - second).max()
    return (np.abs(released - first) < near).sum(axis=1) - (np.abs(released - second) < near).sum(axis=1)


_BEYOND = 1e3  # times the clip: what a client would send if nothing held it back


def honest(privacy: UserLevelDP, event: Event, *, trials: int, seed: int, releases: int = 1) -> Trials:
    """A sum with the noise of all expected holders (one, where nobody is trusted): one user is removed."""
    laplace, holders, size = event.mechanism == "laplace", event.noise_contributors, event.parameters
    worst = np.zeros(size)
    worst[: 1 if laplace else size] = 1.0  # in L1 one coordinate is as far as one can go, in L2 every direction is
    first = worst * event.bound / np.sqrt(worst.sum())

    def release(update: Array, number: int) -> Array:
        rows = np.zeros((trials * holders, size))
        rows[::holders] = _BEYOND * update
        terms = ReleaseTerms(event.bound, event)
        sent = protect_rows(privacy, rows, np.arange(len(rows)), terms, seed=seed, round=number)
        return sent.reshape(trials, holders, size).sum(axis=1)

    return two_worlds(release, first, np.zeros(size), by_absolute if laplace else along, releases=releases)


def fpdgd_sum(privacy: Fpdgd, *, size: int, trials: int, seed: int, holders: int = 2) -> Trials:
    """The sum as published, with the noise of all holders: one user is replaced by the opposite."""
    end = np.full(size, privacy.radius / np.sqrt(size))
    return two_worlds(_with_shares(privacy, trials, holders, holders, seed), end, -end, by_absolute)


def fpdgd_message(privacy: Fpdgd, *, size: int, trials: int, seed: int, holders: int = 1000) -> Trials:
    """What the server gets from one of the holders: one share of the noise."""
    end = np.full(size, privacy.radius / np.sqrt(size))
    return two_worlds(_with_shares(privacy, trials, 1, holders, seed), end, -end, by_match)


def _with_shares(privacy: Fpdgd, trials: int, present: int, holders: int, seed: int) -> Release:
    scale = privacy.sensitivity / privacy.epsilon

    def release(update: Array, number: int) -> Array:
        shares = np.zeros((trials * present, len(update)))
        add_gamma_shares(shares, np.arange(len(shares)), scale, 1.0 / holders, seed, number)
        return update + shares.reshape(trials, present, -1).sum(axis=1)

    return release


def integers(sample: Callable[[int], Array], *, bound: int, trials: int) -> Trials:
    """Noise in the integers, `sample(size)` of it: a coordinate at the bound, or nothing."""
    return two_worlds(
        lambda update, _: update + np.asarray(sample(trials), dtype=np.float64)[:, None],
        np.array([float(bound)]), np.zeros(1), along,
    )  # fmt: skip


def randomised_response(respond: Callable[[int, Stream], Array], *, seed: int) -> Trials:
    """One outcome is replaced by another; `respond(truth, draws) -> [trials]` outcomes as reported."""
    reported = [respond(truth, stream(seed, round=truth, purpose="privatise")) for truth in (0, 1)]
    return Trials(*((answers == 0).astype(int) - (answers == 1) for answers in reported))
