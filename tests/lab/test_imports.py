"""Imports point downwards: the contracts of pyproject.toml hold, and they cover every module there is."""

import os
import pkgutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import foltr
import foltr.lab

PROJECT = Path(__file__).resolve().parents[2]
CONTRACTS = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
LINT = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(sys.argv[1], no_cache=True))"


def lint(config, **environment):
    return subprocess.run(
        [sys.executable, "-c", LINT, str(config)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONIOENCODING": "utf-8", **environment},
    )


def test_every_contract_is_kept():
    said = lint(PROJECT / "pyproject.toml")
    assert said.returncode == 0, said.stdout
    assert f"Contracts: {len(CONTRACTS)} kept, 0 broken." in said.stdout


def test_a_broken_contract_would_be_noticed(tmp_path):
    """The same layers upside down."""
    (upright,) = [one for one in CONTRACTS if one["type"] == "layers"]
    turned = tmp_path / "turned.toml"
    turned.write_text(
        '[tool.importlinter]\nroot_package = "foltr"\n[[tool.importlinter.contracts]]\nname = "upside down"\n'
        f'type = "layers"\ncontainers = ["foltr"]\nlayers = {upright["layers"][::-1]!r}\n'
    )
    said = lint(turned)
    assert said.returncode == 1
    assert "upside down BROKEN" in said.stdout


def test_every_module_has_its_layer():
    (layers,) = [one["layers"] for one in CONTRACTS if one["type"] == "layers"]
    placed = [name.strip() for layer in layers for name in layer.split("|")]
    assert sorted(placed) == sorted(module.name for module in pkgutil.iter_modules(foltr.__path__))


def test_reporting_may_read_records_and_nothing_else():
    (forbidden,) = [
        set(one["forbidden_modules"]) for one in CONTRACTS if "foltr.lab.reporting" in one.get("source_modules", [])
    ]
    every = {f"foltr.{module.name}" for module in pkgutil.iter_modules(foltr.__path__)} - {"foltr.lab"}
    every |= {f"foltr.lab.{module.name}" for module in pkgutil.iter_modules(foltr.lab.__path__)}
    # atomic: to write a page
    assert every - forbidden == {
        "foltr.lab.records", "foltr.errors", "foltr.types", "foltr.atomic", "foltr.lab.reporting",
    }  # fmt: skip


@pytest.mark.parametrize("module", ["foltr", "foltr.cli.main"])
def test_the_way_in_is_light(module):
    words = f"import sys, {module}; print(sorted({{'numpy', 'numba', 'polars', 'scipy'}} & set(sys.modules)))"
    said = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True)
    assert said.stdout.strip() == "[]", said.stderr
