"""A lower bound on epsilon from trials: how well can two neighbouring datasets be distinguished?

Under (epsilon, delta) privacy every set of outcomes E satisfies
P(E | first) <= e^epsilon P(E | second) + delta, and the same with the datasets exchanged (Kairouz, Oh and Viswanath
2015). So epsilon >= log((P(E | first) - delta) / P(E | second)).

E is "the statistic is on one side of a threshold". Side, threshold and dataset are chosen on one half of the trials; on
the other half both probabilities are bounded (Clopper and Pearson 1934), each at half of the allowed error: the bound
is valid whatever was chosen. From n trials of each dataset it cannot exceed about log(n / 7.4) at 95 %.

For each mechanism the two neighbouring datasets are as far apart as its clipping allows. The adversary knows
everybody's updates but one and subtracts them, so that a sum is one update and the noise of all shares. In the first
dataset it is an update far beyond the clip; in the second it is zero (adjacency `zero-out`) or the opposite
(`replace`). Both go through the real clipping and noise of `mechanisms`. The statistics are likelihood ratios (up to a
monotone function), which are optimal; those of several releases add up.

FPDGD clips the PARAMETERS in L2 and adds Laplace noise to each of P coordinates: two users at opposite ends of the
diagonal differ by 2 C sqrt(P) in L1, so the epsilon of a sum is 2 C sqrt(P) / scale and not the nominal one. A single
message holds one of n gamma shares, nearly all of them zero: the server reads the parameters from the coordinates
without noise.

`epsilon_bounds` compares the lower bound from trials with the accountant's upper bound; if noise and accounting are
right, the first never exceeds the second. Where a message carries only a share of the noise, single messages are
tested too: the server sees them without secure aggregation.

Differs from the paper: nothing.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
import numpy as np
from scipy.stats import beta

from foltr._kernels.noise import add_gamma_shares
from foltr.errors import SpecError
from foltr.federation.round import Release as ReleaseTerms
from foltr.lab.audit.messages import contributors_of, setting_protection
from foltr.lab.simulation.protection import protect_rows
from foltr.lab.spec.setting import Setting
from foltr.learners.foltr_es import FoltrEs, outcomes
from foltr.privacy import accounting
from foltr.privacy.events import EVERYBODY, Adversary, Event, pure_epsilon
from foltr.privacy.mechanisms import Fpdgd, Gaussian, Laplace, RandomizedResponse, ReleaseContext, UserLevelDP
from foltr.rng import Stream, stream
from foltr.types import Array


class Trials(NamedTuple):
    """A statistic of what is released from two neighbouring datasets."""

    first: Array  # [trials]
    second: Array  # [trials]


def lower_bound(trials: Trials, *, delta: float = 0.0, confidence: float = 0.95) -> float:
    """Epsilon is at least this, with the given confidence; 0 if the trials show nothing."""
    if min(map(len, trials)) < 4:
        raise SpecError(f"{min(map(len, trials))} trials of a dataset; use at least 4, and 10,000 for a useful bound")
    error = (1 - confidence) / 2
    chosen, tested = (Trials(*(np.sort(each[half::2]) for each in trials)) for half in (0, 1))
    thresholds = np.unique(np.concatenate(chosen))
    found = np.array(
        [_bounds(*_counts(chosen, thresholds, *test), delta, error) for test in _TESTS]
    )  # [tests, thresholds]
    test, best = np.unravel_index(found.argmax(), found.shape)
    bound = _bounds(*_counts(tested, thresholds[best : best + 1], *_TESTS[test]), delta, error)
    return float(max(bound[0], 0.0))


_TESTS = [(above, right) for above in (True, False) for right in (0, 1)]  # (side of the threshold, dataset decided for)


def _counts(trials: Trials, thresholds: Array, above: bool, right: int) -> tuple[Array, Array, int, int]:
    """Trials on that side of each threshold, of the dataset decided for and of the other, and the trials of each."""
    below = [np.searchsorted(each, thresholds, side="left") for each in trials]
    hits = [len(each) - few if above else few for each, few in zip(trials, below, strict=True)]
    return hits[right], hits[1 - right], len(trials[right]), len(trials[1 - right])


def _bounds(right: Array, wrong: Array, rights: int, wrongs: int, delta: float, error: float) -> Array:
    """Of epsilon, for each threshold; -inf where delta explains everything."""
    seen, feared = clopper_pearson_lower(right, rights, error) - delta, clopper_pearson_upper(wrong, wrongs, error)
    return np.log(seen, out=np.full(seen.shape, -np.inf), where=seen > 0) - np.log(feared)


def clopper_pearson_lower(hits: Array, trials: int, error: float) -> Array:
    """Lower confidence limit of a probability."""
    return np.where(hits == 0, 0.0, beta.ppf(error, np.maximum(hits, 1), trials - hits + 1))


def clopper_pearson_upper(hits: Array, trials: int, error: float) -> Array:
    """Upper confidence limit of a probability."""
    return np.where(hits == trials, 1.0, beta.isf(error, hits + 1, np.maximum(trials - hits, 1)))


# --- neighbouring datasets ------------------------------------------------------------------------------------------


DELTA = 1e-5
ADVERSARIES: tuple[Adversary, ...] = ("recipients", "server")
_RELEASES = 20  # of one run that are tried together; more would take minutes
_CONTRIBUTORS = 2  # the sum of all shares is the same for any number of them, and few are quick

# (the one update [P], number of the release) -> what is released, in every trial anew [trials, P]
Release = Callable[[Array, int], Array]
# (released [trials, P], first [P], second [P]) -> [trials], higher where the first dataset is likelier
Statistic = Callable[[Array, Array, Array], Array]


def two_datasets(release: Release, first: Array, second: Array, statistic: Statistic, *, releases: int = 1) -> Trials:
    """Trials with both datasets, of so many releases each."""
    digit = _DIGITS * float(
        np.ptp(statistic(np.stack([first, second]), first, second))
    )  # of the difference between the datasets

    def seen(update: Array, dataset: int) -> Array:
        each = [statistic(release(update, 2 * one + dataset), first, second) for one in range(releases)]
        return np.round(np.sum(each, axis=0) / digit)

    return Trials(seen(first, 0), seen(second, 1))


# The last digits of doubles distinguish datasets under the same noise (Mironov 2012). Statistics are rounded, so that
# trials measure the mechanism and not floating point; a deployed client draws integer noise.
_DIGITS = 1e-9


def along(released: Array, first: Array, second: Array) -> Array:
    """Likelihood ratio of Gaussian noise: the projection on the difference."""
    return released @ (first - second)


def by_absolute(released: Array, first: Array, second: Array) -> Array:
    """Likelihood ratio of Laplace noise: the difference of L1 distances."""
    return np.abs(released - second).sum(axis=1) - np.abs(released - first).sum(axis=1)


def by_match(released: Array, first: Array, second: Array) -> Array:
    """Noise that is mostly zero: how many coordinates hold the one value, less how many hold the other."""
    near = 1e-6 * np.abs(first - second).max()
    return (np.abs(released - first) < near).sum(axis=1) - (np.abs(released - second) < near).sum(axis=1)


_BEYOND = 1e3  # times the clip: the update before clipping


def user_level(privacy: UserLevelDP, event: Event, *, trials: int, seed: int, releases: int = 1) -> Trials:
    """A sum with the noise of all contributors (one, where noise is local): one user is zeroed out."""
    laplace, contributors, size = event.mechanism == "laplace", event.noise_contributors, event.parameters
    worst = np.zeros(size)
    worst[: 1 if laplace else size] = 1.0  # the worst case in L1 is one coordinate, in L2 every direction
    first = worst * event.bound / np.sqrt(worst.sum())

    def release(update: Array, number: int) -> Array:
        rows = np.zeros((trials * contributors, size))
        rows[::contributors] = _BEYOND * update
        terms = ReleaseTerms(event.bound, event)
        sent = protect_rows(privacy, rows, np.arange(len(rows)), terms, seed=seed, round=number)
        return sent.reshape(trials, contributors, size).sum(axis=1)

    return two_datasets(release, first, np.zeros(size), by_absolute if laplace else along, releases=releases)


def fpdgd_sum(privacy: Fpdgd, *, size: int, trials: int, seed: int, contributors: int = 2) -> Trials:
    """The sum as published, with the noise of all contributors: one user is replaced by the opposite."""
    end = np.full(size, privacy.radius / np.sqrt(size))
    return two_datasets(_with_shares(privacy, trials, contributors, contributors, seed), end, -end, by_absolute)


def fpdgd_message(privacy: Fpdgd, *, size: int, trials: int, seed: int, contributors: int = 1000) -> Trials:
    """Trials on the message of one contributor to the server, which has one share of the noise."""
    end = np.full(size, privacy.radius / np.sqrt(size))
    return two_datasets(_with_shares(privacy, trials, 1, contributors, seed), end, -end, by_match)


def _with_shares(privacy: Fpdgd, trials: int, present: int, contributors: int, seed: int) -> Release:
    scale = privacy.sensitivity / privacy.epsilon

    def release(update: Array, number: int) -> Array:
        shares = np.zeros((trials * present, len(update)))
        add_gamma_shares(shares, np.arange(len(shares)), scale, 1.0 / contributors, seed, number)
        return update + shares.reshape(trials, present, -1).sum(axis=1)

    return release


def randomised_response(report: Callable[[int, Stream], Array], *, seed: int) -> Trials:
    """One outcome is replaced by another; `report(truth, draws) -> [trials]` outcomes as reported."""
    reported = [report(truth, stream(seed, round=truth, purpose="privatise")) for truth in (0, 1)]
    return Trials(*((answers == 0).astype(int) - (answers == 1) for answers in reported))


# --- the mechanism of a setting -------------------------------------------------------------------------------------


def epsilon_bounds(setting: Setting, parameters: int, *, trials: int, seed: int) -> list[dict[str, Any]]:
    """Rows with a release, its bound from trials, the accountant's figure and the nominal one."""
    privacy = setting.privacy
    if isinstance(privacy, Fpdgd):
        return _of_fpdgd(privacy, parameters, contributors_of(setting), trials, seed)
    if isinstance(privacy, Gaussian | Laplace) and setting.secagg.mode == "one-server":  # two add the noise themselves
        return _of_user_level(setting, privacy, parameters, trials, seed)
    if isinstance(privacy, RandomizedResponse) and isinstance(setting.learner, FoltrEs):
        return [_of_response(privacy, len(outcomes(setting.learner.objective, setting.users.k)), trials, seed)]
    return []


def _row(what: str, tried: Trials, ledger: float, delta: float, nominal: float | None) -> dict[str, Any]:
    found = lower_bound(tried, delta=delta)
    return {
        "release": what, "at_least": found, "ledger": ledger if math.isfinite(ledger) else None, "delta": delta,
        "nominal": nominal, "trials": len(tried.first), "holds": found <= ledger,
    }  # fmt: skip


def _of_fpdgd(privacy: Fpdgd, size: int, contributors: int, trials: int, seed: int) -> list[dict[str, Any]]:
    event = privacy.event(ReleaseContext(contributors, 1, size))
    spent, to_server = (accounting.epsilon({event: 1}, DELTA, against).epsilon for against in ADVERSARIES)
    together = fpdgd_sum(privacy, size=size, trials=trials, seed=seed, contributors=_CONTRIBUTORS)
    single = fpdgd_message(privacy, size=size, trials=trials, seed=seed, contributors=contributors)
    return [
        _row("sum of one round", together, spent, DELTA, privacy.epsilon),
        _row("one message", single, to_server, DELTA, privacy.epsilon),
    ]


def _of_user_level(setting: Setting, privacy: UserLevelDP, size: int, trials: int, seed: int) -> list[dict[str, Any]]:
    plan = setting_protection(setting, size)
    assert plan.event is not None
    delta = privacy.delta if isinstance(privacy, Gaussian) else DELTA
    often = max(1, min(plan.context.releases, _RELEASES))
    contributors = min(plan.event.noise_contributors, _CONTRIBUTORS)
    # Gaussian noise hides as much in few dimensions as in many
    event = msgspec.structs.replace(
        plan.event, noise_contributors=contributors, present=contributors, parameters=min(size, 4)
    )
    whole = user_level(privacy, event, trials=trials, seed=seed, releases=often)
    ledger = accounting.epsilon({event: often}, delta).epsilon
    released = "sum" if plan.event.noise_contributors > 1 else "message"
    rows = [_row(f"{released}, {often} {'time' if often == 1 else 'times'}", whole, ledger, delta, None)]
    if plan.event.noise_contributors > 1 and isinstance(privacy, Gaussian):
        noise = event.noise / math.sqrt(plan.event.noise_contributors)
        share = msgspec.structs.replace(event, noise=noise, noise_contributors=1, present=1, against=EVERYBODY)
        single = user_level(privacy, share, trials=trials, seed=seed)
        rows.append(_row("one message", single, accounting.epsilon({share: 1}, delta).epsilon, delta, None))
    return rows


def _of_response(privacy: RandomizedResponse, count: int, trials: int, seed: int) -> dict[str, Any]:
    def report(truth: int, draws: Stream) -> Array:
        return np.array([privacy.protect(truth, count, None, draws.skip(2 * trial)) for trial in range(trials)])

    pure = pure_epsilon(privacy.event(ReleaseContext(1, 1, 1, count)))
    tried = randomised_response(report, seed=seed)
    return _row("outcome of one interaction", tried, pure, 0.0, pure if math.isfinite(pure) else None)
