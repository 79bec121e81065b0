"""The ways into a served page: which addresses are served, fresh addresses with a token, and a browser that is started.

A browser is not started with the token, since everybody can read the arguments of a process: it is started with a file
that only its owner can read, whose form sends the token. So the token is in no address and in no history.
"""

import contextlib
import fcntl
import html
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

from foltr.atomic import atomic_write, dump_json
from foltr.node.page import sign_ins
from foltr.node.places import Places, private_file, private_folder

_PREFIX = "running-"  # a file for each port that is served; its lock is held as long as the server lives


class Served(msgspec.Struct, frozen=True):
    """A page that is being served."""

    port: int
    host: str  # as it stands in an address

    @property
    def address(self) -> str:
        return f"http://{self.host}:{self.port}/"


@contextlib.contextmanager
def announced(places: Places, served: Served) -> Iterator[None]:
    """While it is served, other commands of this user find it; afterwards no token is left."""
    folder = private_folder(sign_ins.page_folder(places))
    _delete_files_of_older_versions(places)
    file = private_file(folder / f"{_PREFIX}{served.port}")
    with file.open("r+", encoding="utf-8") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        stream.truncate(0)
        stream.write(dump_json(msgspec.to_builtins(served)))
        stream.flush()
        try:
            yield
        finally:
            file.unlink(missing_ok=True)
            sign_ins.delete_tokens(folder)
            leading_page(folder).unlink(missing_ok=True)


def served_pages(places: Places) -> list[Served]:
    """The pages of this node that are served now."""
    folder = sign_ins.page_folder(places)
    every = [_read(file) for file in sorted(folder.glob(f"{_PREFIX}*"))]
    return [served for served in every if served is not None]


def _read(file: Path) -> Served | None:
    """The lock tells whether the server lives: its number may belong to another process by now."""
    try:
        with file.open("rb") as stream:
            fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return None
    except BlockingIOError:
        with contextlib.suppress(OSError, msgspec.MsgspecError):
            return msgspec.json.decode(file.read_bytes(), type=Served)
    except OSError:  # it ended meanwhile
        pass
    return None


def fresh_address(places: Places, served: Served) -> str:
    """An address that lets one browser in, once, within ten minutes."""
    return f"{served.address}?token={sign_ins.mint(sign_ins.page_folder(places))}"


def open_browser(places: Places, served: Served) -> bool:
    """Shows the page in the person's browser; False where there is none."""
    import webbrowser

    if not _has_display():
        return False
    folder = private_folder(sign_ins.page_folder(places))
    file = leading_page(folder)
    token = sign_ins.mint(folder, sign_ins.BROWSER_SECONDS)
    with atomic_write(file) as temporary:
        private_file(temporary).write_text(_LEADING.format(address=html.escape(served.address), token=token), "utf-8")
    with contextlib.suppress(webbrowser.Error):
        return bool(webbrowser.open(file.as_uri()))
    return False


def leading_page(folder: Path) -> Path:
    """A page that sends the token of `open_browser`; the token is valid for a minute."""
    return folder / "open.html"


_LEADING = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="referrer" content="no-referrer"><title>foltr</title></head>
<body><form id="enter" action="{address}enter" method="post"><input type="hidden" name="token" value="{token}">
<button>Open my page</button></form><script>document.getElementById("enter").submit()</script></body></html>
"""


def _has_display() -> bool:
    return sys.platform == "darwin" or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))


def _delete_files_of_older_versions(places: Places) -> None:
    """They held the one cookie and the token of all browsers."""
    for file in (places.config / "page.json", places.data / "page_running.json", places.data / "open_page.html"):
        file.unlink(missing_ok=True)
