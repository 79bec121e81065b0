"""Kill -9 while a click is logged, while weights are fitted, and torn writes: nothing acknowledged is missing."""

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from logged_lists import NAMES, chosen, taught

from foltr.node.learning import versions
from foltr.node.learning.log import Log

HERE = Path(__file__).parent
LOGGING = """
import sys
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from logged_lists import chosen
from foltr.node.learning.log import Log
with Log(Path(sys.argv[1])) as log:
    for number in range(10**6):
        print(chosen(log, number), flush=True)  # acknowledged
"""
TRAINING = """
import sys
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from foltr.node.learning import versions
from foltr.node.learning.log import Log
with Log(Path(sys.argv[1])) as log:
    for number in range(10**6):
        print(versions.refit(log, 1e9, force=True).version, flush=True)
"""
ERASING = """
import sys
sys.path.insert(0, sys.argv[2])
from pathlib import Path
from logged_lists import chosen
from foltr.node.learning import erasure
from foltr.node.learning.log import Log
with Log(Path(sys.argv[1])) as log:
    for number in range(10**6):
        stored = [chosen(log, 2 * number + one) for one in range(2)]
        erasure.erase(log, erasure.Searches(tuple(stored[:1])))
        print(stored[1], flush=True)
"""


def killed_after(code, path, lines):
    """Runs a process until it has said so many lines, and kills it in the midst of the next; what it said."""
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path), str(HERE)], stdout=subprocess.PIPE, text=True
    ) as child:
        said = [int(child.stdout.readline()) for _ in range(lines)]
        child.send_signal(signal.SIGKILL)
        said += [int(line) for line in child.stdout if line.endswith("\n")]
    assert child.returncode == -signal.SIGKILL
    return said


@pytest.mark.parametrize("lines", [*range(1, 9), 20, 50])
def test_choices_that_were_acknowledged_survive_kill_9(tmp_path, lines):
    path = tmp_path / "log.db"
    said = killed_after(LOGGING, path, lines)
    with Log(path) as log:
        assert log.rows("PRAGMA integrity_check") == [("ok",)]
        assert [one.impression for one in reversed(log.history(limit=10**6)) if one.choices][: len(said)] == said
        assert log.clicks() - len(said) in (0, 1)  # at most the one that was not acknowledged
        assert len(taught(log, NAMES)) == log.clicks()
        assert chosen(log, 0) > max(said)


@pytest.mark.parametrize("lines", range(1, 9))
def test_a_process_killed_while_it_trains_leaves_a_whole_version(tmp_path, lines):
    path = tmp_path / "log.db"
    with Log(path) as log, log.transaction():
        for number in range(40):
            chosen(log, number)
    said = killed_after(TRAINING, path, lines)
    with Log(path) as log:
        assert log.rows("PRAGMA integrity_check") == [("ok",)]
        numbers = [version.weights.version for version in versions.versions(log)]
        assert numbers == list(range(len(numbers), 0, -1))
        assert versions.serving(log).current.version == numbers[0]
        assert numbers[0] - said[-1] in (0, 1)
        assert versions.refit(log, 1e9, force=True).version == numbers[0] + 1


@pytest.mark.parametrize("lines", [1, 2, 3, 5, 8])
def test_a_process_killed_while_it_erases_leaves_a_log_that_agrees(tmp_path, lines):
    path = tmp_path / "log.db"
    said = killed_after(ERASING, path, lines)
    with Log(path) as log:
        assert log.rows("PRAGMA integrity_check") == [("ok",)]
        stored = [one.impression for one in log.history(limit=10**6)]
        assert set(said) <= set(stored)
        assert len(stored) - len(said) in (0, 1, 2)
        assert all(document is not None for one in log.history(limit=10**6) for document in one.documents)
        assert chosen(log, 0) > max(stored)


def test_a_write_ahead_log_that_was_torn_anywhere_gives_a_beginning_of_the_history(tmp_path):
    """A power cut may leave any part of what was not yet synchronised; a choice is there as a whole or not at all."""
    source = tmp_path / "source"
    with Log(source / "log.db") as log:
        numbers = [chosen(log, number) for number in range(12)]
        shutil.copytree(source, tmp_path / "copy")  # without closing, which would move everything into the database
    journal = (tmp_path / "copy" / "log.db-wal").read_bytes()
    seen = set()
    for cut in range(0, len(journal), len(journal) // 60):
        torn = tmp_path / f"torn{cut}"
        torn.mkdir()
        shutil.copy(tmp_path / "copy" / "log.db", torn)
        (torn / "log.db-wal").write_bytes(journal[:cut])
        with Log(torn / "log.db") as log:
            assert log.rows("PRAGMA integrity_check") == [("ok",)]
            with_choice = [one.impression for one in reversed(log.history()) if one.choices]
            assert with_choice == numbers[: len(with_choice)]
            assert len(taught(log, NAMES)) == len(with_choice)
            seen.add(len(with_choice))
    assert len(seen) >= 10
