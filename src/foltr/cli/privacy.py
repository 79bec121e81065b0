"""`foltr privacy`: privacy cards of runs, the planner, the audit, a node's ledger. Commands import what they need."""

from collections.abc import Iterable
from math import inf
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from foltr.cli.output import Commands, Json, err, out, print_json, require, with_options
from foltr.errors import InputError, SpecError

app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    help="Privacy cards of runs, a planner for user-level epsilon, attacks on a run, and a node's ledger.",
)

Lost = Annotated[
    tuple[float, float],
    typer.Option("--lost", help="Shares of a round's clients that drop out, and of all that a server corrupts."),
]
Run = Annotated[Path, typer.Argument(help="Folder of a finished run.", show_default=False)]


@app.command("card")
def card(
    run: Run,
    delta: Annotated[
        float | None, typer.Option("--delta", help="Delta of user-level epsilons (default: the run's own, else 1e-5).")
    ] = None,
    json_: Json = False,
) -> None:
    """Privacy card: nominal and accounted epsilon, what each party sees, who contributes noise."""
    require("lab")
    from foltr.lab.records import SettingRecord
    from foltr.lab.reporting.terminal import terminal_cards
    from foltr.lab.runs.card import cards_of_run

    if delta is not None:
        _check_delta(delta)
    cards = cards_of_run(run, delta=delta)
    if json_:
        print_json({"dir": str(run), "cards": cards})
        return
    out.print(terminal_cards([SettingRecord(one["setting"], one["label"], privacy=_without(one)) for one in cards]))


def _without(card: dict[str, Any]) -> dict[str, Any]:
    """The card without the keys that identify its setting."""
    return {key: value for key, value in card.items() if key not in ("setting", "label")}


@app.command("plan")
def plan(
    clients: Annotated[int, typer.Option("--clients", help="Clients in the federation.", show_default=False)],
    epsilon: Annotated[float, typer.Option("--epsilon", help="Of a node over the whole run.", show_default=False)],
    weeks: Annotated[int, typer.Option("--weeks", help="Duration.", show_default=False)],
    delta: Annotated[float, typer.Option("--delta", help="Delta of the guarantee.")] = 1e-5,
    searches: Annotated[int, typer.Option("--searches", help="Searches of a client in a week.")] = 40,
    lost: Lost = (0.1, 0.1),
    data: Annotated[str | None, typer.Option("--data", help="Data set to simulate on (default: synthetic).")] = None,
    json_: Json = False,
) -> None:
    """Releases, clip, noise and expected quality for a user-level epsilon, by simulation; 1 to 2 minutes."""
    require("lab")
    from foltr.lab.runs import plan_words, planner

    target = planner.Target(clients, epsilon, delta, weeks, searches, *lost, data or planner.DATA)
    simulation = planner.prepare(target)
    with err.status("simulating candidates"):
        found = planner.conclude(simulation, list(planner.trials(simulation)))
    if json_:
        print_json(found | {"advice": plan_words.advice(found)})
        return
    out.print(plan_words.table(found))
    for sentence in plan_words.advice(found):
        _say(sentence)
    _say("No command deploys the protocol of one server. The same target with two operators:")
    parameters = simulation.fold.train.features.shape[1]
    try:
        _print_lifetime(LifetimeOptions(clients, epsilon, delta, 7 * weeks, parameters, lost[0]))
    except SpecError as problem:
        _say(f"{problem}.")


class LifetimeOptions(NamedTuple):
    members: Annotated[int, typer.Option("--members", help="Nodes in the federation.", show_default=False)]
    epsilon: Annotated[float, typer.Option("--epsilon", help="Budget of a node, for ever.")] = 4.0
    delta: Annotated[float, typer.Option("--delta", help="Delta of the guarantee.")] = 1e-6
    days: Annotated[int, typer.Option("--days", min=1, help="That the budget is to last.")] = 365
    parameters: Annotated[int, typer.Option("--parameters", min=1, help="Of the ranker.")] = 46
    missing: Annotated[float, typer.Option("--missing", help="Share of the members that may stay away.")] = 0.5
    noise: Annotated[float, typer.Option("--noise", help="Most noise on the mean of a sum, over the clip.")] = 0.5
    json_: Json = False


@app.command("lifetime")
@with_options(LifetimeOptions)
def lifetime(options: LifetimeOptions) -> None:
    """Rounds, window and noise of two operators with which a budget lasts a year, and the date on which it ends."""
    _print_lifetime(options)


def _print_lifetime(options: LifetimeOptions) -> None:
    from datetime import UTC, datetime

    from foltr.federation.lifetime import lifetime_words, plan_lifetime
    from foltr.secagg.terms import Terms, new_federation

    _check_delta(options.delta)
    if not (0 < options.epsilon < inf and 0 <= options.missing < 1 and 0 < options.noise < inf):
        raise InputError("--epsilon and --noise are finite numbers above 0, --missing is a share from 0 to below 1")
    terms = Terms(new_federation(), options.parameters, bits=64, fraction=32, dropouts=options.missing)
    planned = plan_lifetime(
        terms, members=options.members, budget=options.epsilon, delta=options.delta, days=options.days,
        begins=datetime.now(UTC).date(), most_noise=options.noise,
    )  # fmt: skip
    if options.json_:
        print_json(planned._asdict() | {"begins": f"{planned.begins}", "ends": f"{planned.ends}"})
        return
    for sentence in lifetime_words(planned):
        _say(sentence)


def _check_delta(delta: float) -> None:
    if not 0 < delta < 1:
        raise InputError(f"--delta {delta:g}: it must lie between 0 and 1; a usual choice is 1e-5")


@app.command("promise")
def promise(
    parameters: Annotated[int, typer.Option("--parameters", min=1, help="Of the ranker.")] = 46,
    delta: Annotated[float, typer.Option("--delta", help="Delta of the guarantee.")] = 1e-5,
    lost: Lost = (0.1, 0.1),
    json_: Json = False,
) -> None:
    """Promises that federations of 5 to 10,000 nodes can keep, which of them a command deploys, and several rounds."""
    from foltr.federation import deployment
    from foltr.privacy import promise as promises

    _check_delta(delta)
    found = promises.promises(parameters=parameters, delta=delta, dropouts=lost[0], corrupt=lost[1])
    rows = deployment.open_promises(parameters=parameters, delta=delta, missing=lost[0])
    explained = {
        members: {c: deployment.explained(members - 1, correlation=c) for c in deployment.CORRELATIONS}
        for members in deployment.CIRCLES
    }
    if json_:
        print_json(
            {"parameters": parameters, "delta": delta, "promises": promises.as_data(found),
             "deployed": deployment.DEPLOYED, "open": [row._asdict() for row in rows], "circle": explained}
        )  # fmt: skip
        return
    _say(
        f"Unit: one node. Adjacency: zero-out. Delta {delta:g}, {parameters:,} parameters. Usable: the norm of the "
        f"noise on the mean of a release is at most half of the clip; unnoticed: an eighth. Epsilons above "
        f"{promises.LARGEST_EPSILON:g} are no promise."
    )
    _say(f"Deployed, {deployment.DEPLOYED['open']}. Adversary: one operator with any number of members.")
    out.print(_table(("nodes", "sums of", "rounds", "usable ε", "unnoticed ε"), map(_open_cells, rows)))
    _say(
        f"Deployed, {deployment.DEPLOYED['circle']}. No epsilon. Share of a member's update that the difference of two "
        f"sums explains where that member joined or left between them, by the correlation of the others' updates:"
    )
    heads = ("members", *(f"{c:g}" for c in deployment.CORRELATIONS))
    out.print(
        _table(heads, ((f"{n}", *(f"{share:.0%}" for share in shares.values())) for n, shares in explained.items()))
    )
    for sentence in deployment.circle_words(deployment.CIRCLES[0]):
        _say(sentence)
    _say(
        f"Not deployed, {deployment.DEPLOYED['server']}. Adversary: a malicious server with the nodes of the third "
        f"column."
    )
    heads = ("nodes", "sums of", "colluders", "honest", "releases", "usable ε", "unnoticed ε")
    out.print(_table(heads, map(_server_cells, found)))


def _say(sentence: str) -> None:
    out.print(sentence, highlight=False, markup=False)


def _table(heads: Iterable[str], rows: Iterable[tuple[str, ...]]) -> Any:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for head in heads:
        table.add_column(head, justify="right")
    for cells in rows:
        table.add_row(*cells)
    return table


def _open_cells(row: Any) -> tuple[str, ...]:
    return *_counts(row.members, row.fewest, row.rounds), *_epsilons(row.usable, row.unnoticed)


def _server_cells(row: Any) -> tuple[str, ...]:
    sizes = row.sizes
    counts = _counts(row.clients, sizes.min_clients, sizes.colluders, sizes.honest, row.releases)
    return *counts, *_epsilons(row.usable, row.unnoticed)


def _counts(*counts: int) -> tuple[str, ...]:
    return tuple(f"{count:,}" for count in counts)


def _epsilons(*epsilons: float | None) -> tuple[str, ...]:
    return tuple("none" if epsilon is None else f"{epsilon:.2g}" for epsilon in epsilons)


@app.command("audit")
def audit(run: Run, json_: Json = False) -> None:
    """Attack a run's updates: click reconstruction, membership inference, lower bounds on epsilon."""
    require("lab")
    from foltr.lab.audit.privacy_audit import audit_run, audit_tables
    from foltr.lab.reporting.labels import label_name
    from foltr.lab.runs.card import finished

    finished(run)
    with err.status("attacking; about a minute per setting"):
        found = audit_run(run)
    if json_:
        print_json(found)
        return
    for table in audit_tables(found):
        out.print(table)
    for one in found["settings"]:
        if one["note"]:
            out.print(f"{label_name(one['label'])}: {one['note']}", highlight=False, markup=False)


class LedgerOptions(NamedTuple):
    folder: Annotated[Path, typer.Argument(help="Folder of the node's ledger, or the file itself.", show_default=False)]
    witness: Annotated[
        Path | None, typer.Option("--witness", help="Folder of the witness, or the file itself.", show_default=False)
    ] = None
    delta: Annotated[float, typer.Option("--delta", help="Delta at which costs are stated.")] = 1e-5
    repair: Annotated[
        bool, typer.Option("--repair", help="Charge the releases that may be missing from a restored ledger.")
    ] = False
    missing: Annotated[
        int,
        typer.Option("--missing", min=0, help="With --repair: further releases that may have happened; needed where "
                     "the witness is lost."),
    ] = 0  # fmt: skip
    budget: Annotated[
        float | None,
        typer.Option("--budget", help="Change the stored budget: epsilon of all federations together, at --delta.",
                     show_default=False),
    ] = None  # fmt: skip
    accept: Annotated[
        str,
        typer.Option("--accept", help="Let this ledger take the place of a lost one, whose name the refusal tells.",
                     show_default=False),
    ] = ""  # fmt: skip
    yes: Annotated[bool, typer.Option("--yes", help="With --repair, --budget or --accept: do not ask.")] = False
    json_: Json = False


@app.command("ledger")
@with_options(LedgerOptions)
def ledger(options: LedgerOptions) -> None:
    """Releases of a node, their cost against three adversaries, and whether the witness of its ledger agrees.

    Exit code 1: the ledger is refused, because it was restored, copied or damaged, or a file is missing.
    """
    from foltr.cli.ledger import show_ledger

    if not show_ledger(options):
        raise typer.Exit(1)
