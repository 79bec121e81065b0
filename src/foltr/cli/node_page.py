"""`foltr node serve` and `foltr node install`: the page in the browser."""

from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from foltr.cli.node_output import say
from foltr.cli.output import not_installed, require, with_options

if TYPE_CHECKING:
    from collections.abc import Iterator

    from foltr.node.node import Node
    from foltr.node.page.serve import Serving

_PORT = 8390
_MODULES = ("fastapi", "jinja2", "python_multipart", "uvicorn")
Port = Annotated[int, typer.Option("--port", min=0, max=65535, help="Port on this machine; 0: any that is free.")]


class Serve(NamedTuple):
    """Options of `foltr node serve`."""

    port: Port = _PORT
    host: Annotated[str, typer.Option("--host", help="127.0.0.1, localhost or ::1; others are refused.")] = "127.0.0.1"
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")] = True
    follow: Annotated[bool, typer.Option("--index/--no-index", help="Keep the index up to date meanwhile.")] = True
    allow_user: Annotated[
        list[str] | None,
        typer.Option("--allow-user", help="Another user whose processes may connect, such as a reverse proxy's."),
    ] = None


def add_to(app: typer.Typer) -> None:
    """Adds both commands to `foltr node`."""
    app.command("serve")(serve)
    app.command("install")(install)


@with_options(Serve)
def serve(chosen: Serve) -> None:
    """Serve the page on this machine, and keep the index up to date, until Ctrl-C."""
    with _opened() as node:
        from foltr.node.page import serve as server

        server.check_host(chosen.host)
        running = server.already_running(node.places, chosen.port)
        if running is not None:
            _announce(running, browser=chosen.browser)
            return
        server.serve(
            node,
            lambda serving: _announce(serving, browser=chosen.browser),
            host=chosen.host,
            port=chosen.port,
            follow=chosen.follow,
            allowed_users=server.user_numbers(chosen.allow_user or []),
        )


def install(
    port: Port = _PORT,
    remove: Annotated[bool, typer.Option("--remove", help="Delete both files again.")] = False,
) -> None:
    """Write a systemd user unit and a desktop entry for the page, and say how to start it."""
    import os

    require_page()
    from foltr.node.page import install as installation

    if remove:
        for file in installation.remove():
            say(f"deleted {file}")
        return
    for file in installation.install(port, home=os.environ.get("FOLTR_NODE_HOME")):
        say(str(file))
    say("Start it now and at every login:")
    for command in installation.commands():
        say(f"  {command}")


def require_page() -> None:
    """Ends a command when a package of the page is not installed."""
    require("node", "text")
    if any(find_spec(module) is None for module in _MODULES):
        raise not_installed("node")


@contextmanager
def _opened() -> "Iterator[Node]":
    require_page()
    from foltr.node.manners import return_memory
    from foltr.node.node import open as open_node

    return_memory()
    with open_node() as node:
        yield node


def _announce(serving: "Serving", *, browser: bool) -> None:
    from foltr.node.page.serve import open_browser

    say(f"Your page: {serving.address}")
    say("Only you can open it, on this machine. Ctrl-C ends it.")
    if browser:
        open_browser(serving)
