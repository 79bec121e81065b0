"""A run and what it leaves: files that agree with each other, and numbers that can be had again from them."""

import datetime
import itertools
import shutil
import zipfile
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from laboratory import TINY, ended, own_data, read_json, singles, start, strict_json, the_run
from scipy.stats import ttest_rel

import foltr
from foltr.errors import StorageError
from foltr.lab import records
from foltr.lab.runs import store
from foltr.lab.runs.pool import run_jobs
from foltr.lab.runs.progress import run_plan
from foltr.lab.runs.run import finish, prepare, to_do
from foltr.lab.runs.single import run_setting
from foltr.lab.simulation.population import load
from foltr.lab.spec import parse
from foltr.lab.spec.parse import plan, read
from foltr.metrics import ndcg, on_scale, parse_metric

METRICS = {
    "offline_ndcg@10",
    "offline_mrr@10",
    "online_ndcg@10",
    "discounted_online_ndcg",
    "online_max_rr",
    "online_max_rr_first",
    "online_max_rr_last_tenth",
    "validation_ndcg@10",
    "validation_mrr@10",
}
BOTH = ("empty", "skip", "zero")
COUNTED = {
    **dict.fromkeys((*records.OFFLINE, *records.VALIDATION), (*BOTH, "queries", "relevant_queries")),
    **dict.fromkeys(("online_ndcg@10", "discounted_online_ndcg"), ("empty",)),
}
RUNS = [(fold, seed) for fold in (1, 2) for seed in (1, 2)]  # of each setting of the tiny spec
ROUNDS = 20


# --- the files ------------------------------------------------------------------------------------------------------


def test_a_run_leaves_its_six_files_and_nothing_half_written(finished):
    run = the_run(finished)
    names = {"manifest.json", "rows.parquet", "queries.parquet", "ranker.npz", "privacy.json", "ledger.json"}
    assert {path.name for path in run.iterdir()} == names
    assert len(list((finished / "singles").iterdir())) == len(singles(finished)) == 8


def test_the_manifest_says_what_ran_on_what_and_where(finished):
    run = the_run(finished)
    manifest = strict_json((run / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["run"] == run.name
    assert manifest["name"] == "tiny"
    assert manifest["spec_toml"] == TINY
    assert manifest["quick"] is False
    assert [one["label"] for one in manifest["settings"]] == [
        {"users.clicks": "navigational"},
        {"users.clicks": "informational"},
    ]
    assert {"foltr", "python", "numpy", "numba", "scipy", "polars"} <= set(manifest["versions"])
    assert manifest["versions"]["foltr"] == foltr.__version__
    assert manifest["machine"]["cores"] >= 1
    started, finished_at = (datetime.datetime.fromisoformat(manifest[key]) for key in ("started", "finished"))
    assert started <= finished_at


def test_the_manifest_counts_what_every_setting_did(finished):
    for index, one in enumerate(read_json(the_run(finished) / "manifest.json")["settings"]):
        assert one["index"] == index
        assert one["runs"] == len(RUNS)
        assert one["rounds"] == ROUNDS
        assert one["interactions"] == 8 * 4 * ROUNDS
        assert one["seconds"] > 0
        assert one["data"].items() >= {"name": "synthetic-mq2007@60", "note": "synthetic", "queries": 60}.items()
        assert one["data"]["features"] == 46
        assert one["resolved"]["federation"]["clients"] == 8


def test_the_resolved_settings_are_a_spec_that_means_the_same(finished, tiny):
    settings = read_json(the_run(finished) / "manifest.json")["settings"]
    assert [plan(one["resolved"]).settings for one in settings] == [[one] for one in read(tiny).settings]


def test_rows_hold_every_metric_of_every_single_run(finished):
    rows = pl.read_parquet(the_run(finished) / "rows.parquet")
    assert rows.schema == {
        "setting": pl.Int32,
        "fold": pl.Int32,
        "seed": pl.Int64,
        "round": pl.Int64,
        "metric": pl.String,
        "client": pl.String,
        "value": pl.Float64,
    }
    assert rows["value"].is_finite().all()
    found = set(rows.select("setting", "fold", "seed", "metric", "round").rows())
    assert len(found) == len(rows)  # none twice
    both = {f"{name} (zero)" for name in (*records.OFFLINE, *records.VALIDATION)}
    at_the_end = {*records.VALIDATION, *both}
    every_round = METRICS - at_the_end - {"online_max_rr_first", "online_max_rr_last_tenth"}
    assert found == {
        (setting, *run, name, round)
        for setting in (0, 1)
        for run in RUNS
        for name in (*every_round, *at_the_end)
        for round in range(1 if name in every_round else ROUNDS, ROUNDS + 1)
    }


def test_every_test_query_has_the_value_of_the_final_ranker(finished):
    run = records.read(the_run(finished))
    assert dict(run.queries.schema) == records.QUERY_SCHEMA
    for index, (fold, seed) in enumerate(RUNS):
        ranker = foltr.Ranker.load(run.dir / "ranker.npz", setting=1, index=index)
        test = foltr.load("synthetic-mq2007@60", fold=fold).test
        mine = {}
        for query, (a, b) in zip(test.queries, itertools.pairwise(test.offsets), strict=True):
            value = ndcg(ranker.score(test.features[a:b]), test.labels[a:b])
            mine[str(query)] = pytest.approx(value, abs=1e-5) if test.labels[a:b].any() else None
        stored = run.queries.filter(setting=1, fold=fold, seed=seed, metric="offline_ndcg@10")
        assert dict(stored.select("query", "value").rows()) == mine
        assert len(stored) == len(test.queries)


def test_the_mean_over_queries_is_the_last_offline_row(finished):
    run = records.read(the_run(finished))
    key = ["setting", "fold", "seed", "metric"]
    final = run.rows.filter(pl.col("metric").is_in(records.OFFLINE), pl.col("round") == ROUNDS)
    both = run.queries.group_by(key).agg(pl.col("value").mean().alias("mean")).join(final, on=key)
    assert len(both) == len(final) == 2 * 2 * len(RUNS)
    assert both["mean"].to_numpy() == pytest.approx(both["value"].to_numpy(), abs=1e-6)


def test_both_means_are_those_of_the_stored_queries(reported, finished):
    queries = records.read(the_run(finished)).queries
    for setting, result in enumerate(reported["results"]):
        for metric in records.OFFLINE:
            mine, cell = queries.filter(setting=setting, metric=metric), result["metrics"][metric]
            of_runs = mine.group_by("fold", "seed").agg(
                skip=pl.col("value").mean(), zero=pl.col("value").fill_null(0.0).mean()
            )
            for empty in ("skip", "zero"):
                assert cell[empty] == pytest.approx(of_runs[empty].mean(), abs=1e-6)
            first = mine.filter(seed=1)
            assert (cell["empty"], cell["mean"]) == ("skip", cell["skip"])
            assert (cell["queries"], cell["relevant_queries"]) == (len(first), first["value"].count())
            assert first["value"].null_count() > 0  # else the two means are one


def test_with_zero_queries_without_a_relevant_document_count_as_0(reported, command, tiny, tmp_path):
    answer = strict_json(command("run", tiny, "--set", "metrics.empty=zero", "--out", tmp_path, "--json").out)
    assert answer["run"] != reported["run"]
    for zero, skip in zip(answer["results"], reported["results"], strict=True):
        for metric in (*records.OFFLINE, *records.VALIDATION):
            ours, other = zero["metrics"][metric], skip["metrics"][metric]
            assert ours["mean"] == ours["zero"] == pytest.approx(other["zero"], abs=1e-12)
            assert ours["skip"] == pytest.approx(other["skip"], abs=1e-12)
        assert zero["metrics"]["online_ndcg@10"] == skip["metrics"]["online_ndcg@10"]
    rows = [pl.read_parquet(path / "rows.parquet") for path in (the_run(tmp_path), Path(reported["dir"]))]
    curves = [one.filter(metric="offline_ndcg@10", setting=0, fold=1, seed=1)["value"].to_numpy() for one in rows]
    test = foltr.load("synthetic-mq2007@60", fold=1).test
    share = np.mean(np.maximum.reduceat(test.labels, test.offsets[:-1]) > 0)
    assert curves[0] == pytest.approx(share * curves[1])


def test_the_default_of_metrics_is_no_part_of_a_key():
    def key(**tables):
        one = parse.setting({"data": {"name": "synthetic-mq2007@60"}, **tables})
        return store.key_of(one, checksum="c", fold=1, seed=1)

    assert key() == key(metrics={"empty": "skip"})
    assert key() != key(metrics={"empty": "zero"})


def test_a_wrong_choice_for_empty_queries_is_refused_with_the_choices(refused, tiny):
    message = refused("run", tiny, "--set", "metrics.empty=zer")
    assert "metrics.empty" in message
    assert "skip, zero. Did you mean 'zero'?" in message


def test_queries_of_clients_with_rankers_of_their_own_have_the_mean_over_the_clients():
    spec = {
        "data": {"name": "synthetic-mq2007@60", "folds": 1}, "personal": {"kind": "local_only"},
        "federation": {"clients": 3, "rounds": 4, "interactions": 2},
    }  # fmt: skip
    personal = parse.setting(spec)
    fold = load(personal.data, 1)
    *_, result = run_setting(personal, fold, 1)
    assert sorted(map(int, result.query_ids)) == sorted(fold.test.queries)
    means = np.nanmean(result.query_values, axis=1)
    assert result.query_metrics.tolist() == ["nDCG@10", "RR(rel=1)@10"]
    assert means == pytest.approx(result.offline[:, -1], abs=1e-6)  # all clients have the same test queries


def test_a_run_of_an_earlier_version_has_no_values_of_queries(finished, tmp_path):
    older = tmp_path / "older"
    shutil.copytree(the_run(finished), older)
    (older / "queries.parquet").unlink()
    assert records.read(older).queries.is_empty()
    assert dict(records.read(older).queries.schema) == records.QUERY_SCHEMA
    pl.DataFrame({"query": ["1"]}).write_parquet(older / "queries.parquet")
    with pytest.raises(StorageError, match=r"queries\.parquet is not of this version"):
        records.read(older)


def test_the_ranker_file_holds_every_ranker_with_its_fold_and_seed(finished):
    with np.load(the_run(finished) / "ranker.npz") as arrays:
        for setting in (0, 1):
            assert arrays[f"setting_{setting}"].shape == (len(RUNS), 46)
            assert list(map(tuple, arrays[f"setting_{setting}_fold_seed"])) == RUNS
            assert strict_json(str(arrays[f"setting_{setting}_ranker"])) == {"kind": "linear"}


def test_the_last_offline_rows_are_those_of_the_rankers_in_the_file(finished):
    rows = pl.read_parquet(the_run(finished) / "rows.parquet").filter(
        (pl.col("metric") == "offline_ndcg@10") & (pl.col("round") == ROUNDS)
    )
    for setting in (0, 1):
        for index, (fold, seed) in enumerate(RUNS):
            ranker = foltr.Ranker.load(the_run(finished) / "ranker.npz", setting=setting, index=index)
            test = foltr.load("synthetic-mq2007@60", fold=fold).test
            lists = [slice(a, b) for a, b in zip(test.offsets[:-1], test.offsets[1:], strict=True)]
            relevant = [part for part in lists if test.labels[part].any()]
            mine = np.mean([ndcg(ranker.score(test.features[part]), test.labels[part]) for part in relevant])
            reported = rows.filter(setting=setting, fold=fold, seed=seed)["value"].item()
            assert reported == pytest.approx(mine, abs=1e-5)  # reported in single precision


def test_the_privacy_card_is_the_one_in_the_manifest(finished):
    card = strict_json((the_run(finished) / "privacy.json").read_text(encoding="utf-8"))
    settings = read_json(the_run(finished) / "manifest.json")["settings"]
    assert card == [{"setting": one["index"], "label": one["label"], **one["privacy"]} for one in settings]
    assert {one["sentences"][0] for one in card} == {"No privacy mechanism: updates leave as they are."}
    assert read_json(the_run(finished) / "ledger.json") == {"ledgers": []}


KINDS = {
    "fpdgd": (
        ['privacy={kind="fpdgd", epsilon=2.3}'],
        {"kind": "fpdgd", "nominal_epsilon": 2.3},
        ["Nominal epsilon 2.3", "all 8 noise shares", "not a guarantee"],
    ),
    "fpdgd in a cohort": (
        ['privacy={kind="fpdgd"}', "federation.cohort=5"],
        {"kind": "fpdgd", "nominal_epsilon": 1.2},
        ["all 5 noise shares"],
    ),
    "response": (
        ["learner.kind=foltr-es", 'privacy={kind="randomized-response", p=0.5}'],
        {"kind": "randomized-response", "nominal_epsilon": float(np.log(10))},  # ln(p (m - 1) / (1 - p)), m = 11
        ["Nominal epsilon 2.3", "ONE interaction"],
    ),
    "honest response": (
        ["learner.kind=foltr-es", 'privacy={kind="randomized-response", p=1}'],
        {"kind": "randomized-response", "nominal_epsilon": "infinite"},
        ["Nominal epsilon infinite"],
    ),
    "central": (['federation={kind="central", batch=8, rounds=3}'], {"kind": "none", "nominal_epsilon": None}, []),
}


@pytest.mark.parametrize(("sets", "facts", "pieces"), KINDS.values(), ids=KINDS)
def test_the_privacy_card_says_the_papers_figure_and_that_it_is_nominal(sets, facts, pieces, command, tiny, tmp_path):
    sets = [*sets, "federation.rounds=3", "users.clicks=navigational", "data.folds=1", "runs.seeds=1"]
    answer = command("run", tiny, "--jobs", 1, "--json", *(piece for one in sets for piece in ("--set", one)))
    assert answer.code == 0, answer.err
    (card,) = strict_json((the_run(tmp_path / "runs") / "privacy.json").read_text(encoding="utf-8"))
    assert card.items() >= facts.items()
    for piece in pieces:
        assert piece in " ".join(card["sentences"])


# --- the answer -----------------------------------------------------------------------------------------------------


@pytest.fixture
def reported(command, finished, tiny):
    """What --json says of the finished run."""
    answer = command("run", tiny, "--out", finished, "--json")
    assert answer.code == 0
    return strict_json(answer.out)


def test_json_prints_one_object_of_the_documented_shape(reported, finished):
    assert set(reported) == {"run", "dir", "results", "significance", "warnings"}
    assert reported["dir"] == str(finished / reported["run"])
    assert [one["setting"] for one in reported["results"]] == [
        {"users.clicks": "navigational"},
        {"users.clicks": "informational"},
    ]
    for one in reported["results"]:
        assert set(one) == {"setting", "metrics", "clients", "interactions", "seconds"}
        assert set(one["metrics"]) == METRICS
        assert one["interactions"] == 640
        for name, cell in one["metrics"].items():
            assert set(cell) == {"mean", "sd", "runs", *COUNTED.get(name, ())}
            assert cell["runs"] == 4


def test_every_printed_number_can_be_had_again_from_the_rows(reported, finished):
    rows = pl.read_parquet(the_run(finished) / "rows.parquet")
    for setting, result in enumerate(reported["results"]):
        by_run = {name: [] for name in METRICS}
        for fold, seed in RUNS:
            mine = rows.filter(setting=setting, fold=fold, seed=seed).sort("round")
            curve = {name: part["value"].to_numpy() for (name,), part in mine.group_by("metric")}
            online = curve["online_ndcg@10"]
            by_run["online_ndcg@10"].append(sum(online) / ROUNDS)
            by_run["discounted_online_ndcg"].append(sum(0.9995**t * value for t, value in enumerate(online)))
            by_run["online_max_rr"].append(sum(curve["online_max_rr"]) / ROUNDS)
            by_run["online_max_rr_first"].append(curve["online_max_rr"][0])
            by_run["online_max_rr_last_tenth"].append(sum(curve["online_max_rr"][-2:]) / 2)
            for name in (*records.OFFLINE, *records.VALIDATION):
                by_run[name].append(curve[name][-1])
        for name, values in by_run.items():
            assert result["metrics"][name]["mean"] == pytest.approx(np.mean(values))
            assert result["metrics"][name]["sd"] == pytest.approx(np.std(values, ddof=1))


def test_printed_p_values_are_those_of_scipy_on_the_stored_values_of_queries(reported, finished):
    queries = records.read(the_run(finished)).queries.filter(metric="offline_ndcg@10").drop_nulls("value")
    # folds of synthetic data give the same ids to different queries
    means = queries.with_columns(pl.col("value").cast(pl.Float64)).group_by("setting", "fold", "query").agg(
        pl.col("value").mean()).sort("fold", "query")  # fmt: skip
    base, other = (means.filter(setting=setting)["value"].to_numpy() for setting in (0, 1))
    test = next(one for one in reported["significance"] if one["metric"] == "offline_ndcg@10")
    assert (test["unit"], test["pairs"], test["folds"], test["seeds"]) == ("queries", len(base), 2, 2)
    assert (test["correction"], test["comparisons"]) == ("Holm", 1)
    assert test["p"] == test["corrected_p"] == pytest.approx(ttest_rel(other, base).pvalue, abs=1e-9)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("users.clicks=nobody", "users.clicks = 'nobody': no setting has this value; there are navigational"),
        ("users.k=10", "every setting has these values, which leaves none to test"),
        ("users.click=navigational", "no setting has this key"),
        ("navigational", "--baseline navigational: expected key=value"),
    ],
)
def test_a_baseline_that_nothing_can_be_tested_against_is_refused(value, problem, refused, tiny, tmp_path):
    assert problem in refused("run", tiny, "--out", tmp_path, "--baseline", value)


def test_without_json_a_table_and_the_way_to_a_page_are_printed(command, finished, tiny):
    answer = command("run", tiny, "--out", finished)
    assert answer.code == 0
    assert "navigational" in answer.out
    assert "SYNTHETIC" in answer.out
    assert f"foltr report {the_run(finished)}" in answer.out
    assert max(map(len, answer.out.replace(str(finished), "").splitlines())) <= 80


def test_rounds_between_rows_are_not_lost(command, tmp_path):
    """2,500 rounds leave a row every second round; the sum over all of them is still the whole sum."""
    spec = tmp_path / "long.toml"
    spec.write_text(
        'data = { name = "synthetic-mq2007@60", folds = 1 }\n'
        "federation = { clients = 2, interactions = 1, rounds = 2500 }\n"
        "runs = { evaluate_every = 1000 }\n"
    )
    (result,) = strict_json(command("run", spec, "--jobs", 1, "--json").out)["results"]
    rows = pl.read_parquet(the_run(tmp_path / "runs") / "rows.parquet")
    online = rows.filter(metric="online_ndcg@10").sort("round")
    assert len(online) == 1251
    assert rows.filter(metric="offline_ndcg@10")["round"].to_list() == [1, 1000, 2000, 2500]
    spans = np.diff(online["round"].to_numpy(), prepend=0)
    assert spans.sum() == 2500
    assert result["metrics"]["online_ndcg@10"]["mean"] == pytest.approx(spans @ online["value"].to_numpy() / 2500)
    # a factor of .9995 for one round more or less is all that a row of two rounds can hide
    rough = (spans * 0.9995 ** (online["round"].to_numpy() - 1)) @ online["value"].to_numpy()
    assert result["metrics"]["discounted_online_ndcg"]["mean"] == pytest.approx(rough, rel=1e-3)


# --- the same numbers, however they are computed --------------------------------------------------------------------


@pytest.fixture(scope="module")
def reference(finished):
    return (the_run(finished) / "ranker.npz").read_bytes()


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_number_of_threads_does_not_change_a_byte(threads, tiny, tmp_path, reference):
    prepared = prepare(read(tiny), tmp_path / "out")
    assert len(list(run_jobs(prepared.jobs, prepared.out, processes=1, threads=threads))) >= 8
    assert (finish(prepared).dir / "ranker.npz").read_bytes() == reference


def test_the_number_of_processes_does_not_change_a_byte(command, tiny, tmp_path, reference):
    answer = command("run", tiny, "--out", tmp_path / "out", "--jobs", 2)
    assert answer.code == 0, answer.err
    assert (the_run(tmp_path / "out") / "ranker.npz").read_bytes() == reference


@pytest.mark.slow
def test_machine_code_fresh_from_the_compiler_and_from_the_cache_do_not_differ_in_a_byte(tiny, tmp_path, monkeypatch):
    """The first run after an installation compiles; the second one finds what the first one stored."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "machine code"))
    found = []
    for out in (tmp_path / "first", tmp_path / "second"):
        answer = ended(start("run", tiny, "--jobs", 1, "--out", out))
        assert answer.code == 0, answer.err
        found.append((the_run(out) / "ranker.npz").read_bytes())
    assert found[0] == found[1]


def test_the_name_of_a_run_depends_on_what_it_computes_and_not_on_where(tiny, tmp_path, finished):
    def named(*overrides):
        return prepare(read(tiny, list(overrides)), tmp_path / "elsewhere").run

    assert named() == the_run(finished).name
    others = {
        named(one) for one in ("learner.learning_rate=0.2", "runs.seeds=3", "data.folds=1", "data.normalize=zscore")
    }
    assert len(others) == 4
    assert named() not in others


def test_settings_that_compute_the_same_share_their_single_runs(tiny, tmp_path):
    overrides = ["users.clicks=navigational", 'sweep={"part" = ["a", "b"]}']
    prepared = prepare(read(tiny, overrides), tmp_path / "out")
    assert len(prepared.jobs) == 8
    assert len(to_do(prepared)) == 4


# --- --seeds, --folds, --set ----------------------------------------------------------------------------------------


def test_seeds_folds_and_sets_override_the_spec(command, tiny, tmp_path):
    answer = command(
        "run", tiny, "--seeds", 1, "--folds", "3,5", "--jobs", 1, "--json",
        "--set", "federation.rounds=3", "--set", "users.clicks=poison", "--set", "runs.first_seed=7",
    )  # fmt: skip
    assert answer.code == 0, answer.err
    (result,) = strict_json(answer.out)["results"]
    assert result["interactions"] == 8 * 4 * 3
    rows = pl.read_parquet(the_run(tmp_path / "runs") / "rows.parquet")
    assert sorted(rows.select("fold", "seed").unique().rows()) == [(3, 7), (5, 7)]
    (one,) = read_json(the_run(tmp_path / "runs") / "manifest.json")["settings"]
    assert one["resolved"]["users"]["clicks"] == "poison"


@pytest.mark.parametrize("arguments", [("--seeds", "0"), ("--seeds", "two"), ("--jobs", "0"), ("--jobs", "-1")])
def test_impossible_numbers_on_the_command_line_are_refused(arguments, command, tiny, tmp_path):
    answer = command("run", tiny, *arguments)
    assert answer.code == 2
    assert arguments[0] in answer.err
    assert answer.out == ""
    assert not (tmp_path / "runs").exists()


def test_folds_that_are_none_are_refused_on_the_command_line(refused, tiny):
    assert "data.folds = 'first'" in refused("run", tiny, "--folds", "first")


# --- data that does not fit -----------------------------------------------------------------------------------------


def add(command, folder, *queries):
    assert command("data", "add", "mine", own_data(folder, *queries)).code == 0
    spec = folder.with_suffix(".toml")
    spec.write_text(
        'data = { name = "mine", folds = 1 }\nfederation = { clients = 2, rounds = 2 }\nusers = { k = 3 }\n'
    )
    return spec


def test_a_label_beyond_the_click_table_is_refused(command, refused, tmp_path):
    spec = add(command, tmp_path / "mine", 4, 5)
    message = refused("run", spec, "--set", "users.clicks={click=[0.1, 0.9], stop=[0, 0.5]}")
    assert message.startswith("users.clicks: the table has 2 grades, the collection 3 (labels up to 2)")
    assert "give one click and one stop value for each grade" in message


def test_users_that_are_not_defined_for_the_grades_are_refused(command, refused, tmp_path):
    spec = add(command, tmp_path / "mine", [0, 1, 2, 3], [3, 0, 1])
    message = refused("run", spec)
    assert message.startswith("users.clicks: 'navigational' is defined for 2, 3, 5 grades, the collection has 4")
    assert "give a table" in message


def test_a_label_in_the_test_part_that_training_never_saw_is_refused_with_its_line(command, refused, tmp_path):
    spec = add(command, tmp_path / "mine", 4, 5)
    with (tmp_path / "mine" / "test.txt").open("a") as file:
        file.write("4 qid:900 1:0 2:0 3:0\n")
    message = refused("run", spec)
    assert message.startswith(f"{tmp_path / 'mine' / 'test.txt'}:10:1: found '4'; expected a label from 0 to 2")


def test_a_list_longer_than_any_is_refused_with_the_longest(command, refused, tmp_path):
    spec = add(command, tmp_path / "mine", 4, 5)
    message = refused("run", spec, "--set", "users.k=6")
    assert message == "users.k = 6: the longest list of mine fold 1 has 5 documents; use at most 5"


def test_more_documents_than_there_are_numbers_to_draw_by_are_refused(command, refused, tmp_path, monkeypatch):
    monkeypatch.setattr("foltr.lab.simulation.population.DRAWS", 4)  # a million in truth
    spec = add(command, tmp_path / "mine", 4, 5)
    message = refused("run", spec, "--set", "users.k=2")
    assert message.startswith(
        "data.name: the longest list of mine fold 1 has 5 documents; lists are drawn from at most 4"
    )


def test_fewer_documents_than_k_are_reported_on_standard_error(command, tmp_path):
    spec = add(command, tmp_path / "mine", 2, 6, 1)
    answer = command("run", spec, "--jobs", 1)
    assert answer.code == 0, answer.err
    assert "mine: 6 lists have fewer than k documents" in answer.err  # two in each of the three parts
    assert "fewer than k documents" not in answer.out
    (one,) = read_json(the_run(tmp_path / "runs") / "manifest.json")["settings"]
    assert one["data"]["shorter_than_k"] == 6


def test_enough_documents_are_not_worth_a_word(command, tmp_path):
    answer = command("run", add(command, tmp_path / "mine", 3, 6), "--jobs", 1)
    assert answer.code == 0, answer.err
    assert "shorter than" not in answer.err


# --- metrics of a spec ----------------------------------------------------------------------------------------------

LISTED = ["AP(rel=2)@5", "ERR@10", "P@3", "nDCG@10"]


def test_listed_metrics_are_measured_on_every_query_and_named_with_threshold_and_top_grade(command, tiny, tmp_path):
    answer = command("run", tiny, "--set", f"metrics={LISTED}", "--folds", 1, "--seeds", 1, "--out", tmp_path)
    assert answer.code == 0, answer.err
    words = " ".join(answer.out.split())
    assert "AP(rel=2)@5" in words
    assert "ERR(max_rel=2)@10" in words
    assert max(map(len, answer.out.splitlines()[:12])) <= 80
    run = records.read(the_run(tmp_path))
    test = foltr.load("synthetic-mq2007@60", fold=1).test
    ranker = foltr.Ranker.load(run.dir / "ranker.npz", setting=0, index=0)
    for name in LISTED:
        metric = on_scale(parse_metric(name), 2)
        stored = run.queries.filter(setting=0, metric=records.stored_name("offline", str(metric)))
        for query, value in stored.select("query", "value").rows():
            a, b = (test.offsets[test.queries.astype(str).tolist().index(query) + i] for i in (0, 1))
            grades = test.labels[a:b]
            expected = metric.value(ranker.score(test.features[a:b]), grades) if (grades >= metric.rel).any() else None
            assert value == (None if expected is None else pytest.approx(expected, abs=1e-5)), (name, query)
        assert len(stored) == len(test.queries)
        curve = run.rows.filter(setting=0, metric=stored["metric"][0])
        assert len(curve) == ROUNDS
        assert curve.sort("round")["value"][-1] == pytest.approx(stored["value"].mean(), abs=1e-6)
    assert run.manifest.settings[0].metrics == [
        "offline_AP(rel=2)@5", "offline_ERR(max_rel=2)@10", "offline_P(rel=1)@3", "offline_ndcg@10"
    ]  # fmt: skip
    assert "Highest AP(rel=2)@5 on test" in words


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        ('["nDGC@10"]', "metrics.names: nDGC@10: no metric 'nDGC'; there are nDCG, AP, RR, ERR, P, R. Did you mean"),
        ('["AP", "AP(rel=1)"]', "metrics.names: AP(rel=1) is named twice"),
        ('["AP(rel=3)"]', "metrics.names: AP(rel=3): no document has grade 3; the data's top grade is 2"),
        ("[]", "metrics.names"),
    ],
)
def test_metrics_that_cannot_be_measured_are_refused(names, problem, refused, tiny):
    assert problem in refused("run", tiny, "--set", f"metrics={names}")


def test_values_of_queries_add_less_than_a_fifth_to_a_run_and_to_its_single_runs(tmp_path):
    """The worst case of a usual size: few runs, three metrics beside the usual two, the queries of MQ2007."""
    spec = {
        "data": {"name": "synthetic-mq2007", "folds": "1-2"},
        "metrics": ["nDCG@10", "RR@10", "AP", "ERR@20", "P@5"],
        "federation": {"clients": 10, "interactions": 2, "rounds": 1000},
        "runs": {"seeds": 1},
    }
    run = run_plan(plan(spec), tmp_path, jobs=1, quiet=True)
    assert len(run.queries) > 5 * 2 * 300
    files = {path.name: path.stat().st_size for path in run.dir.iterdir()}
    assert files.pop("queries.parquet") < 0.2 * sum(files.values())
    for path in singles(tmp_path):
        members = {member.filename: member.compress_size for member in zipfile.ZipFile(path).infolist()}
        of_queries = [members.pop(name) for name in list(members) if name.startswith(("query_", "packed_"))]
        assert len(of_queries) == 3
        assert sum(of_queries) < 0.2 * sum(members.values())
