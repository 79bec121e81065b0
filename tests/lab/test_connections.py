"""Nothing phones home: a run, its workers and its page open no connection to anywhere."""

import os
import subprocess
import sys

import pytest
from laboratory import ended, start, the_run

# Python imports a module of this name at its start, in workers as well; a hook hears of every socket there is
WATCH = """\
import os
import socket
import sys

OUTWARDS = ("socket.connect", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo", "socket.gethostbyname")


def hook(event, arguments):
    if event in OUTWARDS and getattr(arguments[0], "family", None) != socket.AF_UNIX:
        with open(os.environ["WATCH_REPORT"], "a") as report:
            report.write(f"{event} {arguments}\\n")
        raise PermissionError(f"an outgoing connection: {event}")


with open(os.environ["WATCH_REPORT"] + ".on", "a") as witness:
    witness.write("here\\n")
sys.addaudithook(hook)
"""


@pytest.fixture
def watched(tmp_path, monkeypatch):
    """Processes started from here write every attempt to connect into the report, which is given back."""
    (tmp_path / "watch").mkdir()
    (tmp_path / "watch" / "sitecustomize.py").write_text(WATCH)
    known = os.environ.get("PYTHONPATH")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path / "watch"), *([known] if known else [])]))
    monkeypatch.setenv("WATCH_REPORT", str(tmp_path / "report.txt"))
    return tmp_path / "report.txt"


def watchers(report):
    return len(report.with_suffix(".txt.on").read_text().splitlines())


@pytest.mark.parametrize(
    "attempt",
    [
        "import socket; socket.socket().connect(('127.0.0.1', 9))",
        "import socket; socket.create_connection(('localhost', 9))",
        "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', 9))",
        "import urllib.request; urllib.request.urlopen('http://localhost:9')",
    ],
    ids=["connect", "by name", "datagram", "http"],
)
def test_the_watch_hears_an_attempt(attempt, watched):
    said = subprocess.run([sys.executable, "-c", attempt], capture_output=True, text=True)
    assert said.returncode != 0
    assert "an outgoing connection" in said.stderr
    assert watched.read_text()


def test_a_run_and_its_page_open_no_connection(tiny, tmp_path, watched):
    answer = ended(start("run", tiny, "--jobs", 2))
    assert answer.code == 0, answer.err
    assert watchers(watched) >= 3  # the command and its two workers
    page = ended(start("report", the_run(tmp_path / "runs")))
    assert page.code == 0, page.err
    assert not watched.exists(), watched.read_text()


def test_the_page_itself_loads_nothing_from_elsewhere(command, copied):
    assert command("report", the_run(copied)).code == 0
    text = (the_run(copied) / "report.html").read_text(encoding="utf-8")
    for reference in ('src="http', 'href="http', "url(http", "@import", "//cdn"):
        assert reference not in text
