"""`foltr aggregator`: the second operator of a federation. Imports stand inside each command."""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from foltr.cli.coordinator import BOTH
from foltr.cli.node_output import say
from foltr.cli.output import Commands, Json, print_json, require
from foltr.errors import InputError

if TYPE_CHECKING:
    from foltr.federation.network.invitation import Invitation

app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    help="Be the second operator of a federation: another machine, other people, outgoing connections only.",
)
Folder = Annotated[
    Path | None,
    typer.Option(
        "--folder",
        help="Folder of the operator (default: FOLTR_AGGREGATOR_HOME, or the user's data folder).",
        show_default=False,
    ),
]


@app.command("join")
def join(
    invitation: Annotated[str, typer.Argument(help="The line that the coordinator printed.", show_default=False)],
    folder: Folder = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask; the fingerprints were compared.")] = False,
    json_: Json = False,
) -> None:
    """Become the second operator: makes a key on this machine and registers it with the coordinator."""
    require("federation")
    from foltr.federation.network import folders, wire
    from foltr.federation.network.https import connect
    from foltr.federation.network.invitation import fingerprint

    home = _folder(folder)
    identity, invited = folders.create_second(home, invitation)
    own = fingerprint(identity.public_key().public_bytes_raw())
    both = _both_here(invited)
    if not json_:
        say(f"federation {invited.name!r} at {invited.address}, kind {invited.kind}")
        say(f"first operator  {fingerprint(invited.operators[0])}")
        say(f"this operator   {own}")
        say("Compare both fingerprints with the other operator by telephone, and tell them to the people who join.")
        if both:
            say(BOTH)
    if not yes:
        if json_ or not sys.stdin.isatty():
            raise InputError("the fingerprints have to be compared first; add --yes when they were")
        if not typer.confirm("Are they the same?"):
            raise typer.Exit(1)
    with connect(invited.address, invited.certificate, identity, invited.federation) as post:
        reply = post("operator/join", wire.encode(wire.OperatorJoin(invited.code)))
    folders.accept_terms(home, invited, identity, wire.decode(reply, wire.OperatorTerms))
    if json_:
        print_json({"federation": invited.federation, "fingerprint": own, "folder": str(home),
                    "warning": BOTH if both else ""})  # fmt: skip
    else:
        say(f"joined; state in {home}. Then: foltr aggregator serve")


@app.command("serve")
def serve(
    folder: Folder = None,
    every: Annotated[float, typer.Option("--every", min=0.1, help="Seconds between questions for work.")] = 15.0,
    once: Annotated[bool, typer.Option("--once", help="Do the work that waits now, then end.")] = False,
) -> None:
    """Ask the coordinator for work until Ctrl-C: countersign registries, leave keys, open halves."""
    require("federation")
    import logging

    from foltr.federation.network import folders, second
    from foltr.federation.network.https import connect
    from foltr.files import held

    logging.basicConfig(format="%(asctime)s %(message)s", level=logging.INFO)
    logging.getLogger("httpx").setLevel(logging.WARNING)
    home = _folder(folder)
    identity, invited, given = folders.read_second(home)
    with (
        held(home / "serving", "serving this federation"),
        connect(invited.address, invited.certificate, identity, given.terms.federation) as post,
    ):
        operator = folders.second_operator(home, post, time.time)
        typer.echo(f"asking {invited.address} for work")
        while True:
            try:
                second.work(operator)
            except ConnectionError as problem:
                if once:
                    raise InputError(str(problem)) from None
                logging.getLogger(__name__).warning("%s", problem)
            if once:
                return
            time.sleep(every)


@app.command("status")
def status(folder: Folder = None, json_: Json = False) -> None:
    """Show the federation, both fingerprints and the newest round that this operator opened its half of."""
    from foltr.federation.network import folders, second
    from foltr.federation.network.invitation import fingerprint
    from foltr.federation.operator import read_memory

    home = _folder(folder)
    _, invited, given = folders.read_second(home)
    operator = folders.second_operator(home, lambda _endpoint, _body: b"", time.time)
    memory = read_memory(operator.storage, given.terms.federation)
    held = second.newest_held(operator)
    first, own = (fingerprint(key) for key in given.operators)
    state = {
        "name": invited.name, "kind": invited.kind, "address": invited.address, "federation": given.terms.federation,
        "fingerprints": [first, own], "opened_round": memory.highest,
        "registry": held.link.head.number if held else 0, "members": held.link.head.members if held else 0,
        "warning": BOTH if _both_here(invited) else "",
    }  # fmt: skip
    if json_:
        print_json(state)
        return
    if state["warning"]:
        say(BOTH)
    say(f"{invited.name}: {invited.kind}, at {invited.address}")
    say(f"first operator  {first}")
    say(f"this operator   {own}")
    say(f"registry {state['registry']} of {state['members']} members; newest opened round {memory.highest}")


def _folder(stated: Path | None) -> Path:
    from foltr.federation.network.folders import aggregator_home

    return stated or aggregator_home()


def _both_here(invited: "Invitation") -> bool:
    """Whether the coordinator runs on this machine, as far as this machine can tell."""
    from foltr.federation.network import folders
    from foltr.federation.network.certificates import host_of

    if host_of(invited.address) in ("127.0.0.1", "localhost", "::1"):
        return True
    try:
        return folders.open_desk(folders.coordinator_home()).charter.terms.federation == invited.federation
    except InputError:
        return False
