"""Queries that training and test share, by id and by content; what page, terminal and JSON say about them."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from foltr.cli.main import app
from foltr.lab.data.overlap import Overlap, overlap, reused_ids
from foltr.rng import stream
from foltr.types import Dataset


def data(ids, seed=1, documents=6):
    """Queries with random documents; the same seed gives the same documents whatever the ids are."""
    draws = stream(seed, purpose="data").normal(len(ids) * documents * 3).reshape(-1, 3).astype(np.float32)
    labels = (np.arange(len(draws)) % documents < 2).astype(np.int8)
    return Dataset(draws, labels, np.arange(len(ids) + 1) * documents, np.array(ids))


def test_other_queries_share_nothing():
    assert overlap(data(["1", "2"]), data(["3", "4"], seed=2)) == Overlap(2, 0, 0, 0)


def test_the_same_file_shares_everything():
    assert overlap(data(["1", "2"]), data(["1", "2"])) == Overlap(2, 2, 2, 2)


def test_queries_are_found_under_other_ids_and_in_another_order_of_documents():
    test = data(["8", "9"])
    order = np.r_[5:-1:-1, 6:12]
    turned = test._replace(features=test.features[order], labels=test.labels[order])
    assert overlap(data(["1", "2"]), turned) == Overlap(2, 0, 2, 2)


def test_an_id_with_other_documents_is_shared_too():
    assert overlap(data(["1", "2"]), data(["2", "3"], seed=2)) == Overlap(2, 1, 0, 1)


def test_ids_that_name_other_queries_in_other_folds_are_counted():
    first, second = data([1, 2, 3]), data([1, 2, 3], seed=2)
    regraded = second._replace(labels=np.where(np.arange(len(second.labels)) < 12, 1, second.labels))
    assert reused_ids([first, regraded, data([7, 8])]) == 2
    scaled = first._replace(features=2 * first.features)  # a fold has its own scale
    assert reused_ids([first, scaled]) == 0


def test_queries_without_any_difference_between_documents_have_no_content_to_share():
    first, second = data(["1"]), data(["2"])
    flat = [part._replace(features=np.zeros_like(part.features)) for part in (first, second)]
    assert overlap(*flat) == Overlap(1, 0, 0, 0)


def letor(first, queries, seed):
    values = stream(seed, purpose="data").uniform(queries * 12 * 3).reshape(-1, 3)
    return "".join(
        f"{int(row % 4 == 0)} qid:{first + row // 12} 1:{a:.4f} 2:{b:.4f} 3:{c:.4f}\n"
        for row, (a, b, c) in enumerate(values)
    )


@pytest.mark.parametrize("copied", [True, False])
def test_a_run_whose_test_file_is_the_training_file_warns_everywhere(tmp_path, monkeypatch, copied):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("FOLTR_DATA", str(tmp_path / "sets"))
    folder = tmp_path / "own" / "Fold1"
    folder.mkdir(parents=True)
    (folder / "train.txt").write_text(letor(1, 8, 1))
    (folder / "vali.txt").write_text(letor(101, 8, 2))
    (folder / "test.txt").write_text(letor(1, 8, 1) if copied else letor(201, 8, 3))
    run = CliRunner().invoke
    assert run(app, ["data", "add", "own", str(tmp_path / "own")]).exit_code == 0
    spec = tmp_path / "spec.toml"
    spec.write_text(
        'data = { name = "own" }\ntune = "validation"\nfederation = { clients = 2, rounds = 3 }\n'
        '[sweep]\n"learner.learning_rate" = [0.1, 0.01]\n'
    )
    out = str(tmp_path / "runs")
    printed = run(app, ["run", str(spec), "--out", out, "--jobs", "1"], env={"COLUMNS": "80"})
    assert printed.exit_code == 0, printed.output
    words = " ".join(printed.stdout.split())
    assert ("WARNING: own: 8 of 8 test queries are training queries (by id)" in words) is copied
    assert "Best setting, chosen on the validation part: learning_rate" in words
    answer = json.loads(run(app, ["run", str(spec), "--out", out, "--json"]).stdout)
    assert bool(answer["warnings"]) is copied
    assert answer["results"][0]["metrics"]["validation_ndcg@10"]["runs"] == 1
    assert run(app, ["report", answer["dir"]]).exit_code == 0
    page = (tmp_path / "runs" / answer["run"] / "report.html").read_text()
    assert ("Warning: own: 8 of 8 test queries are training queries" in page) is copied
    assert "chosen on the validation part" in page
    assert "validation nDCG@10" in page
