"""The privacy card of a cross-silo setting, in the form of all cards: adversaries, what they see, and their epsilon.

The unit is a word: one occurrence of one term in one document is present or not (see `silo.noise`). The cost of a word
over a run depends on how often its document is asked about; a run that trains reports it as "epsilon of a word".
"""

from typing import Any

from foltr.lab.spec.setting import SiloSetting
from foltr.silo.parties import Setup

_UNIT = {"unit": "word", "adjacency": "zero-out"}
_SAID = {
    "none": "Answers carry no noise: the asker learns exact counts.",
    "paper": "One draw of noise for all cells of an answer cancels in every difference of two cells: the asker "
    "learns exact counts, and the paper's epsilon of {epsilon:g} is no guarantee.",
    "per_query": "Every answer about a document costs each of its words epsilon {epsilon:g} against the asker; "
    "answers add up, and the run reports the total.",
    "one_shot": "All answers about a document together cost each of its words epsilon {epsilon:g} in total.",
}
_OPEN = (
    "Shared without noise: lengths of documents, document and collection frequencies.",
    "With five real rows or more an owner can identify the term that it is asked for; the server learns no term.",
    "Key and noise of a lab run follow from its seed: it is a simulation, not a release.",
)
_MEASURED = "A measurement on public texts: nothing private is released."


def card_of(setting: SiloSetting) -> dict[str, Any]:
    """Plain data, as `privacy.card` has it."""
    if not isinstance(setting.silo, Setup):
        return _card("silo", None, [], [_MEASURED])
    setup = setting.silo
    epsilon = setup.epsilon if setup.noise == "one_shot" else "infinite" if setup.noise in ("none", "paper") else None
    seen = [
        {"id": "recipients", "who": "the asker", "sees": "cells of sketches, with the owner's noise", "here": True,
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
