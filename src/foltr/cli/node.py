"""`foltr node`: search your own documents on this machine. Imports stand inside each command."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from foltr.cli import node_output, node_page, node_transfer
from foltr.cli.node_output import moment, rebuilding, say, show_contributions, show_indexing, show_results, size, table
from foltr.cli.output import Commands, Json, print_json, require, with_options
from foltr.errors import InputError

if TYPE_CHECKING:
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


@app.command()
def init(json_: Json = False) -> None:
    """Create the folders and the settings file."""
    with opened() as node:
        places = {name: str(getattr(node.places, name)) for name in ("config", "data", "cache")}
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
        node.add(paths)
        if not later:
            show_indexing(node)
        _tell_counts(node, json_)


@app.command()
def remove(paths: Paths, json_: Json = False) -> None:
    """Stop searching these folders, and erase what the index has of them."""
    with opened() as node:
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
        node.exclude(rules)
        _tell_counts(node, json_)


@app.command()
def index(json_: Json = False) -> None:
    """Bring the index up to date. Ctrl-C keeps what is done."""
    with opened() as node:
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
    """Open a result of the last search, and remember the choice. Programs and scripts are only revealed."""
    from foltr.node.search.desktop import open_file
    from foltr.node.search.snippets import escaped

    with opened() as node:
        impression, offset = _last(node)
        path = node.choose_place(impression, number - 1 - offset)
        reason = None if print_ else open_file(node.indexed_file(path))
    if json_:
        print_json({"path": path.encode("utf-8", "backslashreplace").decode(), "revealed_because": reason})
        return
    say(escaped(path))
    if reason:
        say(f"Opened its folder instead: {reason}.")


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
    say(f"{sum(found.states.values()):,} files, {found.documents:,} documents")
    say(f"index {size(found.index_bytes)}, log, memory and weights {size(found.data_bytes)}")
    say(f"{found.searches:,} searches in the log, {found.clicks:,} choices, version {found.version} of the weights")
    if found.confinement is not None:
        say(f"files were read in processes confined by {found.confinement}")
    for root in found.roots:
        say(f"searches {root}")
    if found.paused:
        say("paused; foltr node resume goes on")
    if found.following is not None:
        say(node_output.following(found.following))


def _plain_status(found: "Status") -> dict[str, Any]:
    parts = {"rebuilding": found.rebuilding, "following": found.following}
    return {**found._asdict(), **{name: part and part._asdict() for name, part in parts.items()}}


class History(NamedTuple):
    """Options of `foltr node history`."""

    limit: Annotated[int, typer.Option("--limit", min=1, help="Searches to list.")] = 20
    delete: Annotated[list[int] | None, typer.Option("--delete", help="Delete this search. Repeatable.")] = None
    all_: Annotated[bool, typer.Option("--delete-all", help="Delete all searches, and the memory of choices.")] = False
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
            print_json({"deleted": deleted}) if chosen.json_ else say(f"deleted {deleted:,} searches")
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


def _delete_history(node: "Node", chosen: History) -> int | None:
    from foltr.node.search.conditions import seconds_of
    from foltr.node.search.query import date_of

    for day_ in (chosen.since, chosen.before):
        if day_ is not None and date_of(day_) is None:
            raise InputError(f"{day_!r} is no day; write YYYY-MM-DD")
    if chosen.all_:
        return node.delete_history()
    if chosen.since is not None or chosen.before is not None:
        since = seconds_of(chosen.since) if chosen.since else 0.0
        return node.delete_history(since=since, until=seconds_of(chosen.before) if chosen.before else None)
    return node.delete_history(searches=chosen.delete) if chosen.delete else None


def _plain_search(one: Any) -> dict[str, Any]:
    choices = [choice._asdict() for choice in one.choices]
    return {**one._asdict(), "choices": choices}


def _opened_names(one: Any) -> str:
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
    """Logs a list, and which one `open` refers to: by number, so that no word of a query stands outside the log."""
    from foltr.atomic import atomic_write, dump_json
    from foltr.node.places import private_file

    number = node.settle(results)
    if number is not None:
        with atomic_write(node.places.data / _LAST) as temporary:
            private_file(temporary).write_text(dump_json({"impression": number, "offset": results.offset}))


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
    say(f"{found.documents:,} documents; files: {counts or 'none'}")
