"""Runs the pool with a hostile child below a terminal, and writes what it could do: `attack_driver.py FOLDER SETTINGS`.

It is a program of its own, because it needs a controlling terminal, an environment with a secret, and a process to be
attacked. The test starts it in a session with a pseudo-terminal.
"""

import fcntl
import json
import os
import resource
import signal
import subprocess
import sys
import termios
from pathlib import Path

from foltr.node.extract import Extractor, child

PROGRAM = (
    "import sys; sys.path[:] = sys.argv[2:]; import hostile_child; hostile_child.main(int(sys.argv[1]), {settings!r})"
)


def state(victim):
    """What another process could have changed of the victim and of this process."""
    return {
        "running": victim.poll() is None,
        "limits": resource.prlimit(victim.pid, resource.RLIMIT_NOFILE),
        "affinity": sorted(os.sched_getaffinity(victim.pid)),
        "scheduler": os.sched_getscheduler(victim.pid),
        "priority": os.getpriority(os.PRIO_PROCESS, victim.pid),
        "signals": list(signals),
    }


signals = []
for number in (signal.SIGUSR1, signal.SIGURG, signal.SIGIO):
    signal.signal(number, lambda number, _: signals.append(number))


def main(folder, settings):
    os.environ["FOLTR_TEST_SECRET"] = "a secret of the environment"  # noqa: S105
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as victim:
        at = json.loads(settings.read_text()) | {
            "parent": os.getpid(), "victim": victim.pid, "secret": str(folder / "cookie"), "folder": str(folder),
        }  # fmt: skip
        settings.write_text(json.dumps(at))
        child._PROGRAM = PROGRAM.format(settings=str(settings))
        before = state(victim)
        with Extractor() as extractor:
            ((_, result),) = extractor.extract([folder / "evil.txt"])
            assert not hasattr(result, "reason"), result
            (process,) = extractor.processes()
            session = os.getsid(process), process
        found = json.loads(result.documents[0].body)
        waiting = bytearray(4)
        fcntl.ioctl(0, termios.FIONREAD, waiting)
        found |= {
            "before": before, "after": state(victim), "typed": int.from_bytes(waiting, "little"), "session": session,
            "protections": str(getattr(extractor, "protections", None)),
        }  # fmt: skip
        victim.communicate(b"\n")
    (folder.parent / "found.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
