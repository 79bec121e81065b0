"""Words that this project gave up for those of the field: no identifier, spec key or metric name uses one.

Looked at: names, attributes, arguments, fields, keyword arguments, imports and short string constants of all modules
but `lab.spec.renamed`, which lists old names, and the keys of all figures.
"""

import ast
import re
import tomllib
from pathlib import Path

import pytest

import foltr

SOURCE = Path(foltr.__file__).parent
OLD_NAMES = SOURCE / "lab" / "spec" / "renamed.py"
MODULES = sorted(set(SOURCE.rglob("*.py")) - {OLD_NAMES})
FIGURES = sorted(SOURCE.rglob("*.toml"))

# as they are written
BANNED = frozenset({
    "Answer", "Behaviour", "Catalogue", "FADED", "Found", "HEAT", "Holdings", "Honest", "Online", "Room", "Scratch",
    "Session", "Single", "Tamper", "Tick", "Twin", "Watch", "Wish", "alone", "assumed", "bad", "behaviour",
    "behaviours", "carry_out", "catalogue", "climb", "deviation", "deviations", "faded", "gap", "gaps", "holder",
    "holders", "holdings", "kept", "leaver", "leavers", "lived", "loser", "losers", "made", "middle", "most_bad",
    "num_bad", "on_alarm", "others_that_fit", "pull", "put_out", "reckon", "reckoned", "room", "rooms", "rule",
    "session", "sessions", "tamper", "tampered", "told", "true_rows", "turn", "turns", "twin", "twins", "watch",
    "whole_file", "winner", "winners", "wish", "wishes", "worlds", "online_discounted", "recall_rate", "found_rate",
    "cover_rate", "mb_kept",
})  # fmt: skip

# names of other packages that are called so
FOREIGN = {  # names of other packages: watchfiles.watch, an argument of subprocess.Popen
    ("node/index/watch.py", "watch"),
    ("node/extract/child.py", "start_new_session"),
    ("node/page/following.py", "start_new_session"),
}

# part of an identifier, between underscores
BANNED_PARTS = frozenset({
    "behaviour", "behaviours", "catalogue", "holders", "leaver", "leavers", "loser", "losers", "reckon", "reckoned",
    "session", "sessions", "tamper", "tampered", "twin", "twins", "winner", "winners", "worlds",
})  # fmt: skip


def name_of(path):
    return path.relative_to(SOURCE).as_posix()


def identifiers(tree):
    """Every identifier of a module, and every string constant that could be a key or a metric's name."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                yield node.lineno, name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield node.lineno, name
            case ast.keyword(arg=str(name)):
                yield node.value.lineno, name
            case ast.alias(name=name, asname=other):
                yield node.lineno, other or name.rpartition(".")[2]
            case ast.Constant(value=str(text)) if re.fullmatch(r"[\w@.\-]+", text):
                yield from ((node.lineno, part) for part in text.split("."))
            case _:
                pass


def is_banned(name):
    parts = re.split(r"[_\-@]", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())
    return name.lstrip("_") in BANNED or bool(BANNED_PARTS.intersection(parts))


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_identifiers_are_words_of_the_field(path):
    found = [
        f"line {line}: {name}"
        for line, name in identifiers(ast.parse(path.read_text("utf-8")))
        if is_banned(name) and (name_of(path), name) not in FOREIGN
    ]
    assert not found


def docstrings(tree):
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    return [text for node in ast.walk(tree) if isinstance(node, kinds) and (text := ast.get_docstring(node))]


def opens_with_a_question(docstring):
    return re.match(r"(What|Who|How|The same)\b", docstring) is not None


def test_docstrings_begin_with_a_verb_or_with_the_thing_that_is_returned():
    """Not with a question that the reader has to answer; one in a hundred may."""
    every = [(path, text) for path in MODULES for text in docstrings(ast.parse(path.read_text("utf-8")))]
    questions = [f"{name_of(path)}: {text.splitlines()[0]}" for path, text in every if opens_with_a_question(text)]
    assert len(questions) * 100 <= len(every), "\n".join(questions)


def test_questions_at_the_beginning_are_found():
    tree = ast.parse(
        "def f():\n    'What is sent.'\nclass A:\n    'Whole numbers.'\n    def m(self):\n        'The same.'"
    )
    assert [opens_with_a_question(text) for text in docstrings(tree)] == [True, False, True]


def keys_of(value):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from key.split(".")
            yield from keys_of(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from keys_of(inner)


@pytest.mark.parametrize("path", FIGURES, ids=name_of)
def test_keys_of_figures_are_words_of_the_field(path):
    assert not [key for key in keys_of(tomllib.loads(path.read_text("utf-8"))) if is_banned(key)]


@pytest.mark.parametrize(
    "source",
    ["losers = 1", "def f(*, holders): ...", "class Session: ...", "f(twin=1)", "x.kept", "from a import b as told",
     "{'attack.assumed': 1}", "def numpy_twin(): ...", "class WholeSession: ..."],
)  # fmt: skip
def test_the_search_finds_them(source):
    assert any(is_banned(name) for _, name in identifiers(ast.parse(source)))


@pytest.mark.parametrize("source", ["negatives = 1", "x.num_attackers", "from_scratch = 1", "'a rule of thumb'"])
def test_and_nothing_else(source):
    assert not any(is_banned(name) for _, name in identifiers(ast.parse(source)))
