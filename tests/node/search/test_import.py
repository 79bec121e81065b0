"""An export file can make a node stricter and never less strict; what is refused changes no byte."""

import copy
import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

import foltr.node
from foltr.errors import FoltrError, InputError, SpecError, StorageError
from foltr.node import settings as node_settings
from foltr.node.index.rules import Rules
from foltr.node.learning import transfer, versions
from foltr.node.settings import RANGES, Limits, Settings
from foltr.rng import stream

OWN = Settings(
    roots=("/home/me/notes",), exclude=("*.log", "!keep.log", "/private/"), retention_days=30, learning=False,
    limits=Limits(file_mb=10, seconds=5.0, memory_mb=256, words=1000),
)  # fmt: skip
MUTANTS = 2_000


def good_export():
    weights = msgspec.to_builtins(versions.start_weights())
    choices = [{"typed": f"tax {n}", "path": f"/home/me/{n}.txt", "part": "", "time": 1.6e9 + n} for n in range(3)]
    other = Settings(roots=("/srv/mail", "/home/me/notes"), exclude=("*.bak",), workers=4, retention_days=365)
    return {"format": "foltr-node", "version": 1, "exported": "2024-01-01", "settings": msgspec.to_builtins(other),
            "memory": choices, "weights": {**weights, "version": 3}}  # fmt: skip


@pytest.fixture
def own(tmp_path):
    """A node of a person with strict settings."""
    with foltr.node.open(tmp_path / "own") as node:
        node.save_settings(OWN)
        yield node


@pytest.fixture
def export(tmp_path):
    """Writes an export with other settings, and returns its path."""

    def write(content=None, **settings):
        content = good_export() if content is None else content
        content["settings"].update(settings)
        path = tmp_path / "export.json"
        path.write_text(json.dumps(content))
        return path

    return write


def state(node):
    """Everything that an import may change, as bytes."""
    file = node.places.settings_file
    tables = [node.log.rows(f"SELECT * FROM {table}") for table in ("choices", "versions", "learning", "documents")]  # noqa: S608
    return file.read_bytes() if file.exists() else None, tables


def assert_no_less_strict(before, after):
    assert after.allow == before.allow
    for name in Limits.__struct_fields__:
        assert getattr(after.limits, name) <= getattr(before.limits, name)
    for name in ("retention_days", "workers", "on_battery", "exploration", "learning", "memory"):
        assert getattr(after, name) <= getattr(before, name)
    assert set(before.exclude) <= set(after.exclude)
    rules, tightened = (Rules(msgspec.structs.replace(one, roots=("/home/me",))) for one in (before, after))
    for path in ("a.log", "keep.log", "private/a.txt", ".ssh/id_rsa", "a.kdbx", ".env", "notes/a.txt", ".git/config"):
        if rules.verdict(f"/home/me/{path}"):
            assert tightened.verdict(f"/home/me/{path}"), path


# ---- what is taken over


def test_roots_are_taken_over_only_where_they_are_named(own, export):
    content = own.read_export(export(roots=["/", "/srv/mail"]))
    assert own.import_(content).roots == 0
    assert own.settings.roots == OWN.roots
    assert own.import_(content, roots=["/srv/mail", "/etc"]).roots == 1
    assert own.settings.roots == ("/home/me/notes", "/srv/mail")


def test_limits_retention_and_switches_keep_the_stricter_value_of_each(own, export):
    limits = {"file_mb": 4096, "seconds": 3600.0, "memory_mb": 128, "words": 500}
    path = export(limits=limits, retention_days=36_500, workers=64, on_battery=True, exploration=True, learning=True)
    found = own.import_(own.read_export(path))
    assert own.settings.limits == Limits(file_mb=10, seconds=5.0, memory_mb=128, words=500)
    assert (own.settings.retention_days, own.settings.workers, own.settings.learning) == (30, 1, False)
    assert {"retention_days = 30", "learning = off", "limits.file_mb = 10"} <= set(found.stricter)
    assert_no_less_strict(OWN, own.settings)


def test_exclusions_are_united_and_the_own_go_on_to_decide(own, export):
    found = own.import_(own.read_export(export(exclude=["*.bak", "keep.log", "!*", "!.ssh/"], allow=["secrets"])))
    assert own.settings.exclude == ("*.bak", "keep.log", *OWN.exclude)
    assert found.not_taken == ("secrets", "!*", "!.ssh/")
    rules = Rules(msgspec.structs.replace(own.settings, roots=("/home/me",)))
    assert rules.verdict("/home/me/keep.log") is None
    assert rules.verdict("/home/me/a.bak") == "settings, exclude: *.bak"
    assert rules.verdict("/home/me/.ssh/id_rsa")


def test_parts_may_be_chosen(own, export):
    before = own.places.settings_file.read_bytes()
    content = own.read_export(export())
    assert own.import_(content, parts=["memory"])[:4] == (3, 0, 0, False)
    assert own.import_(content, parts=["weights"])[:4] == (0, 0, 0, True)
    assert own.places.settings_file.read_bytes() == before
    with pytest.raises(InputError, match="there are settings, memory, weights"):
        own.import_(content, parts=["roots"])


def test_no_choices_are_taken_over_where_memory_is_switched_off(own, export):
    own.save_settings(node_settings.changed(OWN, memory=False))
    assert own.import_(own.read_export(export())).choices == 0
    assert own.log.uses() == []


def test_a_choice_of_tomorrow_does_not_stay_for_ever(own, export):
    content = good_export()
    content["memory"][0]["time"] = 9e10
    own.import_(own.read_export(export(content)))
    assert max(use.time for use in own.log.uses()) < 9e9


# ---- what is refused


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"language": "../../x"}, r"language = '../../x': is unknown; there are arabic, armenian"),
        ({"limits": {"file_mb": 10**15}}, r"limits\.file_mb = 1000000000000000: must be between 1 and 4,096"),
        ({"limits": {"words": 10**30}}, "limits"),
        ({"limits": {"memory_mb": 1}}, r"limits\.memory_mb = 1: must be between 128 and 65,536"),
        ({"limits": {"seconds": 1e300}}, r"limits\.seconds"),
        ({"retention_days": 10**9}, "retention_days = 1000000000: must be between 1 and 36,500"),
        ({"workers": -1}, "workers = -1: must be between 1 and 64"),
        ({"exclude": ["a\nb"]}, "exclude: the pattern .* has a line break"),
        ({"exclude": ["x" * 2000]}, "exclude: the pattern .* is too long"),
        ({"exclude": ["x"] * 6000}, "exclude: 6,000 entries; write at most 5,000"),
        ({"exclude": "*"}, "exclude"),
        ({"roots": ["/a/../../etc"]}, r"roots"),
        ({"roots": ["/a\0b"]}, r"roots"),
        ({"roots": ["/" + "x" * 5000]}, r"roots"),
        ({"learning": "yes"}, "learning"),
    ],
)
def test_settings_out_of_bounds_are_refused_everywhere(own, export, tmp_path, settings, expected):
    before = state(own)
    with pytest.raises(FoltrError, match=expected):
        own.read_export(export(**settings))
    assert state(own) == before
    with pytest.raises(SpecError):
        node_settings.changed(OWN, **settings)
    if "\0" not in str(settings) and "limits" not in settings:
        (tmp_path / "settings.toml").write_text("".join(f"{k} = {json.dumps(v)}\n" for k, v in settings.items()))
        with pytest.raises(SpecError, match=r"settings\.toml: "):
            node_settings.load(tmp_path / "settings.toml")


def test_commands_have_the_checks_too(own):
    before = state(own)
    with pytest.raises(SpecError, match="line break"):
        own.exclude(["a\nb"])
    with pytest.raises(SpecError, match="too long"):
        own.exclude(["x" * 2000])
    assert state(own) == before


@pytest.mark.parametrize("failing", ["adopt", "settings"])
def test_a_failure_in_the_middle_changes_nothing(own, export, monkeypatch, failing):
    content, before = own.read_export(export()), state(own)
    if failing == "adopt":
        monkeypatch.setattr(versions, "adopt", lambda *_: (_ for _ in ()).throw(StorageError("full")))
    else:
        own.places.config.chmod(0o500)
        monkeypatch.setattr(Path, "open", lambda *_, **__: (_ for _ in ()).throw(OSError(28, "No space left")))
    with pytest.raises(StorageError):
        own.import_(content, roots=["/srv/mail"])
    monkeypatch.undo()
    own.places.config.chmod(0o700)
    assert state(own) == before
    assert own.settings == OWN
    assert [file.name for file in own.places.config.iterdir()] == ["settings.toml"]


# ---- a bad file on the disk


@pytest.mark.parametrize(
    ("text", "key"), [("workers = 10000", "workers"), ("language = '../x'", "language"), ("[", "not valid TOML")]
)
def test_a_bad_settings_file_does_not_stop_searching(home, text, key):
    file = home / "config" / "settings.toml"
    file.write_text(text)
    with foltr.node.open(home) as node:
        assert key in node.problem
        assert node.search("thread wait").rows
        assert not node.settings.learning
        assert not node.settings.memory
        for change in (lambda: list(node.index()), lambda: node.add([home]), lambda: node.exclude(["*"])):
            with pytest.raises(SpecError, match=r"settings\.toml: "):
                change()
    assert file.read_text() == text


# ---- mutants of a good file


def pick(draws, options):
    return options[int(next(draws) * len(options))]


ODD = [None, True, -1, 0, 1, 10**15, 10**30, 1e300, -0.5, "", "x", "/", "/etc", "../../x", "english", "german",
       "\0", "a\nb", "!*", "*", "secrets", "hidden folders", "é" * 5000, [], {}, ["/"], ["!*"], ["secrets"], [1],
       [None], ["/a/../b"], {"file_mb": 1}, {"seconds": 1e9}, "linear", "foltr-node", 1.7e9,
       "/home/me/a.txt"]  # fmt: skip


def places(value, path=()):
    """Every place in a JSON value."""
    found = [path]
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        found += places(one, (*path, key))
    return found


def mutated(content, number):
    """Bytes of a changed export: a value replaced, removed, repeated or renamed, or bytes of the text changed."""
    draws = iter(stream(11, round=number, client=0, purpose="attack").uniform(40))
    content = copy.deepcopy(content)
    for _ in range(1 + int(next(draws) * 3)):
        *above, last = pick(draws, places(content)[1:])
        inner = content
        for key in above:
            inner = inner[key]
        kind = pick(draws, ["replace", "replace", "remove", "rename"])
        if kind == "replace":
            inner[last] = copy.deepcopy(pick(draws, ODD))
        elif kind == "remove" or isinstance(inner, list):
            del inner[last]
        else:
            inner[str(pick(draws, [*RANGES, "allow", "x", "path"]))] = inner.pop(last)
    text = bytearray(json.dumps(content).encode())
    if next(draws) < 0.3:
        for _ in range(1 + int(next(draws) * 4)):
            text[int(next(draws) * len(text))] = int(next(draws) * 256)
    return bytes(text)


def read_or_problem(node, path):
    try:
        return node.read_export(path)
    except FoltrError as problem:
        return str(problem)


def test_mutants_of_an_export_are_refused_as_a_whole_or_weaken_nothing(own, tmp_path):
    path, accepted = tmp_path / "export.json", 0
    first = state(own)
    for number in range(MUTANTS):
        path.write_bytes(mutated(good_export(), number))
        content = read_or_problem(own, path)
        if isinstance(content, str):
            assert content.startswith(str(path))
            assert "\n" not in content
            if number % 50 == 0:
                assert state(own) == first
            continue
        accepted += 1
        after, _ = transfer.joined(OWN, content.settings, content.settings.roots)
        assert_no_less_strict(OWN, after)
        if accepted % 20 == 0:  # the whole way, on the disk
            own.save_settings(OWN)
            own.import_(content)
            assert own.settings.roots == OWN.roots
            assert_no_less_strict(OWN, own.settings)
            assert node_settings.load(own.places.settings_file) == own.settings
            first = state(own)
    assert MUTANTS // 20 < accepted < MUTANTS * 19 // 20


# ---- the command


def test_the_command_lists_the_folders_and_takes_none_without_a_terminal(foltr_node, export, tmp_path):
    path, home = export(roots=["/", "/srv/mail"]), tmp_path / "other"
    said = foltr_node("import", path, home=home)
    assert said.returncode == 0
    assert "folder / (careful: this is the whole machine)" in said.stdout.decode()
    assert "--roots all" in said.stdout.decode()
    assert not json.loads(foltr_node("status", "--json", home=home).stdout)["roots"]
    taken = json.loads(foltr_node("import", path, "--roots", "all", "--json", home=home).stdout)
    assert (taken["roots"], taken["roots_not_taken"]) == (2, [])
    wrong = foltr_node("import", path, "--roots", "some", home=home)
    assert (wrong.returncode, b"all or none" in wrong.stderr) == (2, True)


def test_with_a_terminal_each_folder_is_asked_for(export, tmp_path):
    path, home = export(roots=["/", "/srv/mail"]), tmp_path / "other"
    terminal, stdin = os.openpty()
    os.write(terminal, b"n\ny\n")
    command = [sys.executable, "-m", "foltr", "node", "import", str(path)]
    said = subprocess.run(
        command, stdin=stdin, capture_output=True, env={**os.environ, "FOLTR_NODE_HOME": str(home)}, timeout=120
    )
    os.close(terminal)
    os.close(stdin)
    assert said.returncode == 0, said.stderr
    assert b"Search / (careful: this is the whole machine)" in said.stdout + said.stderr
    with foltr.node.open(home) as node:
        assert node.settings.roots == ("/srv/mail",)


def test_folders_that_nobody_wants_to_search_by_mistake_are_named(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "all").symlink_to("/")
    assert (
        node_settings.root_warning("/")
        == node_settings.root_warning(str(tmp_path / "all"))
        == "this is the whole machine"
    )
    assert "home folder" in node_settings.root_warning(str(tmp_path))
    assert "home folder" in node_settings.root_warning("/home/ada")
    assert "system" in node_settings.root_warning("/etc/ssl")
    assert node_settings.root_warning(str(tmp_path / "notes")) is None
