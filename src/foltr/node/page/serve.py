"""The server of the page: on loopback only, with indexing in a child process, until Ctrl-C."""

import contextlib
import logging
import os
import socket
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

from foltr.errors import InputError
from foltr.node.node import Node
from foltr.node.page import connections
from foltr.node.page.app import create_app
from foltr.node.page.connections import Connection, Door, Listening
from foltr.node.page.demo import Story
from foltr.node.page.entrance import Served, announced, served_pages
from foltr.node.page.following import Following
from foltr.node.page.peers import SocketOwners, tells_owners
from foltr.node.page.server_log import limited_log
from foltr.node.page.syncing import Syncing
from foltr.node.places import Places

_LOG = logging.getLogger(__name__)
PORT = 8390
LOOPBACK = {"127.0.0.1": socket.AF_INET, "localhost": socket.AF_INET, "::1": socket.AF_INET6}


class Serving(NamedTuple):
    """A page that this process serves."""

    served: Served
    places: Places
    end: Callable[[], None]  # ends the server, from any thread


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
    with SocketOwners() as owners, limited_log(), contextlib.ExitStack() as stack:
        door = Door({os.getuid(), *allowed_users}, owners if tells_owners() else None, **connections.limits())
        listening = stack.enter_context(bound(host, port, door))
        served = Served(listening.getsockname()[1], "[::1]" if host == "::1" else "127.0.0.1", os.getpid())
        following = Following(node.places) if follow else None
        config = uvicorn.Config(
            create_app(node, served.port, following, story=story),
            http=partial(Connection, door=door),  # type: ignore[arg-type]
            loop="asyncio", ws="none", lifespan="off", log_config=None, log_level="warning", access_log=False,
            server_header=False, proxy_headers=False, backlog=connections.QUEUE, timeout_graceful_shutdown=5,
            timeout_keep_alive=connections.IDLE_SECONDS, h11_max_incomplete_event_size=65_536,
        )  # fmt: skip
        server = uvicorn.Server(config)

        def end() -> None:
            server.should_exit = True

        # uvicorn raises a signal again after a shutdown in good order
        syncing = Syncing(node.places) if follow and story is None else None
        with (
            _running(following),
            _running(syncing),
            announced(node.places, served),
            contextlib.suppress(KeyboardInterrupt),
        ):
            _LOG.info("serving on port %d, changes are followed: %s", served.port, follow)
            announce(Serving(served, node.places, end))
            server.run(sockets=[listening])


def already_running(places: Places, port: int) -> Served | None:
    """The page of this node on a port, where it is already served."""
    return next((served for served in served_pages(places) if served.port == port), None)


def bound(host: str, port: int, door: Door) -> Listening:
    name = "::1" if host == "::1" else "127.0.0.1"
    listening = Listening(door, LOOPBACK[host])
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((name, port))
        listening.listen(connections.QUEUE)  # connections wait from now on, also before the first is answered
    except OSError as problem:
        listening.close()
        raise InputError(
            f"port {port} of {name} cannot be used ({problem.strerror}); choose another: --port N"
        ) from None
    return listening


@contextlib.contextmanager
def _running(background: Following | Syncing | None) -> Iterator[None]:
    """Work beside the server: starts it, and stops it however the server ends."""
    if background is not None:
        background.start()
    try:
        yield
    finally:
        if background is not None:
            background.stop()


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
