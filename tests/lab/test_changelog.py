"""The changelog is for users: versions, short lines, and the version that this code has."""

import re
import tomllib
from pathlib import Path

import foltr

PROJECT = Path(__file__).resolve().parents[2]
CHANGELOG = (PROJECT / "CHANGELOG.md").read_text(encoding="utf-8")
PACKAGE = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
HEADINGS = re.findall(r"^## (.+)$", CHANGELOG, flags=re.MULTILINE)


def test_no_line_has_more_than_120_characters():
    too_long = [line for line in CHANGELOG.splitlines() if len(line) > 120]
    assert not too_long


def test_every_change_is_one_line():
    continued = re.findall(r"^- .*\n[ \t]+\S.*$", CHANGELOG, flags=re.MULTILINE)
    assert not continued


def test_every_section_is_a_version_and_newer_ones_stand_above():
    versions = [re.match(r"(\d+)\.(\d+)\.(\d+)(?:, not yet released)?$", heading) for heading in HEADINGS]
    assert all(versions), HEADINGS
    numbers = [tuple(map(int, version.groups())) for version in versions]
    assert numbers == sorted(set(numbers), reverse=True)


def test_the_newest_section_is_the_version_of_the_package():
    released, unreleased = HEADINGS[0], HEADINGS[0].removesuffix(", not yet released")
    expected = unreleased if released == unreleased else f"{unreleased}.dev0"
    assert PACKAGE["version"] == foltr.__version__ == expected


def test_the_citation_names_a_version_of_the_changelog():
    cited = re.search(r"^version: (\S+)$", (PROJECT / "CITATION.cff").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert cited is not None
    assert cited[1] in {heading.split(",")[0] for heading in HEADINGS}


def test_only_systems_with_file_locks_of_posix_are_declared():
    systems = {entry for entry in PACKAGE["classifiers"] if entry.startswith("Operating System")}
    assert systems == {"Operating System :: POSIX :: Linux", "Operating System :: MacOS"}
