"""How much of a mechanism's epsilon can be seen: a lower bound from trials beside the ledger's figure.

The ledger's figure is an upper bound and the trials' one a lower bound, so the second never exceeds the first if noise
and accounting are what they claim to be. Where a single message carries a share of the noise only, it is tried as well:
that is what the server sees without secure aggregation.
"""

import math
from typing import Any

import msgspec
import numpy as np

from foltr.lab.audit import worlds
from foltr.lab.audit.epsilon import Trials, lower_bound
from foltr.lab.audit.messages import contributors_of, protection_in
from foltr.lab.spec.setting import Setting
from foltr.learners.foltr_es import FoltrEs, outcomes
from foltr.privacy import accounting
from foltr.privacy.events import EVERYBODY, Adversary, pure_epsilon
from foltr.privacy.mechanisms import Fpdgd, Gaussian, Laplace, RandomizedResponse, ReleaseContext, UserLevelDP
from foltr.rng import Stream
from foltr.types import Array

DELTA = 1e-5
ADVERSARIES: tuple[Adversary, ...] = ("recipients", "server")
_RELEASES = 20  # of one run that are tried together; more would take minutes
_HOLDERS = 2  # the sum of all shares is the same for any number of them, and few are quick


def epsilon_bounds(setting: Setting, parameters: int, *, trials: int, seed: int) -> list[dict[str, Any]]:
    """What is released, the bound from trials, the ledger's figure and the nominal one."""
    privacy = setting.privacy
    if isinstance(privacy, Fpdgd):
        return _of_fpdgd(privacy, parameters, contributors_of(setting), trials, seed)
    if isinstance(privacy, Gaussian | Laplace):
        return _of_honest(setting, privacy, parameters, trials, seed)
    if isinstance(privacy, RandomizedResponse) and isinstance(setting.learner, FoltrEs):
        return [_of_response(privacy, len(outcomes(setting.learner.objective, setting.users.k)), trials, seed)]
    return []


def _row(what: str, tried: Trials, ledger: float, delta: float, nominal: float | None) -> dict[str, Any]:
    found = lower_bound(tried, delta=delta)
    return {
        "release": what, "at_least": found, "ledger": ledger if math.isfinite(ledger) else None, "delta": delta,
        "nominal": nominal, "trials": len(tried.first), "holds": found <= ledger,
    }  # fmt: skip


def _of_fpdgd(privacy: Fpdgd, size: int, holders: int, trials: int, seed: int) -> list[dict[str, Any]]:
    event = privacy.event(ReleaseContext(holders, 1, size))
    spent, to_server = (accounting.epsilon({event: 1}, DELTA, against).epsilon for against in ADVERSARIES)
    together = worlds.fpdgd_sum(privacy, size=size, trials=trials, seed=seed, holders=_HOLDERS)
    alone = worlds.fpdgd_message(privacy, size=size, trials=trials, seed=seed, holders=holders)
    return [
        _row("sum of one round", together, spent, DELTA, privacy.epsilon),
        _row("one message", alone, to_server, DELTA, privacy.epsilon),
    ]


def _of_honest(setting: Setting, privacy: UserLevelDP, size: int, trials: int, seed: int) -> list[dict[str, Any]]:
    plan = protection_in(setting, size)
    assert plan.event is not None
    delta = privacy.delta if isinstance(privacy, Gaussian) else DELTA
    often = max(1, min(plan.context.releases, _RELEASES))
    holders = min(plan.event.noise_contributors, _HOLDERS)
    # Gaussian noise hides as much in few dimensions as in many
    event = msgspec.structs.replace(plan.event, noise_contributors=holders, present=holders, parameters=min(size, 4))
    whole = worlds.honest(privacy, event, trials=trials, seed=seed, releases=often)
    ledger = accounting.epsilon({event: often}, delta).epsilon
    released = "sum" if plan.event.noise_contributors > 1 else "message"
    rows = [_row(f"{released}, {often} {'time' if often == 1 else 'times'}", whole, ledger, delta, None)]
    if plan.event.noise_contributors > 1 and isinstance(privacy, Gaussian):
        share = msgspec.structs.replace(
            event,
            noise=event.noise / math.sqrt(plan.event.noise_contributors),
            noise_contributors=1,
            present=1,
            against=EVERYBODY,
        )
        alone = worlds.honest(privacy, share, trials=trials, seed=seed)
        rows.append(_row("one message", alone, accounting.epsilon({share: 1}, delta).epsilon, delta, None))
    return rows


def _of_response(privacy: RandomizedResponse, count: int, trials: int, seed: int) -> dict[str, Any]:
    def respond(truth: int, draws: Stream) -> Array:
        return np.array([privacy.protect(truth, count, None, draws.skip(2 * trial)) for trial in range(trials)])

    pure = pure_epsilon(privacy.event(ReleaseContext(1, 1, 1, count)))
    tried = worlds.randomised_response(respond, seed=seed)
    return _row("outcome of one interaction", tried, pure, 0.0, pure if math.isfinite(pure) else None)
