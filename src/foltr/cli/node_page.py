"""`foltr node serve`, `foltr node page` and `foltr node install`: the page in the browser."""

from contextlib import contextmanager
from importlib.util import find_spec
from typing import IO, TYPE_CHECKING, Annotated, NamedTuple

import typer

from foltr.cli.node_output import say
from foltr.cli.output import not_installed, out, require, with_options

if TYPE_CHECKING:
    from collections.abc import Iterator

    from foltr.node.node import Node
    from foltr.node.page.entrance import Served
    from foltr.node.page.handover import HandedOver
    from foltr.node.places import Places

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
    """Adds the commands to `foltr node`."""
    app.command("serve")(serve)
    app.command("page")(page)
    app.command("install")(install)


@with_options(Serve)
def serve(chosen: Serve) -> None:
    """Serve the page on this machine, and keep the index up to date, until Ctrl-C."""
    with _opened() as node:
        from foltr.node.page import serve as server

        server.check_host(chosen.host)
        running = server.already_running(node.places, chosen.port)
        if running is not None:
            _announce(node.places, running, browser=chosen.browser)
            return
        server.serve(
            node,
            lambda serving: _announce(serving.places, serving.served, browser=chosen.browser),
            host=chosen.host,
            port=chosen.port,
            follow=chosen.follow,
            allowed_users=server.user_numbers(chosen.allow_user or []),
        )


def page(
    port: Annotated[
        int | None, typer.Option("--port", min=1, max=65535, help="Where several are served.", show_default=False)
    ] = None,
    browser: Annotated[bool, typer.Option("--browser", help="Open it in a browser instead.")] = False,
    sign_out: Annotated[bool, typer.Option("--sign-out", help="Sign out all browsers instead.")] = False,
) -> None:
    """Print a fresh address of the page that is served: it lets one browser in, once, within ten minutes."""
    require_page()
    from foltr.node import places as node_places
    from foltr.node.page import entrance, sign_ins

    places = node_places.find()
    if sign_out:
        ended = sign_ins.sign_out_all(sign_ins.page_folder(places))
        say(f"{ended} browser{'s' if ended != 1 else ''} signed out; addresses that were not used are void.")
        return
    served = _chosen(places, port)
    if browser and entrance.open_browser(places, served):
        say(f"Opened {served.address}")
        return
    say(entrance.fresh_address(places, served))  # also where nobody looks at a terminal: it was asked for


def _chosen(places: "Places", port: int | None) -> "Served":
    from foltr.errors import InputError
    from foltr.node.page.entrance import served_pages

    pages = [served for served in served_pages(places) if port in (None, served.port)]
    if not pages:
        raise InputError(f"the page is not served{f' on port {port}' if port else ''}; start it: foltr node serve")
    if len(pages) > 1:
        raise InputError(f"served on ports {', '.join(str(served.port) for served in pages)}; choose one: --port N")
    return pages[0]


def install(
    port: Port = _PORT,
    sync: Annotated[
        bool, typer.Option("--sync", help="Instead a timer that visits federations, where no page is served.")
    ] = False,
    remove: Annotated[bool, typer.Option("--remove", help="Delete these files again.")] = False,
) -> None:
    """Write a systemd user unit and a desktop entry for the page, and say how to start it."""
    import os

    if not sync:
        require_page()
    from foltr.node.page import install as installation

    if remove:
        for file in installation.remove():
            say(f"deleted {file}")
        return
    home = os.environ.get("FOLTR_NODE_HOME")
    for file in installation.install_timer(home=home) if sync else installation.install(port, home=home):
        say(str(file))
    say("Start it now and at every login:")
    for command in installation.commands(installation.SYNC_TIMER if sync else installation.UNIT):
        say(f"  {command}")


def require_page() -> None:
    """Ends a command when a package of the page is not installed."""
    require("node", "text")
    if any(find_spec(module) is None for module in _MODULES):
        raise not_installed("node")


def hand_over(action: str, values: list[str], *, quiet: bool) -> "HandedOver | None":
    """Lets the server of the page, which holds the index, make a change; None where no page is served."""
    if any(find_spec(module) is None for module in _MODULES):
        return None
    from foltr.node import places as node_places
    from foltr.node.page import handover

    done = handover.hand_over(node_places.find(), action, values)
    if done and not quiet:
        doing = "indexes now; foltr node status says how far it is" if done.follows else "has done it"
        say(f"The page that is served at {done.served.address} {doing}.")
    return done


@contextmanager
def _opened() -> "Iterator[Node]":
    require_page()
    from foltr.node.index.background import return_memory
    from foltr.node.node import open as open_node

    return_memory()
    with open_node() as node:
        yield node


def entrance_lines(places: "Places", served: "Served", stream: IO[str], home: str | None) -> list[str]:
    """Says how to get in. A token is written to a terminal only: what goes elsewhere, such as a journal, is kept."""
    import shlex

    from foltr.node.page.entrance import fresh_address

    if stream.isatty():
        return [f"Your page: {fresh_address(places, served)}", "It lets one browser in, once, within ten minutes."]
    variable = f"FOLTR_NODE_HOME={shlex.quote(home)} " if home else ""
    return [f"Your page: {served.address}", f"To let a browser in: {variable}foltr node page"]


def _announce(places: "Places", served: "Served", *, browser: bool) -> None:
    import os

    from foltr.node.page.entrance import open_browser

    for line in entrance_lines(places, served, out.file, os.environ.get("FOLTR_NODE_HOME")):
        say(line)
    say("Only you can open it, on this machine. Ctrl-C ends it.")
    if browser:
        open_browser(places, served)
