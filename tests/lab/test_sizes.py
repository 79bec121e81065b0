"""Limits on the size of functions and modules, and on how often code asks for a kind instead of using its contract."""

import ast
from pathlib import Path

import pytest

import foltr
from foltr import registry
from foltr.lab.spec.setting import TABLES, TEXT_TABLES

SOURCE = Path(foltr.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))
SIMD = SOURCE / "_kernels" / "simd"  # signatures of LLVM functions


def name_of(path):
    return path.relative_to(SOURCE).as_posix()


def parameters(function):
    given = function.args
    every = [*given.posonlyargs, *given.args, *given.kwonlyargs]
    return [one.arg for one in every if one.arg not in ("self", "cls")]


@pytest.mark.parametrize("path", [path for path in MODULES if SIMD not in path.parents], ids=name_of)
def test_functions_have_at_most_eight_parameters(path):
    tree = ast.parse(path.read_text("utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    too_many = {one.name: parameters(one) for one in functions if len(parameters(one)) > 8}
    assert not too_many


def test_modules_have_at_most_500_lines_and_few_more_than_400():
    lines = {name_of(path): len(path.read_text("utf-8").splitlines()) for path in MODULES}
    assert not {name for name, length in lines.items() if length > 500}
    assert len([name for name, length in lines.items() if length > 400]) <= len(lines) / 100


def kinds():
    """Names of all classes that a spec can choose between."""
    slots = [registry.kind(slot, name) for slot in registry.SLOTS for name in registry.names(slot)]
    every = [TABLES, *TEXT_TABLES.values()]
    tables = [struct for known in every for table in known.values() for struct in table.values()]
    return {one.__name__ for one in [*slots, *tables] if one.__module__.startswith("foltr.")}


def asked_kinds(tree):
    """Every kind that an isinstance in a module asks for."""
    known = kinds()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
            names = {one.id for one in ast.walk(node.args[1]) if isinstance(one, ast.Name)}
            if names & known:
                yield ast.unparse(node)


def test_kinds_are_asked_for_at_most_40_times():
    found = [f"{name_of(path)}: {call}" for path in MODULES for call in asked_kinds(ast.parse(path.read_text("utf-8")))]
    assert found, "the search finds nothing at all"
    assert len(found) <= 40, "\n".join(found)
