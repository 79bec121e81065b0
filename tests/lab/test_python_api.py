"""The Python door: the public names, a spec run to its result, and rankers that are stored and used elsewhere."""

import importlib

import numpy as np
import polars as pl
import pytest
from laboratory import strict_json, the_run

import foltr
from foltr.errors import FoltrError, InputError, SpecError, StorageError
from foltr.rankers import Linear, Mlp

SPEC = foltr.Spec(
    name="from Python",
    data={"name": "synthetic-mq2007@60", "folds": 1},
    federation={"clients": 8, "rounds": 20},
    runs={"seeds": 2, "evaluate_every": 10},
    sweep={"users.clicks": ["navigational", "informational"]},
)


# --- names ----------------------------------------------------------------------------------------------------------


def test_public_names_are_sorted_few_and_complete():
    assert foltr.__all__ == sorted(foltr.__all__)
    assert set(foltr.__all__) == set(foltr._PUBLIC)
    assert len(foltr.__all__) <= 30
    assert {"load", "run", "Spec", "Result", "Ranker", "Interaction", "Update"} <= set(foltr.__all__)


@pytest.mark.parametrize("name", foltr.__all__)
def test_every_public_name_can_be_had(name):
    found = getattr(foltr, name)
    assert found is getattr(importlib.import_module(foltr._PUBLIC[name]), name)
    assert found.__doc__ or name in ("Interaction", "Update")


def test_nothing_else_is_public():
    assert set(dir(foltr)) == {*foltr.__all__, "__version__"}
    with pytest.raises(AttributeError, match="no attribute 'nosuch'"):
        foltr.nosuch  # noqa: B018


# --- run ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def result(tmp_path):
    return foltr.run(SPEC, out=tmp_path / "runs")


def test_the_file_of_a_spec_runs_to_the_same_result(result, tmp_path):
    file = tmp_path / "spec.toml"
    file.write_text(
        'name = "from Python"\ndata = {name = "synthetic-mq2007@60", folds = 1}\n'
        "federation = {clients = 8, rounds = 20}\nruns = {seeds = 2, evaluate_every = 10}\n"
        'sweep = {"users.clicks" = ["navigational", "informational"]}\n'
    )
    for given in (file, str(file)):
        assert foltr.run(given, out=tmp_path / "runs").curves.equals(result.curves)
    with pytest.raises(InputError, match="there is no such spec file"):
        foltr.run(tmp_path / "nosuch.toml")


def test_importing_the_main_module_runs_nothing():
    importlib.import_module("foltr.__main__")


def test_a_spec_runs_to_a_result_with_curves(result):
    assert isinstance(result, foltr.Result)
    curves = result.curves
    assert isinstance(curves, pl.DataFrame)
    assert set(curves.columns) == {"setting", "round", "mean", "sd", "runs", "metric"}
    offline = curves.filter(metric="offline_ndcg@10", setting=1)
    assert offline["round"].to_list() == [1, 10, 20]
    assert offline["runs"].to_list() == [2, 2, 2]
    online = curves.filter(metric="online_ndcg@10", setting=0)
    assert online["round"].to_list() == list(range(1, 21))
    two = result.run.rows.filter(metric="online_ndcg@10", setting=0, round=7)["value"].to_numpy()
    (row,) = online.filter(round=7).to_dicts()
    assert (row["mean"], row["sd"]) == pytest.approx((np.mean(two), np.std(two, ddof=1)))


def test_the_summary_is_what_the_command_prints(result, command, tmp_path):
    assert set(result.summary) == {"run", "dir", "results", "significance", "warnings"}
    spec = tmp_path / "same.toml"
    spec.write_text(
        'name = "from Python"\ndata = { name = "synthetic-mq2007@60", folds = 1 }\n'
        "federation = { clients = 8, rounds = 20 }\nruns = { seeds = 2, evaluate_every = 10 }\n"
        'sweep = { "users.clicks" = ["navigational", "informational"] }\n'
    )
    answer = command("run", spec, "--out", tmp_path / "runs", "--json")
    assert strict_json(answer.out) == result.summary


def test_a_plain_dictionary_will_do_and_is_not_changed(result, tmp_path):
    before = repr(SPEC)
    assert foltr.run(dict(SPEC), out=tmp_path / "runs").summary == result.summary
    assert repr(SPEC) == before


def test_the_ranker_of_a_result_scores_documents(result):
    test = foltr.load("synthetic-mq2007@60", fold=1).test
    scores = result.ranker.score(test.features)
    assert scores.shape == (len(test.labels),)
    assert np.isfinite(scores).all()
    assert np.array_equal(result.ranker.predict(test.features), scores)
    with np.load(result.run.dir / "ranker.npz") as arrays:
        np.testing.assert_allclose(scores, test.features.astype(float) @ arrays["setting_0"][0])


def test_a_ranker_that_learned_beats_one_that_did_not(result):
    curves = result.curves.filter(metric="online_ndcg@10")
    first, last = (curves.filter(pl.col("round").is_in(rounds))["mean"].mean() for rounds in ([1, 2, 3], [18, 19, 20]))
    assert last > first


def test_a_bad_spec_raises_the_error_that_the_command_prints(tmp_path):
    with pytest.raises(SpecError, match=r"^spec: federation.rounds: expected `int` >= 1$"):
        foltr.run(foltr.Spec(data={"name": "synthetic-mq2007@60"}, federation={"rounds": 0}), out=tmp_path / "runs")
    with pytest.raises(foltr.FoltrError):
        foltr.run({}, out=tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_every_error_is_one_of_ours_with_an_exit_code():
    tree = {one: one.exit_code for one in (FoltrError, InputError, SpecError, StorageError)}
    assert tree == {FoltrError: 1, InputError: 2, SpecError: 2, StorageError: 1}


# --- rankers --------------------------------------------------------------------------------------------------------

RANKERS = {
    "linear": foltr.Ranker(Linear(), np.array([0.5, -1.0, 2.0])),
    "mlp": foltr.Ranker(Mlp(hidden=2, activation="relu"), np.arange(10.0) - 4),  # (3 + 2) * 2 parameters
}


@pytest.mark.parametrize("name", ["ranker.npz", "ranker", "ranker.v2"])
@pytest.mark.parametrize("kind", RANKERS)
def test_a_ranker_comes_back_as_it_was_saved_under_the_name_it_was_given(kind, name, tmp_path):
    ranker, features = RANKERS[kind], np.eye(3)
    ranker.save(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    again = foltr.Ranker.load(tmp_path / name)
    assert again.kind == ranker.kind
    assert np.array_equal(again.parameters, ranker.parameters)
    assert np.array_equal(again.score(features), ranker.score(features))


def test_a_linear_score_is_a_sum_of_products():
    assert list(RANKERS["linear"].score(np.array([[1, 1, 1], [0, 0, 3]]))) == [1.5, 6.0]


def test_one_document_may_be_a_plain_vector():
    assert list(RANKERS["linear"].score(np.array([2, 0, 1]))) == [3.0]


@pytest.mark.parametrize("kind", RANKERS)
@pytest.mark.parametrize("width", [2, 4])
def test_a_wrong_number_of_features_is_refused(kind, width):
    words = f"this ranker has {len(RANKERS[kind].parameters)} parameters, which does not fit {width} features"
    with pytest.raises(InputError, match=words):
        RANKERS[kind].score(np.ones((5, width)))


def test_any_ranker_of_a_run_can_be_had(finished):
    path = the_run(finished) / "ranker.npz"
    with np.load(path) as arrays:
        wanted = arrays["setting_1"][3]
    assert np.array_equal(foltr.Ranker.load(path, setting=1, index=3).parameters, wanted)


@pytest.mark.parametrize("which", [{"setting": 2}, {"index": 4}])
def test_a_ranker_that_a_run_does_not_have_is_named(which, finished):
    with pytest.raises(InputError, match=r"ranker.npz: there is no ranker \d of setting \d in it"):
        foltr.Ranker.load(the_run(finished) / "ranker.npz", **which)


def test_a_ranker_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputError, match=r"nowhere.npz: there is no such file; a run leaves its rankers in ranker.npz"):
        foltr.Ranker.load(tmp_path / "nowhere.npz")


def cut_off(path):
    path.write_bytes(path.read_bytes()[:-100])


def empty(path):
    path.write_bytes(b"")


def text(path):
    path.write_text("0.5 -1.0 2.0")


def one_array(path):
    with path.open("wb") as file:
        np.save(file, np.ones(3))


def unknown_kind(path):
    np.savez(path, setting_0=np.ones((1, 3)), setting_0_ranker=np.array('{"kind": "tree"}'))


def no_json(path):
    np.savez(path, setting_0=np.ones((1, 3)), setting_0_ranker=np.array("linear"))


@pytest.mark.parametrize("damage", [cut_off, empty, text, one_array, unknown_kind, no_json], ids=lambda d: d.__name__)
def test_a_damaged_ranker_file_is_named(damage, tmp_path):
    path = tmp_path / "ranker.npz"
    RANKERS["linear"].save(path)
    damage(path)
    with pytest.raises(StorageError, match=r"ranker.npz: not a ranker file, or a damaged one"):
        foltr.Ranker.load(path)


def test_a_ranker_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(StorageError, match=r"taken/ranker.npz: cannot be written \(.*\); choose another folder"):
        RANKERS["linear"].save(tmp_path / "taken" / "ranker.npz")
