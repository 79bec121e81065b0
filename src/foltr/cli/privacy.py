"""`foltr privacy`: the privacy card of a run, the planner, the audit. Each command imports what it needs."""

from pathlib import Path
from typing import Annotated, Any

import typer

from foltr.cli.output import Json, err, out, print_json, require
from foltr.errors import InputError

app = typer.Typer(
    no_args_is_help=True, help="Privacy cards of runs, a planner for user-level epsilon, and attacks on a run."
)

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
    epsilon: Annotated[float, typer.Option("--epsilon", help="Of a user over the whole run.", show_default=False)],
    weeks: Annotated[int, typer.Option("--weeks", help="Duration.", show_default=False)],
    delta: Annotated[float, typer.Option("--delta", help="Delta of the guarantee.")] = 1e-5,
    searches: Annotated[int, typer.Option("--searches", help="Searches of a client in a week.")] = 40,
    dropout: Annotated[float, typer.Option("--dropout", help="Fraction of clients lost in a round.")] = 0.1,
    data: Annotated[str | None, typer.Option("--data", help="Data set to simulate on (default: synthetic).")] = None,
    json_: Json = False,
) -> None:
    """Releases, clip, noise and expected quality for a user-level epsilon, by simulation; 1 to 2 minutes."""
    require("lab")
    from foltr.lab.runs import planner

    target = planner.Target(clients, epsilon, delta, weeks, searches, dropout, data or planner.DATA)
    simulation = planner.prepare(target)
    with err.status("simulating candidates"):
        found = planner.conclude(simulation, list(planner.trials(simulation)))
    if json_:
        print_json(found | {"advice": planner.advice(found)})
        return
    out.print(planner.table(found))
    for sentence in planner.advice(found):
        out.print(sentence, highlight=False, markup=False)


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
