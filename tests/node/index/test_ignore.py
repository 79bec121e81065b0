"""Ignore files: the same verdicts as git's, and no pattern that hangs."""

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foltr.node.index import ignore


def ignored(patterns, path, *, is_folder=False):
    found = ignore.parse(patterns).decide(path, is_folder=is_folder)
    return found is not None and not found.negated


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("*.log", "a.log", True),
        ("*.log", "deep/er/a.log", True),
        ("*.log", "a.logs", False),
        ("/a.log", "a.log", True),
        ("/a.log", "deep/a.log", False),
        ("docs/*.txt", "docs/a.txt", True),
        ("docs/*.txt", "docs/x/a.txt", False),
        ("docs/*.txt", "x/docs/a.txt", False),
        ("docs/**/a.txt", "docs/x/y/a.txt", True),
        ("docs/**/a.txt", "docs/a.txt", True),
        ("**/a.txt", "x/a.txt", True),
        ("docs/**", "docs/x", True),
        ("docs/**", "docs", False),
        ("a?c", "abc", True),
        ("a[!b]c", "abc", False),
        ("a[b-d]c", "acc", True),
        ("[[:digit:]]x", "7x", True),
        ("# comment", "# comment", False),
        ("\\#file", "#file", True),
        ("\\!file", "!file", True),
        ("name  ", "name", True),
        ("name\\ ", "name ", True),
        ("[open", "[open", False),
        ("", "x", False),
        ("a*b*c", "aXbXbXc", True),
        ("a*b*c", "aXbXbX", False),
    ],
)
def test_patterns_by_eye(pattern, path, expected):
    assert ignored([pattern], path) is expected


def test_folders_negation_and_the_last_match():
    assert ignored(["build/"], "build", is_folder=True)
    assert not ignored(["build/"], "build")
    assert not ignored(["*.log", "!keep.log"], "keep.log")
    assert ignored(["!keep.log", "*.log"], "keep.log")
    assert ignore.parse(["", "# x", "*.log"]).decide("a.log", is_folder=False).line == 3


PIECES = ["a", "b", "ab", "*", "?", "**", "/", "[ab]", "[!a]", "\\*", ".", "a*b", "*.b"]
patterns = st.lists(st.sampled_from(PIECES), min_size=1, max_size=5).map("".join)
lines = st.builds(
    lambda mark, text, slash: mark + text + slash, st.sampled_from(["", "!"]), patterns, st.sampled_from(["", "/"])
)
NAMES = ["a", "b", "ab", "ba", "a.b", "aab", "*", "bb.b"]


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """A tree of three levels in which git decides."""
    top = tmp_path_factory.mktemp("repository")
    for first in NAMES[:4]:
        for second in NAMES[:3]:
            (top / first / second).mkdir(parents=True)
    subprocess.run(["git", "init", "-q", str(top)], check=True)
    return top


@given(chosen=st.lists(lines, min_size=1, max_size=3))
@settings(max_examples=150, deadline=None)
def test_verdicts_equal_those_of_git(repository, chosen):
    (repository / ".gitignore").write_text("\n".join(chosen) + "\n")
    folders = [f"{first}/{second}" for first in NAMES[:4] for second in NAMES[:3]]
    paths = [*NAMES[4:], *(f"{folder}/{name}" for folder in folders[::2] for name in NAMES)]
    answer = subprocess.run(
        ["git", "-C", str(repository), "check-ignore", "--no-index", "-z", "--stdin"],
        input="\0".join(paths).encode(), capture_output=True, check=False,
    )  # fmt: skip
    theirs = {path for path in answer.stdout.decode().split("\0") if path}
    ours = {path for path in paths if excluded_below(ignore.parse(chosen), path)}
    assert ours == theirs


def excluded_below(patterns, path):
    """As a scan does it: an excluded folder is not entered."""
    parts = path.split("/")
    for i in range(1, len(parts) + 1):
        found = patterns.decide("/".join(parts[:i]), is_folder=i < len(parts))
        if found is not None and not found.negated:
            return True
    return False


@pytest.mark.parametrize("pattern", ["*a" * 300 + "b", "**/a/" * 150 + "b", "[a-z]*" * 100 + "1", "(a+)+$" * 50])
def test_hostile_patterns_take_linear_time(pattern):
    """Backtracking would need more steps than there are atoms; that the test ends is the proof."""
    assert not ignored([pattern], "a" * 250)
    assert not ignored([pattern], "/".join("a" * 1900))


def test_hostile_ignore_files_are_read_up_to_a_bound():
    assert len(ignore.read(b"x*y\n" * 100_000).others) == 5000
    assert ignore.read(b"\xff\xfe\x00*.log\n\xe9*x\n").decide("a", is_folder=False) is None
    assert ignore.read("\n".join("[" * i for i in range(50)).encode()).decide("[", is_folder=False) is None
