"""The ways into a served page: which addresses are served, fresh addresses with a token, and a browser that is started.

A browser is started with an address whose token is valid once and for a minute; a browser in a sandbox can read no
file of ours. Other users can read the arguments of a process, and with them the token, but the server closes their
connections before it reads them (`connections.Door`). Where the system does not tell who owns a connection, the browser
is started with a file that only its owner can read, whose form sends the token. The page that it enters replaces the
address that has the token, so that it is in no history.
"""

import contextlib
import html
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

from foltr import files
from foltr.files import dump_json, private_folder
from foltr.node.page import sign_ins
from foltr.node.page.peers import tells_owners
from foltr.node.places import Places

_PREFIX = "running-"  # a file for each port that is served; its lock is held as long as the server lives


class Served(msgspec.Struct, frozen=True):
    """A page that is being served."""

    port: int
    host: str  # as it stands in an address
    process: int = 0  # number of the server's process

    @property
    def address(self) -> str:
        return f"http://{self.host}:{self.port}/"


@contextlib.contextmanager
def announced(places: Places, served: Served) -> Iterator[None]:
    """While it is served, other commands of this user find it; afterwards no token is left."""
    folder = private_folder(sign_ins.page_folder(places))
    _delete_files_of_older_versions(places)
    with files.announced(folder / f"{_PREFIX}{served.port}", dump_json(msgspec.to_builtins(served))):
        try:
            yield
        finally:
            if served_pages(places) == [served]:  # tokens open every page of this node
                sign_ins.delete_tokens(folder)
            leading_page(folder, served).unlink(missing_ok=True)


def served_pages(places: Places) -> list[Served]:
    """The pages of this node that are served now."""
    folder = sign_ins.page_folder(places)
    every = [_read(file) for file in sorted(folder.glob(f"{_PREFIX}*"))]
    return [served for served in every if served is not None]


def _read(file: Path) -> Served | None:
    """None: its server has ended."""
    if files.is_announced(file):
        with contextlib.suppress(OSError, msgspec.MsgspecError):
            return msgspec.json.decode(file.read_bytes(), type=Served)
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
    token = sign_ins.mint(folder, sign_ins.BROWSER_SECONDS)
    address = f"{served.address}?token={token}"
    if not tells_owners():
        file = leading_page(folder, served)
        files.write_text(file, _LEADING.format(address=html.escape(served.address), token=token), private=True)
        address = file.as_uri()
    with contextlib.suppress(webbrowser.Error):
        return bool(webbrowser.open(address))
    return False


def leading_page(folder: Path, served: Served) -> Path:
    """A page that sends the token of `open_browser`, where an address with it would tell it to other users."""
    return folder / f"open-{served.port}.html"


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
