"""The privacy card of a setting: nominal and composed epsilon, what each adversary sees, and who contributes noise.

Plain JSON data: an infinite epsilon is the word "infinite", an unknown one is null. Sentences for readers are part of
the card. Every epsilon states its adversary, its unit, its adjacency and its delta.

The unit is a node: a person with two nodes has another figure, which the card states. The adjacency of user-level DP is
zero-out: the user's update is replaced by zero and the device still adds its noise. Where literal removal, in which the
noise share goes too, costs over 5 % more, the card states that figure as well.

A user takes part in at most `max_rounds` rounds; the epsilon of the run is the composition of those. No amplification
by sampling is claimed. For a mechanism that the card does not know (a plug-in) it reports the epsilon of the event that
the mechanism declares; without an event it says that no guarantee is known. The text of `describe()` is quoted.

Differs from the paper: S0 and S1 state the epsilon of one round and coordinate, or of one interaction; the card calls
it nominal and states beside it the epsilon of a user over the run.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from foltr.errors import PrivacyError
from foltr.privacy import accounting
from foltr.privacy.adversaries import (
    INFINITE,
    Circumstances,
    composed_epsilon,
    is_local,
    noise_shares,
    of_release,
    reported,
    without_mechanism,
)
from foltr.privacy.events import Event, one_share, pure_epsilon

DELTA = 1e-5
_DIFFERS = 1.05  # removal is stated where it costs this many times the epsilon of zero-out

AMPLIFICATION = (
    "No amplification by sampling is claimed: the server samples the clients and knows who took part, and so does "
    "anybody who observes the network."
)
SEEDED = (
    "Simulated noise: this is a run of the lab, its noise follows from the seed in its manifest, and anybody who knows "
    "the seed can subtract it. So what this run puts out is no release, and no epsilon holds for it. The epsilons are "
    "what a deployed run of this kind would be worth, with noise from the operating system."
)
_SMALLEST_SUM = (
    "In a deployment clients open no sum of fewer than {smallest:,} messages, of which at most {colluders:,} are of "
    "colluders."
)
SECURE_SUMS = {
    True: (
        'Secure aggregation with one server (secagg.mode = "one-server") is simulated: the lab adds plain updates as '
        f"if the protocol had run. {_SMALLEST_SUM}"
    ),
    "execute": (
        'The protocol of secure aggregation with one server (secagg.mode = "one-server") ran, with server and clients '
        f"in one process. {_SMALLEST_SUM}"
    ),
}
_TWO_SERVERS = (
    "The figures need servers that do not collude; they depend on no dropout, colluding client or registration, and "
    "removal equals zero-out."
)
TWO_SERVERS = {
    True: (
        'Secure aggregation with two servers (secagg.mode = "two-servers") is simulated: the lab adds plain updates '
        f"and the noise of both servers, each all of it. {_TWO_SERVERS}"
    ),
    "execute": (
        'The protocol of secure aggregation with two servers (secagg.mode = "two-servers") ran, with servers and '
        f"clients in one process; the noise of both servers, each all of it, was added by the lab. {_TWO_SERVERS}"
    ),
}


def card(privacy: Any, event: Event | None, about: Circumstances, *, delta: float | None = None) -> dict[str, Any]:
    """The card of a mechanism; `event`: its release, None without one or where none is declared."""
    kind = kind_of(privacy)
    delta = (
        delta if delta is not None else float(getattr(privacy, "delta", 0.0)) or DELTA
    )  # RDP and PLD need a positive delta
    found: dict[str, Any] = {"kind": kind, **_nominal(kind, privacy, event), "description": _description(privacy)}
    if event is None:
        found |= {"adversaries": without_mechanism(about, known=kind == "none"), "shares": None}
    else:
        found |= _figures(event, about, delta)
        if event.noise_by == "servers":  # both halves of a message together carry no noise
            found["message"] = {"epsilon": INFINITE, "delta": delta}
        if kind == "fpdgd":
            found |= {"clip": privacy.clip, "parameters": event.parameters}
        found["adversaries"] = of_release(privacy, event, about, delta, found["run"]["epsilon"])
        found |= {"shares": noise_shares(event, about, delta), **_other_units(event, about, found)}
    found |= {"visible": _visible(about), "notes": _notes(privacy, event, about), "simulated": about.lab}
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
        return {"nominal_epsilon": reported(epsilon), "nominal": words}
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
        "message": of_round if is_local(event) else _one_release(one_share(event), 1, delta),
        "round": of_round,
        "run": _run(event, each * about.max_rounds, delta),
    }
    return figures | ({"interactions": each * about.max_rounds} if event.unit == "interaction" else {})


def _one_release(event: Event, times: int, delta: float) -> dict[str, Any]:
    """Pure epsilon where it exists, else at delta."""
    if "gaussian" in event.mechanism:
        return {"epsilon": reported(composed_epsilon(event, times, delta)), "delta": delta}
    return {"epsilon": reported(times * pure_epsilon(event)), "delta": 0.0}


def _run(event: Event, times: int, delta: float) -> dict[str, Any]:
    """By both accounting methods, and which of them is quoted."""
    try:
        spent = accounting.epsilon({event: times}, delta)
    except PrivacyError as problem:
        return {"epsilon": None, "delta": delta, "pld": None, "rdp": None, "quoted": None, "why": str(problem)}
    return {
        "epsilon": reported(spent.epsilon),
        "delta": delta,
        "pld": None if spent.pld is None else reported(spent.pld),
        "rdp": reported(spent.rdp),
        "quoted": "rdp" if spent.pld is None else "pld",
        "pure": reported(times * pure_epsilon(event)) if times else 0.0,
    }


def _other_units(event: Event, about: Circumstances, figures: dict[str, Any]) -> dict[str, Any]:
    """Of user-level DP: the epsilon of a person with two nodes, and of literal removal where it differs."""
    if event.unit != "user" or event.adjacency != "zero-out" or not about.max_rounds:
        return {}
    delta, times, zeroed = figures["delta"], about.max_rounds, figures["run"]["epsilon"]
    twice = composed_epsilon(msgspec.structs.replace(event, bound=2 * event.bound), times, delta)
    found: dict[str, Any] = {"two_nodes": reported(twice), "removal": None}
    shared = not is_local(event) and event.noise_by == "clients"
    if shared and "gaussian" in event.mechanism and isinstance(zeroed, float):
        removed = accounting.removal_epsilon(event, times, delta)
        found["removal"] = reported(removed) if removed > _DIFFERS * zeroed else None
    return found


def _visible(about: Circumstances) -> list[str]:
    """Information that noise does not hide."""
    if about.central or about.local_only:
        return []
    seen = ["who takes part, and when"]
    if about.shared_queries:
        seen.append(
            f"{100 * about.shared_queries:g} % of the training queries with their documents and labels, which data "
            f"sharing gives to the server and to every client without noise"
        )
    seen += ["the number of interactions behind a message"] if about.weighted and not about.values else []
    if about.values:
        return [*seen, "the public seed of each message, and so its perturbation of the ranker"]
    return [*seen, f"the size of messages, {about.parameters:,} numbers, equal for all"]


def _notes(privacy: Any, event: Event | None, about: Circumstances) -> list[str]:
    """Differences between a run of the lab and a release."""
    if not about.lab or kind_of(privacy) == "none":
        return []
    secure = getattr(privacy, "secure_aggregation", False)
    if event and event.noise_by == "servers":
        return [SEEDED, TWO_SERVERS[secure or True]]
    if not secure or (event and is_local(event)):
        return [SEEDED]
    return [SEEDED, SECURE_SUMS[secure].format(
        smallest=about.taking_part - about.dropped, colluders=about.colluders
    )]  # fmt: skip


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
    figures = [*_figures_of(card), *_other_units_of(card)]
    return [nominal, *quoted, *figures, *card["notes"], *seen, *_shares_of(card), *visible, *sampled]


_UNITS = {"user": "one node", "interaction": "one interaction", "word": "one word"}
_LEAVE = "No privacy mechanism: updates leave as they are."
_UNKNOWN = "No guarantee is known: the mechanism {kind} declares no event."
_NO_MECHANISM = {
    "centre": "No privacy mechanism and no federation: the central learner sees everything.",
    "local-only": "Local-only training: no client sends an update.",
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
    if card["adjacency"] == "replace":
        return "a user whose contribution may be replaced by another user's"
    return "a user whose update may be replaced by zero, while the device still adds its noise (zero-out)"


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


def _other_units_of(card: dict[str, Any]) -> list[str]:
    if "two_nodes" not in card:
        return []
    twice = _figure({"epsilon": card["two_nodes"], "delta": card["delta"]})
    said = [f"The unit is a node: a person with two nodes in the federation has {twice} over the whole run."]
    if card["removal"] is not None:
        removed = _figure({"epsilon": card["removal"], "delta": card["delta"]})
        said.append(f"Literal removal, where the node's share of the noise goes with its update: {removed}.")
    return said


def _seen_by(one: dict[str, Any]) -> str:
    here = "" if one["here"] else " (not so in this run)"
    said = f"{one['who'][0].upper()}{one['who'][1:]}{here} sees {one['sees']}"
    if one["id"] in ("network", "local-only"):
        return f"{said}."
    if "unit" not in one:
        return f"{said}: epsilon {_amount(one['epsilon'])}."
    of_round = f"; one round {_amount(one['round'])}" if one["epsilon"] not in (INFINITE, None) else ""
    return f"{said}: {_figure(one)} (unit {_UNITS[one['unit']]}, adjacency {one['adjacency']}, whole run{of_round})."


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
