"""Machine code on disk: never stale, never damaged, and compiled again only where code has changed."""

import hashlib
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import foltr
from foltr._kernels.cache import source_fingerprint

# numba comes first, as in a notebook; a cache hit is counted by numba itself
ASK = """
import numba
import numpy as np
from foltr._kernels.probe import fill_uniform
out = np.zeros(3)
fill_uniform(np.uint64(5), np.uint64(7), 0, out)
print(float(out.sum()), sum(fill_uniform.stats.cache_hits.values()))
"""


PROBE = """
from foltr._kernels.compile import kernel
from foltr._kernels.rng import uniform_at


@kernel
def fill_uniform(start, stride, first, out):
    for i in range(out.size):
        out[i] = uniform_at(start, stride, first + i)
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the package with a small kernel, to be edited."""
    source = Path(foltr.__file__).parent
    wanted = shutil.copytree(source, tmp_path / "src" / "foltr", ignore=shutil.ignore_patterns("__pycache__", "lab"))
    (Path(wanted) / "_kernels" / "probe.py").write_text(PROBE)
    return Path(wanted)


def ask(package: Path, **more: str) -> tuple[float, bool]:
    """A number of a kernel in a new process, and whether its machine code came from the cache."""
    environment = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    environment |= {"PYTHONPATH": str(package.parent), "FOLTR_CACHE": str(package.parent / "cache")} | more
    answer = subprocess.run([sys.executable, "-c", ASK], env=environment, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    number, hits = answer.stdout.split()
    return float(number), int(hits) > 0


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_an_edited_callee_is_never_run_stale_though_numba_was_imported_first(package):
    before, _ = ask(package)
    assert ask(package) == (before, True)
    edit(package / "_kernels" / "rng.py", "_TO_UNIT = 2.0**-53", "_TO_UNIT = 2.0**-54")
    after, cached = ask(package)
    assert (after, cached) == (pytest.approx(before / 2), False)


def test_an_edited_module_that_kernels_import_is_never_run_stale(package):
    before, _ = ask(package)
    edit(package / "rng.py", "0xBF58476D1CE4E5B9", "0xBF58476D1CE4E5B7")
    after, cached = ask(package)
    assert after != before
    assert not cached


def test_an_edited_docstring_or_comment_compiles_nothing(package):
    before, _ = ask(package)
    path = package / "_kernels" / "rng.py"
    edit(path, '"""The index-th number of a stream, in [0, 1)."""', '"""Number `index`.\n\n    Of a stream.\n    """')
    path.write_text("# a comment\n\n\n" + path.read_text())
    assert ask(package) == (before, True)


def test_an_added_docstring_compiles_nothing(package):
    before, _ = ask(package)
    edit(
        package / "_kernels" / "probe.py",
        "first, out):\n    for",
        'first, out):\n    """New."""\n    for',
    )
    assert ask(package) == (before, True)


def test_a_damaged_file_is_deleted_and_compiled_again(package):
    before, _ = ask(package)
    (path,) = (package.parent / "cache").rglob("*fill_uniform*")
    whole = path.read_bytes()
    flipped = [whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :] for at in (0, 40, len(whole) - 1)]
    for damaged in (b"", whole[:40], whole[:-1], *flipped):
        path.write_bytes(damaged)
        assert ask(package) == (before, False)
        assert path.read_bytes() != damaged
    assert ask(package) == (before, True)


def test_a_file_that_is_whole_but_of_another_kind_is_compiled_again(package):
    """As after an update of a package that changed its classes."""
    before, _ = ask(package)
    (path,) = (package.parent / "cache").rglob("*fill_uniform*")
    payload = pickle.dumps(("something", "else"))
    path.write_bytes(hashlib.sha256(payload).digest() + payload)
    assert ask(package) == (before, False)
    assert ask(package) == (before, True)


def test_only_the_two_newest_fingerprints_are_stored(package):
    for bit in (54, 55, 56):
        path = package / "_kernels" / "rng.py"
        edit(path, f"_TO_UNIT = 2.0**-{bit - 1}", f"_TO_UNIT = 2.0**-{bit}")
        ask(package)
    assert len(list((package.parent / "cache" / "numba").iterdir())) == 2


def test_a_chosen_folder_gets_the_fingerprint_appended_and_only_our_folders_are_deleted(package, tmp_path):
    chosen = tmp_path / "chosen"
    theirs = [chosen / f"theirs_{n}" for n in range(3)]
    for folder in theirs:
        folder.mkdir(parents=True)
    assert ask(package, NUMBA_CACHE_DIR=str(chosen))[1] is False
    assert ask(package, NUMBA_CACHE_DIR=str(chosen))[1] is True
    assert [path.name for path in chosen.glob("foltr-*")] == [f"foltr-{source_fingerprint(package)}"]
    assert all(folder.exists() for folder in theirs)


def test_where_nothing_can_be_written_kernels_run_without_a_cache(package, tmp_path):
    blocked = tmp_path / "a file"
    blocked.write_text("")
    before, _ = ask(package)
    assert ask(package, FOLTR_CACHE=str(blocked / "below")) == (before, False)


def test_the_choice_of_simd_has_a_folder_of_its_own(package):
    ask(package)
    ask(package, FOLTR_SIMD="0")
    assert len(list((package.parent / "cache" / "numba").iterdir())) == 2
