"""JSON without NaN and Infinity: one function that writes it, and no other writer that could let them through."""

import ast
import json
import math
from pathlib import Path

import pytest

import foltr
from foltr.files import dump_json, write_json

HOME = Path(foltr.__file__).parent
# texts that are hashed or shown and never read back as JSON: (module, function)
NOT_WRITTEN = {
    ("lab/data/cache.py", "keep"),
    ("lab/reporting/labels.py", "plain"),
    ("lab/reporting/privacy.py", "privacy_cards"),
    ("lab/runs/run.py", "prepare"),
    ("lab/runs/store.py", "key_of"),
}


def test_nan_is_null_and_infinity_a_word_wherever_they_are():
    content = {"a": [math.nan, (1.5, math.inf)], "b": {"c": -math.inf}, "d": None, "e": True, "f": "NaN"}
    assert json.loads(dump_json(content), parse_constant=pytest.fail) == {
        "a": [None, [1.5, "infinite"]], "b": {"c": "-infinite"}, "d": None, "e": True, "f": "NaN",
    }  # fmt: skip


def test_files_follow_the_same_rule(tmp_path):
    write_json(tmp_path / "one.json", [math.nan, "größer"])
    assert (tmp_path / "one.json").read_text(encoding="utf-8") == '[\n null,\n "größer"\n]'


def writers():
    """(module, function, call) of every json.dump and json.dumps in the package."""
    for path in sorted(HOME.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
            for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
                if ast.unparse(call.func) in ("json.dump", "json.dumps"):
                    yield path.relative_to(HOME).as_posix(), function.name, call


def test_every_writer_refuses_what_is_not_json():
    loose = {
        (module, function)
        for module, function, call in writers()
        if not any(word.arg == "allow_nan" and ast.unparse(word.value) == "False" for word in call.keywords)
    }
    assert loose <= NOT_WRITTEN
    assert len(list(writers())) > len(NOT_WRITTEN)
