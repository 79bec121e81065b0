"""Privacy events: a mechanism states with every release what it guarantees.

An event states the noise, the bound on the difference between neighbouring datasets with its norm, the norm that was
clipped, who adds the noise and how many of them, and the adversaries it holds against. Epsilon follows from it:
`ledger` computes it in closed form, `accounting` by numerical composition.

Units: `user`, all interactions on one node (a person with two nodes is two users, and the bound of one does not cover
both); `interaction`, one search with its clicks; `word`, one term of a text.
Adjacency: `zero-out`, the update of one unit is replaced by zero, and the device still takes part and adds its noise
(who takes part is public); `replace`, one unit is replaced by another. Literal removal, where the noise share goes too,
is another adjacency with a larger epsilon: `accounting.removal_epsilon`.
Adversaries: `recipients`, the other clients and all who get the ranker; `server`, a curious server that follows the
protocol; `malicious`, a server that lies, together with `colluders` clients whose noise shares it knows. Against an
adversary that an event does not name epsilon is infinite.
"""

import math
from collections.abc import Iterable
from typing import Annotated, Literal

import msgspec

from foltr.errors import PrivacyError
from foltr.privacy.noise import SMALLEST_SHARE, SMOOTHING, max_log_ratio, smoothing_log_ratio

Mechanism = Literal["gaussian", "discrete-gaussian", "laplace", "randomized-response", "fpdgd", "none"]
Norm = Literal["l1", "l2", "outcome"]
Unit = Literal["user", "interaction", "word"]
Adjacency = Literal["zero-out", "replace"]
Adversary = Literal["recipients", "server", "malicious"]
NoiseBy = Literal["clients", "servers"]

EVERYBODY: tuple[Adversary, ...] = ("recipients", "server", "malicious")
FOLLOWERS: tuple[Adversary, ...] = ("recipients", "server")  # who keep to the protocol
RECIPIENTS: tuple[Adversary, ...] = ("recipients",)
SERVERS = 2  # that add noise where clients do not
NORMS: dict[str, Norm] = {  # in which each mechanism hides differences
    "gaussian": "l2",
    "discrete-gaussian": "l2",
    "laplace": "l1",
    "randomized-response": "outcome",
    "fpdgd": "l2",
    "none": "l2",
}
Positive = Annotated[float, msgspec.Meta(gt=0)]
Count = Annotated[int, msgspec.Meta(ge=1)]
_NEGLIGIBLE = 1e-20  # log ratio of a release below which discrete noise is accounted for as continuous noise
_MARGIN = 1e-12  # added to mu^2: raises delta by more than a log ratio of `_NEGLIGIBLE` does, up to a mu of 1,000


class Event(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One release. Noise is that of all `noise_contributors` together."""

    mechanism: Mechanism
    norm: Norm  # in which `bound` is stated
    bound: Positive  # largest difference between neighbouring datasets
    clipped: Norm  # in which differences are clipped
    noise: Annotated[float, msgspec.Meta(ge=0)]  # standard deviation, scale of Laplace noise, or the probability of a
    # true response; 0 for the mechanism "none" only: a sum without noise, whose epsilon is infinite
    unit: Unit = "user"
    adjacency: Adjacency = "zero-out"
    against: tuple[Adversary, ...] = EVERYBODY
    noise_contributors: Count = 1  # clients or servers (`noise_by`) that the noise was calibrated for
    present: Annotated[int, msgspec.Meta(ge=0)] = 1  # of whom noise is in the release; more than asked for add nothing
    parameters: Count = 1
    outcomes: Annotated[int, msgspec.Meta(ge=0)] = 0  # a randomised response chooses among
    colluders: Annotated[int, msgspec.Meta(ge=0)] = 0  # clients that may work for a malicious server
    noise_by: NoiseBy = "clients"  # servers: each of two adds enough. Ledgers of older versions do not have the field


def with_present(event: Event, present: int) -> Event:
    """The event of a release with the noise of fewer or more contributors in it."""
    return msgspec.structs.replace(event, present=present)


def with_shares(event: Event, shares: int) -> Event:
    """The event of a release with exactly so many of its noise shares; further Gaussian ones count too."""
    if "gaussian" not in event.mechanism or shares < 1:
        return with_present(event, max(0, shares))
    noise = event.noise * math.sqrt(shares / event.noise_contributors)
    return msgspec.structs.replace(event, noise=noise, noise_contributors=shares, present=shares)


def noise_by_servers(event: Event) -> Event:
    """The event of a sum to which each of two servers adds the noise that this event states.

    One of them may be the adversary, who subtracts its own: the noise of the other is what counts.
    """
    return msgspec.structs.replace(
        event, noise=event.noise * math.sqrt(SERVERS), noise_contributors=SERVERS, present=1, against=EVERYBODY,
        noise_by="servers",
    )  # fmt: skip


def one_share(event: Event) -> Event:
    """The event of one message without secure aggregation: its bound, and the noise of one share only."""
    return msgspec.structs.replace(event, present=1, against=EVERYBODY)


def holds(event: Event) -> bool:
    """Whether the release has a guarantee: Laplace noise needs all shares, a randomised response p < 1."""
    if event.mechanism == "none":
        return False
    if event.mechanism == "randomized-response":
        return event.outcomes >= 2 and event.noise < 1
    if event.mechanism in ("laplace", "fpdgd"):
        return event.present >= event.noise_contributors
    return event.present >= 1


def multiplier(event: Event) -> float:
    """Standard deviation or scale over the bound. Missing Gaussian shares reduce it; further ones are not counted."""
    there = min(event.present / event.noise_contributors, 1.0) if "gaussian" in event.mechanism else 1.0
    return event.noise * math.sqrt(there) / event.bound


def pure_epsilon(event: Event) -> float:
    """Epsilon of one release at delta 0; infinite for Gaussian noise."""
    if not holds(event) or event.mechanism in ("gaussian", "discrete-gaussian"):
        return math.inf
    if event.mechanism == "randomized-response":
        lie = (1 - event.noise) / (event.outcomes - 1)
        return abs(math.log(event.noise / lie)) if lie else math.inf
    spread = math.sqrt(event.parameters) if event.mechanism == "fpdgd" else 1.0
    return spread * event.bound / event.noise


def concentrated(event: Event) -> float:
    """rho of a sum of discrete Gaussian shares, with bound and noise in steps of the ring.

    Kairouz, Liu and Steinke (2021), theorem 5: the sum of n discrete shares is not quite a discrete Gaussian.
    """
    share, contributors = _ring_shares(event)
    distance = max_log_ratio(share, contributors)
    clean = event.bound / (share * math.sqrt(contributors))
    first = math.sqrt(clean**2 + distance * event.parameters / 2)
    return min(first, clean + distance * math.sqrt(event.parameters)) ** 2 / 2


def as_continuous(event: Event) -> tuple[float, float]:
    """(mu^2, epsilon) of a release in the ring: no worse than Gaussian noise of this mu plus a pure epsilon.

    mu is infinite where the log ratio to continuous noise is not negligible; `concentrated` holds there. Proof:
    docs/explanation-noise-in-the-ring.md.
    """
    share, contributors = _ring_shares(event)
    distance = event.parameters * (max_log_ratio(share, contributors) + smoothing_log_ratio())
    variance = share**2 * contributors - SMOOTHING
    if distance > _NEGLIGIBLE or variance <= 0:
        return math.inf, 0.0
    return event.bound**2 / variance + _MARGIN, 2 * distance


def _ring_shares(event: Event) -> tuple[float, int]:
    """Sigma of one discrete share, and how many are in the sum."""
    return event.noise / math.sqrt(event.noise_contributors), max(1, min(event.present, event.noise_contributors))


def unproved(event: Event) -> str:
    """Why nothing is proved of a release; empty where something is."""
    if event.mechanism != "discrete-gaussian":
        return ""
    share, contributors = _ring_shares(event)
    if contributors == 1 or share >= SMALLEST_SHARE:
        return ""
    return (
        f"discrete-gaussian: shares of sigma {share:.3g} steps; nothing is proved of sums of shares below "
        f"{SMALLEST_SHARE:g}; use a ring with more binary digits"
    )


def check_composable(events: Iterable[Event]) -> None:
    """Refuses events that cannot be composed: unknown mechanisms, noise for another norm, different units."""
    kinds = set()
    for event in events:
        needed = NORMS.get(event.mechanism)
        if needed is None:
            raise PrivacyError(f"{event.mechanism}: no accounting is known for it; known are {', '.join(NORMS)}")
        if (event.norm, event.clipped) != (needed, needed):
            raise PrivacyError(
                f"{event.mechanism} noise hides differences in {needed}; this release declares a bound in {event.norm} "
                f"and clips in {event.clipped}: it cannot be composed"
            )
        if event.mechanism != "none" and not (event.noise > 0 and math.isfinite(event.bound / event.noise)):
            raise PrivacyError(f"{event.mechanism}: bound {event.bound:g} over noise {event.noise:g} is not finite")
        if problem := unproved(event):
            raise PrivacyError(problem)
        kinds.add(f"{event.adjacency} one {event.unit}")
    if len(kinds) > 1:
        raise PrivacyError(f"events of different kinds cannot be composed: {', '.join(sorted(kinds))}")
