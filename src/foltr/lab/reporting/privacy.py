"""The privacy cards of a run as plain data: figures in a row, sentences below.

Settings whose cards are equal share one. A manifest of an older version has a statement in the place of a card.
"""

import json
from typing import Any

from foltr.lab.records import SettingRecord
from foltr.lab.reporting.labels import NOTHING, setting_name

COLUMNS = ("nominal ε", "one round", "whole run, a node", "curious server", "malicious server", "noise shares")
_NAMED = 4  # settings that are listed by name


def privacy_cards(settings: list[SettingRecord]) -> list[dict[str, Any]]:
    """Each card once: what it is of, its figures as `COLUMNS`, its sentences."""
    found: dict[str, tuple[dict[str, Any], list[str]]] = {}
    for setting in settings:
        if card := setting.privacy:
            key = json.dumps(card, sort_keys=True)
            found.setdefault(key, (card, []))[1].append(setting_name(setting))
    return [
        {
            "kind": KINDS.get(str(card.get("kind")), str(card.get("kind"))),
            "settings": _settings(names, len(settings)),
            "figures": _figures(card),
            "sentences": card.get("sentences") or [str(card.get("statement") or "nothing is recorded")],
        }
        for card, names in found.values()
    ]


def _settings(names: list[str], among: int) -> str:
    if len(names) == among:
        return "all settings" if among > 1 else names[0]
    return "; ".join(names) if len(names) <= _NAMED else f"{names[0]} and {len(names) - 1} more"


def _figures(card: dict[str, Any]) -> list[str]:
    nominal = _epsilon(card.get("nominal_epsilon"))
    seen = {one["id"]: one.get("epsilon") for one in card.get("adversaries") or [] if one.get("here")}
    server = next((_epsilon(epsilon) for who, epsilon in seen.items() if who.startswith(("server", "centre"))), NOTHING)
    if "run" not in card:  # without a mechanism a server learns as much whether it lies or not
        everywhere = _epsilon(next(iter(seen.values()), None))
        return [nominal, everywhere, everywhere, server, server, NOTHING]
    malicious = next((_epsilon(epsilon) for who, epsilon in seen.items() if who.startswith("malicious")), NOTHING)
    return [nominal, _at(card["round"]), _at(card["run"]), server, malicious, _shares(card["shares"])]


def _at(figure: dict[str, Any]) -> str:
    """0.999 (δ 1e-05); a pure figure and an infinite one have no delta."""
    epsilon = _epsilon(figure["epsilon"])
    return epsilon if epsilon in ("∞", NOTHING) or not figure["delta"] else f"{epsilon} (δ {figure['delta']:g})"


def _shares(shares: dict[str, Any] | None) -> str:
    return "whole" if shares is None else f"{shares['present']:,} of {shares['noise_contributors']:,}"


def _epsilon(value: float | str | None) -> str:
    if value is None:
        return NOTHING
    if isinstance(value, str):
        return "∞"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


KINDS = {
    "none": "No privacy mechanism",
    "fpdgd": "FPDGD's noise",
    "randomized-response": "Randomised response of FOLtR-ES",
    "gaussian": "Clipped updates, Gaussian noise",
    "laplace": "Clipped updates, Laplace noise",
    "silo": "No message is sent",
    "people": "No message is sent",
    "people-together": "Clipped differences of weights, without noise",
    "silo-none": "Sketches without noise",
    "silo-paper": "Sketches with one noise draw an answer",
    "silo-per_query": "Sketches with noise in every cell of an answer",  # of older runs
    "silo-one_shot": "Answers with noise added once",
}
