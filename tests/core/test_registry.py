"""Kinds by name: how other people's classes get in, and what is said to whoever gets it wrong."""

import sys

import msgspec
import pytest

from foltr import registry
from foltr.errors import SpecError
from foltr.registry import SLOTS, kind, kind_name, load_plugin, names, register


@pytest.fixture(autouse=True)
def _restored(monkeypatch):
    """What a test registers is gone after it."""
    monkeypatch.setattr(registry, "SLOTS", {slot: dict(kinds) for slot, kinds in SLOTS.items()})
    monkeypatch.setattr(registry, "_PLUGINS", {})


def own(name="mine", **config):
    return msgspec.defstruct("Mine", [("strength", float, 1.0)], frozen=True, tag_field="kind", tag=name, **config)


@pytest.mark.parametrize(("slot", "name"), [(slot, name) for slot, kinds in SLOTS.items() for name in kinds])
def test_every_built_in_name_is_the_tag_of_its_class(slot, name):
    assert kind_name(kind(slot, name)) == name
    assert name in names(slot)


def test_a_registered_class_is_found_and_listed():
    mine = own()
    assert register("aggregator", mine) is mine  # so that it can stand as a decorator's result
    assert kind("aggregator", "mine") is mine
    assert names("aggregator")[-1] == "mine"
    assert "mine" not in names("attack")


def test_registering_again_replaces_what_came_from_outside():
    first, second = own(), own()
    register("attack", first)
    register("attack", second)
    assert kind("attack", "mine") is second


def test_the_packages_own_names_cannot_be_taken():
    with pytest.raises(SpecError, match="mechanism 'gaussian' is foltr's own; give your class another tag"):
        register("mechanism", own("gaussian"))
    assert kind("mechanism", "gaussian").__module__ == "foltr.privacy.mechanisms"


def test_an_unknown_slot_lists_the_slots():
    with pytest.raises(SpecError, match="no slot 'optimiser'; there are ranker, learner, mechanism, aggregator"):
        register("optimiser", own())


@pytest.mark.parametrize(
    "cls",
    [
        type("Plain", (), {}),
        msgspec.defstruct("Untagged", [], frozen=True),
        msgspec.defstruct("Other", [], tag_field="type", tag="x"),
    ],
    ids=lambda cls: cls.__name__,
)
def test_a_class_that_is_no_kind_says_what_to_write(cls):
    with pytest.raises(SpecError, match=rf"{cls.__name__} is no kind: write class .*tag_field=\"kind\", tag="):
        register("ranker", cls)


def test_an_unknown_name_lists_the_known_ones():
    register("click_model", own("hasty"))
    with pytest.raises(SpecError, match="no click model 'lazy'; there are hasty"):
        kind("click_model", "lazy")
    with pytest.raises(SpecError, match="no ranker 'tree'; there are linear, mlp"):
        kind("ranker", "tree")


PLUGIN = """
import msgspec
from foltr.registry import register

class Halved(msgspec.Struct, frozen=True, tag_field="kind", tag="halved"):
    pass

register("aggregator", Halved)
"""


def test_a_file_is_run_once_and_its_kinds_are_known(tmp_path):
    file = tmp_path / "my_rule.py"
    file.write_text(PLUGIN)
    name = load_plugin(str(file)).module.__name__
    assert name.startswith("foltr_plugin_my_rule_")
    halved = kind("aggregator", "halved")
    assert halved.__module__ == name
    assert load_plugin(str(file)).module.__name__ == name
    assert kind("aggregator", "halved") is halved  # it did not run again


def test_two_files_of_one_name_are_two_modules(tmp_path):
    found = set()
    for folder in ("one", "other"):
        (tmp_path / folder).mkdir()
        file = tmp_path / folder / "my_rule.py"
        file.write_text(PLUGIN)
        found.add(load_plugin(str(file)).module.__name__)
    assert len(found) == 2


def test_a_missing_file_says_where_paths_start():
    with pytest.raises(SpecError, match=r"plugins: there is no file ./nowhere.py; a path is relative to the folder"):
        load_plugin("./nowhere.py")


def test_what_is_no_python_file_is_refused(tmp_path):
    file = tmp_path / "notes.txt"
    file.write_text("hello")
    with pytest.raises(SpecError, match="cannot be loaded: NameError"):  # "hello" is no name in it
        load_plugin(str(file))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import nothing_of_this_name", "ModuleNotFoundError: No module named 'nothing_of_this_name'"),
        ("def broken(:", "SyntaxError"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        (PLUGIN.replace('"halved"', '"fedavg"'), "SpecError: aggregator 'fedavg' is foltr's own"),
    ],
    ids=["import", "syntax", "error", "taken"],
)
def test_a_file_that_fails_says_why_and_leaves_nothing_behind(tmp_path, text, said):
    file = tmp_path / "broken.py"
    file.write_text(text)
    before = set(sys.modules)
    with pytest.raises(SpecError, match=f"broken.py cannot be loaded: {said}"):
        load_plugin(str(file))
    assert set(sys.modules) == before
    file.write_text(PLUGIN)  # and once it is mended, it loads
    assert load_plugin(str(file)).module.__name__ == kind("aggregator", "halved").__module__


class Point:
    """An installed package's entry point."""

    def __init__(self, loaded):
        self.loaded = loaded

    def load(self):
        return self.loaded


def test_entry_points_are_loaded_when_a_kind_is_asked_for(monkeypatch):
    installed = {"foltr.plugins": [Point(lambda: register("learner", own("theirs"))), Point(registry)]}
    monkeypatch.setattr(registry.importlib.metadata, "entry_points", lambda group: installed[group])
    registry._load_entry_points.cache_clear()
    try:
        assert kind_name(kind("learner", "theirs")) == "theirs"
        assert "theirs" in names("learner")
    finally:
        registry._load_entry_points.cache_clear()
