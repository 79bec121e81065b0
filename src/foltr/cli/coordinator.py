"""`foltr coordinator`: one of the two operators of a federation. Imports stand inside each command."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from foltr.cli.node_output import say, table
from foltr.cli.output import Commands, Json, print_json, require, with_options
from foltr.errors import InputError

if TYPE_CHECKING:
    from foltr.federation.network.charter import Desk

app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    help="Run a federation: invite nodes, open rounds, publish the shared ranker. A second operator runs "
    "`foltr aggregator`.",
)
BOTH = "one party plays both: no protection between them"
_FOLDER_HELP = "Folder of the coordinator (default: FOLTR_COORDINATOR_HOME, or the user's data folder)."
Folder = Annotated[Path | None, typer.Option("--folder", help=_FOLDER_HELP, show_default=False)]


class InitOptions(NamedTuple):
    """Options of `foltr coordinator init`."""

    name: Annotated[str, typer.Option("--name", help="Of the federation, for people.", prompt="Name of the federation")]
    address: Annotated[
        str,
        typer.Option(
            "--address", help="https://host:port by which nodes reach it.", prompt="Address (https://host:port)"
        ),
    ]
    kind: Annotated[
        Literal["open", "circle"],
        typer.Option(
            "--kind",
            help="open: noise in every sum, members come and go. circle: 5 to 20 people, no noise, all or no sum.",
            prompt="Kind: open (noise) or circle (5 to 20 people who confirm each other, no noise)",
        ),
    ]
    host: Annotated[str, typer.Option("--host", help="Address of this machine to listen on.")] = "127.0.0.1"
    port: Annotated[int | None, typer.Option("--port", help="Port (default: that of --address).")] = None
    members: Annotated[int, typer.Option("--members", min=3, help="Members that you expect (open).")] = 100
    window_hours: Annotated[
        float | None,
        typer.Option("--window-hours", help="A round is open for so long (default: open as planned, circle 24)."),
    ] = None
    days: Annotated[float, typer.Option("--days", help="An open federation's budget lasts so long.")] = 365.0
    epsilon: Annotated[float, typer.Option("--epsilon", help="Budget of a node in that time (open).")] = 4.0
    delta: Annotated[float, typer.Option("--delta", help="Delta of that budget (open).")] = 1e-6
    quorum: Annotated[float, typer.Option("--quorum", help="Share of the members that a sum needs (open).")] = 0.5
    first_members: Annotated[int, typer.Option("--first-members", min=3, help="Members to begin with.")] = 5
    folder: Folder = None
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before it is created.")] = False
    json_: Json = False


@app.command("init")
@with_options(InitOptions)
def init(options: InitOptions) -> None:
    """Create a federation in one folder: keys, certificate authority, terms. Prints the second operator's invitation.

    Says before anything is created what each node is promised.
    """
    require("federation")
    from foltr.federation.network import folders
    from foltr.federation.network.certificates import host_of
    from foltr.federation.network.charter import Charter, Settings
    from foltr.federation.network.invitation import to_text
    from foltr.federation.network.planning import Requirements, plan
    from foltr.node.learning.federated import start_ranker
    from foltr.node.learning.versions import FEDERATED

    host_of(options.address)
    start, now = start_ranker(), time.time()
    assert FEDERATED.clip is not None
    required = Requirements(options.kind, options.members, options.epsilon, options.delta, options.days, options.quorum,
                    options.window_hours)  # fmt: skip
    planned = plan(required, length=len(start.names), clip=FEDERATED.clip, now=now)
    charter = Charter(options.kind, planned.terms, start, FEDERATED.server_learning_rate)
    settings = Settings(
        options.name, options.address, options.host, options.port or _port_of(options.address),
        admission="hand" if options.kind == "circle" else "invitation", first_members=options.first_members,
        interval_days=planned.interval_days,
    )  # fmt: skip
    if not options.json_:
        for line in planned.words:
            say(line)
    if not options.yes and not options.json_ and not typer.confirm("Create it?"):
        raise typer.Exit(1)
    folder = _folder(options.folder)
    desk = folders.create(folder, charter, settings, now)
    _, invitation = folders.invitation_of_operator(folder, desk, now)
    if options.json_:
        print_json({"folder": str(folder), "federation": charter.terms.federation, "promise": planned.words,
                    "operator_invitation": to_text(invitation)})  # fmt: skip
        return
    say(f"created in {folder}")
    say("Give this line to the second operator, who runs `foltr aggregator join` with it on another machine:")
    typer.echo(to_text(invitation))
    say("Then: foltr coordinator serve")


@app.command("serve")
def serve(folder: Folder = None) -> None:
    """Serve nodes and the second operator over HTTPS until Ctrl-C, and open rounds."""
    require("federation")
    import logging

    from foltr.federation.network import folders, server
    from foltr.files import held

    logging.basicConfig(format="%(asctime)s %(message)s", level=logging.INFO)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    home = _folder(folder)
    desk = folders.open_desk(home)
    certificate, key = folders.certificate_files(home, desk.settings, time.time())
    with held(home / "serving", "serving this federation"):
        server.serve(
            desk, certificate, key,
            lambda: typer.echo(f"serving {desk.settings.name} on {desk.settings.host}:{desk.settings.port}"),
        )  # fmt: skip


@app.command("invite")
def invite(
    count: Annotated[int, typer.Option("--count", min=1, max=1000, help="Invitations to write.")] = 1,
    operator: Annotated[bool, typer.Option("--operator", help="A new line for the second operator instead.")] = False,
    revoke: Annotated[int | None, typer.Option("--revoke", help="Revoke the invitation of this number.")] = None,
    folder: Folder = None,
    json_: Json = False,
) -> None:
    """Write one-time invitations, one line each; `foltr node join` takes them."""
    from foltr.federation.network import enrolment, folders
    from foltr.federation.network.invitation import to_text

    home, now = _folder(folder), time.time()
    desk = folders.open_desk(home)
    if revoke is not None:
        enrolment.revoke_invitation(desk, revoke, now)
        say(f"invitation {revoke} is revoked")
        return
    if operator:
        invited = [folders.invitation_of_operator(home, desk, now)]
    else:
        invited = [folders.invitation_of_node(home, desk, now) for _ in range(count)]
    if json_:
        print_json({"invitations": [{"number": number, "text": to_text(invitation)} for number, invitation in invited]})
        return
    for number, invitation in invited:
        say(f"invitation {number}, for one machine, until {_date(invitation.expires)}:")
        typer.echo(to_text(invitation))


@app.command("admit")
def admit(
    clients: Annotated[list[int] | None, typer.Argument(help="Numbers; all that wait where none is given.")] = None,
    folder: Folder = None,
    json_: Json = False,
) -> None:
    """Admit nodes that joined; they are in the next registry. In a circle this closes it."""
    from foltr.federation.network import enrolment

    admitted = enrolment.admit(_desk(folder), clients or [], time.time())
    if json_:
        print_json({"admitted": admitted})
    else:
        say(f"admitted: {', '.join(map(str, admitted)) or 'nobody waits'}")


@app.command("status")
def status(folder: Folder = None, json_: Json = False) -> None:
    """Show members, rounds, both operators and the last acts."""
    from foltr.federation.network import reporting

    desk = _desk(folder)
    state = reporting.state_of(desk, time.time())
    if _both_here(desk):
        state["warning"] = BOTH
    if json_:
        print_json(state)
    else:
        _show(state)


@app.command("forget")
def forget(
    client: Annotated[int, typer.Argument(help="Number of the member.", show_default=False)],
    folder: Folder = None,
) -> None:
    """Remove a member: its key is not in the next registry, its contribution to an open round is deleted."""
    from foltr.federation.network import enrolment

    enrolment.leave(_desk(folder), client, time.time(), by="the coordinator removed it")
    say(f"member {client} is removed; what it sent to finished rounds stays in their sums")


@app.command("rollback")
def rollback(
    version: Annotated[int, typer.Argument(help="Version whose parameters return.", show_default=False)],
    reason: Annotated[str, typer.Option("--reason", help="One line; every node shows it.", show_default=False)],
    folder: Folder = None,
) -> None:
    """Publish an earlier ranker as a new version, when the open window ends."""
    from foltr.federation.network import shared_ranker

    shared_ranker.go_back(_desk(folder), version, reason, time.time())
    say(f"version {version} returns under a new number when no window is open")


@app.command("rehearse")
def rehearse(folder: Folder = None) -> None:
    """Make the next round a rehearsal: every node sends zeros, charges nothing and applies nothing."""
    from foltr.federation.network import rounds

    rounds.rehearse(_desk(folder), time.time())
    say("the next round is a rehearsal; `foltr coordinator status` shows how it goes")


@app.command("doctor")
def doctor(folder: Folder = None, json_: Json = False) -> None:
    """Check the folder, keys, certificate, database, second operator and disk; says what to do."""
    from foltr.federation.network import folders, reporting

    home = _folder(folder)
    findings = reporting.examine(home, folders.open_desk(home), time.time())
    if json_:
        print_json({"findings": [finding._asdict() for finding in findings]})
    else:
        for finding in findings:
            say(f"{'ok ' if finding.ok else 'BAD'} {finding.what}{'' if finding.ok else ': ' + finding.remedy}")
    if not all(finding.ok for finding in findings):
        raise typer.Exit(1)


@app.command("backup")
def backup(
    to: Annotated[Path, typer.Argument(help="File to write; it holds private keys.", show_default=False)],
    folder: Folder = None,
) -> None:
    """Write keys, settings and database into one private file, while the coordinator runs.

    Keys of single rounds are left out by design: nobody who gets the file opens what was recorded.
    """
    from foltr.federation.network import folders

    folders.backup(_folder(folder), to, time.time())
    say(f"written to {to}")


@app.command("restore")
def restore(
    source: Annotated[Path, typer.Argument(help="File of `foltr coordinator backup`.", show_default=False)],
    folder: Folder = None,
) -> None:
    """Restore a coordinator into a new folder. Open rounds fail; numbers that may have been used are skipped."""
    from foltr.federation.network import folders

    home = _folder(folder)
    following = folders.restore(home, source, time.time())
    say(f"restored into {home}; the next round has number {following}")


# --- shared ---------------------------------------------------------------------------------------------------------


def _folder(stated: Path | None) -> Path:
    from foltr.federation.network.folders import coordinator_home

    return stated or coordinator_home()


def _desk(stated: Path | None) -> "Desk":
    from foltr.federation.network.folders import open_desk

    return open_desk(_folder(stated))


def _port_of(address: str) -> int:
    from urllib.parse import urlsplit

    try:
        return urlsplit(address).port or 443
    except ValueError:
        raise InputError(f"{address!r}: write the address as https://host:port") from None


def _both_here(desk: "Desk") -> bool:
    """Whether the second operator's folder is on this machine."""
    from foltr.federation.network import folders

    try:
        _, _, given = folders.read_second(folders.aggregator_home())
    except InputError:
        return False
    return given.terms.federation == desk.charter.terms.federation


def _date(seconds: float) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(seconds))


def _show(state: dict[str, Any]) -> None:
    if "warning" in state:
        say(state["warning"])
    say(f"{state['name']}: {state['kind']}, version {state['version']}, registry {state['registry']} "
        f"of {state['members']} members; {state['waiting']} wait for admission")  # fmt: skip
    say(f"first operator   {state['fingerprints'][0]}")
    say(f"second operator  {state['fingerprints'][1] or 'has not joined'}"
        + (f", seen {state['second_seen']}" if state["second_seen"] else ""))  # fmt: skip
    rows = [
        (str(one["round"]), one["state"], str(one["sent"]), one["closes"], one["reason"]) for one in state["rounds"]
    ]
    if rows:
        table(rows, ("round", "state", "sent", "window ends", "reason"), right=(0, 2))
    for act in state["acts"]:
        say(f"{act['time']}  {act['act']}")
