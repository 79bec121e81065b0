"""The server of the page: on loopback only, with indexing in a child process, until Ctrl-C.

The address carries a token. A browser is not started with it, since everybody can read the arguments of a process: it
is started with a file that only its owner can read, which leads to the address.
"""

import contextlib
import html
import os
import socket
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from foltr.atomic import atomic_write, dump_json
from foltr.errors import InputError
from foltr.node.node import Node
from foltr.node.page.app import create_app
from foltr.node.page.demo import Story
from foltr.node.page.following import Following
from foltr.node.page.security import Keys, load_keys
from foltr.node.places import Places, private_file

PORT = 8390
LOOPBACK = {"127.0.0.1": socket.AF_INET, "localhost": socket.AF_INET, "::1": socket.AF_INET6}


class Running(msgspec.Struct, frozen=True):
    """What `serve` leaves for a second `serve`, readable by the owner only."""

    pid: int
    port: int
    token: str


class Serving(NamedTuple):
    address: str  # with the token
    file: Path  # a page that leads there
    end: Callable[[], None] = lambda: None  # ends the server, from any thread


def key_file(places: Places) -> Path:
    return places.config / "page.json"


def running_file(places: Places) -> Path:
    return places.data / "page_running.json"


def check_host(host: str) -> None:
    """Refuses addresses that other machines can reach."""
    if host not in LOOPBACK:
        raise InputError(
            f"--host {host}: the page is served on this machine only (127.0.0.1, localhost or ::1), since it shows "
            "your documents. From another machine use ssh forwarding: ssh -L 8390:127.0.0.1:8390 THIS-MACHINE, then "
            "open the printed address there"
        )


def serve(node: Node, announce: Callable[[Serving], None], *, host: str = "127.0.0.1", port: int = PORT,
          follow: bool = True, allowed_users: Iterable[int] = (), story: Story | None = None) -> None:  # fmt: skip
    """Serves until SIGINT, SIGTERM or `Serving.end`. `announce` is called when the port is ours."""
    import uvicorn

    check_host(host)
    with contextlib.closing(bound(host, port)) as listening:
        port = listening.getsockname()[1]
        keys = load_keys(key_file(node.places), port)
        following = Following(node.places) if follow else None
        app = create_app(node, keys, following, allowed_users=allowed_users, story=story)
        config = uvicorn.Config(
            app, log_level="warning", access_log=False, server_header=False, proxy_headers=False, ws="none",
            lifespan="off", timeout_graceful_shutdown=5, h11_max_incomplete_event_size=65_536,
        )  # fmt: skip
        server = uvicorn.Server(config)

        def end() -> None:
            server.should_exit = True

        # uvicorn raises a signal again after a shutdown in good order
        with _followed(following), _announced(node.places, keys, announce, end), contextlib.suppress(KeyboardInterrupt):
            server.run(sockets=[listening])


def already_running(places: Places, port: int) -> Serving | None:
    """The address of a node of this home that is already served on a port."""
    try:
        found = msgspec.json.decode(running_file(places).read_bytes(), type=Running)
        os.kill(found.pid, 0)
    except (OSError, msgspec.MsgspecError):
        return None
    if found.port != port or not _answers(port):
        return None
    return Serving(_address(found.port, found.token), _leading_page(places))


def bound(host: str, port: int) -> socket.socket:
    name = "::1" if host == "::1" else "127.0.0.1"
    # asyncio switches Nagle's algorithm off only where the protocol is named; with it an answer may wait 40 ms for an
    # acknowledgement of its headers
    listening = socket.socket(LOOPBACK[host], socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((name, port))
        listening.listen(128)  # connections wait from now on, also before the first is answered
    except OSError as problem:
        listening.close()
        raise InputError(
            f"port {port} of {name} cannot be used ({problem.strerror}); choose another: --port N"
        ) from None
    return listening


def _answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=2):
        return True
    return False


@contextlib.contextmanager
def _announced(
    places: Places, keys: Keys, announce: Callable[[Serving], None], end: Callable[[], None]
) -> Iterator[None]:
    _write_private(running_file(places), dump_json(msgspec.to_builtins(Running(os.getpid(), keys.port, keys.token))))
    address = _address(keys.port, keys.token)
    page = f'<!doctype html><meta http-equiv="refresh" content="0; url={html.escape(address)}"><title>foltr</title>'
    _write_private(_leading_page(places), page)
    try:
        announce(Serving(address, _leading_page(places), end))
        yield
    finally:
        for file in (running_file(places), _leading_page(places)):
            file.unlink(missing_ok=True)


@contextlib.contextmanager
def _followed(following: Following | None) -> Iterator[None]:
    if following is not None:
        following.start()
    try:
        yield
    finally:
        if following is not None:
            following.stop()


def _address(port: int, token: str) -> str:
    return f"http://127.0.0.1:{port}/?token={token}"


def _leading_page(places: Places) -> Path:
    return places.data / "open_page.html"


def _write_private(file: Path, text: str) -> None:
    with atomic_write(file) as temporary:
        private_file(temporary).write_text(text)


def open_browser(serving: Serving) -> bool:
    """Shows the page in the person's browser; False where there is none."""
    import webbrowser

    if not _has_display():
        return False
    with contextlib.suppress(webbrowser.Error):
        return bool(webbrowser.open(serving.file.as_uri()))
    return False


def _has_display() -> bool:
    import sys

    return sys.platform in ("win32", "darwin") or any(os.environ.get(one) for one in ("DISPLAY", "WAYLAND_DISPLAY"))


def user_numbers(names: Iterable[str]) -> list[int]:
    """Numbers of other users whose processes may connect, such as a reverse proxy's."""
    import pwd

    found: list[Any] = []
    for name in names:
        try:
            found.append(pwd.getpwnam(name).pw_uid)
        except KeyError:
            raise InputError(f"--allow-user {name}: there is no such user on this machine") from None
    return found
