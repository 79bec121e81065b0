"""CONTRIBUTING.md shows the plug-ins that the tests run, to the letter."""

from pathlib import Path

import pytest
from shown import TASKS, blocks, section

PLUGINS = Path(__file__).parent
EXAMPLES = sorted([*(PLUGINS / "example").glob("*.py"), *(PLUGINS / "added").glob("*.py")])
BLOCKS = [text for language, text in blocks() if language == "python"]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_the_example_is_shown(example):
    assert example.read_text(encoding="utf-8") in BLOCKS


def test_nothing_else_is_shown():
    applied = [text for task in TASKS for language, text in blocks(section(task)) if language == "python"]
    assert len(BLOCKS) == len(EXAMPLES) + len(applied) == 8 + 1
