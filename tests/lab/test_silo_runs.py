"""Experiments with texts: from a spec to numbers on disk, the same ones again, and a page; and what is refused."""

import json

import numpy as np
import pytest
from laboratory import singles, strict_json, the_run, write_clinics

from foltr.errors import SpecError
from foltr.lab.silo import runs as silo_runs
from foltr.lab.silo.card import card_of
from foltr.lab.silo.projection import separation
from foltr.lab.silo.training import TITLES
from foltr.lab.spec.parse import plan
from foltr.lab.spec.setting import DataChoice, resolved, stored
from foltr.rng import stream

TRAIN = {"data": {"name": "clinics", "folds": 1}, "silo": {"kind": "train", "parties": 2, "queries": 40, "top_k": 6}}
RETRIEVE = {"data": {"name": "made-up-300", "folds": 1}, "silo": {"kind": "retrieval", "top": 20, "asked": 10}}


@pytest.fixture
def clinics(tmp_path, monkeypatch):
    write_clinics(tmp_path / "data" / "clinics")
    monkeypatch.setenv("FOLTR_DATA", str(tmp_path / "data"))
    return "clinics"


def written(tmp_path, content):
    spec = tmp_path / "silo.toml"
    rows = [f"[{table}]\n" + "\n".join(f"{key} = {json.dumps(value)}" for key, value in values.items())
            for table, values in content.items()]  # fmt: skip
    spec.write_text("\n".join(rows))
    return spec


def metrics(answer):
    (result,) = strict_json(answer.out)["results"]
    return {name: cell["mean"] for name, cell in result["metrics"].items()}


@pytest.mark.usefixtures("clinics")
def test_regimes_are_compared_the_same_way_twice(tmp_path, command):
    spec = written(
        tmp_path,
        TRAIN | {"silo": {**TRAIN["silo"], "lists": "sound", "real_rows": 2, "columns": 15}, "runs": {"seeds": 2}},
    )
    first, again = (metrics(command("run", spec, "--out", tmp_path / name, "--json")) for name in ("a", "b"))
    assert first == again
    assert 0 < first["nDCG@10, average, Local"] <= 1
    assert first[f"nDCG@10, average, {TITLES['bm25']}"] == first[f"nDCG@10, party 1, {TITLES['bm25']}"] > 0.5
    assert first["nDCG@10, party 1, pooled"] == first["nDCG@10, party 2, pooled"]
    assert first["nDCG@10, average, FPDGD"] > 0.5  # four topics and one document in four: by chance about .3
    assert first["gain, low, party 1"] <= first["gain, mean, party 1"] <= first["gain, high, party 1"]
    assert len(singles(tmp_path / "a")) == 2


@pytest.mark.usefixtures("clinics")
def test_a_finished_run_has_a_card_and_a_page(tmp_path, command):
    spec = written(tmp_path, TRAIN | {"silo": {**TRAIN["silo"], "noise": "one_shot", "epsilon": 3.0}})
    assert command("run", spec, "--out", tmp_path / "runs").code == 0
    run = the_run(tmp_path / "runs")
    card = command("privacy", "card", run)
    said = " ".join(card.out.split())
    assert "all answers together cost epsilon 3 against a member that asks" in said
    assert "zero-out adjacency" in said
    assert "Answers and statistics together: epsilon infinite" in said
    assert "is a simulation" in said
    assert command("report", run, "--to", tmp_path / "page.html").code == 0
    assert "Answers with noise added once" in (tmp_path / "page.html").read_text()
    assert command("privacy", "audit", run).code == 2


@pytest.mark.parametrize(
    ("noise", "statistics", "total"),
    [("none", "exact", "infinite"), ("paper", "noisy", "infinite"), ("one_shot", "exact", "infinite"),
     ("one_shot", "noisy", 4.5)],
)  # fmt: skip
def test_every_figure_of_a_card_has_adversary_unit_and_adjacency(noise, statistics, total):
    silo = {"kind": "train", "noise": noise, "epsilon": 3.0, "statistics": statistics, "statistics_epsilon": 1.5}
    (setting,) = plan(TRAIN | {"silo": silo}).settings
    card = card_of(setting)
    assert {one["id"]: one["epsilon"] for one in card["adversaries"]} == {
        "recipients": total, "server": None, "server-member": total,
    }  # fmt: skip
    assert all((one["unit"], one["adjacency"]) == ("word", "zero-out") for one in card["adversaries"])
    for sentence in card["sentences"][:3]:
        assert "against a member that asks" in sentence
        assert "(zero-out adjacency)" in sentence


def test_fresh_noise_is_refused_with_its_reason(tmp_path, command):
    for old in ("per_query", "cells"):
        answer = command("run", written(tmp_path, TRAIN | {"silo": {"kind": "train", "noise": old}}))
        assert answer.code == 2
        assert "averaged away by asking again; use one_shot" in " ".join(answer.err.split())


def test_retrieval_is_measured_on_synthetic_documents(tmp_path, command):
    found = metrics(command("run", written(tmp_path, RETRIEVE), "--json"))
    assert 0 < found["recall@K"] <= 1
    assert found["size_mb"] == pytest.approx(30 * 200 * 8 * 100 / 1e6, rel=0.02)
    shown = command("run", written(tmp_path, RETRIEVE))
    assert "recall@K" in shown.out
    assert "compiled in" not in shown.err  # the kernels of clicks are not waited for
    each = {**RETRIEVE["silo"], "by": "naive-each"}
    naive = metrics(command("run", written(tmp_path, RETRIEVE | {"silo": each}), "--json"))
    assert naive["kB of numbers"] == 300 * 30 * 8 / 1e3
    assert naive["kB sent"] > naive["kB of numbers"]  # 300 sealed questions and answers
    assert naive["size_mb"] == 300 * 30 * 200 * 4 / 1e6


@pytest.mark.usefixtures("clinics")
def test_disclosure_is_measured_and_an_index_shows_no_unasked_word(tmp_path, command):
    found = {}
    for by in ("index", "sound", "paper", "sampled"):
        silo = {"kind": "disclosure", "by": by, "top": 20, "columns": 30, "asked": 5}
        found[by] = metrics(command("run", written(tmp_path, TRAIN | {"silo": silo}), "--json"))
        assert found[by]["entries known"] <= found[by]["entries charged"]
    assert (found["index"]["unasked known"], found["index"]["recall"]) == (0, 1)
    assert found["sampled"]["unasked known"] > 0.5
    assert found["sound"]["unasked known"] > 0.2


@pytest.mark.parametrize("lists", ["index", "sampled", "sound", "paper"])
def test_a_card_says_what_answers_show_and_that_the_allowance_is_off(lists):
    (setting,) = plan(TRAIN | {"silo": {"kind": "train", "lists": lists}}).settings
    said = " ".join(card_of(setting)["sentences"])
    assert "The allowance is off in this run" in said
    shown = (
        "two, five or all members that collude get 200 together" if lists == "index" else "words that were not asked"
    )
    assert shown in said


@pytest.mark.usefixtures("clinics")
def test_a_projection_has_its_points(tmp_path, command):
    spec = written(tmp_path, TRAIN | {"silo": {"kind": "projection", "points": 40, "columns": 10, "real_rows": 1}})
    answer = metrics(command("run", spec, "--out", tmp_path / "runs", "--json"))
    assert answer["features off"] > 0
    exact = written(tmp_path, TRAIN | {"silo": {"kind": "projection", "points": 40, "counts": "exact"}})
    assert metrics(command("run", exact, "--out", tmp_path / "runs", "--json"))["features off"] == 0


def test_separation_is_the_share_of_pairs_in_the_right_order():
    grades = np.tile([0, 0, 1, 1], 20)
    noise = stream(1, purpose="choice").normal(80)
    assert separation(np.column_stack([grades + 1e-3 * noise]), grades) == 1.0
    assert separation(np.column_stack([noise]), grades) == pytest.approx(0.5, abs=0.2)  # 3.3 sd of 20 x 20 pairs


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (RETRIEVE | {"silo": {"kind": "retrieval", "top": 301}}, "silo.top = 301 of 300 documents"),
        (TRAIN | {"data": RETRIEVE["data"]}, "has no queries to learn from"),
        (TRAIN | {"data": {"name": "clinics", "folds": "1-5"}}, "a corpus has no folds"),
        (TRAIN | {"silo": {"kind": "train", "real_rows": 31}}, "real_rows = 31 of 30 rows"),
        (TRAIN | {"silo": {"kind": "train", "real_rows": 5}}, "an index is asked by a hash, without rows"),
        (TRAIN | {"silo": {"kind": "train", "noise": "paper"}}, 'silo.noise = "paper" is of sketches'),
        (TRAIN | {"silo": {"kind": "train", "shares": 2}}, "shares = 2 for 4 parties"),
        (TRAIN | {"silo": {"kind": "trian"}}, "there are train, retrieval, disclosure, projection"),
        (TRAIN | {"silo": {"kind": "train", "clients": 3}}, "silo.clients: no such key"),
        (TRAIN | {"federation": {"rounds": 3}}, "known keys are data, silo, runs"),
    ],
)
@pytest.mark.usefixtures("clinics")
def test_impossible_settings_are_refused_before_the_run(tmp_path, command, content, said):
    answer = command("run", written(tmp_path, content), "--out", tmp_path / "runs")
    assert answer.code == 2
    assert said in " ".join(answer.err.split())
    assert not (tmp_path / "runs").exists()


def test_a_setting_survives_being_written_down():
    (setting,) = plan(TRAIN).settings
    assert stored(json.loads(json.dumps(resolved(setting)))) == setting


def test_texts_without_queries_can_be_searched_and_not_learned_from(clinics, tmp_path):
    (tmp_path / "data" / "notes").mkdir()
    (tmp_path / "data" / clinics / "corpus.jsonl").rename(tmp_path / "data" / "notes" / "corpus.jsonl")
    texts = silo_runs.load(DataChoice("notes"))
    (train,) = plan({"silo": {"kind": "train"}, "data": {"name": "notes", "folds": 1}}).settings
    with pytest.raises(SpecError, match='has no judged queries to learn from; use kind = "retrieval"'):
        silo_runs.check(train, texts)
    asks = {"kind": "retrieval", "top": 5, "asked": 20}
    (search,) = plan({"silo": asks, "data": {"name": "notes", "folds": 1}}).settings
    silo_runs.check(search, texts)
    *_, result = silo_runs.run_setting(search, texts, 1)
    assert dict(zip(result.names, result.more, strict=True))["recall@K"] > 0.5


def test_made_up_documents_are_made_once():
    choice = DataChoice("made-up-50")
    assert silo_runs.load(choice) is silo_runs.load(choice)
    with pytest.raises(SpecError, match="has no queries"):
        silo_runs.check(plan(TRAIN | {"data": {"name": "made-up-50", "folds": 1}}).settings[0], silo_runs.load(choice))
