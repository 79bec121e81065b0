"""A systemd user unit with low priority and a desktop entry, so that the page is there after logging in.

Nothing is started or enabled here: the commands that do so are printed.
"""

import os
import shlex
import sys
from pathlib import Path
from typing import NamedTuple

from foltr.atomic import write_text
from foltr.errors import InputError

UNIT = "foltr-node.service"
ENTRY = "foltr-node.desktop"

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
    if sys.platform != "linux":
        raise InputError("systemd units are for Linux; start `foltr node serve` when you log in")
    for text in (sys.executable, home or ""):
        if any(letter in text for letter in '\n\r"\\%$'):
            raise InputError(f"{text!r}: a path with quotes, %, $ or line breaks cannot stand in a unit; move it")
    places = _places()
    serve = [sys.executable, "-m", "foltr", "node", "serve", "--port", str(port)]
    environment = f'Environment="FOLTR_NODE_HOME={home}"\n' if home else ""
    unit = _UNIT_TEXT.format(port=port, command=_quoted([*serve, "--no-browser"]), environment=environment)
    entry = serve if not home else ["env", f"FOLTR_NODE_HOME={home}", *serve]
    write_text(places.unit, unit)
    write_text(places.entry, _ENTRY_TEXT.format(command=_quoted(entry)))
    return places


def remove() -> list[Path]:
    """Deletes both files; those that were there."""
    found = [one for one in _places() if one.exists()]
    for one in found:
        one.unlink()
    return found


def commands() -> list[str]:
    return ["systemctl --user daemon-reload", f"systemctl --user enable --now {shlex.quote(UNIT)}"]


def _quoted(words: list[str]) -> str:
    """Words as a unit and a desktop entry read them; `install` refuses signs that would need more than quotes."""
    return " ".join(f'"{word}"' if " " in word else word for word in words)


def _places() -> Installed:
    config = _folder("XDG_CONFIG_HOME", ".config") / "systemd" / "user"
    data = _folder("XDG_DATA_HOME", ".local/share") / "applications"
    return Installed(config / UNIT, data / ENTRY)


def _folder(variable: str, default: str) -> Path:
    chosen = os.environ.get(variable, "")
    return Path(chosen) if chosen.startswith("/") else Path.home() / default
