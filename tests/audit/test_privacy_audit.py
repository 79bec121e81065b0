"""The audit of a run: plain data with everything beside chance, and tables for a narrow terminal."""

import io
import json
import math

import numpy as np
import polars as pl
import pytest
from rich.console import Console

from foltr.lab.audit.click_guessing import GUESSES
from foltr.lab.audit.epsilon import epsilon_bounds
from foltr.lab.audit.privacy_audit import audit, audit_run, audit_tables
from foltr.lab.spec.setting import resolved
from foltr.rng import stream

FEW = {"messages": 40, "trials": 2000}


@pytest.fixture
def ranker(fold):
    return 0.1 * stream(1, purpose="start").normal(fold.train.features.shape[1])


def finished(folder, setting, ranker):
    """A run's folder with one setting and one ranker."""
    data = {"name": "synthetic-mq2007", "note": "synthetic"}
    one = {"index": 0, "label": {"users.clicks": "informational"}, "resolved": resolved(setting), "data": data}
    (folder / "manifest.json").write_text(json.dumps({"settings": [one]}))
    columns = {"setting": [0], "fold": [1], "seed": [1], "round": [1], "metric": ["offline_ndcg@10"], "value": [0.5]}
    pl.DataFrame(columns).write_parquet(folder / "rows.parquet")
    np.savez(folder / "ranker.npz", setting_0=ranker[None], setting_0_fold_seed=np.array([[1, 7]]))
    return folder


def test_an_audit_has_messages_of_more_searches_and_sums_of_more_clients(make_setting, fold, ranker):
    found = audit(make_setting(), fold, ranker, 1, **FEW)
    assert [(row["searches"], row["clients"]) for row in found["guessing"]] == [(1, 1), (2, 1), (4, 1), (8, 1), (1, 10)]
    assert all(set(row["attacks"]) == set(GUESSES) for row in found["guessing"])
    assert all(0 < row["random_precision"] < 1 for row in found["guessing"])
    assert [row["clients"] for row in found["membership"]] == [10]  # 20 clients are too few for sums of 100
    assert found["secure_aggregation"] is False


def test_the_bound_for_fpdgd_lies_between_the_nominal_figure_and_the_ledger(make_setting):
    together, alone = epsilon_bounds(make_setting(), 46, trials=10_000, seed=1)
    assert together["nominal"] == 1.2
    assert 1.2 < together["at_least"] <= together["ledger"]
    assert alone["ledger"] is None  # infinite to the server
    assert alone["at_least"] > 1.2


@pytest.mark.parametrize(
    "privacy",
    [
        {"kind": "gaussian", "epsilon": 4.0},
        {"kind": "gaussian", "epsilon": 4.0, "trust": "local"},
        {"kind": "laplace", "epsilon": 4.0},
        {"kind": "laplace", "epsilon": 4.0, "trust": "local"},
    ],
)
def test_user_level_dp_stays_below_the_ledger_and_is_seen(make_setting, privacy):
    rows = epsilon_bounds(make_setting(privacy=privacy), 46, trials=10_000, seed=2)
    assert all(row["holds"] for row in rows)
    assert 0.3 < rows[0]["at_least"] <= rows[0]["ledger"] <= 4.0 * (1 + 1e-3)


def test_randomised_response_is_found_up_to_its_figure(make_setting):
    evolution = make_setting(learner={"kind": "foltr-es"}, privacy={"kind": "randomized-response", "p": 0.5})
    (row,) = epsilon_bounds(evolution, 46, trials=10_000, seed=3)
    assert row["ledger"] == pytest.approx(math.log(10))
    assert 0.8 * row["ledger"] < row["at_least"] <= row["ledger"]


def test_without_noise_there_is_no_epsilon_to_bound(make_setting):
    assert epsilon_bounds(make_setting(privacy={"kind": "none"}), 46, trials=100, seed=1) == []


def test_what_sends_no_updates_says_why_clicks_are_not_guessed(make_setting, fold):
    evolution = make_setting(learner={"kind": "foltr-es"}, privacy={"kind": "none"})
    found = audit(evolution, fold, np.zeros(46), 1, **FEW)
    assert "pdgd" in found["note"]
    assert found["guessing"] == found["membership"] == []


def test_a_run_is_audited_from_its_folder_and_shown_within_80_columns(make_setting, ranker, tmp_path):
    found = audit_run(finished(tmp_path, make_setting(), ranker), **FEW)
    json.dumps(found, allow_nan=False)
    assert found["settings"][0]["seed"] == 7
    shown = io.StringIO()
    for table in audit_tables(found):
        Console(file=shown, width=80).print(table)
    lines = shown.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert any("a message of 8 searches" in line for line in lines)
    assert any("sum of 10 clients" in line for line in lines)
    assert "…" not in shown.getvalue()
