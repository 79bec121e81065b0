"""The privacy card of a cross-silo setting, in the form of all cards: who sees what, and what that is worth.

The unit is a word: one occurrence of one term in one document is there or not (see `silo.noise`). What a word costs
over a run depends on how often its document is asked about; a run that trains reports it as "epsilon of a word".
"""

from typing import Any

from foltr.lab.spec.setting import SiloSetting
from foltr.silo.parties import Setup

_UNIT = {"unit": "word", "adjacency": "zero-out"}
_SAID = {
    "none": "Cells of sketches leave as they are: whoever asks learns counts exactly, without any bound.",
    "paper": "One draw of noise for all cells of an answer is gone from every difference of two cells: counts are "
    "exact to whoever asks, and the paper's epsilon of {epsilon:g} protects nobody.",
    "cells": "Every answer about a document costs each of its words epsilon {epsilon:g} against whoever asked; the "
    "answers add up, and the run says to how much.",
    "once": "All answers about a document together cost each of its words epsilon {epsilon:g}, for ever.",
}
_OPEN = (
    "Told in the open, without noise: lengths of documents, document and collection frequencies.",
    "With five true rows or more an owner can name the term that it is asked for; the server learns no term.",
)
_MEASURED = "A measurement on texts that are public: nothing private is there to leave."


def card_of(made: SiloSetting) -> dict[str, Any]:
    """Plain data, as `privacy.card` has it."""
    if not isinstance(made.silo, Setup):
        return _card("silo", None, [], [_MEASURED])
    setup = made.silo
    epsilon = setup.epsilon if setup.noise == "once" else "infinite" if setup.noise in ("none", "paper") else None
    seen = [
        {"id": "recipients", "who": "whoever asks", "sees": "cells of sketches, with the owner's noise", "here": True,
         "epsilon": epsilon, **_UNIT},
        {"id": "server", "who": "the server", "sees": "hashed columns and cells, no key", "here": True,
         "epsilon": epsilon, **_UNIT},
    ]  # fmt: skip
    nominal = None if setup.noise == "none" else setup.epsilon
    return _card(f"silo-{setup.noise}", nominal, seen, [_SAID[setup.noise].format(epsilon=setup.epsilon), *_OPEN])


def _card(kind: str, nominal: float | None, seen: list[dict[str, Any]], sentences: list[str]) -> dict[str, Any]:
    words = "none stated" if nominal is None else "of one answer, for one word"
    return {
        "kind": kind, "nominal_epsilon": nominal, "nominal": words, "adversaries": seen, "shares": None,
        "visible": [], "amplification": None, "sentences": sentences,
    }  # fmt: skip
