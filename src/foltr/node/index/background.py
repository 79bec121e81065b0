"""CPU, disk, battery and network limits of background work, and its pause button.

`indexing` and `watch` ask `hold_reason` before every file; processes that index call `low_priority` once.
"""

import contextlib
import ctypes
import os
import platform
import subprocess
from pathlib import Path

from foltr.files import private_file
from foltr.node.extract.confine import NICENESS
from foltr.node.places import Places
from foltr.node.settings import Settings

_NETWORK_MANAGER = (
    "org.freedesktop.NetworkManager",
    "/org/freedesktop/NetworkManager",
    "org.freedesktop.NetworkManager",
)
_METERED = ("1", "3")  # yes, and guessed: a telephone's connection
_SUPPLIES = Path("/sys/class/power_supply")
_IOPRIO_SET = {"x86_64": 251, "aarch64": 30, "riscv64": 30, "ppc64le": 273, "s390x": 282}
_LAST_OF_BEST_EFFORT = 2 << 13 | 7  # of the disk: after all others of the usual class, and never starved
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8  # of mallopt(3)


def low_priority() -> None:
    """Lets this process and its children get about a tenth of the share of others while these want the processor.

    SCHED_IDLE would get nothing under load: 17 minutes for 171 CPU seconds at a load of 20. SCHED_BATCH is not
    preferred when it wakes up, so that whoever types is served first.
    """
    with contextlib.suppress(OSError, AttributeError):
        os.nice(max(0, NICENESS - os.nice(0)))
    with contextlib.suppress(OSError, AttributeError):
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    number = _IOPRIO_SET.get(platform.machine())
    if number is not None and platform.system() == "Linux":
        ctypes.CDLL(None, use_errno=True).syscall(number, 1, 0, _LAST_OF_BEST_EFFORT)  # 1: a process, 0: this one


def on_battery(supplies: Path = _SUPPLIES) -> bool:
    """Whether the machine runs from a battery; unknown counts as no."""
    kinds = {folder: _read(folder / "type") for folder in sorted(supplies.glob("*"))}
    if any(kind == "Mains" and _read(folder / "online") == "1" for folder, kind in kinds.items()):
        return False
    return any(
        kind == "Battery" and _read(folder / "scope") != "Device" and _read(folder / "status") == "Discharging"
        for folder, kind in kinds.items()
    )


def hold_reason(places: Places, settings: Settings, supplies: Path = _SUPPLIES) -> str | None:
    """Why indexing should wait; None: it may go on."""
    if places.pause_file.exists():
        return "paused"
    if not settings.on_battery and on_battery(supplies):
        return "on battery"
    return None


def on_metered() -> bool:
    """Whether NetworkManager calls the network metered, or guesses so; unknown counts as no."""
    command = ["busctl", "--system", "--timeout=2", "get-property", *_NETWORK_MANAGER, "Metered"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=5, check=True).stdout.split()
    except (OSError, subprocess.SubprocessError):
        return False
    return len(answer) == 2 and answer[0] == "u" and answer[1] in _METERED


def pause(places: Places) -> None:
    private_file(places.pause_file)


def resume(places: Places) -> None:
    places.pause_file.unlink(missing_ok=True)


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace").strip()
    except OSError:
        return ""


def return_memory() -> None:
    """Gives freed memory back at once: large arrays come and go with every search, and glibc would keep their space."""
    with contextlib.suppress(OSError, AttributeError):  # another C library
        libc = ctypes.CDLL(None)
        for parameter, value in ((_M_MMAP_THRESHOLD, 1 << 22), (_M_TRIM_THRESHOLD, 1 << 23), (_M_ARENA_MAX, 1)):
            libc.mallopt(parameter, value)
