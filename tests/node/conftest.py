"""What tests of searching and of the page share."""

import pytest
from fake_desktop import Desktop


@pytest.fixture
def opened(tmp_path, monkeypatch):
    """A desktop with an xdg-open that writes down what it gets; called, it returns the next call."""
    desktop = Desktop(tmp_path / "desktop", monkeypatch.setenv)
    desktop.program("xdg-open")
    return desktop
