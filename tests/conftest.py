"""What every test shares: the place of the real data, and how hypothesis runs."""

import os
import signal
from pathlib import Path

import hypothesis
import pytest

# a kernel compiles at its first call, so no single example has a deadline
hypothesis.settings.register_profile("foltr", deadline=None, derandomize=True)
hypothesis.settings.register_profile("explore", deadline=None, max_examples=1000)
hypothesis.settings.load_profile("foltr")

# a suite that a shell started in the background ignores Ctrl-C, and so would the processes that tests interrupt
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

_BESIDE_THE_PROJECT = Path(__file__).resolve().parents[2] / "shared" / "data"


def _real_data_folder() -> Path | None:
    chosen = os.environ.get("FOLTR_DATA")
    folders = [Path(folder) for folder in chosen.split(os.pathsep)] if chosen else [_BESIDE_THE_PROJECT]
    return next((folder for folder in folders if folder.is_dir()), None)


_REAL = _real_data_folder()


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Bytes do not name a test: compressed ones hold the time, and workers must collect the same names."""
    return argname if isinstance(val, bytes) else None


@pytest.fixture
def real_data(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder with the real data sets; FOLTR_DATA points to it."""
    if _REAL is None:
        pytest.skip("the real data sets are absent: set FOLTR_DATA to the folder that holds mq2007/ ...")
    monkeypatch.setenv("FOLTR_DATA", str(_REAL))
    return _REAL
