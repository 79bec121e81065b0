"""What `foltr demo` prints, within 80 columns."""

import textwrap
from typing import TYPE_CHECKING

from rich.console import Console

from foltr.cli.node_output import WIDTH

if TYPE_CHECKING:
    from foltr.node.page.demo import Estimate, Point, Story

_HEAD = "round  choices   BM25  start weights  counting  learned    minus BM25  each sent"


class Lines:
    """Lines of one console."""

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
