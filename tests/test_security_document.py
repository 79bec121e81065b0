"""The security document names code and tests: all of them exist, and every row of a table names both."""

import ast
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCUMENT = ROOT / "docs" / "security.md"
TEXT = DOCUMENT.read_text("utf-8")
MODULES = sorted(set(re.findall(r"`(foltr(?:\.\w+)+)`", TEXT)))
TESTS = sorted(set(re.findall(r"`(tests/[\w/.:]+)`", TEXT)))
ROWS = [line for line in TEXT.splitlines() if line.startswith("|") and "`tests/" in line]


def functions(path: Path) -> set[str]:
    return {node.name for node in ast.parse(path.read_text("utf-8")).body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("name", MODULES)
def test_the_code_exists(name: str):
    importlib.import_module(name)


@pytest.mark.parametrize("name", TESTS)
def test_the_test_exists(name: str):
    path, _, function = name.partition("::")
    assert (ROOT / path).exists()
    assert not function or function in functions(ROOT / path)


def test_every_guarantee_names_its_code_and_its_tests():
    assert len(ROWS) > 20
    assert all("`foltr." in row for row in ROWS)


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\]\(([^)#]+)\)", TEXT))))
def test_links_lead_somewhere(target: str):
    assert (DOCUMENT.parent / target).exists()
