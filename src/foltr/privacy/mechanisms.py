"""What is done to an update before it leaves: the papers' ways with their nominal epsilons, and honest ones.

Sources: S0 Algorithm 3 and equations 13-16 (FPDGD), S1 section 3.3 (randomised response); Abadi et al. 2016 and McMahan
et al. 2018 (clipped updates with Gaussian noise), Andrew et al. 2021 (the clip follows a quantile).

FPDGD: after every local step the parameters are clipped to an L2 ball; before sending, every coordinate gets a share
Gamma(1/n, Delta/epsilon) - Gamma(1/n, Delta/epsilon), n shares of which add up to Laplace noise of scale Delta/epsilon.
Gaussian, Laplace: the UPDATE (what local training changed) is clipped, in L2 or L1, and gets a share of noise that is
sized for those holders who are sure to be there. Their epsilon is that of a user over the whole run.

Differs from the paper: FPDGD's clip radius is Delta (`clip = "delta"`, the authors' program, which reproduces their
Table 2); the paper's text says Delta / 2 (`clip = "half-delta"`).
"""

import math
from typing import Annotated, Literal

import msgspec
import numpy as np

from foltr._kernels.noise import add_gamma_shares
from foltr.privacy.calibration import laplace_scale, next_clip, noise_multiplier, split_multiplier
from foltr.privacy.events import EVERYBODY, RECIPIENTS, Adversary, Event
from foltr.privacy.noise import gaussian_share
from foltr.rng import stream
from foltr.types import Array

Positive = Annotated[float, msgspec.Meta(gt=0)]
Count = Annotated[int, msgspec.Meta(ge=1)]
Fraction = Annotated[float, msgspec.Meta(gt=0, le=1)]


class NoPrivacy(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="none"):
    """Updates leave as they are."""


class Fpdgd(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="fpdgd"):
    """The paper's noise, in shares; epsilon is nominal."""

    epsilon: Positive = 1.2
    sensitivity: Positive = 3.0
    clip: Literal["delta", "half-delta"] = "delta"

    @property
    def radius(self) -> float:
        return self.sensitivity if self.clip == "delta" else self.sensitivity / 2


class RandomizedResponse(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="randomized-response"
):
    """The truth with probability p, else another outcome; p = 1 hides nothing."""

    p: Fraction = 0.9


class Gaussian(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="gaussian"):
    """UserLevelDP: epsilon at delta is what a user spends in the whole run, and the run stops before it spends more."""

    epsilon: Positive = 1.0
    delta: Annotated[float, msgspec.Meta(gt=0, lt=1)] = 1e-5
    clip: Positive = 1.0  # of an update's L2 norm; where the clip adapts, the first
    releases: Count | None = None  # that a user may take part in; None: as many as the rounds ask for
    min_participation: Fraction = 1.0  # of the noise holders that are sure to be there
    trust: Literal["sum", "local"] = "sum"  # nobody: every message carries the whole noise (local privacy)
    secure_aggregation: bool = True  # the server sees sums only
    adaptive: Annotated[float, msgspec.Meta(ge=0, lt=1)] = 0.0  # quantile of norms that the clip follows; 0: fixed


class Laplace(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="laplace"):
    """UserLevelDP with delta 0: the update is clipped in L1, and epsilons of releases add up."""

    epsilon: Positive = 1.0
    clip: Positive = 1.0  # of an update's L1 norm
    releases: Count | None = None
    min_participation: Fraction = 1.0
    trust: Literal["sum", "local"] = "sum"
    secure_aggregation: bool = True


UserLevelDP = Gaussian | Laplace
PrivacyKind = NoPrivacy | Fpdgd | RandomizedResponse | Gaussian | Laplace


def clip_radius(privacy: PrivacyKind) -> float:
    """L2 bound on the parameters after each local step; 0 where there is none."""
    return privacy.radius if isinstance(privacy, Fpdgd) else 0.0


def noise_holders(privacy: UserLevelDP, taking_part: int) -> int:
    """How many shares make up the noise: those that are sure to be there; one where nobody is trusted."""
    return 1 if privacy.trust == "local" else max(1, math.floor(privacy.min_participation * taking_part))


def event_of(privacy: UserLevelDP, *, taking_part: int, releases: int, parameters: int) -> Event:
    """What one round of it is worth, to everybody who may look."""
    holders = noise_holders(privacy, taking_part)
    local = privacy.trust == "local"
    against: tuple[Adversary, ...] = EVERYBODY if privacy.secure_aggregation or local else RECIPIENTS
    present = 1 if local else taking_part
    if isinstance(privacy, Laplace):
        scale = laplace_scale(privacy.epsilon, releases, privacy.clip)
        return Event("laplace", "l1", privacy.clip, "l1", scale, against=against, noise_contributors=holders,
                     present=present, parameters=parameters)  # fmt: skip
    deviation = noise_multiplier(privacy.epsilon, privacy.delta, releases) * privacy.clip
    return Event("gaussian", "l2", privacy.clip, "l2", deviation, against=against, noise_contributors=holders,
                 present=present, parameters=parameters)  # fmt: skip


def clip_updates(updates: Array, start: Array, *, clip: float, norm: Literal["l1", "l2"]) -> Array:
    """Brings every row of updates [n, P] to within `clip` of the start, in place; returns the norms before [n].

    A client whose training went astray (not finite) sends no change: its noise is needed all the same.
    """
    updates -= start
    updates[~np.isfinite(updates).all(axis=1)] = 0.0
    norms = np.abs(updates).sum(axis=1) if norm == "l1" else np.sqrt(np.square(updates).sum(axis=1))
    updates *= np.minimum(1.0, clip / np.maximum(norms, clip))[:, None]
    updates += start
    return norms


def protect(
    privacy: UserLevelDP,
    updates: Array,
    start: Array,
    clients: Array,
    event: Event,
    *,
    clip: float,
    seed: int,
    round: int,
) -> float:
    """Clips and noises updates [n, P] in place, as `event` says with `clip` for its bound; returns the next clip."""
    if isinstance(privacy, Laplace):
        clip_updates(updates, start, clip=clip, norm="l1")
        scale = event.noise / event.bound * clip
        add_gamma_shares(
            updates, clients, scale=scale, noise_contributors=event.noise_contributors, seed=seed, round=round
        )
        return clip
    norms = clip_updates(updates, start, clip=clip, norm="l2")
    multiplier, following = event.noise / event.bound, clip
    if privacy.adaptive:
        multiplier, bits = split_multiplier(multiplier, len(clients))
        noise = bits * float(stream(seed, round=round, client=-1, purpose="noise").normal(1)[0])
        within = float(np.sum(norms <= clip) - len(norms) / 2)
        following = next_clip(within + noise, len(norms), clip, quantile=privacy.adaptive)
    for row, client in zip(updates, clients, strict=True):
        draws = stream(seed, round=round, client=int(client), purpose="noise")
        row += gaussian_share(draws, len(row), stddev=multiplier * clip, noise_contributors=event.noise_contributors)
    return following
