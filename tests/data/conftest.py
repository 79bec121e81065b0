"""Each test here has a cache and settings of its own."""

import pytest


@pytest.fixture(autouse=True)
def own_folders(tmp_path_factory, monkeypatch):
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("FOLTR_CACHE", str(home / "cache"))
    monkeypatch.setenv("FOLTR_CONFIG", str(home / "config"))
    monkeypatch.delenv("FOLTR_DATA", raising=False)
    monkeypatch.chdir(home)
    return home
