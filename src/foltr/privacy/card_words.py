"""The privacy card in plain words: one thing a sentence, with its figure, its unit and whom it holds against."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from foltr.privacy.card import Circumstances

INFINITE = "infinite"

NOMINAL_RESPONSE = (
    "as the paper states it: local, for the outcome of ONE interaction; a message holds several and a run many "
    "messages, which the figure does not compose"
)
AMPLIFICATION = (
    "Nothing is claimed for the sampling of clients: the server picks them and knows who took part, and so does "
    "whoever sees them talk."
)
ADVERSARIES = {
    "recipients": {"who": "whoever gets the ranker", "sees": "the ranker after every round"},
    "client": {"who": "another client", "sees": "the same, and knows its own share of the noise"},
    "server": {
        "who": "the server without secure aggregation",
        "sees": "every single message, with one share of the noise",
    },
    "server-sums": {"who": "the server with secure aggregation", "sees": "the sum of a round's messages only"},
    "server-local": {
        "who": "the server with or without secure aggregation",
        "sees": "messages that carry all of their noise",
    },
    "server-plain": {"who": "the server", "sees": "every single message as it is, from which clicks can be read"},
    "server-values": {"who": "the server", "sees": "how much each user liked which change of the ranker"},
    "centre": {"who": "the one place that learns", "sees": "every search and every click"},
    "alone": {"who": "anybody else", "sees": "nothing: no update leaves its owner"},
    "network": {
        "who": "who watches the network",
        "sees": "who talks to the server and when; contents only where connections are not encrypted, and then what "
        "the server sees without secure aggregation",
    },
}


def nominal_fpdgd(shares: int) -> str:
    return (
        f"as the paper states it: per round and per coordinate, for the sum of all {shares:,} noise shares only, "
        f"nothing composed over rounds; not a guarantee for a user"
    )


def nominal_honest(delta: float) -> str:
    return f"as the spec asks: of one user over the whole run, at delta {delta:g}"


def visible(about: "Circumstances") -> list[str]:
    """What no noise hides."""
    if about.central or about.alone:
        return []
    seen = ["who takes part, and when"]
    seen += ["how many interactions a message stands for"] if about.weighted and not about.values else []
    if about.values:
        return [*seen, "the public seed of each message, so which change of the ranker its sender tried"]
    return [*seen, f"the size of messages, {about.parameters:,} numbers, alike for all"]


def sentences(card: dict[str, Any]) -> list[str]:
    """The whole card."""
    if "run" not in card:
        return [_NO_MECHANISM.get(card["adversaries"][0]["id"], _LEAVE), *_seen_by(card), *_visible(card)]
    said = [f"Nominal epsilon {amount(card['nominal_epsilon'])}, {card['nominal']}.", *_once(card), _run(card)]
    sampled = [card["amplification"]] if card["amplification"] else []
    return [*said, *_seen_by(card), *_shares(card), *_visible(card), *sampled]


_LEAVE = "No privacy mechanism: updates leave as they are."
_NO_MECHANISM = {
    "centre": "No privacy mechanism and no federation: one place sees everything.",
    "alone": "Nobody sends anything: everybody learns alone.",
}


def amount(epsilon: float | str | None) -> str:
    """An epsilon with three digits."""
    if epsilon is None:
        return "unknown"
    if isinstance(epsilon, str):
        return epsilon
    return f"{epsilon:,.0f}" if epsilon >= 1000 else f"{epsilon:.3g}"


def _figure(one: dict[str, Any]) -> str:
    at = "" if one["epsilon"] in (INFINITE, None) else f" at delta {one['delta']:g}"
    return f"epsilon {amount(one['epsilon'])}{at}"


def _of(card: dict[str, Any]) -> str:
    if card["unit"] == "interaction":
        return "a user whose every interaction may be another"
    return "a user who may be another" if card["adjacency"] == "replace" else "a user who may be there or not"


def _once(card: dict[str, Any]) -> list[str]:
    one = f"One round: {_figure(card['round'])} for {_of(card)}"
    if card["kind"] == "fpdgd":
        twice = "2 " if card["clip"] == "delta" else ""
        one += (
            f"; what is clipped in L2 differs by more in L1, for which Laplace noise is made: {twice}"
            f"sqrt({card['parameters']:,}) times the nominal figure"
        )
    return [f"{one}.", f"One message by itself, to whoever sees it: {_figure(card['message'])}."]


def _run(card: dict[str, Any]) -> str:
    run, most = card["run"], card["most_rounds"]
    part = f"{most:,} of {card['rounds']:,} rounds for the user who takes part most"
    part += f" (seed {card['seed']})" if card["seed"] is not None else ""
    if "interactions" in card:
        part += f", {card['interactions']:,} interactions"
    said = f"The whole run ({part}): {_figure(run)} for {_of(card)}"
    if run["epsilon"] is None:
        return f"{said}: {run['why']}."
    if run["epsilon"] == INFINITE or most == 0:
        return f"{said}."
    pure = "" if run["pure"] == INFINITE else f" At delta 0 it is {amount(run['pure'])}."
    if run["quoted"] == "rdp":
        return f"{said}, by Renyi divergences, an upper bound.{pure}"
    return f"{said}, by privacy loss distributions; Renyi divergences agree with at most {amount(run['rdp'])}.{pure}"


def _seen_by(card: dict[str, Any]) -> list[str]:
    return [_adversary(one) for one in card["adversaries"]]


def _adversary(one: dict[str, Any]) -> str:
    here = "" if one["here"] else " (not so in this run)"
    said = f"{one['who'][0].upper()}{one['who'][1:]}{here} sees {one['sees']}"
    if one["id"] in ("network", "alone"):
        return f"{said}."
    if "unit" not in one:
        return f"{said}: epsilon {amount(one['epsilon'])}."
    return f"{said}: {_figure(one)} ({one['adjacency']} one {one['unit']}, whole run)."


def _shares(card: dict[str, Any]) -> list[str]:
    shares = card["shares"]
    if shares is None:
        return []
    have = f"Noise of {shares['present']:,} holders is there, and {shares['noise_contributors']:,} are needed"
    fewer = [f"{one['percent']} % present: epsilon {amount(one['epsilon'])}" for one in shares["fewer"]]
    if shares["all_or_void"]:
        void = "shares of Laplace noise protect all together or not as stated: with fewer the guarantee is void"
        return [f"{have}; {void} ({', '.join(fewer)})."]
    return [f"{have}; with fewer there is less noise ({', '.join(fewer)})."]


def _visible(card: dict[str, Any]) -> list[str]:
    return [f"What stays visible: {'; '.join(card['visible'])}."] if card["visible"] else []
