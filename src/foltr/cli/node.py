"""`foltr node`: search your own documents on this machine. Imports stand inside each command."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from foltr.cli import node_federation, node_output, node_page, node_policy, node_transfer
from foltr.cli.node_output import moment, rebuilding, say, show_contributions, show_indexing, show_results, size, table
from foltr.cli.output import Commands, Json, print_json, require, with_options
from foltr.errors import InputError

if TYPE_CHECKING:
    from foltr.node.learning.erasure import Erased
    from foltr.node.node import Node
    from foltr.node.search.results import Results
    from foltr.node.status import Status

app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    help="Search your own files and mail. Everything stays on this machine: a node that joined no federation contacts "
    "nobody. FOLTR_NODE_HOME=DIR keeps all its files below one folder.",
)
node_page.add_to(app)
node_policy.add_to(app)
node_federation.add_to(app)
node_transfer.add_to(app)
Paths = Annotated[list[Path], typer.Argument(help="Folders or files.", show_default=False)]
_LAST = "last_search.json"
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


@contextmanager
def opened() -> "Iterator[Node]":
    require("node", "text")
    from foltr.node.index.background import return_memory
    from foltr.node.node import open as open_node

    return_memory()
    with open_node() as node:
        if node.problem:
            typer.echo(f"warning: {node.problem}. Nothing is indexed or remembered until then.", err=True)
        yield node


def _whole(paths: list[Path]) -> list[str]:
    from foltr.node.settings import absolute_path

    return [absolute_path(path) for path in paths]


@app.command()
def init(json_: Json = False) -> None:
    """Create the folders and the settings file."""
    import msgspec

    with opened() as node:
        places = {name: str(folder) for name, folder in msgspec.structs.asdict(node.places).items()}
        settings = str(node.places.settings_file)
    if json_:
        print_json({**places, "settings": settings})
        return
    for name, folder in places.items():
        say(f"{name:<8} {folder}")
    say("Next: foltr node add FOLDER")


@app.command()
def add(
    paths: Paths,
    later: Annotated[bool, typer.Option("--later", help="Do not index now.")] = False,
    json_: Json = False,
) -> None:
    """Add folders and index them: text, Markdown, HTML, PDF, DOCX, ODT, EPUB, source code, mbox, Maildir, EML."""
    with opened() as node:
        served = node_page.hand_over("add", _whole(paths), quiet=json_)
        if served is None:
            node.add(paths)
        if not later and not (served and served.follows):
            show_indexing(node)
        _tell_counts(node, json_)


@app.command()
def remove(paths: Paths, json_: Json = False) -> None:
    """Stop searching these folders, and erase what the index has of them."""
    with opened() as node:
        if node_page.hand_over("remove", _whole(paths), quiet=json_) is None:
            for path in paths:
                node.remove(path)
        _tell_counts(node, json_)


@app.command()
def exclude(
    rules: Annotated[
        list[str], typer.Argument(help="Patterns in gitignore syntax, such as '*.log'.", show_default=False)
    ],
    json_: Json = False,
) -> None:
    """Exclude what fits a pattern, also what is indexed already."""
    with opened() as node:
        if node_page.hand_over("exclude", rules, quiet=json_) is None:
            node.exclude(rules)
        _tell_counts(node, json_)


@app.command()
def index(json_: Json = False) -> None:
    """Bring the index up to date. Ctrl-C keeps what is done."""
    with opened() as node:
        served = node_page.hand_over("scan", [], quiet=json_)
        if not (served and served.follows):
            show_indexing(node)
        _tell_counts(node, json_)


@app.command()
def pause() -> None:
    """Index nothing until `foltr node resume`."""
    with opened() as node:
        node.pause()
    say("paused; foltr node resume goes on")


@app.command()
def resume() -> None:
    """Index again after `foltr node pause`."""
    with opened() as node:
        node.resume()
    say("resumed; foltr node index brings the index up to date")


class Search(NamedTuple):
    """Options of `foltr node search`."""

    words: Annotated[
        list[str] | None,
        typer.Argument(
            help="Words, '\"a phrase\"', -word, OR, path: type: from: to: subject: before: after:. "
            "Nothing: the most recent documents.",
            show_default=False,
        ),
    ] = None
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="Results to show.")] = 10
    offset: Annotated[int, typer.Option("--offset", min=0, help="Results to pass over.")] = 0
    explain: Annotated[bool, typer.Option("--explain", help="What every feature adds to the score.")] = False
    json_: Json = False


@app.command("search", context_settings={"ignore_unknown_options": True})
@with_options(Search)
def search(chosen: Search) -> None:
    """Search: rank, title, date, path, passage and reason of every result. `foltr node open N` opens one."""
    from foltr.node.search.results import to_plain

    with opened() as node:
        results = node.search(" ".join(chosen.words or []), limit=chosen.limit, offset=chosen.offset)
        _store_last(node, results)
        explained = [node.explain(results, row.id) for row in results.rows] if chosen.explain else []
        if chosen.json_:
            plain = to_plain(results)
            for row, contributions in zip(plain["rows"], explained, strict=False):
                row["contributions"] = [one._asdict() for one in contributions]
            print_json(plain)
            return
        if not explained:
            show_results(results)
        for row, contributions in zip(results.rows, explained, strict=False):
            show_results(results._replace(rows=(row,), total=0))
            show_contributions(row, contributions)


@app.command("open")
def open_result(
    number: Annotated[int, typer.Argument(min=1, help="Rank in the last search.", show_default=False)],
    print_: Annotated[
        bool, typer.Option("--print", "--no-open", help="Print the path instead of starting a program.")
    ] = False,
    json_: Json = False,
) -> None:
    """Open a result of the last search, and remember the choice. Source code opens in your editor; what can run code
    is only shown in its folder until you allow it on the page."""
    from foltr.node.learning.memory import split_key
    from foltr.node.search.snippets import escaped

    with opened() as node:
        impression, offset = _last(node)
        key = node.choose_place(impression, number - 1 - offset)
        path, reason = split_key(key)[0], None if print_ else _open(node, impression, key)
    if json_:
        print_json({"path": path.encode("utf-8", "backslashreplace").decode(), "revealed_because": reason})
        return
    say(escaped(path))
    if reason:
        say(f"Opened its folder instead: {reason}.")


def _open(node: "Node", impression: int, key: str) -> str | None:
    """Opens a document, or its folder; returns the reason for the latter. A choice that could not be opened is taken
    back."""
    from foltr.node.search import consents, desktop

    try:
        file = node.file_to_open(key, node.log.displayed(impression).query or "")
        launch = desktop.opening(file, node.copies, allowed=consents.given(node.places))
        if isinstance(launch, desktop.Question):
            allow = "the page asks once whether such files may be opened"
            launch = desktop.revealing(file)._replace(revealed=f"{launch.risk.reason}; {allow}")
        desktop.start(launch)
    except InputError:
        node.log.take_back(impression, key)
        raise
    return launch.revealed


@app.command()
def why(
    path: Annotated[Path, typer.Argument(help="A file or folder.", show_default=False)],
    json_: Json = False,
) -> None:
    """Say whether a file is indexed, excluded, skipped, failed or waiting, and for which reason."""
    from foltr.node.search.snippets import escaped

    with opened() as node:
        found = node.why(path)
    if json_:
        print_json(found._asdict())
        return
    say(f"{escaped(str(path))}: {found.state}" + (f", {found.reason}" if found.reason else ""))


@app.command()
def status(json_: Json = False) -> None:
    """Counts of files by state, sizes, versions of the weights, folders."""
    with opened() as node:
        found = node.status()
    if json_:
        print_json(_plain_status(found))
        return
    if found.rebuilding is not None:
        say(rebuilding(found.rebuilding))
    table([[state, f"{count:,}"] for state, count in found.states.items()], ("files", ""), right=(1,))
    say(f"{sum(found.states.values()):,} files, {found.documents:,} documents, {found.names:,} by their name alone")
    say(f"index {size(found.index_bytes)}, log, memory and weights {size(found.data_bytes)}")
    say(f"{found.searches:,} searches in the log, {found.clicks:,} choices, version {found.version} of the weights")
    if found.trial is not None:
        say(node_output.trial(found.trial))
    if found.confinement is not None:
        say(f"files were read in processes confined by {found.confinement}")
    for root in found.roots:
        say(f"searches {root}" + (f", AWAY: {found.away[root]}; its documents are kept" if root in found.away else ""))
    if found.paused:
        say("paused; foltr node resume goes on")
    if found.following is not None:
        say(node_output.following(found.following))


def _plain_status(found: "Status") -> dict[str, Any]:
    parts = {"rebuilding": found.rebuilding, "following": found.following, "trial": found.trial}
    return {**found._asdict(), **{name: part and part._asdict() for name, part in parts.items()}}


class History(NamedTuple):
    """Options of `foltr node history`."""

    limit: Annotated[int, typer.Option("--limit", min=1, help="Searches to list.")] = 20
    delete: Annotated[list[int] | None, typer.Option("--delete", help="Delete this search. Repeatable.")] = None
    all_: Annotated[
        bool, typer.Option("--delete-all", help="Delete all searches, memory of choices, pinned and hidden results.")
    ] = False
    reset_weights: Annotated[
        bool | None,
        typer.Option(
            "--reset-weights/--keep-weights",
            help="With --delete-all: delete the learned weights, which were fitted to these searches, or keep them.",
            show_default=False,
        ),
    ] = None
    since: Annotated[str | None, typer.Option("--delete-since", help="Delete from this day on (YYYY-MM-DD).")] = None
    before: Annotated[str | None, typer.Option("--delete-before", help="Delete before this day (YYYY-MM-DD).")] = None
    export: Annotated[Path | None, typer.Option("--export", help="Write all searches to this file.")] = None
    ubi: Annotated[bool, typer.Option("--ubi", help="With --export: in the format User Behavior Insights.")] = False
    json_: Json = False


@app.command("history")
@with_options(History)
def history(chosen: History) -> None:
    """List what was searched and opened; delete one search, a stretch of time or everything."""
    with opened() as node:
        if chosen.export is not None:
            written = node.export_history(chosen.export, ubi=chosen.ubi)
            say(f"{chosen.export}: {written:,} searches")
            return
        deleted = _delete_history(node, chosen)
        if deleted is not None:
            from foltr.node.learning.erasure import summary

            print_json({"deleted": deleted.searches, **deleted._asdict()}) if chosen.json_ else say(summary(deleted))
            return
        listed = node.history(limit=chosen.limit)
    if chosen.json_:
        print_json({"searches": [_plain_search(one) for one in listed]})
        return
    rows = [
        (one.impression, moment(one.time), one.query if one.query is not None else "(erased)", _opened_names(one))
        for one in listed
    ]
    table(rows, ("search", "time", "query", "opened"), right=(0,))


def _delete_history(node: "Node", chosen: History) -> "Erased | None":
    from foltr.node.search.conditions import seconds_of
    from foltr.node.search.query import date_of

    for day_ in (chosen.since, chosen.before):
        if day_ is not None and date_of(day_) is None:
            raise InputError(f"{day_!r} is no day; write YYYY-MM-DD")
    if chosen.all_:
        return node.delete_history(reset_weights=_resets_weights(node, chosen))
    if chosen.since is not None or chosen.before is not None:
        since = seconds_of(chosen.since) if chosen.since else 0.0
        return node.delete_history(since=since, until=seconds_of(chosen.before) if chosen.before else None)
    return node.delete_history(searches=chosen.delete) if chosen.delete else None


def _resets_weights(node: "Node", chosen: History) -> bool:
    """Whether weights are reset: by the options, or by the person at a terminal; they stay otherwise."""
    if chosen.reset_weights is not None:
        return chosen.reset_weights
    if chosen.json_ or not sys.stdin.isatty() or not node.versions():
        return False
    return typer.confirm("The learned weights were fitted to these searches. Reset them to the start weights?")


def _plain_search(one: Any) -> dict[str, Any]:
    choices = [choice._asdict() for choice in one.choices]
    return {**one._asdict(), "choices": choices}


def _opened_names(one: Any) -> str:
    if not one.documents:
        return "(nothing found)"
    paths = [choice.document for choice in one.choices if choice.document and not choice.withdrawn]
    return ", ".join(Path(path.partition("\0")[0]).name for path in paths)


@app.command()
def learn(
    now: Annotated[bool, typer.Option("--now", help="Fit the weights to the log now.")] = False,
    back_to: Annotated[int | None, typer.Option("--back-to", help="Use this version again (0: the start).")] = None,
    json_: Json = False,
) -> None:
    """List the versions of the weights; fit a new one, or go back to an old one."""
    with opened() as node:
        if now:
            node.refit()
        if back_to is not None:
            node.go_back(back_to)
        versions, current = node.versions(), node.status().version
    if json_:
        print_json({"current": current, "versions": [_plain_version(one) for one in versions]})
        return
    table(
        [[one.weights.version, one.weights.date, one.clicks, one.state] for one in versions],
        ("version", "day", "choices", "state"),
        right=(0, 2),
    )
    say(f"version {current} ranks" + (", the start weights of the package" if current == 0 else ""))


def _plain_version(one: Any) -> dict[str, Any]:
    import msgspec

    return {**msgspec.to_builtins(one.weights), "state": one.state, "clicks": one.clicks}


@app.command()
def forget(
    choice: Annotated[
        int | None, typer.Option("--choice", min=1, help="Forget that this rank was chosen in the last search.")
    ] = None,
    yes: Yes = False,
) -> None:
    """Erase everything: index, log, memory, weights and settings. With --choice: one choice only."""
    with opened() as node:
        if choice is not None:
            impression, offset = _last(node)
            say(f"forgot {node.forget_place(impression, choice - 1 - offset):,} choices")
            return
        if not yes:
            typer.confirm("Erase index, log, memory, weights and settings of this node?", abort=True)
        node.forget()
    say("erased")


def _store_last(node: "Node", results: "Results") -> None:
    """Logs a list, and which one `open` refers to: by number, so that no word of a query stands outside the log.
    After a list that is not logged, such as a page behind the end, `open` refers to none."""
    from foltr.files import write_json

    number = node.settle(results)
    if number is None:
        (node.places.data / _LAST).unlink(missing_ok=True)
    else:
        write_json(node.places.data / _LAST, {"impression": number, "offset": results.offset}, private=True)


def _last(node: "Node") -> tuple[int, int]:
    import msgspec

    try:
        found = msgspec.json.decode((node.places.data / _LAST).read_bytes(), type=dict[str, int])
        return found["impression"], found["offset"]
    except (OSError, KeyError, msgspec.MsgspecError):
        raise InputError("there is no list to choose from; search first: foltr node search WORDS") from None


def _tell_counts(node: "Node", json_: bool) -> None:
    found = node.status()
    if json_:
        print_json(_plain_status(found))
        return
    counts = ", ".join(f"{count:,} {state}" for state, count in found.states.items() if count)
    by_name = f", {found.names:,} files by their name alone" if found.names else ""
    say(f"{found.documents:,} documents{by_name}; files: {counts or 'none'}")
