"""Audits of what clients really send: the lab's mechanism with its adaptive bit, and deployed releases in the ring.

A path is one implementation: `sample` gives sums in which the adversary has subtracted everybody's update but one, and
all noise but that of the honest shares. Each case is an update far beyond the clip, with the shift of the sum that the
event claims for it; the neighbouring dataset has a zero update and the device still adds its noise (zero-out). A wrong
clip is a longer shift.

    `gaussian`     the claimed mu, on every case, at mu = 2: the noise multiplier is 1/2 for this test
    `noise`        the noise itself, at the setting's own multiplier

What passes is not proved: a path that passes has shown nothing that contradicts its event, and `missed` says with
which odds faults of a given size are overlooked. What an event assumes (such as the number of honest shares) is not
tested here: secure aggregation keeps it.
"""

import math
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, NamedTuple

import msgspec
import numpy as np

from foltr.federation.round import Release as ReleaseTerms
from foltr.lab.audit.epsilon import Trials
from foltr.lab.audit.gaussian import MU, TRIALS, least_mu, refutation_odds
from foltr.lab.audit.messages import setting_protection
from foltr.lab.audit.noise import Check, acceptance_odds, check_noise, check_replay, draws_needed, in_two_copies
from foltr.lab.simulation.protection import protect_rows
from foltr.lab.spec.setting import Setting
from foltr.privacy import release as deployed_release
from foltr.privacy.calibration import split_multiplier
from foltr.privacy.events import Event
from foltr.privacy.mechanisms import Gaussian
from foltr.secagg.guarantee import Guarantee
from foltr.secagg.ring import Ring, decode
from foltr.types import Array

PARAMETERS = 4  # Gaussian noise hides as much in few dimensions as in many
SHARES = 2  # honest clients in a sum: one share too few is half of the noise
_BEYOND = 1e3  # times the clip: the update before clipping
_ADVERSARY = "sees the sum, knows every other update and all noise but that of the honest shares"


class Case(NamedTuple):
    name: str
    update: Array  # [P] far beyond the clip
    shift: Array  # [V] of the sum, as claimed


class Path(NamedTuple):
    """One implementation with one noise multiplier."""

    name: str
    sample: Callable[[Array, int], Array]  # (update [P], trials) -> sums [trials, V]
    cases: tuple[Case, ...]
    stddev: Array  # [V] claimed
    step: float  # distance of neighbouring numbers
    replay: Callable[[], tuple[Array, Array]]  # noise of two copies of one state
    simulated: bool  # noise from a seed, on purpose


def audit_path(make: Callable[[float], Path], multiplier: float, *, trials: int = TRIALS) -> dict[str, Any]:
    """Plain data: every test of one implementation, the odds, and the verdict in words."""
    strong, own = make(1 / MU), make(multiplier)
    draws = draws_needed()
    noise = own.sample(np.zeros(PARAMETERS), -(-draws // len(own.stddev))) / own.stddev
    checks = [_check_mu(strong, case, trials) for case in strong.cases]
    checks += check_noise(noise, step=own.step / float(own.stddev.min()))
    replay = check_replay(own.replay())
    if not own.simulated:
        checks.append(replay)
    missed = {
        "10 % less noise (mu alone)": 1 - refutation_odds(MU, ratio=0.9, trials=trials),
        "5 % less variance": acceptance_odds(math.sqrt(0.95), noise.size),
    }
    found = {
        "path": own.name, "adversary": _ADVERSARY, "unit": "user (one node)", "adjacency": "zero-out",
        "multiplier": multiplier, "trials": trials, "draws": noise.size,
        "checks": [check._asdict() for check in checks],
        "false_alarm": sum(check.false_alarm for check in checks), "missed": missed, "simulated": own.simulated,
        "passed": all(check.passed for check in checks),
    }  # fmt: skip
    return found | {"verdict": _verdict(found, [check.what for check in checks if not check.passed])}


def _check_mu(path: Path, case: Case, trials: int) -> Check:
    direction = case.shift / np.square(path.stddev)
    mu = float(np.linalg.norm(case.shift / path.stddev))
    direction /= np.linalg.norm(direction * path.stddev)  # the statistic of exact noise has variance 1
    seen = Trials(*(path.sample(update, trials) @ direction for update in (case.update, np.zeros_like(case.update))))
    found = least_mu(seen, cut=mu / 2)
    odds = refutation_odds(mu, ratio=1.0, trials=trials)
    return Check(f"mu, {case.name}", f"at most {mu:.3g}", f"at least {found:.3g}", odds, found <= mu)


def _verdict(found: dict[str, Any], failed: list[str]) -> str:
    if failed:
        return f"refuted: {', '.join(failed)}. The release does not keep what its event states; do not use it"
    missed = "; ".join(f"{odds:.1g} for {fault}" for fault, odds in found["missed"].items())
    words = f"nothing contradicts the claim; the odds that this audit overlooks a fault are {missed}"
    simulated = ". The noise follows from the run's seed and can be subtracted: a lab run's output is no release"
    return words + (simulated if found["simulated"] else "")


def axis_and_diagonal(bound: float) -> Iterator[tuple[str, Array]]:
    """The last coordinate, which noise on the first alone leaves bare, and all together, where a wrong norm shows."""
    yield "one coordinate", bound * np.eye(PARAMETERS)[-1]
    yield "all coordinates", np.full(PARAMETERS, bound / math.sqrt(PARAMETERS))


# --- implementations ------------------------------------------------------------------------------------------------


def audit_releases(setting: Setting, parameters: int, *, seed: int, trials: int = TRIALS) -> list[dict[str, Any]]:
    """The implementations that a setting with Gaussian noise runs, in the lab and deployed; empty for other noise."""
    privacy = setting.privacy
    if not isinstance(privacy, Gaussian):
        return []
    event = setting_protection(setting, parameters).event
    assert event is not None
    multiplier = event.noise / event.bound
    if event.noise_by == "servers":  # each adds noise that is enough
        return [audit_path(two_servers_path, multiplier / math.sqrt(2), trials=trials)]
    found = [audit_path(lambda z: lab_path(privacy, z, seed=seed), multiplier, trials=trials)]
    if privacy.trust == "sum" and privacy.secure_aggregation:
        found.append(audit_path(deployed_path, multiplier, trials=trials))
    return found


def lab_path(mechanism: Gaussian, multiplier: float, *, seed: int, protect: Any = protect_rows) -> Path:
    """The lab's clients: shares of noise from the seed; with an adaptive clip, update and bit together."""
    clip, rounds = mechanism.clip, count(1)
    event = Event("gaussian", "l2", clip, "l2", multiplier * clip, noise_contributors=SHARES, present=SHARES,
                  parameters=PARAMETERS)  # fmt: skip

    def sums(update: Array, trials: int, round: int) -> Array:
        rows = np.zeros((trials * SHARES, PARAMETERS))
        rows[::SHARES] = update
        terms = ReleaseTerms(clip, event)
        sent = protect(mechanism, rows, np.arange(len(rows)), terms, seed=seed, round=round)
        return sent.reshape(trials, SHARES, -1).sum(axis=1)

    stddev, bit = np.full(PARAMETERS, multiplier * clip), []
    if mechanism.adaptive:
        of_update, of_bits = split_multiplier(multiplier, SHARES)
        stddev, bit = np.append(np.full(PARAMETERS, of_update * clip), of_bits), [-0.5]
    cases = [Case(name, _BEYOND * shift, np.append(shift, bit)) for name, shift in axis_and_diagonal(clip)]
    if mechanism.adaptive:  # an update within the clip says so
        _, last = cases
        shift = last.shift[:-1]
        cases[1] = Case(f"{last.name}, within the clip", shift * (1 - 1e-9), np.append(shift, 0.5))
    name = "clients of the lab" + (", with the adaptive clip's bit" if mechanism.adaptive else "")
    step = float(np.finfo(float).eps * stddev.min())
    return Path(
        name, lambda update, trials: sums(update, trials, next(rounds)), tuple(cases), stddev, step,
        lambda: (sums(np.zeros(PARAMETERS), 1, 0), sums(np.zeros(PARAMETERS), 1, 0)), simulated=True,
    )  # fmt: skip


def deployed_path(
    multiplier: float, *, clip: float = 1.0, shares: int = SHARES, release: Any = deployed_release.release
) -> Path:
    """Deployed clients and one server: integers of the ring with discrete noise, added up modulo its size."""
    guarantee = Guarantee(cohort=SHARES + 1, min_clients=SHARES + 1, colluders=1, honest=SHARES)
    ring = Ring(clients=SHARES + 1, bits=64, fraction=20)
    zero = np.zeros(PARAMETERS)

    def message(update: Array) -> Array:
        vector: Array = release(update, clip=clip, multiplier=multiplier, guarantee=guarantee, ring=ring)[0]
        return vector

    def sums(update: Array, trials: int) -> Array:
        return np.stack([
            decode(sum((message(zero) for _ in range(shares - 1)), message(update)), ring) for _ in range(trials)
        ])  # fmt: skip

    event = deployed_release.event_of(clip=clip, multiplier=multiplier, guarantee=guarantee, ring=ring,
                                      parameters=PARAMETERS)  # fmt: skip
    return _in_ring("deployed clients, one server", sums, event, ring)


def two_servers_path(
    multiplier: float, *, clip: float = 1.0, release: Any = deployed_release.release_to_servers,
    noise: Any = deployed_release.server_noise,
) -> Path:  # fmt: skip
    """Deployed clients and two servers, of which one works for the adversary: the noise of the other remains."""
    ring = Ring(clients=SHARES + 1, bits=64, fraction=20)

    def sums(update: Array, trials: int) -> Array:
        vectors = [release(update, clip=clip, multiplier=multiplier, ring=ring)[0] for _ in range(trials)]
        added = [noise(PARAMETERS, clip=clip, multiplier=multiplier, ring=ring) for _ in range(trials)]
        return np.stack(
            [decode(vector + one.astype(vector.dtype), ring) for vector, one in zip(vectors, added, strict=True)]
        )

    _, event = deployed_release.release_to_servers(np.zeros(PARAMETERS), clip=clip, multiplier=multiplier, ring=ring)
    share = msgspec.structs.replace(
        event, noise=event.noise / math.sqrt(event.noise_contributors), noise_contributors=1
    )
    return _in_ring("deployed clients, two servers", sums, share, ring)


def _in_ring(name: str, sums: Callable[[Array, int], Array], event: Event, ring: Ring) -> Path:
    step = 2.0**-ring.fraction
    cases = tuple(Case(name, _BEYOND * shift, shift) for name, shift in axis_and_diagonal(event.bound * step))
    stddev = np.full(PARAMETERS, event.noise * step)
    zero = np.zeros(PARAMETERS)
    return Path(name, sums, cases, stddev, step, lambda: in_two_copies(lambda: sums(zero, 1)), simulated=False)
