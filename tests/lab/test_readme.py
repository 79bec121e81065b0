"""README: its parts in their order, on one page and a half, with links that lead somewhere."""

import re
import tomllib
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
README = (PROJECT / "README.md").read_text("utf-8")
DOCUMENTS = [PROJECT / "README.md", PROJECT / "CONTRIBUTING.md", *sorted((PROJECT / "docs").glob("*.md"))]


def test_readme_has_its_parts_in_order_within_120_lines():
    parts = [
        "# foltr",
        "## For whom",
        "## What it looks like",
        "## Two commands",
        "## Five findings",
        "## Further reading",
    ]
    headings = [line for line in README.splitlines() if line.startswith("#")]
    assert [heading for heading in headings if heading in parts] == parts
    assert len(README.splitlines()) <= 120


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_to_files_of_the_project(document):
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", document.read_text("utf-8"))
    missing = [link for link in links if ":" not in link and not (document.parent / link).exists()]
    assert not missing


def test_readme_and_package_name_the_same_operating_systems():
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text("utf-8"))["project"]
    systems = {line.rpartition(" :: ")[2] for line in project["classifiers"] if line.startswith("Operating System")}
    assert systems == {"Linux", "MacOS"}
    assert "Linux or macOS" in README
