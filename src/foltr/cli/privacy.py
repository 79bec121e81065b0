"""`foltr privacy`: privacy cards of runs, the planner, the audit, a node's ledger. Commands import what they need."""

from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from foltr.cli.output import Commands, Json, err, out, print_json, require, with_options
from foltr.errors import InputError

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

    if delta is not None and not 0 < delta < 1:
        raise InputError(f"--delta {delta:g}: it must lie between 0 and 1; a usual choice is 1e-5")
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
    from foltr.lab.runs import plan_advice, planner

    target = planner.Target(clients, epsilon, delta, weeks, searches, *lost, data or planner.DATA)
    simulation = planner.prepare(target)
    with err.status("simulating candidates"):
        found = planner.conclude(simulation, list(planner.trials(simulation)))
    if json_:
        print_json(found | {"advice": plan_advice.advice(found)})
        return
    out.print(plan_advice.table(found))
    for sentence in plan_advice.advice(found):
        out.print(sentence, highlight=False, markup=False)


@app.command("promise")
def promise(
    parameters: Annotated[int, typer.Option("--parameters", min=1, help="Of the ranker.")] = 46,
    delta: Annotated[float, typer.Option("--delta", help="Delta of the guarantee.")] = 1e-5,
    lost: Lost = (0.1, 0.1),
    json_: Json = False,
) -> None:
    """What federations of 5 to 10,000 nodes can promise: sums, and the smallest epsilon that is usable."""
    from foltr.privacy import promise as promises

    if not 0 < delta < 1:
        raise InputError(f"--delta {delta:g}: it must lie between 0 and 1; a usual choice is 1e-5")
    found = promises.promises(parameters=parameters, delta=delta, dropouts=lost[0], corrupt=lost[1])
    if json_:
        print_json({"parameters": parameters, "delta": delta, "promises": promises.as_data(found)})
        return
    out.print(_promise_table(found))
    out.print(
        f"Unit: one node. Adjacency: zero-out. Adversary: a malicious server with the nodes of the third column. Delta "
        f"{delta:g}, {parameters:,} parameters. Usable: the norm of the noise on the mean of a release is at most half "
        f"of the clip; unnoticed: an eighth. Epsilons above {promises.LARGEST_EPSILON:g} are no promise.",
        highlight=False, markup=False,
    )  # fmt: skip


def _promise_table(found: list[Any]) -> Any:
    from rich import box
    from rich.table import Table

    rows = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("nodes", "sums of", "colluders", "honest", "releases", "usable ε", "unnoticed ε"):
        rows.add_column(name, justify="right")
    for one in found:
        sizes = one.sizes
        epsilons = ("none" if value is None else f"{value:.2g}" for value in (one.usable, one.unnoticed))
        counts = (one.clients, sizes.min_clients, sizes.colluders, sizes.honest, one.releases)
        rows.add_row(*(f"{count:,}" for count in counts), *epsilons)
    return rows


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
    yes: Annotated[bool, typer.Option("--yes", help="With --repair: do not ask.")] = False
    json_: Json = False


@app.command("ledger")
@with_options(LedgerOptions)
def ledger(options: LedgerOptions) -> None:
    """What a node has released, what it cost against three adversaries, and whether the witness of its ledger agrees.

    Exit code 1: the ledger is refused, because it was restored, copied or damaged, or a file is missing.
    """
    from foltr.cli.ledger import show_ledger

    if not show_ledger(options):
        raise typer.Exit(1)
