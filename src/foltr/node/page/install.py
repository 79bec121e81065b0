"""A systemd user unit with low priority and a desktop entry, so that the page is there after logging in; a timer that
visits the coordinators of federations where no page is served.

Nothing is started or enabled here: the commands that do so are printed.
"""

import shlex
import sys
from pathlib import Path
from typing import NamedTuple

from foltr.errors import InputError
from foltr.files import write_text, xdg_folder

UNIT = "foltr-node.service"
ENTRY = "foltr-node.desktop"
SYNC_UNIT, SYNC_TIMER = "foltr-sync.service", "foltr-sync.timer"

# the programs that open files belong to the unit: ending it ends the server only, and indexing ends by itself
_UNIT_TEXT = """[Unit]
Description=foltr: search my own documents on this machine
Documentation=http://127.0.0.1:{port}/help

[Service]
ExecStart={command}
{environment}Restart=on-failure
RestartSec=5
KillMode=process
Nice=10
IOSchedulingClass=best-effort
IOSchedulingPriority=7
CPUWeight=20
IOWeight=20
UMask=0077

[Install]
WantedBy=default.target
"""

_SYNC_UNIT_TEXT = """[Unit]
Description=foltr: visit the coordinators of my federations
After=network-online.target

[Service]
Type=oneshot
ExecStart={command}
{environment}TimeoutStartSec=10min
Nice=10
IOSchedulingClass=best-effort
IOSchedulingPriority=7
CPUWeight=20
IOWeight=20
UMask=0077
"""

_SYNC_TIMER_TEXT = """[Unit]
Description=foltr: visit the coordinators of my federations every hour

[Timer]
OnStartupSec=2min
OnUnitActiveSec=1h
RandomizedDelaySec=10min

[Install]
WantedBy=timers.target
"""

_ENTRY_TEXT = """[Desktop Entry]
Type=Application
Version=1.0
Name=foltr
GenericName=Search my documents
Comment=Search your own files and mail on this machine
Exec={command}
Icon=system-search
Terminal=false
Categories=Utility;
Keywords=search;find;documents;mail;
"""


class Installed(NamedTuple):
    unit: Path
    entry: Path


def install(port: int, *, home: str | None = None) -> Installed:
    """Writes unit and desktop entry; `home` is the FOLTR_NODE_HOME that the node runs with."""
    _check(home, "start `foltr node serve` when you log in")
    places = _places()
    serve = [sys.executable, "-m", "foltr", "node", "serve", "--port", str(port)]
    unit = _UNIT_TEXT.format(port=port, command=_quoted([*serve, "--no-browser"]), environment=_environment(home))
    entry = serve if not home else ["env", f"FOLTR_NODE_HOME={home}", *serve]
    write_text(places.unit, unit)
    write_text(places.entry, _ENTRY_TEXT.format(command=_quoted(entry)))
    return places


def install_timer(*, home: str | None = None) -> list[Path]:
    """Writes a unit that visits the coordinators once, and its timer."""
    _check(home, "call `foltr node sync --background` every hour")
    command = _quoted([sys.executable, "-m", "foltr", "node", "sync", "--background"])
    service, timer = _timer_places()
    write_text(service, _SYNC_UNIT_TEXT.format(command=command, environment=_environment(home)))
    write_text(timer, _SYNC_TIMER_TEXT)
    return [service, timer]


def _check(home: str | None, instead: str) -> None:
    if sys.platform != "linux":
        raise InputError(f"systemd units are for Linux; {instead}")
    for text in (sys.executable, home or ""):
        if any(letter in text for letter in '\n\r"\\%$'):
            raise InputError(f"{text!r}: a path with quotes, %, $ or line breaks cannot stand in a unit; move it")


def _environment(home: str | None) -> str:
    return f'Environment="FOLTR_NODE_HOME={home}"\n' if home else ""


def remove() -> list[Path]:
    """Deletes all these files; those that were there."""
    present = [path for path in (*_places(), *_timer_places()) if path.exists()]
    for path in present:
        path.unlink()
    return present


def commands(unit: str = UNIT) -> list[str]:
    return ["systemctl --user daemon-reload", f"systemctl --user enable --now {shlex.quote(unit)}"]


def _quoted(words: list[str]) -> str:
    """Words as a unit and a desktop entry read them; `install` refuses signs that would need more than quotes."""
    return " ".join(f'"{word}"' if " " in word else word for word in words)


def _places() -> Installed:
    return Installed(_units() / UNIT, xdg_folder("XDG_DATA_HOME") / "applications" / ENTRY)


def _timer_places() -> tuple[Path, Path]:
    return _units() / SYNC_UNIT, _units() / SYNC_TIMER


def _units() -> Path:
    return xdg_folder("XDG_CONFIG_HOME") / "systemd" / "user"
