"""The privacy card of a setting: nominal and composed epsilon, what each adversary sees, and who contributes noise.

Plain JSON data: an infinite epsilon is the word "infinite", an unknown one is null. Sentences for readers are part of
the card. Every epsilon states its adversary, its unit and its adjacency.

A user takes part in at most `max_rounds` rounds; the epsilon of the run is the composition of those. No amplification
by sampling is claimed. For a mechanism that the card does not know (a plug-in) it reports the epsilon of the event that
the mechanism declares; without an event it says that no guarantee is known. The text of `describe()` is quoted.

Differs from the paper: S0 and S1 state the epsilon of one round and coordinate, or of one interaction; the card calls
it nominal and states beside it the epsilon of a user over the run.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from foltr.errors import PrivacyError
from foltr.privacy import accounting
from foltr.privacy.calibration import gaussian_epsilon
from foltr.privacy.events import Event, one_share, pure_epsilon, with_present

DELTA = 1e-5
INFINITE = "infinite"
_FEWER = (0.9, 0.5)  # fractions of the participants, for epsilons with missing noise shares

AMPLIFICATION = (
    "No amplification by sampling is claimed: the server samples the clients and knows who took part, and so does "
    "anybody who observes the network."
)
SEEDED = (
    "This is a run of the lab: its noise follows from the seed, and anybody who knows the seed can subtract it. The "
    "epsilons are those of the mechanism; the run itself is no release."
)
_CURIOUS_SERVER = (
    "Secure sums are claimed against an honest-but-curious server only, one that follows the protocol and tries to "
    "learn from what it sees; nothing is claimed against a server that lies to clients."
)
SECURE_SUMS = {
    True: f"Secure aggregation is simulated: the lab adds plain updates as if the protocol had run. {_CURIOUS_SERVER}",
    "execute": f"The secure aggregation protocol ran, with server and clients in one process. {_CURIOUS_SERVER}",
}
ADVERSARIES = {
    "recipients": {"who": "recipients of the ranker", "sees": "the ranker after every round"},
    "client": {"who": "another client", "sees": "the ranker after every round, and knows its own share of the noise"},
    "server": {
        "who": "the server without secure aggregation",
        "sees": "every single message, with one share of the noise",
    },
    "server-sums": {
        "who": "an honest-but-curious server with secure aggregation",
        "sees": "the sum of a round's messages only",
    },
    "server-local": {
        "who": "the server with or without secure aggregation",
        "sees": "messages that carry all of their noise",
    },
    "server-plain": {"who": "the server", "sees": "every single message as it is, from which clicks can be read"},
    "server-values": {
        "who": "the server",
        "sees": "the objective values of each user for known perturbations of the ranker",
    },
    "server-unknown": {"who": "the server", "sees": "messages whose protection is not known"},
    "centre": {"who": "the central learner", "sees": "every search and every click"},
    "local-only": {"who": "anybody else", "sees": "nothing: no update leaves its owner"},
    "network": {
        "who": "an observer of the network",
        "sees": "which clients contact the server and when; message contents only where connections are not encrypted",
    },
}


class Circumstances(NamedTuple):
    """The properties of a federation that a card needs besides the mechanism."""

    taking_part: int  # clients in a round
    rounds: int
    max_rounds: int  # that one user takes part in
    interactions: int  # in a message; the maximum where clients differ
    parameters: int
    seed: int | None = None  # in which `max_rounds` was counted; None: equal in all seeds
    sampled: bool = False  # a cohort of the clients takes part in each round
    values: bool = False  # messages are a public seed and values of an objective, not parameters
    weighted: bool = True  # messages state their number of interactions
    central: bool = False  # no federation: one place sees every search
    local_only: bool = False  # local-only training: no client sends anything
    lab: bool = False  # noise comes from addressed streams


def card(privacy: Any, event: Event | None, about: Circumstances, *, delta: float | None = None) -> dict[str, Any]:
    """The card of a mechanism; `event`: its release, None without one or where none is declared."""
    kind = kind_of(privacy)
    delta = (
        delta if delta is not None else float(getattr(privacy, "delta", 0.0)) or DELTA
    )  # RDP and PLD need a positive delta
    found: dict[str, Any] = {"kind": kind, **_nominal(kind, privacy, event), "description": _description(privacy)}
    if event is None:
        found |= {"adversaries": _unprotected(about, known=kind == "none"), "shares": None}
    else:
        found |= _figures(event, about, delta)
        if kind == "fpdgd":
            found |= {"clip": privacy.clip, "parameters": event.parameters}
        found |= {"adversaries": _adversaries(privacy, event, found), "shares": _shares(event, about, delta)}
    found |= {"visible": _visible(about), "notes": _notes(privacy, event, about)}
    found["amplification"] = AMPLIFICATION if event is not None and about.sampled else None
    return found | {"sentences": _sentences(found)}


def kind_of(privacy: Any) -> str:
    """The name of a mechanism in a spec."""
    return str(msgspec.to_builtins(privacy)["kind"])


# --- epsilons --------------------------------------------------------------------------------------------------------


def _nominal(kind: str, privacy: Any, event: Event | None) -> dict[str, Any]:
    if event is None:
        return {"nominal_epsilon": None, "nominal": "none stated"}
    if kind in NOMINAL:
        epsilon, words = NOMINAL[kind](privacy, event)
        return {"nominal_epsilon": _reported(epsilon), "nominal": words}
    return {"nominal_epsilon": getattr(privacy, "epsilon", None), "nominal": "as the mechanism states it"}


def _nominal_fpdgd(privacy: Any, event: Event) -> tuple[float, str]:
    return privacy.epsilon, (
        f"as the paper states it: per round and per coordinate, for the sum of all {event.noise_contributors:,} noise "
        f"shares only, not composed over rounds; not a guarantee for a user"
    )


def _nominal_response(_privacy: Any, event: Event) -> tuple[float, str]:
    return pure_epsilon(event), (
        "as the paper states it: local, for the outcome of ONE interaction; a message holds several and a run many "
        "messages, which this epsilon does not compose"
    )


def _nominal_user_level(privacy: Any, _event: Event) -> tuple[float, str]:
    delta = getattr(privacy, "delta", 0.0)
    return privacy.epsilon, f"as the spec asks: of one user over the whole run, at delta {delta:g}"


NOMINAL: dict[str, Callable[[Any, Event], tuple[float, str]]] = {
    "fpdgd": _nominal_fpdgd,
    "randomized-response": _nominal_response,
    "gaussian": _nominal_user_level,
    "laplace": _nominal_user_level,
}


def _description(privacy: Any) -> str | None:
    describe = getattr(privacy, "describe", None)
    return str(describe()) if callable(describe) else None


def _figures(event: Event, about: Circumstances, delta: float) -> dict[str, Any]:
    """Epsilons of one message, one round and the run. A message of randomised responses holds several."""
    each = about.interactions if event.unit == "interaction" else 1
    of_round = _one_release(event, each, delta)
    figures = {
        "unit": event.unit,
        "adjacency": event.adjacency,
        "delta": delta,
        "rounds": about.rounds,
        "max_rounds": about.max_rounds,
        "seed": about.seed,
        "message": of_round if _is_local(event) else _one_release(one_share(event), 1, delta),
        "round": of_round,
        "run": _run(event, each * about.max_rounds, delta),
    }
    return figures | ({"interactions": each * about.max_rounds} if event.unit == "interaction" else {})


def _is_local(event: Event) -> bool:
    """Whether every message carries all of its noise (local privacy)."""
    return event.noise_contributors == 1 and event.present >= 1


def _one_release(event: Event, times: int, delta: float) -> dict[str, Any]:
    """Pure epsilon where it exists, else at delta."""
    if "gaussian" in event.mechanism:
        return {"epsilon": _reported(_epsilon(event, times, delta)), "delta": delta}
    return {"epsilon": _reported(times * pure_epsilon(event)), "delta": 0.0}


def _epsilon(event: Event, times: int, delta: float) -> float | None:
    """Composed epsilon with the noise shares that are present; Gaussian noise in closed form.

    With more than half of its shares Laplace noise still hides something, but no bound is known; with half or fewer
    its density is unbounded at zero and epsilon infinite.
    """
    there = min(event.present / event.noise_contributors, 1.0)
    if event.mechanism in ("laplace", "fpdgd") and 0.5 < there < 1:
        return None
    if event.mechanism == "gaussian" and event.present:
        return gaussian_epsilon(math.sqrt(times / there) * event.bound / event.noise, delta) if times else 0.0
    return accounting.epsilon({event: times}, delta).epsilon


def _run(event: Event, times: int, delta: float) -> dict[str, Any]:
    """By both accounting methods, and which of them is quoted."""
    try:
        spent = accounting.epsilon({event: times}, delta)
    except PrivacyError as problem:
        return {"epsilon": None, "delta": delta, "pld": None, "rdp": None, "quoted": None, "why": str(problem)}
    return {
        "epsilon": _reported(spent.epsilon),
        "delta": delta,
        "pld": None if spent.pld is None else _reported(spent.pld),
        "rdp": _reported(spent.rdp),
        "quoted": "rdp" if spent.pld is None else "pld",
        "pure": _reported(times * pure_epsilon(event)) if times else 0.0,
    }


def _adversaries(privacy: Any, event: Event, figures: dict[str, Any]) -> list[dict[str, Any]]:
    named = {
        "delta": figures["delta"],
        "unit": "user",
        "adjacency": figures["adjacency"],
    }  # over all contributions of a user
    whole, times, delta = figures["run"]["epsilon"], figures["max_rounds"], figures["delta"]
    secure = bool(getattr(privacy, "secure_aggregation", False))
    known: list[tuple[str, Any, bool]] = [("recipients", whole, True)]
    if _is_local(event):
        known += [("server-local", whole, True)]
    else:
        fewer = with_present(event, event.present - 1)  # a client knows its own share
        known += [
            ("client", _reported(_epsilon(fewer, times, delta)), True),
            ("server", _reported(_epsilon(one_share(event), times, delta)), not secure),
            ("server-sums", whole, secure),
        ]
    return [*(_adversary(name, epsilon, here) | named for name, epsilon, here in known), _adversary("network", None)]


def _unprotected(about: Circumstances, *, known: bool) -> list[dict[str, Any]]:
    """Adversaries without a mechanism: epsilon is infinite, or unknown for an unknown mechanism."""
    if about.local_only:
        return [_adversary("local-only", 0.0)]
    if about.central:
        return [_adversary("centre", INFINITE)]
    epsilon = INFINITE if known else None
    server = "server-unknown" if not known else "server-values" if about.values else "server-plain"
    return [_adversary("recipients", epsilon), _adversary(server, epsilon), _adversary("network", None)]


def _adversary(name: str, epsilon: float | str | None, here: bool = True) -> dict[str, Any]:
    return {"id": name, **ADVERSARIES[name], "epsilon": epsilon, "here": here}


def _shares(event: Event, about: Circumstances, delta: float) -> dict[str, Any] | None:
    """The noise shares present, and the epsilon of the run with fewer contributors in every round."""
    if _is_local(event):
        return None
    counts = [math.floor(share * about.taking_part) for share in _FEWER]
    fewer = [_reported(_epsilon(with_present(event, there), about.max_rounds, delta)) for there in counts]
    return {
        "noise_contributors": event.noise_contributors,
        "present": event.present,
        "taking_part": about.taking_part,
        "all_or_void": "gaussian" not in event.mechanism,
        "fewer": [
            {"percent": round(100 * share), "present": there, "epsilon": epsilon}
            for share, there, epsilon in zip(_FEWER, counts, fewer, strict=True)
        ],
    }


def _visible(about: Circumstances) -> list[str]:
    """Information that noise does not hide."""
    if about.central or about.local_only:
        return []
    seen = ["who takes part, and when"]
    seen += ["the number of interactions behind a message"] if about.weighted and not about.values else []
    if about.values:
        return [*seen, "the public seed of each message, and so its perturbation of the ranker"]
    return [*seen, f"the size of messages, {about.parameters:,} numbers, equal for all"]


def _notes(privacy: Any, event: Event | None, about: Circumstances) -> list[str]:
    """How a run of the lab differs from a release."""
    if not about.lab or kind_of(privacy) == "none":
        return []
    secure = getattr(privacy, "secure_aggregation", False)
    sums = [SECURE_SUMS[secure]] if secure and not (event and _is_local(event)) else []
    return [SEEDED, *sums]


def _reported(epsilon: float | None) -> float | str | None:
    return INFINITE if epsilon is not None and math.isinf(epsilon) else epsilon


# --- sentences ------------------------------------------------------------------------------------------------------


def _sentences(card: dict[str, Any]) -> list[str]:
    """Sentences, each with its epsilon, unit and adversary."""
    seen = [_seen_by(one) for one in card["adversaries"]]
    visible = [f"Still visible: {'; '.join(card['visible'])}."] if card["visible"] else []
    quoted = [f"The mechanism describes itself: {card['description'].rstrip('.')}."] if card["description"] else []
    if "run" not in card:
        first = _NO_MECHANISM.get(card["adversaries"][0]["id"], _LEAVE if card["kind"] == "none" else _UNKNOWN)
        return [first.format(kind=card["kind"]), *quoted, *card["notes"], *seen, *visible]
    nominal = f"Nominal epsilon {_amount(card['nominal_epsilon'])}, {card['nominal']}."
    sampled = [card["amplification"]] if card["amplification"] else []
    return [nominal, *quoted, *_figures_of(card), *card["notes"], *seen, *_shares_of(card), *visible, *sampled]


_LEAVE = "No privacy mechanism: updates leave as they are."
_UNKNOWN = "No guarantee is known: the mechanism {kind} declares no event."
_NO_MECHANISM = {
    "centre": "No privacy mechanism and no federation: the central learner sees everything.",
    "local-only": "Local-only training: no client sends anything.",
}


def _amount(epsilon: float | str | None) -> str:
    """An epsilon with three digits."""
    if epsilon is None:
        return "unknown"
    if isinstance(epsilon, str):
        return epsilon
    return f"{epsilon:,.0f}" if epsilon >= 1000 else f"{epsilon:.3g}"


def _figure(one: dict[str, Any]) -> str:
    at = "" if one["epsilon"] in (INFINITE, None) else f" at delta {one['delta']:g}"
    return f"epsilon {_amount(one['epsilon'])}{at}"


def _whose(card: dict[str, Any]) -> str:
    if card["unit"] == "interaction":
        return "a user whose every interaction may be replaced by another"
    replaced = "another user's" if card["adjacency"] == "replace" else "zero"
    return f"a user whose contribution may be replaced by {replaced}"


def _figures_of(card: dict[str, Any]) -> list[str]:
    one = f"One round: {_figure(card['round'])} for {_whose(card)}"
    if card["kind"] == "fpdgd":
        twice = "2 " if card["clip"] == "delta" else ""
        one += (
            f"; the clip is in L2 and Laplace noise is calibrated in L1, which gives {twice}"
            f"sqrt({card['parameters']:,}) times the nominal epsilon"
        )
    return [f"{one}.", f"A single message, to an adversary who sees it: {_figure(card['message'])}.", _run_of(card)]


def _run_of(card: dict[str, Any]) -> str:
    run, times = card["run"], card["max_rounds"]
    part = f"{times:,} of {card['rounds']:,} rounds for the user who takes part most"
    part += f" (seed {card['seed']})" if card["seed"] is not None else ""
    part += f", {card['interactions']:,} interactions" if "interactions" in card else ""
    said = f"The whole run ({part}): {_figure(run)} for {_whose(card)}"
    if run["epsilon"] is None:
        return f"{said}: {run['why']}."
    if run["epsilon"] == INFINITE or times == 0:
        return f"{said}."
    pure = "" if run["pure"] == INFINITE else f" At delta 0 it is {_amount(run['pure'])}."
    if run["quoted"] == "rdp":
        return f"{said}, by Renyi divergences, an upper bound.{pure}"
    return f"{said}, by privacy loss distributions; Renyi divergences agree with at most {_amount(run['rdp'])}.{pure}"


def _seen_by(one: dict[str, Any]) -> str:
    here = "" if one["here"] else " (not so in this run)"
    said = f"{one['who'][0].upper()}{one['who'][1:]}{here} sees {one['sees']}"
    if one["id"] in ("network", "local-only"):
        return f"{said}."
    if "unit" not in one:
        return f"{said}: epsilon {_amount(one['epsilon'])}."
    return f"{said}: {_figure(one)} (unit {one['unit']}, adjacency {one['adjacency']}, whole run)."


def _shares_of(card: dict[str, Any]) -> list[str]:
    shares = card["shares"]
    if shares is None:
        return []
    have = f"Noise shares present: {shares['present']:,} of the {shares['noise_contributors']:,} that are needed"
    fewer = [f"{one['percent']} % present: epsilon {_amount(one['epsilon'])}" for one in shares["fewer"]]
    if shares["all_or_void"]:
        void = "Laplace noise needs all of its shares: with fewer the guarantee is void"
        return [f"{have}; {void} ({', '.join(fewer)})."]
    return [f"{have}; with fewer there is less noise ({', '.join(fewer)})."]
