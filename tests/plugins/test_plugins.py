"""Other people's kinds, one file each: a spec names them and runs, in this process and in workers."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import foltr
from foltr import registry
from foltr.errors import SpecError
from foltr.lab.runs import store
from foltr.lab.runs.card import card_of
from foltr.lab.runs.run import prepare
from foltr.lab.spec.parse import plan, read, setting
from foltr.lab.spec.setting import resolved, stored

EXAMPLES = Path(__file__).parent / "example"
SOURCE = Path(foltr.__file__).parents[1]
ALL = ("copycat", "halves", "hinge", "impatient", "midrange", "quadratic", "rounding")
SLOT = {
    "copycat": "attack",
    "halves": "partition",
    "hinge": "learner",
    "impatient": "click_model",
    "midrange": "aggregator",
    "quadratic": "ranker",
    "rounding": "mechanism",
}
DATA = {"name": "synthetic-mq2007@40", "folds": "1"}


@pytest.fixture(autouse=True)
def own_folders(tmp_path, monkeypatch):
    """A cache of one's own, and a registry that forgets what a test registered."""
    monkeypatch.setenv("FOLTR_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    before = {slot: dict(kinds) for slot, kinds in registry.SLOTS.items()}
    yield
    registry.SLOTS.update(before)


def paths(*names):
    return [str(EXAMPLES / f"{name}.py") for name in names]


def together(plugins=None):
    """Six of the seven: a partition in two halves has no attackers, who are fewer than half."""
    return {
        "data": DATA,
        "plugins": paths(*ALL) if plugins is None else plugins,
        "ranker": {"kind": "quadratic"},
        "learner": {"kind": "hinge", "learning_rate": 0.05},
        "users": {"clicks": "impatient"},
        "privacy": {"kind": "rounding", "step": 0.01},
        "federation": {"clients": 2, "interactions": 3, "rounds": 4, "aggregator": "midrange"},
        "partition": {"kind": "halves"},
        "runs": {"seeds": 2},
    }


def attacked(plugins=None):
    return {
        "data": DATA,
        "plugins": paths("copycat", "midrange") if plugins is None else plugins,
        "federation": {"clients": 5, "interactions": 3, "rounds": 4, "aggregator": "fedavg"},
        "attack": {"kind": "copycat", "num_attackers": 2},
        "runs": {"seeds": 2},
    }


def rankers(result):
    with np.load(result.run.dir / "ranker.npz") as arrays:
        return arrays["setting_0"]


SPECS = {"six kinds together": together, "an attack": attacked}


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_a_spec_that_names_plug_ins_runs(spec, tmp_path):
    found = foltr.run(spec(), out=tmp_path / "runs")
    assert np.isfinite(rankers(found)).all()
    assert np.abs(rankers(found)).sum() > 0
    assert 0 < found.summary["results"][0]["metrics"]["offline_ndcg@10"]["mean"] <= 1


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_workers_load_plug_ins_and_give_the_same_numbers(spec, tmp_path):
    alone, in_workers = (foltr.run(spec(), out=tmp_path / f"runs{jobs}", jobs=jobs) for jobs in (1, 2))
    assert np.array_equal(rankers(alone), rankers(in_workers))


def test_every_plug_in_does_what_it_says(tmp_path):
    """Each kind replaced by foltr's own gives other numbers."""
    instead = {
        "ranker": {"kind": "linear"},
        "learner": {"kind": "pdgd"},
        "users": {"clicks": "perfect"},
        "privacy": {"kind": "none"},
        "federation": together()["federation"] | {"aggregator": "fedavg"},
        "partition": {"kind": "none"},
    }
    mine = rankers(foltr.run(together(), out=tmp_path / "runs"))
    for table, content in instead.items():
        other = rankers(foltr.run(together() | {table: content}, out=tmp_path / "runs"))
        assert not np.array_equal(mine, other), table
    honest = attacked() | {"attack": {"kind": "none"}}
    numbers = [rankers(foltr.run(spec, out=tmp_path / "runs")) for spec in (attacked(), honest)]
    assert not np.array_equal(*numbers)


def test_rounded_deltas_leave_on_the_grid(tmp_path):
    found = foltr.run(together() | {"federation": {"clients": 2, "rounds": 1}, "plugins": paths(*ALL)}, out=tmp_path)
    steps = 2 * rankers(found) / 0.01  # the mean of two multiples of the step
    assert steps == pytest.approx(np.round(steps), abs=1e-9)


def test_the_card_knows_no_guarantee_for_the_mechanism(tmp_path):
    (one,) = plan(together()).settings
    said = card_of(one, 46)["sentences"]
    assert said[0].startswith("No guarantee is known: the mechanism rounding")
    assert foltr.run(together(), out=tmp_path).run.manifest.settings[0].privacy["sentences"] == said


def test_a_trained_ranker_of_a_plug_in_scores(tmp_path):
    ranker, features = foltr.run(together(), out=tmp_path).ranker, np.eye(3, 46)
    assert ranker.score(features) == pytest.approx(ranker.parameters[:3] + ranker.parameters[46:49])


def test_a_stored_setting_brings_its_plug_ins():
    (one,) = plan(together()).settings
    assert stored(resolved(one)) == one


# --- edits ----------------------------------------------------------------------------------------------------------


def copied(folder, name, change=("", "")):
    """An example in a folder of its own, perhaps changed."""
    text = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
    assert change[0] in text
    path = folder / f"{name}.py"
    path.write_text(text.replace(*change) if change[0] else text, encoding="utf-8")
    return str(path)


OTHER_SHARE = ("SHARE = 0.5", "SHARE = 0.25")


def edited(folder, change=("", "")):
    """The spec with a copy of the aggregator, which is written again."""
    others = [path for path in paths(*ALL) if "midrange" not in path]
    return together([*others, copied(folder, "midrange", change)])


def key(spec):
    (one,) = plan(spec).settings
    return store.key_of(one, checksum="c", fold=1, seed=1)


def test_after_an_edit_the_key_and_the_numbers_are_new(tmp_path):
    seen = []
    for change in (("", ""), OTHER_SHARE, ("", "")):
        spec = edited(tmp_path, change)
        seen.append((key(spec), rankers(foltr.run(spec, out=tmp_path / "runs"))))
    (first, numbers), (second, others), (third, again) = seen
    assert first != second
    assert not np.array_equal(numbers, others)
    assert first == third
    assert np.array_equal(numbers, again)


def test_a_comment_changes_no_key(tmp_path):
    assert key(edited(tmp_path)) == key(edited(tmp_path, ("# of the two extremes", "# of either end")))


def test_two_files_with_one_name_each_run_their_own_code(tmp_path):
    """In one process, one spec after the other; the second does not replace the first."""
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
    specs = [edited(folder, change) for folder, change in zip(folders, (("", ""), OTHER_SHARE), strict=True)]
    apart = [rankers(foltr.run(spec, out=tmp_path / "runs")) for spec in (*specs, specs[0])]
    assert not np.array_equal(apart[0], apart[1])
    assert np.array_equal(rankers(foltr.run(specs[0], out=tmp_path / "elsewhere")), apart[0])


def test_a_setting_with_a_class_from_before_an_edit_finds_no_result(tmp_path):
    def spec(change=("", "")):
        return {"data": DATA, "plugins": [copied(tmp_path, "quadratic", change)], "ranker": {"kind": "quadratic"}}

    (before,) = plan(spec()).settings
    old = store.key_of(before, checksum="c", fold=1, seed=1)
    new = key(spec(("x**2", "x**3")))
    stale = {store.key_of(before, checksum="c", fold=1, seed=1) for _ in range(3)}
    assert len({old, new, *stale}) == 5


def test_an_edit_after_the_plan_is_refused_by_workers(tmp_path):
    from foltr.lab.runs.run import run_missing

    prepared = prepare(plan(edited(tmp_path)), tmp_path / "runs")
    running = run_missing(prepared, jobs=2)
    copied(tmp_path, "midrange", OTHER_SHARE)
    with pytest.raises(SpecError, match="edited after this run began"):
        list(running)


# --- ways in --------------------------------------------------------------------------------------------------------


def test_paths_are_relative_to_the_folder_of_the_spec(tmp_path, monkeypatch):
    folder = tmp_path / "specs"
    folder.mkdir()
    copied(folder, "midrange")
    (folder / "mine.toml").write_text(
        'data = { name = "synthetic-mq2007@40" }\nplugins = ["./midrange.py"]\n'
        'federation = { clients = 3, aggregator = "midrange" }\n'
    )
    monkeypatch.chdir(tmp_path)
    (one,) = read(Path("specs/mine.toml")).settings
    assert one.plugins == (str((folder / "midrange.py").resolve()),)


@pytest.mark.parametrize("name", ALL)
def test_a_plug_in_is_found_in_its_slot(name):
    registry.load_plugin(str(EXAMPLES / f"{name}.py"))
    assert name in registry.names(SLOT[name])
    assert registry.kind_name(registry.kind(SLOT[name], name)) == name


def in_process(script, *, path):
    """What a fresh process prints, with a folder of installed packages."""
    environment = os.environ | {"PYTHONPATH": f"{path}{os.pathsep}{SOURCE}"}
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment)


def installed(folder, entry, **modules):
    """A folder with modules and the metadata of a distribution that registers through an entry point."""
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text)
    info = folder / "theirs-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[foltr.plugins]\ntheirs = {entry}\n")
    return folder


MIDRANGE = (EXAMPLES / "midrange.py").read_text(encoding="utf-8")
NAMES = "from foltr import registry; print(*registry.names('aggregator'))"


def test_an_installed_package_registers_through_its_entry_point(tmp_path):
    done = in_process(NAMES, path=installed(tmp_path, "their_rules", their_rules=MIDRANGE))
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[-1] == "midrange"


def test_an_entry_point_may_be_a_function_that_registers(tmp_path):
    text = MIDRANGE.replace('foltr.register("aggregator", Midrange)', "")
    text += '\n\ndef registered():\n    foltr.register("aggregator", Midrange)\n'
    done = in_process(NAMES, path=installed(tmp_path, "their_rules:registered", their_rules=text))
    assert "midrange" in done.stdout.split(), done.stderr


def test_a_kind_of_an_installed_package_counts_for_the_key(tmp_path):
    script = (
        "from foltr.lab.runs.keys import components_of; from foltr.lab.spec.parse import setting; "
        "one = setting({'data': {'name': 'mq2007'}, 'federation': {'aggregator': 'midrange'}}); "
        "print([path for path in components_of(one) if path.endswith('their_rules.py')])"
    )
    done = in_process(script, path=installed(tmp_path, "their_rules", their_rules=MIDRANGE))
    assert "their_rules.py" in done.stdout, done.stderr


# --- refusals -------------------------------------------------------------------------------------------------------

CLASH = MIDRANGE.replace('tag="midrange"', 'tag="krum"')
NO_KIND = MIDRANGE.replace(', tag_field="kind", tag="midrange"', "")
BROKEN = {
    "a name of foltr's own": (CLASH, "'krum' is foltr's own; give your class another tag"),
    "a class without a tag": (NO_KIND, "Midrange is no kind: write class Midrange(msgspec.Struct, frozen=True"),
    "no such slot": (MIDRANGE.replace('"aggregator"', '"rule"'), "no slot 'rule'; there are ranker, learner"),
    "an error": ("1 / 0\n", "ZeroDivisionError: division by zero"),
    "not Python": ("def broken(:\n", "SyntaxError"),
    "an import that is not there": ("import no_such_module\n", "No module named 'no_such_module'"),
}


def command(spec):
    """`foltr run`, as people call it."""
    environment = os.environ | {"PYTHONPATH": str(SOURCE), "COLUMNS": "80"}
    words = [sys.executable, "-m", "foltr", "run", str(spec)]
    return subprocess.run(words, capture_output=True, text=True, env=environment)


def refused(spec):
    done = command(spec)
    said = " ".join(done.stderr.split())
    assert (done.returncode, done.stdout) == (2, ""), done
    assert "Traceback" not in said
    assert said.count("foltr: ") == 1
    return said


def written(folder, plugins, text='data = { name = "synthetic-mq2007@40" }\n'):
    spec = folder / "mine.toml"
    spec.write_text(f"{text}plugins = {plugins!r}\n")
    return spec


@pytest.mark.parametrize(("text", "says"), BROKEN.values(), ids=BROKEN)
def test_a_broken_plug_in_is_refused_and_registers_nothing(text, says, tmp_path):
    (tmp_path / "mine.py").write_text(text)
    before = {slot: dict(kinds) for slot, kinds in registry.SLOTS.items()}
    with pytest.raises(SpecError, match=re.escape(says)) as refusal:
        read(written(tmp_path, ["mine.py"]))
    assert f"plugins: {tmp_path / 'mine.py'} cannot be loaded: " in str(refusal.value)
    assert before == registry.SLOTS
    assert not [name for name in sys.modules if name.startswith("foltr_plugin_mine")]


@pytest.mark.parametrize("case", ["a name of foltr's own", "an error"])
def test_the_command_says_it_once_and_ends_with_2(case, tmp_path):
    text, says = BROKEN[case]
    (tmp_path / "mine.py").write_text(text)
    assert says in refused(written(tmp_path, ["mine.py"]))


def test_a_plug_in_that_is_missing_is_refused(tmp_path):
    said = refused(written(tmp_path, ["gone.py"]))
    assert f"plugins: there is no file {tmp_path / 'gone.py'}" in said
    assert "relative to the folder of the spec" in said


def test_two_plug_ins_of_one_spec_that_clash_are_refused(tmp_path):
    for name in ("one", "two"):
        (tmp_path / f"{name}.py").write_text(MIDRANGE)
    with pytest.raises(SpecError, match=r"one\.py and .*two\.py both register aggregator 'midrange'"):
        read(written(tmp_path, ["one.py", "two.py"]))


def test_a_kind_whose_plug_in_is_not_named_is_refused():
    with pytest.raises(SpecError, match="no aggregator 'somebodys'; there are fedavg, krum"):
        setting({"data": DATA, "federation": {"aggregator": "somebodys"}})


def test_a_broken_installed_package_is_named(tmp_path):
    done = in_process(NAMES, path=installed(tmp_path, "their_rules", their_rules="1 / 0\n"))
    assert "the installed plug-in 'theirs' (their_rules) cannot be loaded: ZeroDivisionError" in done.stderr
