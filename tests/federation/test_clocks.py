"""Clocks are arguments in everything that a round touches: no code there reads the time by itself."""

import ast
from pathlib import Path

import pytest

import foltr

SOURCE = Path(foltr.__file__).parent
PLACES = (
    "federation", "secagg", "privacy", "learners", "rankers", "client.py", "clipping.py", "types.py", "rng.py",
    "node/learning/federated.py", "node/learning/versions.py", "node/learning/log.py", "lab/people/deployed.py",
)  # fmt: skip
MODULES = sorted(
    path
    for place in PLACES
    for path in ([SOURCE / place] if place.endswith(".py") else (SOURCE / place).rglob("*.py"))
)  # fmt: skip
READERS = {
    "time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "localtime", "gmtime", "ctime",
    "strftime", "sleep",
}  # fmt: skip
NOW = {"now", "utcnow", "today"}


def defaults(tree):
    """Values that a caller can replace: defaults of parameters and fields that are declared as a Clock."""
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "Clock":
            yield node.value
        if isinstance(node, ast.FunctionDef):
            given = node.args
            positional = [*given.posonlyargs, *given.args]
            pairs = [*zip(positional[::-1], given.defaults[::-1], strict=False)]
            pairs += zip(given.kwonlyargs, given.kw_defaults, strict=True)
            for parameter, value in pairs:
                if parameter.annotation is not None and ast.unparse(parameter.annotation) == "Clock":
                    yield value


def read_clocks(text):
    """Lines that read the time, or could."""
    tree = ast.parse(text)
    replaceable = {id(value) for value in defaults(tree)}
    for node in ast.walk(tree):
        match node:
            case ast.ImportFrom(module="time"):
                yield node.lineno
            case ast.Import(names=names) if any(entry.name == "time" and entry.asname for entry in names):
                yield node.lineno
            case ast.Attribute(value=ast.Name(id="time"), attr=name) if name in READERS and id(node) not in replaceable:
                yield node.lineno
            case ast.Attribute(value=value, attr=name) if name in NOW and "date" in ast.unparse(value):
                yield node.lineno
            case _:
                pass


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_the_time_is_read_through_an_argument_only(path):
    assert not list(read_clocks(path.read_text("utf-8")))


@pytest.mark.parametrize(
    "text",
    [
        "import time\nstart = time.monotonic()",
        "import time\ndef wait(seconds=time.time): ...",
        "from time import monotonic",
        "import time as t",
        "import datetime\nday = datetime.datetime.now()",
        "import datetime\nday = datetime.date.today()",
    ],
)
def test_a_clock_that_nobody_can_replace_would_be_noticed(text):
    assert list(read_clocks(text))


@pytest.mark.parametrize(
    "text",
    [
        "import time\ndef wait(*, clock: Clock = time.time): ...",
        "import time\nclass Side:\n    clock: Clock = time.time",
    ],
)
def test_a_default_that_a_caller_can_replace_is_allowed(text):
    assert not list(read_clocks(text))
