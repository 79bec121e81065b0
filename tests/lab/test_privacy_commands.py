"""`foltr privacy`: cards, plans and audits for people and for programs."""

import math

import pytest
from laboratory import read_json, strict_json, the_run

from foltr.lab.runs import planner


@pytest.fixture
def private(command, tiny, tmp_path):
    """A run with four kinds of privacy."""
    kinds = '[{kind="none"}, {kind="fpdgd"}, {kind="gaussian", epsilon=4.0}, {kind="gaussian", trust="local"}]'
    tiny.write_text(
        'data = { name = "synthetic-mq2007@60", folds = "1" }\n'
        "federation = { clients = 8, interactions = 4, rounds = 3 }\n"
        f"sweep = {{ privacy = {kinds} }}\n"
    )
    answer = command("run", tiny, "--jobs", 1, "--json")
    assert answer.code == 0, answer.err
    return the_run(tmp_path / "runs")


def test_the_card_of_a_run_for_people(private, command):
    answer = command("privacy", "card", private)
    assert (answer.code, answer.err) == (0, "")
    assert max(map(len, answer.out.splitlines())) <= 80
    for part in ("No privacy mechanism", "FPDGD's noise", "Nominal epsilon 1.2", "Still visible"):
        assert part in answer.out


def test_the_card_of_a_run_for_programs_is_the_one_it_was_saved_with(private, command):
    answer = command("privacy", "card", private, "--json")
    assert (answer.code, answer.err) == (0, "")
    reported = strict_json(answer.out)
    assert reported["cards"] == read_json(private / "privacy.json")


def test_the_card_at_another_delta(private, command):
    usual, strict = (
        strict_json(command("privacy", "card", private, "--json", *more).out)["cards"][2]
        for more in ((), ("--delta", "1e-9"))
    )
    assert (usual["delta"], strict["delta"]) == (1e-5, 1e-9)
    assert strict["run"]["epsilon"] > usual["run"]["epsilon"]


@pytest.mark.parametrize("what", ["card", "audit"])
def test_a_folder_that_is_no_run_is_refused(what, refused, tmp_path):
    assert "not a finished run" in refused("privacy", what, tmp_path)


@pytest.mark.parametrize("delta", ["0", "1", "-3"])
def test_a_delta_out_of_range_is_refused(delta, refused, finished):
    assert "between 0 and 1" in refused("privacy", "card", the_run(finished), "--delta", delta)


def test_the_report_has_the_card(private, command):
    assert command("report", private).code == 0
    page = (private / "report.html").read_text(encoding="utf-8")
    assert "whole run, a node" in page
    assert "A single message, to an adversary who sees it: epsilon infinite." in page


def test_a_plan_for_people_and_for_programs(command, monkeypatch):
    monkeypatch.setattr(planner, "MAX_SEARCHES", 2000)
    monkeypatch.setattr(planner, "SELECTION_SEEDS", (1, 2))
    monkeypatch.setattr(planner, "EVALUATION_SEEDS", (3, 4))
    target = ("--clients", 300, "--epsilon", 4, "--weeks", 1, "--data", "synthetic-mq2007@60")
    answer = command("privacy", "plan", *target)
    assert (answer.code, answer.err) == (0, "")
    assert max(map(len, answer.out.splitlines())) <= 80
    assert "300 clients" in " ".join(answer.out.split())
    plan = strict_json(command("privacy", "plan", *target, "--json").out)
    assert {"target", "candidates", "recommended", "references", "verdict", "advice"} <= set(plan)


def test_a_plan_out_of_range_is_refused_without_a_traceback(refused):
    assert "up to 1,000" in refused("privacy", "plan", "--clients", 100, "--epsilon", 1e9, "--weeks", 1)
    assert "at least three clients" in refused("privacy", "plan", "--clients", 2, "--epsilon", 1, "--weeks", 1)


def test_an_audit_prints_its_tables_or_one_object(command, finished, monkeypatch):
    """The attacks themselves have tests of their own; here only what becomes of their findings."""
    one = {
        "label": {"users.clicks": "perfect"},
        "note": "FOLtR-ES sends no rankers",
        "guessing": [],
        "epsilon": [],
        "auc": math.nan,
    }
    monkeypatch.setattr(
        "foltr.lab.audit.privacy_audit.audit_run", lambda _: {"settings": [{**one, "data": {}, "fold": 1, "seed": 1}]}
    )
    answer = command("privacy", "audit", the_run(finished))
    assert (answer.code, answer.err) == (0, "")
    assert answer.out == "perfect: FOLtR-ES sends no rankers\n"
    reported = strict_json(command("privacy", "audit", the_run(finished), "--json").out)
    assert reported["settings"][0]["note"] == "FOLtR-ES sends no rankers"
    assert reported["settings"][0]["auc"] is None
