"""Processes that index step back, and still advance under load."""

import os
import subprocess
import sys

import pytest

from foltr.cli import node_output
from foltr.cli.node_output import progress_line
from foltr.node.index.indexing import Progress

LOW = """
import os, sys
from foltr.node.extract import Extractor
from foltr.node.index.background import low_priority
low_priority()
with Extractor() as extractor:
    list(extractor.extract(sys.argv[1:]))
    (child,) = extractor.processes()
    for process in (0, child):
        print(os.getpriority(os.PRIO_PROCESS, process), os.sched_getscheduler(process))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs the schedulers of Linux")
def test_indexing_and_extraction_get_a_tenth_of_the_share_of_others_and_are_never_idle(tmp_path):
    """In the scheduler of Linux niceness 10 has the weight 110 beside 1,024: 5 % of a core beside two busy processes.
    SCHED_IDLE has 3, and niceness 19 has 15, which is why 171 CPU seconds took 17 minutes."""
    (tmp_path / "a.txt").write_text("words")
    ran = subprocess.run([sys.executable, "-c", LOW, tmp_path / "a.txt"], capture_output=True, text=True, check=True)
    own = os.getpriority(os.PRIO_PROCESS, 0)
    assert ran.stdout.split("\n")[:2] == [f"{max(10, own)} {os.SCHED_BATCH}"] * 2


def test_without_a_terminal_a_line_now_and_then_says_how_far_it_is(monkeypatch, capsys):
    seconds = iter([0.0, 4.0, 11.0, 11.0, 12.0, 25.0, 25.0])
    monkeypatch.setattr(node_output.time, "monotonic", lambda: next(seconds))
    records = [Progress("scan", 50, 50, 0.0, None), Progress("scan", 4_000, 4_000, 0.0, None),
               Progress("index", 100, 4_000, 50.0, 78.0), Progress("index", 1_000, 4_000, 25.0, 120.0)]  # fmt: skip
    assert list(node_output._with_lines(iter(records))) == records
    written = capsys.readouterr()
    assert written.err.splitlines() == [
        "4,000 files seen", "1,000 of 4,000 files indexed, 25 a second, 2 minutes left",
    ]  # fmt: skip
    assert written.out == ""


def test_a_line_says_how_much_time_is_left_where_it_is_known():
    assert progress_line(Progress("index", 1, 2, 0.5, 2.0)) == "1 of 2 files indexed, 0 a second, 2 s left"
    assert progress_line(Progress("index", 1, 2, 0.0, None)) == "1 of 2 files indexed, 0 a second"
