"""A wheel installed without extras is light, and trains a client from a list of interactions."""

import subprocess
import sys
from pathlib import Path

import pytest
from test_light_client import HEAVY, TRAIN

PROJECT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_a_wheel_without_extras_trains_a_client(tmp_path):
    def call(*command):
        return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True, cwd=tmp_path).stdout

    call(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", tmp_path, PROJECT)
    (wheel,) = tmp_path.glob("*.whl")
    call(sys.executable, "-m", "venv", tmp_path / "light")
    python = tmp_path / "light" / "bin" / "python"
    call(python, "-m", "pip", "install", "--quiet", wheel)
    installed = call(python, "-m", "pip", "list", "--format=freeze").lower()
    assert not any(name in installed for name in ("numba", "scipy", "polars", "dp-accounting", "matplotlib"))
    assert call(python, "-c", f"HEAVY = {HEAVY!r}\n{TRAIN}").strip() == "[]"
    assert call(python, "-m", "foltr", "--version").startswith("foltr ")
