"""The privacy card of a setting: the paper's figure, the correct ones, who sees what, and which noise is really there.

Plain JSON data: an infinite epsilon is the word "infinite", a figure that does not exist is null. The sentences for
people (`card_words`) are part of it. Every figure names its adversary, its unit and its neighbours.

A user takes part in `most` rounds at most; the run is the composition of those. Nothing is made smaller because clients
are sampled (`card_words.AMPLIFICATION`).

Differs from the paper: S0 and S1 state the figure of one round and coordinate, or of one interaction; here it is called
nominal, and stands beside what the same noise is worth to a user over the run.
"""

import math
from typing import Any, NamedTuple

import msgspec

from foltr.errors import PrivacyError
from foltr.privacy import accounting, card_words
from foltr.privacy.calibration import gaussian_epsilon
from foltr.privacy.events import Event, one_share, pure_epsilon, with_present
from foltr.privacy.mechanisms import Fpdgd, Gaussian, Laplace, PrivacyKind

DELTA = 1e-5
_FEWER = (0.9, 0.5)  # of those who take part, for the figures with missing shares


class Circumstances(NamedTuple):
    """What a card must know of a federation, beside its mechanism."""

    taking_part: int  # clients in a round
    rounds: int
    most: int  # rounds that one user takes part in
    interactions: int  # in a message; where clients differ, the most
    parameters: int
    seed: int | None = None  # in which `most` was counted; None: it is the same in all
    sampled: bool = False  # a cohort of the clients takes part in each round
    values: bool = False  # messages are a public seed and values of an objective, not parameters
    weighted: bool = True  # messages tell how many interactions are in them
    central: bool = False  # no federation: one place sees every search
    alone: bool = False  # nobody sends anything


def card(
    privacy: PrivacyKind, event: Event | None, about: Circumstances, *, delta: float | None = None
) -> dict[str, Any]:
    """All that is known of a setting's privacy; `event`: its release, None where there is no mechanism."""
    delta = delta or (privacy.delta if isinstance(privacy, Gaussian) else DELTA)
    made: dict[str, Any] = {"kind": str(msgspec.to_builtins(privacy)["kind"]), **_nominal(privacy, event)}
    if event is None:
        made |= {"adversaries": _unprotected(about), "shares": None}
    else:
        made |= _figures(privacy, event, about, delta)
        made |= {"adversaries": _adversaries(privacy, event, made), "shares": _shares(event, about, delta)}
    claimed_not = card_words.AMPLIFICATION if event is not None and about.sampled else None
    made |= {"visible": card_words.visible(about), "amplification": claimed_not}
    return made | {"sentences": card_words.sentences(made)}


def _nominal(privacy: PrivacyKind, event: Event | None) -> dict[str, Any]:
    if event is None:
        return {"nominal_epsilon": None, "nominal": "none stated"}
    if isinstance(privacy, Fpdgd):
        return {"nominal_epsilon": privacy.epsilon, "nominal": card_words.nominal_fpdgd(event.noise_contributors)}
    if isinstance(privacy, Gaussian | Laplace):
        delta = privacy.delta if isinstance(privacy, Gaussian) else 0.0
        return {"nominal_epsilon": privacy.epsilon, "nominal": card_words.nominal_honest(delta)}
    return {"nominal_epsilon": _told(pure_epsilon(event)), "nominal": card_words.NOMINAL_RESPONSE}


def _figures(privacy: PrivacyKind, event: Event, about: Circumstances, delta: float) -> dict[str, Any]:
    """Of one message, one round and the run. A message of responses holds several of them."""
    local = _is_local(event)
    each = about.interactions if event.unit == "interaction" else 1
    once = _once(event, each, delta)
    figures = {
        "unit": event.unit,
        "adjacency": event.adjacency,
        "delta": delta,
        "rounds": about.rounds,
        "most_rounds": about.most,
        "seed": about.seed,
        "message": once if local else _once(one_share(event), 1, delta),
        "round": once,
        "run": _run(event, each * about.most, delta),
    }
    if event.unit == "interaction":
        return figures | {"interactions": each * about.most}
    if isinstance(privacy, Fpdgd):
        return figures | {"clip": privacy.clip, "parameters": event.parameters}
    return figures


def _is_local(event: Event) -> bool:
    """Every message carries all of its noise."""
    return event.noise_contributors == 1 and event.present >= 1


def _once(event: Event, times: int, delta: float) -> dict[str, Any]:
    """Pure where that exists, else at delta."""
    if "gaussian" in event.mechanism:
        return {"epsilon": _told(_epsilon(event, times, delta)), "delta": delta}
    return {"epsilon": _told(times * pure_epsilon(event)), "delta": 0.0}


def _epsilon(event: Event, times: int, delta: float) -> float | None:
    """Gaussian noise in closed form, which is instant also where there is hardly any noise left.

    More than half of the shares of Laplace noise still hide something, which nobody here can reckon; half of them and
    fewer have a density without bound where nothing was changed, and hide nothing.
    """
    there = min(event.present / event.noise_contributors, 1.0)
    if event.mechanism in ("laplace", "fpdgd") and 0.5 < there < 1:
        return None
    if event.mechanism == "gaussian" and event.present:
        return gaussian_epsilon(math.sqrt(times / there) * event.bound / event.noise, delta) if times else 0.0
    return accounting.epsilon({event: times}, delta).epsilon


def _run(event: Event, times: int, delta: float) -> dict[str, Any]:
    """By both ways of accounting, and which of them is quoted."""
    try:
        spent = accounting.epsilon({event: times}, delta)
    except PrivacyError as problem:
        return {"epsilon": None, "delta": delta, "pld": None, "rdp": None, "quoted": None, "why": str(problem)}
    return {
        "epsilon": _told(spent.epsilon),
        "delta": delta,
        "pld": None if spent.pld is None else _told(spent.pld),
        "rdp": _told(spent.rdp),
        "quoted": "rdp" if spent.pld is None else "pld",
        "pure": _told(times * pure_epsilon(event)) if times else 0.0,
    }


def _adversaries(privacy: PrivacyKind, event: Event, figures: dict[str, Any]) -> list[dict[str, Any]]:
    named = {"delta": figures["delta"], "unit": "user", "adjacency": figures["adjacency"]}  # over all a user did
    whole, most, delta = figures["run"]["epsilon"], figures["most_rounds"], figures["delta"]
    secure = isinstance(privacy, Gaussian | Laplace) and privacy.secure_aggregation
    known: list[tuple[str, Any, bool]] = [("recipients", whole, True)]
    if _is_local(event):
        known += [("server-local", whole, True)]
    else:
        fewer = with_present(event, event.present - 1)  # a client knows its own share
        known += [
            ("client", _told(_epsilon(fewer, most, delta)), True),
            ("server", _told(_epsilon(one_share(event), most, delta)), not secure),
            ("server-sums", whole, secure),
        ]
    seen = [
        {"id": name, **card_words.ADVERSARIES[name], "epsilon": epsilon, **named, "here": here}
        for name, epsilon, here in known
    ]
    return [*seen, _watcher()]


def _unprotected(about: Circumstances) -> list[dict[str, Any]]:
    """Without a mechanism only what never leaves is private."""
    if about.alone or about.central:
        name, epsilon = ("alone", 0.0) if about.alone else ("centre", card_words.INFINITE)
        return [{"id": name, **card_words.ADVERSARIES[name], "epsilon": epsilon, "here": True}]
    names = ("recipients", "server-values" if about.values else "server-plain")
    told = [{"id": n, **card_words.ADVERSARIES[n], "epsilon": card_words.INFINITE, "here": True} for n in names]
    return [*told, _watcher()]


def _watcher() -> dict[str, Any]:
    return {"id": "network", **card_words.ADVERSARIES["network"], "epsilon": None, "here": True}


def _shares(event: Event, about: Circumstances, delta: float) -> dict[str, Any] | None:
    """Which holders' noise is there, and what the run is worth with fewer of them in every round."""
    if _is_local(event):
        return None
    holders = [math.floor(share * about.taking_part) for share in _FEWER]
    fewer = [_told(_epsilon(with_present(event, there), about.most, delta)) for there in holders]
    return {
        "noise_contributors": event.noise_contributors,
        "present": event.present,
        "taking_part": about.taking_part,
        "all_or_void": "gaussian" not in event.mechanism,
        "fewer": [
            {"percent": round(100 * share), "holders": there, "epsilon": epsilon}
            for share, there, epsilon in zip(_FEWER, holders, fewer, strict=True)
        ],
    }


def _told(epsilon: float | None) -> float | str | None:
    return card_words.INFINITE if epsilon is not None and math.isinf(epsilon) else epsilon
