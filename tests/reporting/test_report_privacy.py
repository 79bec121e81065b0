"""Privacy cards on the page and in the terminal: each once, with the settings it is of."""

import io

import pytest
from rich.console import Console

from foltr.lab.records import SettingRecord, read
from foltr.lab.reporting.page import render, section
from foltr.lab.reporting.privacy import COLUMNS, privacy_cards
from foltr.lab.reporting.terminal import terminal_cards

CARD = {
    "kind": "fpdgd",
    "nominal_epsilon": 1.2,
    "round": {"epsilon": 16.2776, "delta": 0.0},
    "run": {"epsilon": 2906.4, "delta": 1e-5},
    "adversaries": [
        {"id": "recipients", "epsilon": 2906.4, "here": True},
        {"id": "server", "epsilon": "infinite", "here": True},
        {"id": "server-sums", "epsilon": 2906.4, "here": False},
        {"id": "malicious-single", "epsilon": "infinite", "here": True},
    ],
    "shares": {"noise_contributors": 1000, "present": 1000},
    "sentences": ["Nominal epsilon 1.2.", "One round: epsilon 16.3 <at> delta 0."],
}
NONE = {
    "kind": "none",
    "nominal_epsilon": None,
    "adversaries": [{"id": i, "epsilon": "infinite", "here": True} for i in ("recipients", "server-plain")],
    "shares": None,
    "sentences": ["No privacy mechanism: updates leave as they are."],
}
OLD = {"kind": "fpdgd", "nominal_epsilon": None, "statement": "infinite, as the paper states it"}


def settings(*cards):
    return [SettingRecord(i, {"users.clicks": f"user {i}"}, privacy=card) for i, card in enumerate(cards)]


@pytest.mark.parametrize(
    ("card", "figures"),
    [
        (CARD, ["1.2", "16.3", "2,906 (δ 1e-05)", "∞", "∞", "1,000 of 1,000"]),
        (CARD | {"shares": None}, ["1.2", "16.3", "2,906 (δ 1e-05)", "∞", "∞", "whole"]),
        (CARD | {"run": {"epsilon": None, "delta": 1e-5}}, ["1.2", "16.3", "–", "∞", "∞", "1,000 of 1,000"]),
        (CARD | {"run": {"epsilon": "infinite", "delta": 1e-5}}, ["1.2", "16.3", "∞", "∞", "∞", "1,000 of 1,000"]),
        (NONE, ["–", "∞", "∞", "∞", "∞", "–"]),
        (OLD, ["–", "–", "–", "–", "–", "–"]),
    ],
)
def test_figures_in_a_row(card, figures):
    (entry,) = privacy_cards(settings(card))
    assert entry["figures"] == figures
    assert len(figures) == len(COLUMNS)


def test_equal_cards_are_one():
    entries = privacy_cards(settings(CARD, NONE, CARD))
    assert [entry["settings"] for entry in entries] == ["user 0; user 2", "user 1"]
    assert [entry["settings"] for entry in privacy_cards(settings(CARD, CARD))] == ["all settings"]
    assert privacy_cards(settings(*[NONE] * 9, CARD))[0]["settings"] == "user 0 and 8 more"


def test_a_statement_of_an_older_run_is_shown():
    (entry,) = privacy_cards(settings(OLD))
    assert entry["sentences"] == ["infinite, as the paper states it"]
    assert privacy_cards([SettingRecord(0)]) == []


def test_the_page_has_the_figures_and_the_sentences(make_run, parts):
    card = [parts.setting(0, {}, privacy=CARD)]
    page = render([section(read(make_run(settings=card, rows=parts.rows_of(card))), 0)])
    for part in ("FPDGD&#39;s noise", "2,906 (δ 1e-05)", "1,000 of 1,000", "epsilon 16.3 &lt;at&gt; delta 0."):
        assert part in page


def test_the_terminal_has_them_in_eighty_columns():
    out = io.StringIO()
    Console(file=out, width=80).print(terminal_cards(settings(CARD, NONE)))
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert any("2,906" in line for line in lines)
    assert "- One round: epsilon 16.3 <at> delta 0." in [line.rstrip() for line in lines]
