"""The key of a stored run changes exactly when code that the run reaches does, and never because of another module."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from keyed_settings import HOME, MODULES, PEOPLE, REACHED, SETTINGS, SILO, SPECS, changed_by

from foltr.lab.runs import closure, keys, store
from foltr.lab.runs.closure import import_closure, imports_of, matches, source_on_disk
from foltr.lab.spec.setting import resolved

# --- the tables -----------------------------------------------------------------------------------------------------


def named_in_tables():
    patterns = [keys.CLICK_RUN, keys.SILO_RUN, keys.PEOPLE_RUN, *keys.NEUTRAL, *keys.SWITCHES, *keys.IMPLEMENTED_BY]
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
    never = {"foltr.node": keys.SWITCHES["foltr.node"]}  # what no run loads; the test of loaded modules says so
    needed = import_closure([keys.CLICK_RUN, keys.SILO_RUN, keys.PEOPLE_RUN], neutral=keys.NEUTRAL, switches=never)
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
        "foltr.files",
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


EXECUTED = {"secure sums", "two servers, executed"}
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
    "foltr.privacy.ledger": {"fpdgd", "gaussian", "laplace", *EXECUTED, "randomized-response", *SILO},
    "foltr._kernels.noise": {"fpdgd", "gaussian", "laplace", *EXECUTED},
    "foltr.federation.buffered": {"buffered"},
    "foltr.secagg.in_process": EXECUTED,
    "foltr.secagg.two_in_process": EXECUTED,
}


@pytest.mark.parametrize("module", ONLY)
def test_a_kind_changes_the_keys_of_the_runs_that_name_it(module):
    assert changed_by(module) == ONLY[module]


def test_learners_change_the_keys_of_runs_that_learn_with_them():
    assert set(SETTINGS) - changed_by("foltr.learners.pdgd") == {
        "foltr-es, mlp",
        "randomized-response",
        "silo retrieval",
        "silo disclosure",
        "silo projection",
    }


def test_modules_of_unlearning_change_the_keys_of_runs_that_unlearn():
    for module in (one for one in MODULES if one.startswith("foltr.unlearning.")):
        assert changed_by(module) <= {"unlearning by logs", "unlearning by calibration"}


def test_modules_of_silos_change_the_keys_of_runs_on_texts():
    silo = [one for one in MODULES if one.startswith(("foltr.silo.", "foltr.lab.silo.", "foltr.text."))]
    assert all(changed_by(module) <= SILO | PEOPLE for module in silo)
    assert changed_by("foltr.silo.sketches") == SILO
    assert changed_by("foltr.lab.runs.single") == set(SETTINGS) - SILO - PEOPLE


def test_modules_of_people_change_the_keys_of_their_runs():
    modules = [one for one in MODULES if one.startswith("foltr.lab.people.")]
    assert all(changed_by(module) <= PEOPLE for module in modules)
    assert changed_by("foltr.lab.people.experiment") == PEOPLE
    assert changed_by("foltr.node.learning.memory") == PEOPLE  # what was opened counts as on a node
    assert changed_by("foltr.node.index.indexing") == set()  # no run has an index on disk
    assert changed_by("foltr.learners.softmax") >= PEOPLE


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
    followed = import_closure([keys.CLICK_RUN, keys.SILO_RUN, keys.PEOPLE_RUN], neutral=keys.NEUTRAL)
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
