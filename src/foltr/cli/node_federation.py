"""`foltr node join`, `sync`, `ledger`, `members` and `leave`: this node in a federation, and all that leaves it."""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from foltr.cli.node_output import moment, say, table
from foltr.cli.output import Json, print_json, require, with_options
from foltr.errors import FoltrError, InputError, Refused

if TYPE_CHECKING:
    from foltr.federation.network.invitation import Invitation
    from foltr.federation.network.joined import Membership
    from foltr.federation.network.syncing import Synced
    from foltr.federation.network.wire import Post
    from foltr.node.learning.log import Log
    from foltr.node.places import Places
    from foltr.secagg.terms import Registry

Federation = Annotated[
    str, typer.Argument(help="The beginning of its number; needed where this node is in several.", show_default=False)
]
_LONGEST_FILE = 100_000  # bytes of a file with an invitation
_LIST_DIGITS = 16  # of a list of members that are shown and confirmed


def add_to(app: typer.Typer) -> None:
    """Adds the commands to `foltr node`."""
    app.command("join")(join)
    app.command("sync")(sync)
    app.command("ledger")(ledger)
    app.command("members")(members)
    app.command("leave")(leave)


# --- joining ----------------------------------------------------------------------------------------------------------


class Join(NamedTuple):
    """Options of `foltr node join`."""

    invitation: Annotated[
        str,
        typer.Argument(help="The line that you were sent, a file that has it, or - to paste it.", show_default=False),
    ]
    fingerprints: Annotated[
        list[str] | None,
        typer.Option("--fingerprint", help="Of an operator, as it told you. Both, with --yes.", show_default=False),
    ] = None
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask; needs --fingerprint of both operators.")] = False
    json_: Json = False


@with_options(Join)
def join(options: Join) -> None:
    """Join a federation: shows what will leave this machine, to whom and until when, and asks."""
    from foltr.federation.network.consent import check_fingerprints, words
    from foltr.federation.network.joined import accept_invitation
    from foltr.federation.policy import Guarded, accept, check_terms, effective
    from foltr.node.learning import federated, released

    require("federation")
    invitation = _invitation(options.invitation)
    with _log() as (places, log):
        guarded = Guarded(federated.policy_folder(places))
        policy, now = guarded.load(), time.time()
        limits = effective(policy, invitation.federation)
        check_terms(limits, invitation.terms)
        federated.check_length(invitation.terms)
        if options.yes:
            check_fingerprints(invitation, options.fingerprints or [])
        if not options.json_:
            for line in words(invitation, limits, released.spent(places), now):
                say(line)
        if not options.yes:
            _ask(options)
        after = accept(policy, invitation.federation, invitation.operators)
        membership = accept_invitation(invitation, federated.storage_of(places, invitation.federation), now)
        guarded.save(after)
        result = _first_visit(membership, places, log, guarded)
    if options.json_:
        print_json({"federation": invitation.federation, "name": invitation.name, **result})
        return
    say(result["words"])
    say("`foltr node serve` syncs by itself; where nothing serves: foltr node install --sync")


def _ask(options: Join) -> None:
    if options.json_ or not sys.stdin.isatty():
        raise InputError("nobody can be asked here; add --yes and --fingerprint of both operators")
    if not typer.confirm("Are both fingerprints what the operators told you, and shall this node join?"):
        raise typer.Exit(1)


def _first_visit(membership: "Membership", places: "Places", log: "Log", guarded: Any) -> dict[str, Any]:
    """The coordinator's answer; one that cannot be reached is asked by the next sync, one that refuses ends it."""
    from foltr.federation.network.joined import NOT_YET, erase_membership
    from foltr.federation.policy import without

    federation = membership.joined.federation
    try:
        with _connected(membership) as post:
            synced = _synced(membership, places, log, post)
    except ConnectionError as problem:
        return {"state": "unreachable", "words": f"Accepted, and not joined yet: {problem}. The next sync asks again."}
    except Refused:
        if membership.joined.client == NOT_YET:
            erase_membership(membership.storage)
            guarded.save(without(guarded.load(), federation))
        raise
    return {"state": synced.state, "words": f"Joined. {synced.words[:1].upper()}{synced.words[1:]}."}


def _invitation(text: str) -> "Invitation":
    """From the line itself, a file or standard input."""
    from foltr.federation.network.invitation import from_text

    if text == "-":
        return from_text(sys.stdin.read(_LONGEST_FILE))
    if not text.startswith("foltr-"):
        path = Path(text)
        if not path.is_file():
            raise InputError(f"{text[:60]!r} is no invitation and no file; an invitation begins with foltr-1-")
        with path.open(encoding="utf-8", errors="replace") as file:
            return from_text(file.read(_LONGEST_FILE))
    return from_text(text)


# --- syncing ----------------------------------------------------------------------------------------------------------


class Sync(NamedTuple):
    """Options of `foltr node sync`."""

    federation: Federation = ""
    why: Annotated[bool, typer.Option("--why", help="Say why this node was, or was not, in the newest sums.")] = False
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on after two charged rounds that led to no new ranker.")
    ] = False
    background: Annotated[
        bool, typer.Option("--background", help="Wait where the machine is on battery or the network is metered.")
    ] = False
    json_: Json = False


@with_options(Sync)
def sync(options: Sync) -> None:
    """Visit the coordinator: take the newest ranker on trial, and take part in the open round."""
    from foltr.federation.network.joined import chosen
    from foltr.node.learning import federated

    require("federation")
    with _log() as (places, log):
        members = federated.memberships_of(places)
        if options.background and (not members or _waits(places)):
            return
        if options.federation or not members:
            members = [chosen(members, options.federation)]
        results, problems = [], []
        for membership in members:
            try:
                results.append(_visited(membership, places, log, options))
            except (FoltrError, ConnectionError) as problem:
                problems.append((membership, problem))
                results.append({"federation": membership.joined.federation, "problem": str(problem)})
    if options.json_:
        print_json({"federations": results})
    for result in () if options.json_ else results:
        for line in result.get("lines", ()):
            say(line)
    if problems:
        raise _failure(problems)


def _visited(membership: "Membership", places: "Places", log: "Log", options: Sync) -> dict[str, Any]:
    from foltr.federation.network.syncing import resume, why
    from foltr.node.learning import federated

    name, build = membership.joined.invitation.name, federated.builder(places, log)
    if options.resume:
        resume(membership, build)
    with _connected(membership) as post:
        if options.why:
            rounds = why(membership, build, post)
            lines = [f"{name}: round {row.round}: {row.words}" for row in rounds] or [f"{name}: there was no round yet"]
            return {
                "federation": membership.joined.federation,
                "rounds": [row._asdict() for row in rounds],
                "lines": [*lines, *_last_words(membership)],
            }
        synced = _synced(membership, places, log, post)
    return {
        "federation": membership.joined.federation,
        "state": synced.state,
        "round": synced.round,
        "version": synced.version,
        "lines": [f"{name}: {synced.words}; version {synced.version} of the shared ranker"],
    }


def _last_words(membership: "Membership") -> list[str]:
    from foltr.federation.network.syncing import read_synced

    synced = read_synced(membership.storage)
    return [] if synced is None else [f"newest sync, {moment(synced.time)}: {synced.words}"]


def _failure(problems: "Sequence[tuple[Membership, Exception]]") -> FoltrError:
    """One error of all federations that could not be synced."""
    words = "; ".join(f"{membership.joined.invitation.name}: {problem}" for membership, problem in problems)
    kinds = {type(problem) for _, problem in problems}
    kind = kinds.pop() if len(kinds) == 1 else FoltrError
    return kind(words) if issubclass(kind, FoltrError) else Refused(words)


def _synced(membership: "Membership", places: "Places", log: "Log", post: "Post") -> "Synced":
    from foltr.federation.network import syncing
    from foltr.node.learning import federated

    synced = syncing.sync(membership, federated.builder(places, log), post)
    if synced.state == "left":
        federated.forget(places, membership.joined.federation)
    return synced


def _waits(places: "Places") -> bool:
    from foltr.node.index.background import hold_reason, on_metered
    from foltr.node.settings import load

    settings = load(places.settings_file)
    return hold_reason(places, settings) is not None or on_metered()


# --- looking ----------------------------------------------------------------------------------------------------------


def ledger(json_: Json = False) -> None:
    """List every release of this node: when, to whom, how many bytes, and epsilon so far."""
    from foltr.node import places as node_places
    from foltr.node.learning import federated, released

    places = node_places.find()
    found = released.releases(places)
    if json_:
        print_json({"releases": [row._asdict() for row in found.rows], **found.figures})
        return
    names = {member.joined.federation: member.joined.invitation.name for member in federated.memberships_of(places)}
    rows = [
        (moment(row.time) if row.time else "", names.get(row.federation, row.federation[:8]), row.round, row.address,
         f"{row.size:,}", _epsilon(row.epsilon))
        for row in found.rows
    ]  # fmt: skip
    table(rows, ("time", "federation", "round", "to", "bytes", "epsilon so far"), right=(2, 4, 5))
    budget = found.figures["budget"]
    limit = "no budget" if budget is None else f"budget epsilon {budget:g}"
    say(
        f"{len(rows):,} releases, {sum(row.size for row in found.rows):,} bytes; epsilon "
        f"{_epsilon(found.figures['epsilon'])} at delta {found.figures['delta']:g}, {limit}; against one operator with "
        "any number of members; unit: this node; adjacency: its updates replaced by zero"
    )


def _epsilon(value: float) -> str:
    return f"{value:.3g}" if value < float("inf") else "none promised"


class Members(NamedTuple):
    """Options of `foltr node members`."""

    federation: Federation = ""
    confirm: Annotated[
        str,
        typer.Option("--confirm", help="Of a circle: the list with this number is what each person told you."),
    ] = ""
    json_: Json = False


@with_options(Members)
def members(options: Members) -> None:
    """List the members of a federation with their fingerprints; a circle needs them confirmed before it sums."""
    from foltr.federation.network.invitation import fingerprint
    from foltr.federation.network.joined import chosen
    from foltr.federation.network.syncing import registry_of
    from foltr.federation.policy import Guarded, accept
    from foltr.node import places as node_places
    from foltr.node.learning import federated

    places = node_places.find()
    membership = chosen(federated.memberships_of(places), options.federation)
    known = registry_of(membership)
    if known is None:
        raise InputError("the federation has no list of members yet; `foltr node sync` asks for it")
    guarded = Guarded(federated.policy_folder(places))
    invitation = membership.joined.invitation
    if options.confirm:
        _check_confirmed(membership, known, options.confirm)
        guarded.save(accept(guarded.load(), invitation.federation, invitation.operators, circle=known))
    confirmed = guarded.load().federations[invitation.federation].circle == known.digest.hex()
    rows = [(client, fingerprint(known.keys[client])) for client in known.clients]
    if options.json_:
        own, number = membership.joined.client, known.digest.hex()[:_LIST_DIGITS]
        print_json({"members": dict(rows), "own": own, "list": number, "confirmed": confirmed})
        return
    table([(client, text, "this node" if client == membership.joined.client else "") for client, text in rows],
          ("member", "fingerprint", ""), right=(0,))  # fmt: skip
    if invitation.kind == "circle":
        number = known.digest.hex()[:_LIST_DIGITS]
        say(
            "confirmed"
            if confirmed
            else "NOT confirmed: nothing is sent. Compare each fingerprint with what its person tells you, then: foltr "
            f"node members --confirm {number}"
        )


def _check_confirmed(membership: "Membership", known: "Registry", number: str) -> None:
    """Refuses to confirm another list than the one that the person compared."""
    if membership.joined.invitation.kind != "circle":
        raise InputError("only a circle's members are confirmed; in an open federation noise protects whoever joins")
    if number.lower() != known.digest.hex()[:_LIST_DIGITS]:
        raise InputError(
            f"--confirm {number}: the list of members has another number; look at it again with `foltr node members`"
        )


# --- leaving ----------------------------------------------------------------------------------------------------------


def leave(
    federation: Federation = "",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    json_: Json = False,
) -> None:
    """Leave a federation: the key is revoked, stored messages are deleted; says what stays in the shared ranker."""
    from foltr.federation.network.joined import chosen, mark_left
    from foltr.node.learning import federated, released

    require("federation")
    with _log() as (places, log):
        membership = chosen(federated.memberships_of(places), federation)
        stays = released.remains(places, membership)
        if not yes:
            if json_ or not sys.stdin.isatty():
                raise InputError("nobody can be asked here; add --yes")
            say(stays)
            typer.confirm(f"Leave {membership.joined.invitation.name}?", abort=True)
        membership = mark_left(membership, time.time())
        reached = True
        try:
            with _connected(membership) as post:
                _synced(membership, places, log, post)
        except ConnectionError:
            reached = False
    if json_:
        print_json({"federation": membership.joined.federation, "reached": reached, "stays": stays})
        return
    say(stays)
    say("Left: the key is revoked and deleted." if reached else "Left. The coordinator cannot be reached; the next "
        "sync tells it, and then the key is deleted. Nothing is contributed meanwhile.")  # fmt: skip


# --- both sides -------------------------------------------------------------------------------------------------------


@contextmanager
def _log() -> "Iterator[tuple[Places, Log]]":
    """Places and log of this node, without its index."""
    from foltr.node import places as node_places
    from foltr.node.learning.log import Log, Retention
    from foltr.node.settings import load

    places = node_places.create(node_places.find())
    retention = Retention(days=load(places.settings_file).retention_days)
    with Log(places.data / "log.sqlite", retention) as log:
        yield places, log


@contextmanager
def _connected(membership: "Membership") -> "Iterator[Post]":
    from foltr.federation.network.https import connect

    invitation = membership.joined.invitation
    with connect(invitation.address, invitation.certificate, membership.identity, invitation.federation) as post:
        yield post
