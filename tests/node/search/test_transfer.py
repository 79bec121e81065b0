"""Settings, memory and weights on another machine; files that are refused as a whole."""

import json

import pytest

import foltr.node
from foltr.errors import FoltrError


@pytest.fixture
def exported(node, tmp_path):
    results = node.search("thread wait")
    node.choose(results, results.rows[7].id)
    node.export(tmp_path / "export.json")
    return tmp_path / "export.json"


def test_memory_moves_to_another_machine(exported, tmp_path, library):
    before = json.loads(exported.read_text())
    with foltr.node.open(tmp_path / "other") as other:
        content = other.read_export(exported)
        assert other.import_(content, roots=content.settings.roots).choices == 1
        list(other.index())
        first = other.search("thread w").rows[0]
    assert first.remembered
    assert first.path == before["memory"][0]["path"]
    assert exported.stat().st_mode & 0o077 == 0


def test_folders_may_have_another_path(exported, tmp_path, library):
    (tmp_path / "moved").symlink_to(library / "docs")
    with foltr.node.open(tmp_path / "other") as other:
        content = other.read_export(exported, {str(library / "docs"): str(tmp_path / "moved")})
        other.import_(content, roots=content.settings.roots)
        assert other.settings.roots == (str(tmp_path / "moved"),)


def test_switched_off_exclusions_are_not_taken_over(node, exported, tmp_path):
    content = json.loads(exported.read_text())
    content["settings"]["allow"] = ["secrets"]
    exported.write_text(json.dumps(content))
    with foltr.node.open(tmp_path / "other") as other:
        assert other.import_(other.read_export(exported)).not_taken == ("secrets",)
        assert other.settings.allow == ()


def changed(content, *place, value):
    inner = content
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return content


HOSTILE = {
    "no JSON": lambda content: "{",
    "nothing": lambda content: "",
    "deep": lambda content: "[" * 100_000,
    "another format": lambda content: changed(content, "format", value="foltr-log"),
    "a later version": lambda content: changed(content, "version", value=2),
    "unknown key": lambda content: changed(content, "run", value="rm"),
    "unknown setting": lambda content: changed(content, "settings", "plugins", value=["./x.py"]),
    "wrong setting": lambda content: changed(content, "settings", "workers", value=10**6),
    "relative root": lambda content: changed(content, "settings", "roots", value=["docs"]),
    "root with dots": lambda content: changed(content, "settings", "roots", value=["/home/../etc"]),
    "root that is no text": lambda content: changed(content, "settings", "roots", value=[1]),
    "relative path": lambda content: changed(content, "memory", 0, "path", value="../../etc/passwd"),
    "path with dots": lambda content: changed(content, "memory", 0, "path", value="/a/../b"),
    "path with NUL": lambda content: changed(content, "memory", 0, "path", value="/a\0b"),
    "time": lambda content: changed(content, "memory", 0, "time", value=1e300),
    "negative time": lambda content: changed(content, "memory", 0, "time", value=-1.0),
    "long text": lambda content: changed(content, "memory", 0, "typed", value="x" * 10_000),
    "empty text": lambda content: changed(content, "memory", 0, "typed", value=""),
    "weights": lambda content: changed(content, "weights", value={"version": 1}),
    "large weight": lambda content: changed(content, "weights", value=weights(1e300)),
    "weights of another kind": lambda content: changed(content, "weights", value=weights(1.0, kind="mlp")),
}


def weights(value, kind="linear"):
    features = [{"name": "bm25", "scaling": "range", "weight": value}]
    return {"version": 1, "kind": kind, "features": features, "made": "2024-01-01", "from": "start"}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused_and_changes_nothing(name, exported, tmp_path):
    content = HOSTILE[name](json.loads(exported.read_text()))
    exported.write_text(content if isinstance(content, str) else json.dumps(content))
    with foltr.node.open(tmp_path / "other") as other:
        with pytest.raises(FoltrError, match=r"export\.json"):
            other.import_(other.read_export(exported))
        assert other.settings == type(other.settings)()
        assert other.log.uses() == []
        assert other.versions() == []
    assert not (tmp_path / "other" / "config" / "settings.toml").exists()


def test_learned_weights_move(node, tmp_path, exported):
    content = json.loads(exported.read_text())
    content["weights"] = weights(2.5)
    exported.write_text(json.dumps(content))
    with foltr.node.open(tmp_path / "other") as other:
        assert other.import_(other.read_export(exported)).weights
        assert other.versions()[0].weights.features[0].weight == 2.5
