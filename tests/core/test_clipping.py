"""Whoever clips calls one function, and the kernels that clip equal it."""

import ast
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import foltr
from foltr._kernels.aggregation import bounded_mean
from foltr._kernels.pdgd import scale_back
from foltr.clipping import clipped_to, norms

ROWS = arrays(float, (5, 4), elements=st.floats(-1e3, 1e3))


@given(ROWS, st.floats(0.01, 100))
def test_the_kernel_of_the_projection_equals_it(rows, clip):
    for row in rows:
        projected = row.copy()
        scale_back(projected, clip)
        assert projected == pytest.approx(clipped_to(row, clip=clip)[0], rel=1e-12, abs=1e-15)


@given(ROWS)
def test_the_kernel_of_norm_bounding_equals_it(rows):
    mean, bound = np.zeros(rows.shape[1]), np.median(norms(rows))
    bounded_mean(rows, np.ones(len(rows)), np.empty((2, len(rows))), mean)
    expected = clipped_to(rows, clip=bound)[0].mean(axis=0) if bound else np.zeros(4)
    assert mean == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_by_eye():
    clipped, before = clipped_to(np.array([[3.0, 4.0], [0.3, 0.4], [np.nan, 1.0]]), clip=1.0)
    assert clipped == pytest.approx(np.array([[0.6, 0.8], [0.3, 0.4], [0.0, 0.0]]))
    assert before == pytest.approx([5.0, 0.5, 0.0])
    assert clipped_to(np.array([3.0, -1.0]), clip=2.0, norm="l1")[0] == pytest.approx([1.5, -0.5])


ROUND = ("client.py", "clipping.py", "federation", "secagg", "privacy", "node/learning/federated.py")


def test_whatever_a_round_touches_reads_no_clock_but_the_one_it_is_given():
    """`time.time` and `time.monotonic` may be the default of a parameter or field `clock`, and nothing else."""
    package = Path(foltr.__file__).parent
    files = [
        file for name in ROUND for file in ((package / name).rglob("*.py") if "." not in name else [package / name])
    ]
    assert len(files) > 50
    for file in files:
        tree = ast.parse(file.read_text())
        allowed = {id(default) for default in _clock_defaults(tree)}
        read = [node for node in ast.walk(tree) if _is_clock(node) and id(node) not in allowed]
        assert not read, f"{file.name}, line {read[0].lineno}"


def _is_clock(node):
    return isinstance(node, ast.Attribute) and ast.unparse(node) in ("time.time", "time.monotonic", "datetime.now")


def _clock_defaults(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == "clock" and node.value is not None:
            yield node.value
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            arguments = node.args
            positional = [*arguments.posonlyargs, *arguments.args]
            with_default = positional[len(positional) - len(arguments.defaults) :]
            named = list(zip(with_default, arguments.defaults, strict=True))
            named += zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
            yield from (default for argument, default in named if argument.arg == "clock" and default is not None)
