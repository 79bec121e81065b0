"""CONTRIBUTING.md shows the plug-ins that the tests run, to the letter."""

import re
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
PLUGINS = PROJECT / "tests" / "plugins"
EXAMPLES = sorted([*(PLUGINS / "example").glob("*.py"), *(PLUGINS / "added").glob("*.py")])
BLOCKS = re.findall(r"```python\n(.*?)```", (PROJECT / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_the_example_is_shown(example):
    assert example.read_text(encoding="utf-8") in BLOCKS


def test_nothing_else_is_shown():
    assert len(BLOCKS) == len(EXAMPLES) == 8
