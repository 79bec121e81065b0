"""The tour: four ways to learn from the same users' clicks, on embedded synthetic data, in about a minute."""

from pathlib import Path
from typing import Any

from rich.console import Console

from foltr.lab.records import FigureRecord
from foltr.lab.runs.progress import run_plan
from foltr.lab.runs.run import results
from foltr.lab.spec.parse import plan
from foltr.lab.spec.setting import Plan

_DATA = {"name": "synthetic-mq2007@600", "folds": "1-2"}
_CLIENTS = {"clients": 200, "interactions": 4, "rounds": 300}

# part -> what differs from a federation of 200 clients without privacy
PARTS: dict[str, dict[str, Any]] = {
    "central PDGD": {"federation": {"kind": "central", "batch": 1, "rounds": 240_000}},
    "FPDGD": {},
    "FPDGD, nominal ε 4.5": {"privacy": {"kind": "fpdgd", "epsilon": 4.5, "sensitivity": 5.0}},
    "FOLtR-ES, p 0.9": {"learner": {"kind": "foltr-es"}, "privacy": {"kind": "randomized-response", "p": 0.9}},
}


def tour_plan() -> Plan:
    settings = [
        one
        for part, differs in PARTS.items()
        for one in plan(
            {"data": _DATA, "federation": _CLIENTS, "runs": {"seeds": 2}, **differs, "part": part, "sweep": _USERS}
        ).settings
    ]
    return Plan("foltr demo: four ways to learn from clicks", settings, "")


_USERS = {"users.clicks": ["perfect", "informational"]}


def tour(out: Path, *, quiet: bool = False) -> dict[str, Any]:
    """Runs it, prints the comparison and writes the page."""
    from foltr.lab.reporting.page import write_page
    from foltr.lab.reporting.terminal import terminal_table

    console = Console(quiet=quiet)
    console.print(
        "[bold]foltr demo[/bold]: people search, see ten documents and click. Their clicks stay with them; only what "
        "was learned from them leaves. Synthetic data in the shape of MQ2007; perfect users click on what is relevant, "
        "informational ones on nearly everything.\n",
        highlight=False,
    )
    figure = FigureRecord(
        id="demo",
        question="How well does one shared ranker learn from clicks that never leave their owners?",
        metric="offline_ndcg@10",
        metrics=["offline_ndcg@10", "online_ndcg@10"],
        columns="users.clicks",
        lines=["part"],
        x="interactions",
    )
    run = run_plan(tour_plan(), out, quiet=quiet, extra={"figure": figure})
    page = write_page([run.dir], run.dir / "report.html")
    console.print(terminal_table(run))
    console.print(
        "\nOffline: the final ranker on queries that it never saw. Online: the lists that users saw while it learned. "
        "The noise of FPDGD protects only in the sum over all clients, and its ε is the paper's nominal one: the page "
        "says what that means.",
        highlight=False,
    )
    console.print(f"\nThe page: {page.resolve()}", highlight=False, soft_wrap=True)
    return {**results(run), "page": str(page)}
