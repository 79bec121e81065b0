"""Five search nodes with logs of their own, in a federation that has not begun; no proxy of the environment is used."""

import os
import shutil

import pytest
from five_nodes import NODES, fill
from laptops import Laptops


@pytest.fixture(scope="session")
def filled(tmp_path_factory):
    """The homes of five nodes, made once."""
    folder = tmp_path_factory.mktemp("laptops")
    for number in range(NODES):
        fill(folder / str(number), number)
    return folder


@pytest.fixture
def laptops(filled, tmp_path):
    shutil.copytree(filled, tmp_path / "nodes")
    return Laptops(tmp_path, {k: tmp_path / "nodes" / str(k) / "home" for k in range(NODES)})


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
