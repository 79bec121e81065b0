"""Imports point downwards: the contracts of pyproject.toml hold, and they cover every module there is."""

import importlib
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
LAYERS = [contract for contract in CONTRACTS if contract["type"] == "layers"]
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


@pytest.mark.parametrize("upright", LAYERS, ids=lambda contract: contract["containers"][0])
def test_a_broken_contract_would_be_noticed(upright, tmp_path):
    """The same layers upside down."""
    turned = tmp_path / "turned.toml"
    turned.write_text(
        '[tool.importlinter]\nroot_package = "foltr"\n[[tool.importlinter.contracts]]\nname = "upside down"\n'
        f'type = "layers"\ncontainers = {upright["containers"]!r}\nlayers = {upright["layers"][::-1]!r}\n'
    )
    said = lint(turned)
    assert said.returncode == 1
    assert "upside down BROKEN" in said.stdout


@pytest.mark.parametrize("contract", LAYERS, ids=lambda contract: contract["containers"][0])
def test_every_module_has_its_layer(contract):
    (container,) = contract["containers"]
    placed = [name.strip() for layer in contract["layers"] for name in layer.split("|")]
    package = importlib.import_module(container)
    assert sorted(placed) == sorted(module.name for module in pkgutil.iter_modules(package.__path__))


def test_reporting_may_read_records_and_nothing_else():
    (forbidden,) = [
        set(one["forbidden_modules"]) for one in CONTRACTS if "foltr.lab.reporting" in one.get("source_modules", [])
    ]
    every = {f"foltr.{module.name}" for module in pkgutil.iter_modules(foltr.__path__)} - {"foltr.lab"}
    every |= {f"foltr.lab.{module.name}" for module in pkgutil.iter_modules(foltr.lab.__path__)}
    # files: to write a page
    assert every - forbidden == {
        "foltr.lab.records", "foltr.errors", "foltr.types", "foltr.files", "foltr.lab.reporting",
    }  # fmt: skip


@pytest.mark.parametrize("module", ["foltr", "foltr.cli.main"])
def test_the_way_in_is_light(module):
    words = f"import sys, {module}; print(sorted({{'numpy', 'numba', 'polars', 'scipy'}} & set(sys.modules)))"
    said = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True)
    assert said.stdout.strip() == "[]", said.stderr
