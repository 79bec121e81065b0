"""`foltr demo` in a process and a session of its own, at a terminal or without one, with folders of its own."""

import os
import pty
import re
import select
import subprocess
import sys

import psutil

from foltr.node.page import sign_ins

SMALL = ("--people", "5", "--seeds", "3", "--no-browser")


class Demo:
    """A running demo; `text` is what it has printed so far."""

    def __init__(self, folder, *options, terminal=False):
        self.folder, self.temporary, self.own = folder, folder / "temporary", folder / "own"
        self.temporary.mkdir(parents=True)
        variables = {
            **os.environ, "TMPDIR": str(self.temporary), "FOLTR_NODE_HOME": str(self.own), "NO_COLOR": "1",
            "COLUMNS": "80",
        }  # fmt: skip
        reading, writing = pty.openpty() if terminal else os.pipe()
        self.process = subprocess.Popen(
            [sys.executable, "-u", "-m", "foltr", "demo", *options], env=variables, stdin=subprocess.DEVNULL,
            stdout=writing, stderr=subprocess.STDOUT if terminal else subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        os.close(writing)
        self._reading, self.text = reading, ""

    def until(self, pattern, seconds=400):
        """Reads until a pattern was printed, or the output ends."""
        while not (found := re.search(pattern, self.text)):
            if not self._read(seconds):
                raise AssertionError(f"no {pattern!r} in {self.text!r}")
        return found

    def rest(self, seconds=400):
        while self._read(seconds):
            pass
        return self.text

    def _read(self, seconds):
        ready, _, _ = select.select([self._reading], [], [], seconds)
        try:
            given = os.read(self._reading, 65536) if ready else b""
        except OSError:  # the terminal was closed on the other side
            given = b""
        self.text += given.decode("utf-8", "replace").replace("\r\n", "\n")
        return bool(given)

    @property
    def address(self):
        return self.until(r"http\S+(?=\s)")[0]

    def fresh_address(self):
        """An address with a token for each browser."""
        address = self.address.partition("?")[0]  # it is served from now on
        (home,) = self.temporary.glob("foltr-demo-*/home")
        return f"{address}?token={sign_ins.mint(home / 'data' / 'page')}"

    def members(self):
        """Processes of the session, and those in a session of their own that were told the demo's folder."""
        found = []
        for one in psutil.process_iter():
            try:
                ours = os.getsid(one.pid) == self.process.pid or str(self.temporary) in " ".join(one.cmdline())
                if ours and one.status() != psutil.STATUS_ZOMBIE:
                    found.append(one)
            except (ProcessLookupError, psutil.NoSuchProcess, psutil.AccessDenied):
                pass
        return found

    def close(self):
        for one in self.members():
            one.kill()
        self.process.wait(60)
        if self.process.stderr is not None:
            self.process.stderr.close()
        os.close(self._reading)
