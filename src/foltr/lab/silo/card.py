"""The privacy card of a cross-silo setting, in the form of all cards: adversaries, what they see, and their epsilon.

The unit is a word: one occurrence of one term in one document is taken away (zero-out adjacency). Answers and word
statistics are two releases about the same words, so their epsilons add up: with exact statistics the sum is infinite,
whatever noise the answers carry. A run that trains reports both parts and the sum.

Beside epsilon the card says what answers without noise show, measured by `foltr reproduce silo/disclosure`.
"""

import math
from typing import Any

from foltr.lab.spec.setting import SiloSetting
from foltr.silo.parties import Setup

_UNIT = {"unit": "word", "adjacency": "zero-out"}
_AGAINST = "against a member that asks, for one occurrence of one word in one document (zero-out adjacency)"
_ANSWERS = {
    "none": "Answers carry no noise: epsilon infinite {against}.",
    "paper": "One draw of noise for all cells of an answer cancels in every difference of two cells: the asker learns "
    "exact counts. The paper's epsilon of {epsilon:g} is no guarantee; it is infinite {against}.",
    "one_shot": "Noise is drawn once for every version of a document and stored: all answers together cost epsilon "
    "{epsilon:g} {against}; an edited document is a new release and costs it again.",
}
_STATISTICS = {
    "exact": "Word statistics and lengths of documents are released without noise: epsilon infinite {against}. A "
    "member tests a dictionary under the group's key and learns which of its words a party has.",
    "noisy": "Word statistics and lengths of documents are released once, with noise: epsilon {epsilon:g} {against}.",
}
_LISTS = {
    "index": "Answers show the list of the asked word and nothing of another word. With the default allowance (K = "
    "150, measured on four corpora of 3,633 to 11,429 documents) one member gets 100 words in all, 1 to 6 % of an "
    "owner's (word, document, count) entries with words of queries and at most 14 % with others; two, five or all "
    "members that collude get 200 together, 2 to 10 % and at most 27 %.",
    "sampled": "Answers show words that were not asked: on nfcorpus 20 questions name 84 % of an owner's words and "
    "57 % of its (word, document, count) entries. Parties cannot deploy such lists; they are a reproduction.",
    "sound": "Answers show words that were not asked: on nfcorpus 20 questions show 37 % of the documents of others.",
    "paper": "Answers show words that were not asked: on nfcorpus 20 questions show 23 % of the documents of others.",
}
_ALLOWANCE = (
    "The allowance is off in this run; the metric 'entries read / allowance' says how much more a party reads of "
    "another than an owner answers by default."
)
_OPEN = (
    "No epsilon is stated for a whole document (unit document: none), nor for what a member asks for: an owner "
    "identifies the term, with sketches from five real rows on.",
    "Messages are sealed and signed: the server alone sees who asks whom, when and how much, no column and no cell "
    "(computational, no epsilon). Together with one member it sees what that member sees.",
    "A run of the lab is a simulation: key and noise follow from its seed and anybody who knows it can subtract the "
    "noise. The epsilons are those of a deployed run of this kind; the run itself is no release.",
)
_MEASURED = "A measurement on public texts: nothing private is released."


def card_of(setting: SiloSetting) -> dict[str, Any]:
    """Plain data, as `privacy.card` has it."""
    if not isinstance(setting.silo, Setup):
        return _card("silo", None, [], [_MEASURED])
    setup = setting.silo
    answers = setup.epsilon if setup.noise == "one_shot" else math.inf
    statistics = setup.statistics_epsilon if setup.statistics == "noisy" else math.inf
    total = _reported(answers + statistics)
    seen: list[dict[str, Any]] = [
        {"id": "recipients", "who": "a member that asks", "sees": "lists or cells of sketches, tables of statistics",
         "here": True, "epsilon": total, "epsilon_answers": _reported(answers),
         "epsilon_statistics": _reported(statistics), **_UNIT},
        {"id": "server", "who": "the server alone", "sees": "sealed messages: sender, receiver, time, padded size",
         "here": True, "epsilon": None, **_UNIT},
        {"id": "server-member", "who": "the server together with a member", "sees": "what that member sees",
         "here": True, "epsilon": total, **_UNIT},
    ]  # fmt: skip
    nominal = None if setup.noise == "none" else setup.epsilon
    sentences = [
        _ANSWERS[setup.noise].format(epsilon=setup.epsilon, against=_AGAINST),
        _STATISTICS[setup.statistics].format(epsilon=setup.statistics_epsilon, against=_AGAINST),
        f"Answers and statistics together: epsilon {_words(total)} {_AGAINST}.",
        _LISTS[setup.lists],
        _ALLOWANCE,
        *_OPEN,
    ]
    return _card(f"silo-{setup.noise}", nominal, seen, sentences)


def _reported(epsilon: float) -> float | str:
    return epsilon if math.isfinite(epsilon) else "infinite"


def _words(epsilon: float | str) -> str:
    return epsilon if isinstance(epsilon, str) else f"{epsilon:g}"


def _card(kind: str, nominal: float | None, seen: list[dict[str, Any]], sentences: list[str]) -> dict[str, Any]:
    words = "none stated" if nominal is None else "of the answers alone, for one word"
    return {
        "kind": kind, "nominal_epsilon": nominal, "nominal": words, "adversaries": seen, "shares": None,
        "visible": [], "amplification": None, "sentences": sentences,
    }  # fmt: skip
