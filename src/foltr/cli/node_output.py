"""Printing of `foltr node`: results, states and progress, 80 columns, colour only on terminals, nothing unprintable."""

import datetime
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from foltr.cli.output import err, out

if TYPE_CHECKING:
    from foltr.node.index.follower import Follower
    from foltr.node.index.indexing import Progress
    from foltr.node.index.layout import Rebuild
    from foltr.node.learning.versions import Trial
    from foltr.node.node import Node
    from foltr.node.search.results import Contribution, Results, Row

WIDTH = 80
_INDENT = "    "
_LINE_SECONDS = 10.0  # between two lines of progress where there is no terminal


def say(words: str) -> None:
    """A line of words, in which nothing is markup and no control character is left."""
    from foltr.node.search.snippets import escaped

    out.print("\n".join(map(escaped, words.split("\n"))), highlight=False, markup=False, soft_wrap=True, emoji=False)


def show_results(results: "Results") -> None:
    from foltr.node.search.results import counted

    if not results.rows:
        say(f"nothing found for {results.query!r}")
    for row in results.rows:
        for line in row_lines(row):
            out.print(line, highlight=False, soft_wrap=True)
    if results.corrected:
        say("No document has these words exactly; these have words that are spelt nearly the same.")
    if results.suggestion:
        say(f"Did you mean: {results.suggestion}")
    last = results.offset + len(results.rows)
    if results.rows and last < results.total:
        say(f"{results.offset + 1}-{last} of {counted(results.counts)}; more: --offset {last}")


def row_lines(row: "Row") -> list[Text]:
    """Rank, title and date; path; passage; reason."""
    from foltr.node.search.snippets import escaped

    date = day(row.date)
    head = Text(f"{row.rank:>2}  ", style="dim")
    width = WIDTH - len(_INDENT) - len(date) - 2
    head.append_text(_marked(row.title, row.title_highlights, width, "bold"))
    head.append(" " * max(1, WIDTH - head.cell_len - len(date)))
    head.append(date, style="dim")
    path = _end(escaped(short_path(row.path)) + (f" #{escaped(row.part)}" if row.part else ""), WIDTH - len(_INDENT))
    lines = [head, Text(_INDENT + path, style="cyan")]
    lines += _wrapped(_marked(row.snippet.text, row.snippet.highlights, 4 * WIDTH, ""))
    notes = ["its disk is away"] * row.away + ["only the beginning of its text is searched"] * row.cut
    return [*lines, *_wrapped(Text("; ".join([*notes, escaped(row.reason)]), style="dim italic"))]


def show_contributions(row: "Row", contributions: Sequence["Contribution"]) -> None:
    """Contributions of the features to a score, largest first; the last line is their sum."""
    for one in sorted(contributions, key=lambda one: -abs(one.points)):
        if one.points:
            figures = f"{one.weight:+7.3f} x {one.scaled:6.3f} = {one.points:+8.4f}"
            say(f"{_INDENT}{figures}   {one.words} ({one.value:.4g})")
    say(f"{_INDENT}{row.score:+27.4f}   score")


def rebuilding(new: "Rebuild") -> str:
    serving = "an earlier index is searched until the new one is complete"
    if not new.total:
        return f"{serving}; foltr node index builds it"
    return f"{serving}: {new.done:,} of {new.total:,} files are done"


def following(follower: "Follower") -> str:
    """Whether changes are followed, for the status."""
    if follower.running:
        return "changes are followed" + (f"; started again, since {follower.problem}" if follower.problem else "")
    again = f"; it is started again at {moment(follower.again)}" if follower.again else ""
    return f"changes are NOT followed: {follower.problem}{again}"


def trial(found: "Trial") -> str:
    """Says which weights rank while a version is on trial."""
    whence = ", from a federation," if found.shared else ""
    return (
        f"version {found.version}{whence} is on trial against version {found.trusted}: results mix the orders of both "
        f"until enough of them were opened to tell ({found.won} for it, {found.lost} against it so far)"
    )


def short_path(path: str) -> str:
    """With ~ for the home folder."""
    home = str(Path.home())
    return "~" + path[len(home) :] if home != "/" and path.startswith(home + os.sep) else path


def day(seconds: float | None) -> str:
    return "" if seconds is None else moment(seconds).partition(" ")[0]


def moment(seconds: float) -> str:
    """Day and time in this zone; nothing for a date that no calendar has."""
    try:
        return datetime.datetime.fromtimestamp(seconds).astimezone().strftime("%Y-%m-%d %H:%M")
    except (OverflowError, OSError, ValueError):
        return ""


def size(number: int) -> str:
    return f"{number / 1e6:,.1f} MB" if number >= 1e5 else f"{number / 1e3:,.1f} kB"


def _marked(text: str, highlights: Sequence[tuple[int, int]], width: int, style: str) -> Text:
    shown = Text(text, style=style)
    for start, end in highlights:
        shown.stylize("bold yellow", start, end)
    if shown.cell_len > width:
        shown.truncate(width, overflow="ellipsis")
    return shown


def _wrapped(text: Text) -> list[Text]:
    """Lines of at most 80 columns, indented."""
    console = Console(width=WIDTH, file=None, force_terminal=False, legacy_windows=False)
    lines = text.wrap(console, WIDTH - len(_INDENT))
    return [Text(_INDENT).append_text(line) for line in lines if line.plain]


def _end(path: str, width: int) -> str:
    """The end of a long path says more than its beginning."""
    shown = Text(path)
    if shown.cell_len <= width:
        return path
    letters = list(path)
    while Text("".join(letters)).cell_len > width - 1:
        del letters[: max(1, (len(letters) - width) // 2)]
    return "…" + "".join(letters)


def table(rows: Sequence[Sequence[Any]], names: Sequence[str], right: Sequence[int] = ()) -> None:
    from rich.table import Table

    from foltr.node.search.snippets import escaped

    shown = Table(box=None, pad_edge=False)
    for place, name in enumerate(names):
        shown.add_column(name, justify="right" if place in right else "left", overflow="fold")
    for row in rows:
        shown.add_row(*(Text(escaped(str(one))) for one in row))
    out.print(shown)


def show_indexing(node: "Node") -> None:
    """Indexes, with a bar on a terminal and a line now and then elsewhere, on standard error. Ctrl-C keeps what is
    done."""
    from foltr.node.index import background

    background.low_priority()
    phase = ""
    for progress in _with_bar(node.index()) if err.is_terminal else _with_lines(node.index()):
        phase = progress.phase
    if phase in ("paused", "on battery"):
        err.print(f"not indexed: {phase}", highlight=False)


def _with_bar(indexing: Iterator["Progress"]) -> Iterator["Progress"]:
    from rich import progress as bars

    columns = (
        bars.TextColumn("indexing"), bars.BarColumn(), bars.MofNCompleteColumn(),
        bars.TextColumn("{task.fields[speed]}"), bars.TimeRemainingColumn(),
    )  # fmt: skip
    with bars.Progress(*columns, console=err, transient=True) as bar:
        task = bar.add_task("", total=None, speed="")
        for progress in indexing:
            speed = f"{progress.per_second:,.0f} files/s" if progress.per_second else f"{progress.done:,} files seen"
            total = progress.total if progress.phase == "index" else None
            bar.update(task, completed=progress.done, total=total, speed=speed)
            yield progress


def _with_lines(indexing: Iterator["Progress"]) -> Iterator["Progress"]:
    last = time.monotonic()
    for progress in indexing:
        if time.monotonic() - last >= _LINE_SECONDS:
            last = time.monotonic()
            err.print(progress_line(progress), highlight=False, markup=False, soft_wrap=True)
        yield progress


def progress_line(progress: "Progress") -> str:
    """Describes in words how far indexing is."""
    if progress.phase == "scan":
        return f"{progress.done:,} files seen"
    if progress.phase == "names":
        return f"{progress.done:,} files: all names are searchable, their texts follow"
    line = f"{progress.done:,} of {progress.total:,} files indexed, {progress.per_second:,.0f} a second"
    if progress.seconds_left is None:
        return line
    left = round(progress.seconds_left)
    return line + (f", {left} s left" if left < 120 else f", {round(left / 60):,} minutes left")
