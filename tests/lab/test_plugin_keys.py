"""The key of a run with plug-ins: their files and what these import count; edited code never finds an old result."""

import os
import subprocess
import sys
from types import SimpleNamespace

import msgspec
import pytest
from keyed_settings import HOME, SETTINGS, mutated
from sources import written

from foltr.errors import SpecError
from foltr.lab.runs import keys, store

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
