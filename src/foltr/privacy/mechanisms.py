"""Privacy mechanisms: those of the papers with their nominal epsilons, and user-level DP.

Sources: S0 Algorithm 3 and equations 13-16 (FPDGD), S1 section 3.3 (randomised response); Abadi et al. 2016 and McMahan
et al. 2018 (clipped updates with Gaussian noise), Andrew et al. 2021 (the clip follows a quantile).

A mechanism is a struct with four functions and traits:

    acts_on      "delta": `protect` gets the vector that a client would send; "outcome": the number of an outcome of one
                 interaction, before it enters an objective; "nothing": nothing is protected
    secagg_modes the modes of secure aggregation that it works with (`secagg.mode` of a spec); "one-server" only where
                 it declares none
    project      parameters after every local step
    event        the privacy event of one release in this federation
    protect      (values, state, event, draws) -> the protected values
    next_state   the state of the next round (an adaptive clip)

FPDGD: after every local step the parameters are clipped to an L2 ball; before sending, every coordinate gets a share
Gamma(1/n, Delta/epsilon) - Gamma(1/n, Delta/epsilon), n shares of which add up to Laplace noise of scale Delta/epsilon.
Gaussian, Laplace: the delta is clipped, in L2 or L1, and gets a share of noise. Shares are sized for the honest clients
that are in every sum: the participants less `dropouts` of them and less `corrupt` of ALL clients, whose noise a
malicious server knows. Their epsilon is that of a user over the whole run, for zero-out adjacency: the user's update is
replaced by zero, and the device still adds its noise. With `secagg.mode = "two-servers"` clients add no noise, each of
two servers that do not collude adds all of it, and neither dropouts nor corrupt clients matter; this works for Gaussian
noise, and the event says so (`noise_by`).

Differs from the paper: FPDGD's clip radius is Delta (`clip = "delta"`, the authors' program, which reproduces their
Table 2); the paper's text says Delta / 2 (`clip = "half-delta"`). The share of clients within an adaptive clip is
noised by the clients in shares, as their updates are, and a client whose update is zero sends the bit 0: else zero-out
would change its bit by 1, and the bound of 1/2 would not hold (epsilon 1 would be 1.36).
"""

import math
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import msgspec
import numpy as np

from foltr.clipping import clipped_to, factors, norms
from foltr.errors import SpecError
from foltr.privacy.calibration import laplace_scale, next_clip, noise_multiplier, split_multiplier
from foltr.privacy.events import (
    EVERYBODY,
    FOLLOWERS,
    RECIPIENTS,
    Adversary,
    Event,
    noise_by_servers,
    pure_epsilon,
)
from foltr.privacy.noise import gamma_share, gaussian_share
from foltr.types import Array

Positive = Annotated[float, msgspec.Meta(gt=0)]
Count = Annotated[int, msgspec.Meta(ge=1)]
Fraction = Annotated[float, msgspec.Meta(gt=0, le=1)]
Lost = Annotated[float, msgspec.Meta(ge=0, lt=1)]  # fraction of clients
SecureAggregation = bool | Literal["execute"]  # True: sums are simulated; "execute": the protocol runs in the process
SecAggMode = Literal["one-server", "two-servers"]
_ROUNDING = 1e-9  # a tenth of 1,000 is 100 in spite of rounding


class ReleaseContext(NamedTuple):
    """Facts about a federation that a mechanism needs to calibrate its noise and to state its event."""

    participants: int  # clients whose messages one release adds up
    releases: int  # that one client may take part in
    parameters: int
    outcomes: int = 0  # of one interaction, where messages are objectives
    clients: int = 0  # of the federation, of whom some may be corrupt; 0: the participants are all
    secagg_mode: SecAggMode = "one-server"  # two-servers: the servers add the noise


class NoPrivacy(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="none"):
    """No protection."""

    acts_on: ClassVar[str] = "nothing"

    def init_state(self) -> None:
        return None

    def project(self, parameters: Array) -> Array:
        return parameters

    def event(self, context: ReleaseContext) -> None:  # noqa: ARG002
        return None

    def protect(self, values: Array, state: Any, event: Any, draws: Any) -> Array:  # noqa: ARG002
        return values

    def next_state(self, state: Any, extra: Array, context: ReleaseContext) -> Any:  # noqa: ARG002
        return state


class Fpdgd(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="fpdgd"):
    """The paper's noise, in shares; epsilon is nominal."""

    epsilon: Positive = 1.2
    sensitivity: Positive = 3.0
    clip: Literal["delta", "half-delta"] = "delta"

    acts_on: ClassVar[str] = "delta"

    @property
    def radius(self) -> float:
        return self.sensitivity if self.clip == "delta" else self.sensitivity / 2

    def init_state(self) -> None:
        return None

    def project(self, parameters: Array) -> Array:
        return parameters * factors(norms(parameters), self.radius)

    def event(self, context: ReleaseContext) -> Event:
        """One round: replacing a user changes the sum by up to the ball's diameter.

        The server sees single messages, and one share among many is practically no noise: the event holds against
        recipients of the ranker only. S0 uses Delta / epsilon whatever the norm; the event states the norm that is
        clipped.
        """
        contributors = context.participants
        against = EVERYBODY if contributors == 1 else RECIPIENTS
        scale = self.sensitivity / self.epsilon
        return Event("fpdgd", "l2", 2 * self.radius, "l2", scale, adjacency="replace", against=against,
                     noise_contributors=contributors, present=contributors, parameters=context.parameters)  # fmt: skip

    def protect(self, values: Array, state: Any, event: Event, draws: Any) -> Array:  # noqa: ARG002
        scale = self.sensitivity / self.epsilon
        return values + gamma_share(draws, len(values), scale=scale, noise_contributors=event.noise_contributors)

    def next_state(self, state: Any, extra: Array, context: ReleaseContext) -> Any:  # noqa: ARG002
        return state


class RandomizedResponse(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="randomized-response"
):
    """The truth with probability p, else another outcome; p = 1 hides nothing."""

    p: Fraction = 0.9

    acts_on: ClassVar[str] = "outcome"

    def init_state(self) -> None:
        return None

    def project(self, parameters: Array) -> Array:
        return parameters

    def event(self, context: ReleaseContext) -> Event:
        """One interaction, privatised before it leaves: it holds against everybody.

        A response that is true less often than a random guess is accounted for as a binary response of the same
        epsilon, which dominates every mechanism of that epsilon (Kairouz, Oh and Viswanath 2015).
        """
        event = Event("randomized-response", "outcome", 1.0, "outcome", self.p, unit="interaction",
                      adjacency="replace", outcomes=context.outcomes)  # fmt: skip
        if self.p * context.outcomes > 1:
            return event
        odds = math.exp(abs(pure_epsilon(event)))
        return msgspec.structs.replace(event, outcomes=2, noise=max(odds / (1 + odds), 0.5 + 1e-9))

    def protect(self, values: int, state: int, event: Any, draws: Any) -> int:  # noqa: ARG002
        """The outcome itself, or with probability 1 - p one of the others (of `state` outcomes), uniformly."""
        first, second = draws.uniform(2)
        if first < self.p:
            return values
        other = int(second * (state - 1))
        return other + (other >= values)

    def next_state(self, state: Any, extra: Array, context: ReleaseContext) -> Any:  # noqa: ARG002
        return state


class Gaussian(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="gaussian"):
    """User-level: epsilon at delta is what a user spends in the whole run; the ledger refuses a release beyond it."""

    epsilon: Positive = 1.0
    delta: Annotated[float, msgspec.Meta(gt=0, lt=1)] = 1e-5
    clip: Positive = 1.0  # of an update's L2 norm; where the clip adapts, the first
    releases: Count | None = None  # that a user may take part in; None: as many as the schedule needs
    dropouts: Lost = 0.0  # of the participants of a round
    corrupt: Lost = 0.0  # of all clients: they work for a malicious server
    trust: Literal["sum", "local"] = "sum"  # local: every message carries the whole noise (local privacy)
    secure_aggregation: SecureAggregation = True  # the server sees sums only
    adaptive: Annotated[float, msgspec.Meta(ge=0, lt=1)] = 0.0  # quantile of norms that the clip follows; 0: fixed

    acts_on: ClassVar[str] = "delta"
    equal_weights: ClassVar[bool] = True  # how often a person searched is not told
    secagg_modes: ClassVar[tuple[SecAggMode, ...]] = ("one-server", "two-servers")

    def init_state(self) -> float:
        return self.clip

    def project(self, parameters: Array) -> Array:
        return parameters

    def event(self, context: ReleaseContext) -> Event:
        two = context.secagg_mode == "two-servers"
        if two and (self.trust == "local" or not self.secure_aggregation or self.adaptive):
            raise SpecError(
                'secagg.mode = "two-servers" goes with privacy.trust = "sum", privacy.secure_aggregation = true or '
                '"execute", and privacy.adaptive = 0'
            )
        if self.adaptive and self.trust == "local":
            raise SpecError('privacy.adaptive needs noise in shares of a sum; use 0, or trust = "sum"')
        stddev = noise_multiplier(self.epsilon, self.delta, context.releases) * self.clip
        event = Event("gaussian", "l2", self.clip, "l2", stddev)
        return _servers_noise(self, event, context) if two else _shared_noise(self, event, context)

    def protect(self, values: Array, state: float, event: Event, draws: Any) -> Array:
        """Clipped to the round's clip, with noise in proportion; an adaptive clip appends one noisy bit."""
        clipped, norm = clipped_to(values, clip=state, norm="l2")
        if event.noise_by == "servers":
            return clipped
        multiplier, contributors = event.noise / event.bound, event.noise_contributors
        if not self.adaptive:
            return clipped + gaussian_share(draws, len(values), stddev=multiplier * state,
                                            noise_contributors=contributors)  # fmt: skip
        multiplier, bits = split_multiplier(multiplier, event.present)
        share = gaussian_share(draws, len(values), stddev=multiplier * state, noise_contributors=contributors)
        after = draws.skip(len(values) + len(values) % 2)  # Box-Muller draws pairs
        bit = bit_of(float(norm), state) + gaussian_share(after, 1, stddev=bits, noise_contributors=contributors)
        return np.append(clipped + share, bit)

    def next_state(self, state: float, extra: Array, context: ReleaseContext) -> float:
        if not self.adaptive:
            return state
        return next_clip(float(extra[0]), context.participants, state, quantile=self.adaptive)


class Laplace(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="laplace"):
    """User-level with delta 0: the update is clipped in L1, and epsilons of releases add up."""

    epsilon: Positive = 1.0
    clip: Positive = 1.0  # of an update's L1 norm
    releases: Count | None = None
    dropouts: Lost = 0.0
    corrupt: Lost = 0.0
    trust: Literal["sum", "local"] = "sum"
    secure_aggregation: SecureAggregation = True

    acts_on: ClassVar[str] = "delta"
    equal_weights: ClassVar[bool] = True  # how often a person searched is not told
    delta: ClassVar[float] = 0.0
    adaptive: ClassVar[float] = 0.0

    def init_state(self) -> float:
        return self.clip

    def project(self, parameters: Array) -> Array:
        return parameters

    def event(self, context: ReleaseContext) -> Event:
        scale = laplace_scale(self.epsilon, context.releases, self.clip)
        return _shared_noise(self, Event("laplace", "l1", self.clip, "l1", scale), context)

    def protect(self, values: Array, state: float, event: Event, draws: Any) -> Array:
        clipped, _ = clipped_to(values, clip=state, norm="l1")
        scale = event.noise / event.bound * state
        return clipped + gamma_share(draws, len(values), scale=scale, noise_contributors=event.noise_contributors)

    def next_state(self, state: float, extra: Array, context: ReleaseContext) -> float:  # noqa: ARG002
        return state


UserLevelDP = Gaussian | Laplace


def noise_contributors(mechanism: UserLevelDP, context: ReleaseContext) -> int:
    """Number of clients whose shares add up to the noise: the honest ones in every sum; one with local privacy."""
    if mechanism.trust == "local":
        return 1
    participants, (survivors, colluders) = context.participants, survivors_and_colluders(mechanism, context)
    if survivors - colluders < 1:
        raise SpecError(
            f"{participants:,} clients in a round of which {participants - survivors:,} may drop out and {colluders:,} "
            f"may be corrupt: no honest noise is left; use lower privacy.dropouts or privacy.corrupt, or more clients"
        )
    return survivors - colluders


def survivors_and_colluders(mechanism: UserLevelDP, context: ReleaseContext) -> tuple[int, int]:
    """Fewest messages in a sum, and how many clients are corrupt, all of them in the round (`secagg.guarantee`)."""
    participants, clients = context.participants, context.clients or context.participants
    return (
        max(1, participants - math.ceil(mechanism.dropouts * participants - _ROUNDING)),
        math.ceil(mechanism.corrupt * clients - _ROUNDING),
    )


def _shared_noise(mechanism: UserLevelDP, event: Event, context: ReleaseContext) -> Event:
    contributors, colluders = noise_contributors(mechanism, context), survivors_and_colluders(mechanism, context)[1]
    local = mechanism.trust == "local"
    against: tuple[Adversary, ...] = RECIPIENTS
    if local or mechanism.secure_aggregation:
        against = EVERYBODY if local or colluders else FOLLOWERS
    return msgspec.structs.replace(
        event, against=against, noise_contributors=contributors, present=1 if local else context.participants,
        parameters=context.parameters, colluders=colluders,
    )  # fmt: skip


def _servers_noise(mechanism: Gaussian, event: Event, context: ReleaseContext) -> Event:
    colluders = survivors_and_colluders(mechanism, context)[1]
    return msgspec.structs.replace(noise_by_servers(event), parameters=context.parameters, colluders=colluders)


def bit_of(norm: float, clip: float) -> float:
    """A client's report of its norm for an adaptive clip: within 1/2, beyond it -1/2; 0 of an update that is zero."""
    return 0.0 if norm == 0 else 0.5 if norm <= clip else -0.5


MECHANISMS = {
    "none": NoPrivacy,
    "fpdgd": Fpdgd,
    "randomized-response": RandomizedResponse,
    "gaussian": Gaussian,
    "laplace": Laplace,
}
