"""The page Demo, which only `foltr demo` has: simulated people who learn together, round by round.

The simulation is another process and reaches the page as plain numbers: `foltr.cli.demo` fills a `Story`, these pages
show it. Without JavaScript the table is there and the page loads itself again until the story has ended; with it, the
numbers are replaced when there are new ones, and the curve is drawn from them.
"""

from typing import TYPE_CHECKING, Any

import msgspec
from fastapi import FastAPI, Request, Response

from foltr.node.page.search import Integer

if TYPE_CHECKING:
    from foltr.node.page.app import Page

CLEAR = 2.0  # standard errors: what is further away is called above or below


class Estimate(msgspec.Struct, frozen=True):
    mean: float
    error: float  # standard error over the seeds


class Point(msgspec.Struct, frozen=True):
    """After a round: MRR@10 of held-out searches, and what one person sent in this round."""

    round: int
    clicks: int  # searches with a click of each person so far
    bm25: Estimate
    start_weights: Estimate
    counting: Estimate
    learned: Estimate
    gain: Estimate  # learned minus BM25
    numbers: int
    sent: int  # bytes
    received: int


class Ending(msgspec.Struct, frozen=True):
    local_only: Estimate
    plain_bm25: Estimate
    left_out: Estimate
    sum_of: int  # people in every sum, at least


class Story(msgspec.Struct, kw_only=True):
    """All that is known so far; another thread replaces the fields that change."""

    corpus: str
    documents: int
    people: int
    seeds: tuple[int, ...]
    rounds: int
    clicks: int  # of each person at the end
    own_folder: str  # what the person searches; empty: the documents of the simulated people
    indexed: int = 0  # seeds whose people have their indexes
    points: tuple[Point, ...] = ()
    ending: Ending | None = None
    problem: str = ""  # why it ended early

    @property
    def version(self) -> int:
        """Grows with everything that is new on the page."""
        return self.indexed + len(self.points) + (2 if self.over else 0) + bool(self.documents)

    @property
    def over(self) -> bool:
        return self.ending is not None or bool(self.problem)


def verdict(gain: Estimate) -> str:
    """In words, whether a difference is more than chance between the seeds."""
    if gain.mean > CLEAR * gain.error:
        return "above BM25"
    return "below BM25" if gain.mean < -CLEAR * gain.error else "not clearly different from BM25"


def distance(gain: Estimate) -> str:
    """Distance of a difference from zero, in standard errors."""
    many = abs(gain.mean) >= 10 * gain.error
    return "more than 10 standard errors" if many else f"{abs(gain.mean) / gain.error:.1f} standard errors"


def curve(story: Story) -> dict[str, Any]:
    """Columns for the drawing."""
    rows = ("bm25", "start_weights", "counting", "learned")
    columns: dict[str, Any] = {row: [round(getattr(one, row).mean, 5) for one in story.points] for row in rows}
    errors = [round(one.learned.error, 5) for one in story.points]
    return {"clicks": [one.clicks for one in story.points], "last": story.clicks, "error": errors, **columns}


def decimal(value: float, places: int = 3) -> str:
    """0.7664 -> .766, as figures of retrieval quality are printed."""
    text = f"{value:.{places}f}"
    return text.replace("0.", ".", 1) if text.lstrip("-").startswith("0.") else text


def estimate(value: Estimate) -> str:
    return f"{decimal(value.mean)} ± {decimal(value.error)}"


def add(app: FastAPI, page: "Page", story: Story) -> None:
    @app.get("/demo")
    def demo(request: Request, seen: Integer = -1) -> Response:
        part = "x-part" in request.headers
        if part and seen == story.version:
            return Response(status_code=204)  # the page stays as it is
        template = "demo_state.html" if part else "demo.html"
        last = story.points[-1] if story.points else None
        said: dict[str, Any] = {"verdict": verdict(last.gain), "distance": distance(last.gain)} if last else {}
        return page.render(template, story=story, last=last, curve=curve(story), sent=_sent(story), **said)


def _sent(story: Story) -> dict[str, int]:
    """Bytes that one person has sent and received over all rounds."""
    return {name: sum(getattr(one, name) for one in story.points) for name in ("numbers", "sent", "received")}
