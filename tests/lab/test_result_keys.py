"""The key of a stored run changes exactly when code that the run reaches does, and never because of another module."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import msgspec
import pytest
from sources import written

import foltr
from foltr.errors import SpecError
from foltr.lab.runs import closure, keys, store
from foltr.lab.runs.closure import import_closure, imports_of, matches, source_on_disk
from foltr.lab.spec.parse import setting
from foltr.lab.spec.setting import resolved

HOME = Path(foltr.__file__).parent
MODULES = sorted(
    ".".join(path.relative_to(HOME.parent).with_suffix("").parts).removesuffix(".__init__")
    for path in HOME.rglob("*.py")
)
FEDERATION = {"clients": 8, "interactions": 4, "rounds": 3}


def on_clicks(*, attack=None, federation=None, **tables):
    spec = {"data": {"name": "synthetic-mq2007@60"}, "federation": FEDERATION | (federation or {}), **tables}
    return spec | ({"attack": {"kind": attack, "num_attackers": 2}} if attack else {})


def on_texts(name, **silo):
    return {"data": {"name": name, "folds": 1}, "silo": silo}


SPECS = {
    "fedavg": on_clicks(),
    "central": {**on_clicks(), "federation": {"kind": "central", "rounds": 3}},
    "krum, lie": on_clicks(federation={"aggregator": "krum"}, attack="lie"),
    "median, poison": on_clicks(federation={"aggregator": "median", "defend_on_detection": True}, attack="poison"),
    "geometric_median, fang": on_clicks(federation={"aggregator": "geometric_median"}, attack="fang"),
    "min_max": on_clicks(attack="min_max"),
    "sign_flip": on_clicks(attack="sign_flip"),
    "fpdgd": on_clicks(privacy={"kind": "fpdgd"}),
    "gaussian": on_clicks(privacy={"kind": "gaussian", "adaptive": 0.5}),
    "laplace": on_clicks(privacy={"kind": "laplace"}),
    "secure sums": on_clicks(privacy={"kind": "gaussian", "secure_aggregation": "execute"}),
    "buffered": on_clicks(federation={"mode": "buffered", "buffer": 3, "interactions": 2}),
    "randomized-response": on_clicks(learner={"kind": "foltr-es"}, privacy={"kind": "randomized-response"}),
    "foltr-es, mlp": on_clicks(learner={"kind": "foltr-es"}, ranker={"kind": "mlp"}),
    "labels, clusters": on_clicks(
        federation={"clients": 3},
        partition={"kind": "labels"},
        sharing={"fraction": 0.1},
        personal={"kind": "clusters", "count": 2},
    ),
    "unlearning by logs": on_clicks(unlearning={"method": "logs"}),
    "unlearning by calibration": on_clicks(unlearning={"method": "calibrated", "keep_every": 1}),
    "audit": on_clicks(audit={"messages": 4}),
    "silo train": on_texts("letters", kind="train", parties=2, queries=40, top_k=6),
    "silo retrieval": on_texts("made-up-60", kind="retrieval", top=5, asked=4),
    "silo projection": on_texts("letters", kind="projection", points=20, columns=10),
}
SETTINGS = {name: setting(content) for name, content in SPECS.items()}
SILO = {name for name in SETTINGS if name.startswith("silo")}
REACHED = {name: set(keys.reached(keys.components_of(one))) for name, one in SETTINGS.items()}


def mutated(module, addition=b"\n_MUTATED = 1\n"):
    """Sources as they are on disk, but one with something more in it."""
    return lambda name: (source_on_disk(name) or b"") + addition if name == module else source_on_disk(name)


def changed_by(module, addition=b"\n_MUTATED = 1\n"):
    """Names of the settings whose keys change with a module."""
    sources = mutated(module, addition)
    return {name for name, one in SETTINGS.items() if keys.code_of(one, source_of=sources) != keys.code_of(one)}


# --- the tables -----------------------------------------------------------------------------------------------------


def named_in_tables():
    patterns = [keys.CLICK_RUN, keys.SILO_RUN, *keys.NEUTRAL, *keys.SWITCHES, *keys.IMPLEMENTED_BY]
    by_trait = [modules for traits in keys.TRAITS.values() for values in traits.values() for modules in values.values()]
    patterns += [
        one for targets in (*keys.SWITCHES.values(), *keys.IMPLEMENTED_BY.values(), *by_trait) for one in targets
    ]
    return sorted(set(patterns))


@pytest.mark.parametrize("pattern", named_in_tables())
def test_every_name_in_the_tables_exists(pattern):
    module, _, kind = pattern.partition(":")
    assert any(matches(one, (module,)) for one in MODULES)
    if kind:
        assert hasattr(importlib.import_module(module), kind)


@pytest.mark.parametrize("switch", keys.SWITCHES)
def test_a_switch_has_the_imports_that_are_not_followed(switch):
    for pattern in keys.SWITCHES[switch]:
        assert any(matches(target, (pattern,)) for target in imports_of(switch)), pattern


@pytest.mark.parametrize("key", keys.OFF)
def test_a_table_that_may_be_off_is_off_by_default(key):
    table, _, field = key.partition(".")
    assert resolved(SETTINGS["fedavg"])[table][field] == keys.OFF[key]


@pytest.mark.parametrize("key", keys.NAMED)
def test_a_key_that_names_a_kind_is_a_key_of_a_setting(key):
    table, _, field = key.partition(".")
    assert isinstance(resolved(SETTINGS["fedavg"])[table][field], str)


def test_the_libraries_that_compute_are_installed_here():
    assert all(version for _, version in keys.versions())
    assert [name for name, _ in keys.versions()] == ["python", "simd", *keys.LIBRARIES]


def test_what_a_switch_cuts_off_is_reached_by_a_setting_that_names_it():
    """No module that some run needs is lost between the tables."""
    needed = import_closure([keys.CLICK_RUN, keys.SILO_RUN], neutral=keys.NEUTRAL)
    assert set(needed) <= set.union(*REACHED.values())


# --- a mutated module -----------------------------------------------------------------------------------------------


def test_a_constant_in_any_module_changes_the_keys_of_the_runs_that_reach_it_and_no_others():
    for module in MODULES:
        assert changed_by(module) == {name for name in SETTINGS if module in REACHED[name]}, module


@pytest.mark.parametrize(
    "module",
    ["foltr.rng", "foltr.types", "foltr._kernels.compile", "foltr.lab.simulation.evaluation", "foltr.lab.spec.setting"],
)
def test_what_every_run_uses_changes_every_key(module):
    assert changed_by(module) == set(SETTINGS)


@pytest.mark.parametrize(
    "module",
    [
        "foltr",
        "foltr.atomic",
        "foltr.cli.main",
        "foltr.errors",
        "foltr.lab.bench.training",
        "foltr.lab.figures.claims",
        "foltr.lab.records",
        "foltr.lab.reporting.tables",
        "foltr.lab.runs.card",
        "foltr.lab.runs.pool",
        "foltr.lab.runs.progress",
        "foltr.lab.runs.store",
        "foltr.lab.spec.parse",
        "foltr.privacy.card",
    ],
)
def test_what_decides_no_number_changes_no_key(module):
    assert module in MODULES
    assert changed_by(module) == set()


ONLY = {
    "foltr.federation.krum": {"krum, lie", "geometric_median, fang", "min_max"},  # two attacks use its distances
    "foltr.federation.geometric_median": {"geometric_median, fang"},
    "foltr.federation.detector": {"median, poison"},
    "foltr.federation.robust": {"median, poison"},
    "foltr.lab.attacks.lie": {"krum, lie"},
    "foltr.lab.attacks.fang": {"geometric_median, fang"},
    "foltr.lab.audit.click_guessing": {"audit"},
    "foltr.lab.runs.unlearning": {"unlearning by logs", "unlearning by calibration"},
    "foltr.lab.silo.training": {"silo train"},
    "foltr.lab.silo.projection": {"silo projection"},
    "foltr.learners.foltr_es": {"foltr-es, mlp", "randomized-response"},
    "foltr._kernels.foltr_es": {"foltr-es, mlp", "randomized-response"},
    "foltr.privacy.accounting": {"silo train"},  # organisations account for their sketches
    "foltr.privacy.ledger": {"fpdgd", "gaussian", "laplace", "secure sums", "randomized-response", "silo train"},
    "foltr._kernels.noise": {"fpdgd", "gaussian", "laplace", "secure sums"},
    "foltr.federation.buffered": {"buffered"},
    "foltr.secagg.in_process": {"secure sums"},
}


@pytest.mark.parametrize("module", ONLY)
def test_a_kind_changes_the_keys_of_the_runs_that_name_it(module):
    assert changed_by(module) == ONLY[module]


def test_learners_change_the_keys_of_runs_that_learn_with_them():
    assert set(SETTINGS) - changed_by("foltr.learners.pdgd") == {
        "foltr-es, mlp",
        "randomized-response",
        "silo retrieval",
        "silo projection",
    }


def test_modules_of_unlearning_change_the_keys_of_runs_that_unlearn():
    for module in (one for one in MODULES if one.startswith("foltr.unlearning.")):
        assert changed_by(module) <= {"unlearning by logs", "unlearning by calibration"}


def test_modules_of_silos_change_the_keys_of_runs_on_texts():
    silo = [one for one in MODULES if one.startswith(("foltr.silo.", "foltr.lab.silo.", "foltr.text."))]
    assert all(changed_by(module) <= SILO for module in silo)
    assert changed_by("foltr.silo.sketches") == SILO
    assert changed_by("foltr.lab.runs.single") == set(SETTINGS) - SILO


def test_a_halved_constant_changes_a_key():
    module = "foltr.lab.simulation.evaluation"
    source = source_on_disk(module)
    halved = source.replace(b"EVALUATED = 100", b"EVALUATED = 50")
    assert halved != source
    one = SETTINGS["fedavg"]
    sources = {module: halved}
    assert keys.code_of(one, source_of=lambda name: sources.get(name) or source_on_disk(name)) != keys.code_of(one)


@pytest.mark.parametrize("addition", [b"\n# a comment\n", b'\n"""A text that nobody reads."""\n', b"\n\n\n"])
def test_comments_texts_and_blank_lines_change_no_key(addition):
    assert changed_by("foltr.rng", addition) == set()


def test_the_version_of_a_library_changes_every_key(monkeypatch):
    before = [keys._digest(tuple(keys.components_of(one)), source_on_disk) for one in SETTINGS.values()]
    newer = tuple((name, "99" if name == "numba" else version) for name, version in keys.versions())
    monkeypatch.setattr(keys, "versions", lambda: newer)
    after = [keys._digest(tuple(keys.components_of(one)), source_on_disk) for one in SETTINGS.values()]
    assert not set(before) & set(after)


def test_digests_are_computed_once_a_process(monkeypatch):
    one = SETTINGS["fedavg"]
    before = store.key_of(one, checksum="c", fold=1, seed=1)
    monkeypatch.setattr(closure, "_bare", lambda _: pytest.fail("a source was read again"))
    monkeypatch.setattr(keys, "reached", lambda *_: pytest.fail("imports were followed again"))
    assert len({before, *(store.key_of(one, checksum="c", fold=1, seed=seed) for seed in range(2, 1000))}) == 999


# --- plug-ins -------------------------------------------------------------------------------------------------------

AGGREGATOR = """
from foltr.federation.krum import krum
from near import SHARE

def aggregate(updates):
    return SHARE * updates
"""


def with_plugins(*named):
    """A setting as it is when a spec lists plug-ins."""
    return msgspec.structs.replace(SETTINGS["fedavg"], plugins=named)


def key_with(*named):
    return store.key_of(with_plugins(*named), checksum="c", fold=1, seed=1)


def test_an_edited_plug_in_file_changes_the_key(tmp_path, monkeypatch):
    monkeypatch.chdir(written(tmp_path, my_aggregator=AGGREGATOR, near="SHARE = 0.5", far="X = 1"))
    keys_seen = [key_with(), key_with("./my_aggregator.py")]
    written(tmp_path, my_aggregator=AGGREGATOR.replace("updates\n", "updates  # a comment\n"), far="X = 2")
    assert key_with("./my_aggregator.py") == keys_seen[-1]
    written(tmp_path, near="SHARE = 0.25")
    keys_seen.append(key_with("./my_aggregator.py"))
    written(tmp_path, my_aggregator=AGGREGATOR.replace("SHARE *", "2 * SHARE *"))
    keys_seen.append(key_with("./my_aggregator.py"))
    assert len(set(keys_seen)) == 4


def test_a_plug_in_that_was_edited_while_its_code_is_in_memory_never_finds_an_old_result(tmp_path):
    path = written(tmp_path, my_aggregator=AGGREGATOR, near="SHARE = 0.5") / "my_aggregator.py"
    before = key_with(str(path))
    written(tmp_path, near="SHARE = 0.25")
    assert len({before, *(key_with(str(path)) for _ in range(3))}) == 4
    written(tmp_path, near="SHARE = 0.5  # as before")
    assert key_with(str(path)) == before


def test_processes_agree_on_the_key_of_a_plug_in(tmp_path):
    path = written(tmp_path, my_aggregator=AGGREGATOR, near="SHARE = 0.5") / "my_aggregator.py"
    script = (
        "import sys; from foltr.lab.runs.keys import _digest; from foltr.lab.runs.closure import source_on_disk; "
        "print(_digest((sys.argv[1],), source_on_disk))"
    )

    def key():
        command = [sys.executable, "-c", script, str(path.resolve())]
        environment = {**os.environ, "PYTHONPATH": str(HOME.parent)}
        return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout

    first, again = key(), key()
    written(tmp_path, near="SHARE = 0.25")
    assert first == again != key()


def test_a_plug_in_depends_on_what_it_imports_from_foltr(tmp_path):
    path = written(tmp_path, my_aggregator=AGGREGATOR, near="SHARE = 0.5") / "my_aggregator.py"
    one = with_plugins(str(path))
    for module, counts in {"foltr.federation.krum": True, "foltr.lab.attacks.lie": False}.items():
        assert (keys.code_of(one, source_of=mutated(module)) != keys.code_of(one)) is counts


def test_a_plug_in_file_may_be_moved(tmp_path):
    here, there = (written(tmp_path / name, my_aggregator=AGGREGATOR, near="SHARE = 0.5") for name in ("here", "there"))
    assert key_with(str(here / "my_aggregator.py")) == key_with(str(there / "my_aggregator.py"))


def test_a_plug_in_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(SpecError, match="there is no such file"):
        key_with(str(tmp_path / "gone.py"))


def kind_of(module, name="Aggregator"):
    kind = type(name, (), {})
    kind.__module__ = module
    return kind


def test_a_kind_of_another_package_counts_with_its_file(tmp_path, monkeypatch):
    path = written(tmp_path, another_package=AGGREGATOR, near="SHARE = 0.5") / "another_package.py"
    kind = kind_of("another_package")
    monkeypatch.setitem(sys.modules, "another_package", SimpleNamespace(__file__=str(path), Aggregator=kind))

    def resolve(key, value):
        return kind if (key, value) == ("federation.aggregator", "fedavg") else None

    one = SETTINGS["fedavg"]
    assert str(path.resolve()) in keys.components_of(one, resolve=resolve)
    before = keys.code_of(one, resolve=resolve)
    assert before == keys.code_of(one, resolve=resolve) != keys.code_of(one)
    path.write_text(AGGREGATOR.replace("SHARE *", "2 * SHARE *"))
    assert keys.code_of(one, resolve=resolve) != before


def test_a_kind_without_a_file_never_finds_an_old_result():
    one = SETTINGS["fedavg"]
    found = {keys.code_of(one, resolve=lambda *_: kind_of("a_cell_of_a_notebook")) for _ in range(3)}
    assert len(found) == 3


# --- what runs execute ----------------------------------------------------------------------------------------------

EXECUTE = Path(__file__).with_name("executed_modules.py")


forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="settings run in forks of one process")


@pytest.fixture(scope="module")
def observed(tmp_path_factory):
    """Modules that a fresh process loads to execute runs, and those whose functions each setting calls."""
    folder = tmp_path_factory.mktemp("observed")
    letters = folder / "data" / "letters"
    letters.mkdir(parents=True)
    bodies = [" ".join(f"{'abcd'[i % 4]}{(i * j) % 7}" for j in range(1, 30)) for i in range(60)]
    documents = [{"_id": f"d{i}", "title": f"note {i}", "text": body} for i, body in enumerate(bodies)]
    queries = [{"_id": f"q{i}", "text": f"{'abcd'[i % 4]}{i % 7} {'abcd'[i % 4]}{i % 5}"} for i in range(60)]
    judged = [f"q{q}\td{d}\t{1 + (q + d) % 2}" for q in range(60) for d in range(60) if d % 4 == q % 4]
    (letters / "corpus.jsonl").write_text("\n".join(map(json.dumps, documents)))
    (letters / "queries.jsonl").write_text("\n".join(map(json.dumps, queries)))
    (letters / "qrels.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *judged]))
    done = subprocess.run(
        [sys.executable, str(EXECUTE)],
        input=json.dumps(SPECS),
        capture_output=True,
        text=True,
        env={
            **os.environ,
            "FOLTR_DATA": str(folder / "data"),
            "FOLTR_CACHE": str(folder / "cache"),
            "PYTHONPATH": str(HOME.parent),
        },
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@forks
def test_every_module_that_a_run_loads_is_found_by_following_imports(observed):
    loaded, _ = observed
    followed = import_closure([keys.CLICK_RUN, keys.SILO_RUN], neutral=keys.NEUTRAL)
    assert {name for name in loaded if not matches(name, keys.NEUTRAL)} <= {*followed, *namespaces()}


def namespaces():
    """Packages without an __init__."""
    parents = {name.rpartition(".")[0] for name in MODULES}
    return parents - set(MODULES)


@forks
@pytest.mark.parametrize("name", SETTINGS)
def test_every_module_whose_code_a_run_executes_counts_for_its_key(observed, name):
    executed = observed[1][name]
    assert executed
    assert {module for module in executed if not matches(module, keys.NEUTRAL)} <= REACHED[name]
