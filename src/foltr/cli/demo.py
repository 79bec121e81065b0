"""`foltr demo`: your own node in the browser, and simulated people who learn together beside it.

The only place where the page and the lab meet: the simulation runs in a process of its own (`lab.people.story`) and
writes records; here they become lines of the terminal and the state of the page Demo. The node is in a temporary folder
that is deleted at the end; the person's real node is never touched.
"""

import subprocess
import sys
import tempfile
import textwrap
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from rich.console import Console

from foltr.cli.node_output import WIDTH
from foltr.cli.node_page import entrance_lines, require_page
from foltr.cli.output import Json, err, out, print_json, require, with_options
from foltr.errors import InputError

if TYPE_CHECKING:
    from foltr.node.page.demo import Estimate, Point, Story
    from foltr.node.page.serve import Serving

LAB = "lab"
_END_SECONDS = 10.0
_HEAD = "round  choices   BM25  start weights  counting  learned    minus BM25  each sent"


class Demo(NamedTuple):
    """Options of `foltr demo`."""

    folder: Annotated[
        str | None,
        typer.Argument(
            metavar="FOLDER", show_default=False,
            help="What your node searches (default: Python's documentation strings). `lab`: the tour of the papers' "
            "methods instead; a folder of that name is ./lab.",
        ),
    ] = None  # fmt: skip
    exit_after: Annotated[
        int | None,
        typer.Option("--exit-after", min=1, metavar="SECONDS", show_default=False,
                     help="End when the simulation has ended, and after so many seconds at the latest."),
    ] = None  # fmt: skip
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")] = True
    seed: Annotated[int, typer.Option("--seed", min=0, help="The first seed of the simulation.")] = 1
    seeds: Annotated[int, typer.Option("--seeds", min=3, max=50, help="How many seeds.")] = 5
    people: Annotated[int, typer.Option("--people", min=4, max=200, help="How many simulated people.")] = 20
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port on this machine; 0: any free one.")] = 0
    out: Annotated[Path, typer.Option("--out", help="Folder for the runs of `foltr demo lab`.")] = Path("runs")
    json_: Json = False


@with_options(Demo)
def demo(chosen: Demo) -> None:
    """Your own search page, and simulated people who learn together beside it; a minute or two, then until Ctrl-C.

    FOLDER is what your node searches, in a temporary home (default: Python's documentation strings). Without a terminal
    it ends by itself.

    `foltr demo lab` is the tour of the papers' methods, on synthetic data.
    """
    if chosen.folder == LAB:
        _tour(chosen)
        return
    require("lab", "node", "text")
    require_page()
    if chosen.folder is not None and not Path(chosen.folder).expanduser().exists():
        raise InputError(f"{chosen.folder}: there is no such folder; name one with documents, or none")
    with tempfile.TemporaryDirectory(prefix="foltr-demo-", ignore_cleanup_errors=True) as folder:
        story = _served(chosen, Path(folder))
    if chosen.json_:
        import msgspec

        print_json(msgspec.to_builtins(story))
    if story.problem:
        err.print(f"foltr: {story.problem}", style="bold red", highlight=False)
        raise typer.Exit(1)
    if not story.over and not _interactive(chosen):  # as asked: --exit-after
        Lines(err if chosen.json_ else out).unfinished(story)


def _tour(chosen: Demo) -> None:
    require("lab", "report")
    from foltr.lab.runs.demo import tour

    given = [name for name, default in Demo._field_defaults.items()
             if name not in ("folder", "out", "json_") and getattr(chosen, name) != default]  # fmt: skip
    if given:
        options = ", ".join("--" + name.replace("_", "-") for name in given)
        raise InputError(f"{options}: not for `foltr demo lab`, which has --out and --json")
    found = tour(chosen.out, quiet=chosen.json_)
    if chosen.json_:
        print_json(found)


def _interactive(chosen: Demo) -> bool:
    """Somebody is there to press Ctrl-C."""
    return chosen.exit_after is None and not chosen.json_ and sys.stdout.isatty()


def _served(chosen: Demo, temporary: Path) -> "Story":
    """Serves the page while the simulation runs; the story as it was at the end."""
    import foltr.node
    from foltr.node.index.background import return_memory
    from foltr.node.page.demo import Story
    from foltr.node.page.serve import serve

    documents = temporary / "python"
    documents.mkdir()
    own = str(Path(chosen.folder).expanduser().resolve()) if chosen.folder else ""
    seeds = tuple(range(chosen.seed, chosen.seed + chosen.seeds))
    story = Story(
        corpus="docstrings of Python", documents=0, people=chosen.people, seeds=seeds, rounds=10, clicks=50,
        own_folder=own,
    )  # fmt: skip
    return_memory()
    with foltr.node.open(temporary / "home") as node:
        node.add([own or documents])
        next(node.index(), None)  # the index has its tables before the page can be opened
        simulation = Simulation(chosen, story, temporary, "" if own else str(documents))
        try:
            serve(node, simulation.announce, port=chosen.port, story=story)
        finally:
            simulation.stop()
    return story


class Simulation:
    """The child process of the simulation, and the thread that listens to it."""

    def __init__(self, chosen: Demo, story: "Story", temporary: Path, write_to: str) -> None:
        import json

        self._chosen, self._story = chosen, story
        self._lines = Lines(err if chosen.json_ else out)
        self._serving: Serving | None = None
        state = str(temporary / "federation")
        setting = {"people": story.people, "seeds": story.seeds, "write_to": write_to, "state": state}
        self._child = subprocess.Popen(
            [sys.executable, "-m", "foltr.lab.people.story", json.dumps(setting, allow_nan=False)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, process_group=0,
        )  # fmt: skip
        self._listener = threading.Thread(target=self._listen, daemon=True)

    def announce(self, serving: "Serving") -> None:
        """The page can be opened: from now on the simulation is listened to."""
        from foltr.node.page.entrance import open_browser

        self._serving = serving
        home, stream = str(serving.places.data.parent), (err if self._chosen.json_ else out).file
        ways = entrance_lines(serving.places, serving.served, stream, home)
        self._lines.page(ways, interactive=_interactive(self._chosen))
        if self._chosen.browser and _interactive(self._chosen):
            open_browser(serving.places, serving.served)
        if self._chosen.exit_after is not None:
            timer = threading.Timer(self._chosen.exit_after, serving.end)
            timer.daemon = True
            timer.start()
        self._listener.start()

    def stop(self) -> None:
        """Ends the child; nothing that it does needs to be finished."""
        self._child.kill()
        self._child.wait()
        if self._listener.ident is not None:
            self._listener.join(_END_SECONDS)

    def _listen(self) -> None:
        import json

        assert self._child.stdout is not None
        with self._child.stdout as lines:
            for line in lines:
                self._take(json.loads(line))
        if self._child.wait() > 0 and not self._story.over:
            self._story.problem = "the simulation failed; its last lines are above"
        if self._story.over and not _interactive(self._chosen) and self._serving is not None:
            self._serving.end()

    def _take(self, record: dict[str, Any]) -> None:
        import msgspec

        from foltr.node.page.demo import Ending, Point

        story, kind = self._story, record.pop("type")
        if kind == "begun":
            setting = record["setting"]
            story.corpus, story.documents, story.people = record["corpus"], record["documents"], setting["people"]
            story.rounds, story.clicks = setting["rounds"], setting["rounds"] * setting["clicks_a_round"]
            self._lines.begun(story)
        elif kind == "indexed":
            story.indexed = record["seeds"]
        elif kind == "round":
            story.points = (*story.points, msgspec.convert(record, Point))
            self._lines.point(story.points[-1])
        elif kind == "ended":
            story.ending = msgspec.convert(record, Ending)
            self._lines.summary(story, interactive=_interactive(self._chosen))


class Lines:
    """The lines of a console, within 80 columns."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def page(self, ways_in: list[str], *, interactive: bool) -> None:
        for line in ways_in:
            self._say(line)
        self._say("Only you can open it, on this machine; it is erased when the demo ends"
                  + (" (Ctrl-C)." if interactive else "."))  # fmt: skip

    def begun(self, story: "Story") -> None:
        self._say("")
        self._paragraph(
            f"Beside it, {story.people} simulated people, each with a private part of the {story.corpus} "
            f"({story.documents:,} documents), search, click and learn one ranker together. Their nodes begin with "
            "plain BM25, so that learning can be seen. Only masked numbers leave a node."
        )
        self._say("")
        self._say(f"MRR@10 of held-out searches, means over {len(story.seeds)} seeds ({_listed(story.seeds)}):")
        self._say("")
        self._say(_HEAD, style="bold")

    def point(self, one: "Point") -> None:
        rows = [_decimal(value.mean) for value in (one.bm25, one.start_weights, one.counting, one.learned)]
        gain = _estimate(one.gain) if one.round else ""
        sent = f"{one.sent / 1000:.1f} kB" if one.round else "nothing"
        self._say(f"{one.round:5} {one.clicks:8}  {rows[0]:>5}  {rows[1]:>13}  {rows[2]:>8}  {rows[3]:>7}  "
                  f"{gain:>12}  {sent:>9}")  # fmt: skip

    def summary(self, story: "Story", *, interactive: bool) -> None:
        from foltr.node.page.demo import distance, verdict

        end, last = story.ending, story.points[-1]
        assert end is not None
        self._say("")
        self._say("Summary", style="bold")
        table = [
            ("BM25", last.bm25, f"where they began; of plain words {_decimal(end.plain_bm25.mean)}"),
            (
                "start weights",
                last.start_weights,
                f"fitted without these texts {_decimal(end.left_out.mean)}",
            ),
            ("start weights, counting", last.counting, "as a node begins: openings are counted"),
            ("learned, each by itself", end.local_only, "from BM25, with their own clicks only"),
            ("learned together", last.learned, "from BM25, the shared ranker"),
        ]
        for name, value, note in table:
            self._say(f"  {name:<24}{_estimate(value)}  {note}")
        self._say(f"  The shared ranker is {verdict(last.gain)}: {_estimate(last.gain)} "
                  f"({distance(last.gain)}).", style="bold")  # fmt: skip
        numbers, sent = (sum(getattr(one, name) for one in story.points) for name in ("numbers", "sent"))
        self._paragraph(
            f"Rounds: {last.round}. Each person sent {numbers} masked numbers, sealed and signed "
            f"{sent / 1000:.1f} kB. No document, query, click or count left a node.",
            indent="  ",
        )
        self._paragraph(
            f"Promise at this size: at least {end.sum_of} of {story.people} people are in every sum, and neither of "
            "the two operators alone can read an update. No noise, so no epsilon: a sum of so few can still tell "
            "something about one person.",
            indent="  ",
        )
        self._paragraph(
            "The protocol is executed with all nodes and both operators in one process: it shows secure sums, not "
            "a federation in use. "
            f"People are simulated (seeds {_listed(story.seeds)}); nothing was tuned on these seeds.",
            indent="  ",
        )
        if interactive:
            self._say("")
            self._say("The page goes on until Ctrl-C; its page Demo has the curve.")

    def unfinished(self, story: "Story") -> None:
        """The time was up before the story was over: what is known so far."""
        last = story.points[-1] if story.points else None
        self._say("")
        self._say("Summary", style="bold")
        self._paragraph(
            f"The time was up after {last.round if last else 0} of {story.rounds} rounds: "
            + (f"BM25 {_estimate(last.bm25)}, start weights {_estimate(last.start_weights)}, learned together "
               f"{_estimate(last.learned)}. " if last else "nothing was learned yet. ")
            + "Give it more with --exit-after SECONDS.",
            indent="  ",
        )  # fmt: skip

    def _paragraph(self, text: str, indent: str = "") -> None:
        self._say(textwrap.fill(text, WIDTH, initial_indent=indent, subsequent_indent=indent))

    def _say(self, text: str, style: str | None = None) -> None:
        self._console.print(text, style=style, highlight=False, markup=False, soft_wrap=True)


def _listed(seeds: tuple[int, ...]) -> str:
    return f"{seeds[0]} to {seeds[-1]}"


def _estimate(value: "Estimate") -> str:
    from foltr.node.page.demo import estimate

    return estimate(value)


def _decimal(value: float) -> str:
    from foltr.node.page.demo import decimal

    return decimal(value)
