"""A cache, settings and a working folder of one's own; the command as a function."""

import os
import shutil
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from laboratory import TINY, Answer

from foltr._kernels.cache import FOLDER

with warnings.catch_warnings():  # the newest click gives up names that typer still imports
    warnings.simplefilter("ignore", DeprecationWarning)
    from foltr.cli.main import main

from foltr.lab.runs.progress import run_plan
from foltr.lab.spec.parse import read

os.environ.setdefault("NUMBA_CACHE_DIR", str(FOLDER.parent))  # processes started here share machine code


@pytest.fixture(scope="session")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Cache and settings of this session, so that made-up data is made once."""
    return tmp_path_factory.mktemp("shelf")


@pytest.fixture(scope="session")
def finished(shelf: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the tiny spec ran to its end, one single run after the other. To be read only."""
    out = tmp_path_factory.mktemp("finished")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FOLTR_CACHE", str(shelf / "cache"))
        spec = out / "tiny.toml"
        spec.write_text(TINY)
        run_plan(read(spec), out / "runs", jobs=1, quiet=True)
    return out / "runs"


@pytest.fixture
def copied(finished: Path, tmp_path: Path) -> Path:
    """The same, to be spoiled."""
    return Path(shutil.copytree(finished, tmp_path / "copied", copy_function=shutil.copy2))


@pytest.fixture(autouse=True)
def own_folders(shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("FOLTR_CACHE", str(shelf / "cache"))
    monkeypatch.setenv("FOLTR_CONFIG", str(tmp_path / "config"))
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("FOLTR_DATA", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """Two settings, two folds, two seeds: eight single runs of some milliseconds."""
    path = tmp_path / "tiny.toml"
    path.write_text(TINY)
    return path


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[..., Answer]:
    """command("run", spec, "--json"): what `foltr` does, in this process."""

    def run(*arguments: Any) -> Answer:
        capfd.readouterr()
        monkeypatch.setattr(sys, "argv", ["foltr", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 1
        return Answer(code, *capfd.readouterr())

    return run


@pytest.fixture
def refused(command: Callable[..., Answer], tmp_path: Path) -> Callable[..., str]:
    """The message of a command that must be refused: exit code 2, one message, nothing on disk or on stdout."""

    def run(*arguments: Any) -> str:
        before = sorted(tmp_path.rglob("*"))
        answer = command(*arguments)
        assert answer.code == 2, answer
        assert answer.out == ""
        assert answer.err.startswith("foltr: ")
        assert answer.err.count("foltr: ") == 1
        assert "Traceback" not in answer.err
        assert sorted(tmp_path.rglob("*")) == before
        return answer.err.removeprefix("foltr: ").strip()

    return run
