"""The changes to this package that CONTRIBUTING.md shows, applied to a copy of it."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
TEXT = (PROJECT / "CONTRIBUTING.md").read_text(encoding="utf-8")
TASKS = {"A document format": 3, "A ranking feature": 2, "A page": 3}  # files of the package that a change touches


def section(heading):
    """The text below a heading, up to the next one of its level."""
    return re.search(rf"(?ms)^## {heading}\n(.*?)(?=^## |\Z)", TEXT)[1]


def blocks(text=TEXT):
    """(language, content) of every block of code."""
    return re.findall(r"(?ms)^```(\w+)\n(.*?)^```", text)


def new_files(text):
    """Path -> content of the files that are shown whole."""
    return dict(re.findall(r"(?ms)^`(\S+)`:\n\n```\w+\n(.*?)^```", text))


def edits(text):
    """(path, text before, text after) of every hunk. Hunks have no line numbers: what they replace occurs once."""
    for language, content in blocks(text):
        if language == "diff":
            for path, hunks in re.findall(r"(?ms)^--- (\S+)\n(.*?)(?=^--- |\Z)", content):
                for hunk in re.split(r"(?m)^@@\n", hunks)[1:]:
                    lines = hunk.splitlines(keepends=True)
                    yield (
                        path,
                        "".join(line[1:] or "\n" for line in lines if line[0] != "+"),
                        "".join(line[1:] or "\n" for line in lines if line[0] != "-"),
                    )


class Changed:
    """A copy of the package with the change of a section."""

    def __init__(self, folder, heading):
        self.folder = folder
        shutil.copytree(PROJECT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copytree(PROJECT / "tests" / "text", folder / "tests" / "text")
        shutil.copy(PROJECT / "pyproject.toml", folder)
        self.paths = set()
        for path, content in new_files(section(heading)).items():
            assert not (folder / path).exists(), f"{path} is no new file"
            (folder / path).write_text(content, encoding="utf-8")
            self.paths.add(path)
        for path, before, after in edits(section(heading)):
            text = (folder / path).read_text(encoding="utf-8")
            assert text.count(before) == 1, (
                f"CONTRIBUTING.md changes lines that {path} has not, or has twice:\n{before}"
            )
            (folder / path).write_text(text.replace(before, after), encoding="utf-8")
            self.paths.add(path)

    def environment(self, **variables):
        """For a process that imports the copy."""
        return {**os.environ, "PYTHONPATH": str(self.folder / "src"), "NO_COLOR": "1", **variables}

    def run(self, *command, **variables):
        """The output of a Python process that imports the copy."""
        done = subprocess.run(
            [sys.executable, *command], env=self.environment(**variables), cwd=self.folder, text=True,
            capture_output=True, timeout=300,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout
