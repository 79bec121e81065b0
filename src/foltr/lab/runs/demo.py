"""`foltr demo lab`: four learners on the same users' clicks, on built-in synthetic data, in about a minute."""

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
    return Plan("foltr demo lab: four learners on the same clicks", settings, "")


_USERS = {"users.clicks": ["perfect", "informational"]}


def tour(out: Path, *, quiet: bool = False) -> dict[str, Any]:
    """Runs the demo, prints the comparison and writes the page."""
    from foltr.lab.reporting.page import write_page
    from foltr.lab.reporting.terminal import terminal_table

    console = Console(quiet=quiet)
    console.print(
        "[bold]foltr demo lab[/bold]: clients search, see ten documents and click. Clients send model updates, not "
        "clicks; without noise an update still reveals them. Synthetic data in the shape of MQ2007; perfect users "
        "click on relevant documents, informational users on nearly everything.\n",
        highlight=False,
    )
    figure = FigureRecord(
        id="demo",
        question="How well does a shared ranker learn from clicks that stay on the clients?",
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
        "\nOffline: the final ranker on held-out queries. Online: the lists displayed during training. The noise of "
        "FPDGD protects only the sum over all clients, and its ε is the paper's nominal one; the page has its "
        "privacy card.",
        highlight=False,
    )
    console.print(f"\nPage: {page.resolve()}", highlight=False, soft_wrap=True)
    return {**results(run), "page": str(page)}
