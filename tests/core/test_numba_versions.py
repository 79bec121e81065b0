"""The declared range of numba is the tested one, and a version that mixes up records of arrays is refused."""

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numba import _dispatcher

from foltr._kernels.machine import TESTED_NUMBA
from foltr.types import Array

PROJECT = Path(__file__).resolve().parents[2]


class Record(NamedTuple):
    """Longer than 40 bytes in the fingerprint of a call; older versions of numba lose these, and the first type."""

    first: Array
    second: Array
    third: Array


def test_the_fingerprint_of_a_record_has_all_its_types():
    """By which numba's dispatcher chooses the machine code of a call."""
    rest = np.zeros(3)
    kinds = (np.float64, np.int64, np.float32, np.int32, np.int8)
    found = [_dispatcher.compute_fingerprint(Record(np.zeros(2, kind), rest, rest)) for kind in kinds]
    assert all(one.startswith(b"Record(first") for one in found)
    assert len(set(found)) == len(kinds)


def test_the_range_in_the_project_file_is_the_tested_one():
    extras = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    lowest, beyond = (".".join(map(str, version)) for version in TESTED_NUMBA)
    assert f"numba>={lowest},<{beyond}" in extras["lab"]


def test_an_older_numba_is_refused_with_what_to_do():
    code = (
        "import numba; numba.__version__ = '0.60.0'\n"
        "from foltr.errors import FoltrError\n"
        "try:\n    import foltr._kernels.rng\n"
        "except FoltrError as problem:\n    print(problem)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "install numba 0.61 or newer" in said
