"""`foltr privacy`: the card of a run, the plan of a federation, the audit. Imports stand inside each command."""

from pathlib import Path
from typing import Annotated, Any

import typer

from foltr.cli.output import Json, err, out, print_json, require
from foltr.errors import InputError

app = typer.Typer(
    no_args_is_help=True, help="What privacy figures mean, which ones a federation can afford, and what attacks find."
)

Run = Annotated[Path, typer.Argument(help="Folder of a finished run.", show_default=False)]


@app.command("card")
def card(
    run: Run,
    delta: Annotated[
        float | None, typer.Option("--delta", help="Of the figures for a user (default: the run's own, else 1e-5).")
    ] = None,
    json_: Json = False,
) -> None:
    """The privacy of a run: nominal and correct figures, who sees what, whose noise is there."""
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
    """What tells settings apart is no part of what their cards say."""
    return {key: value for key, value in card.items() if key not in ("setting", "label")}


@app.command("plan")
def plan(
    clients: Annotated[int, typer.Option("--clients", help="People in the federation.", show_default=False)],
    epsilon: Annotated[float, typer.Option("--epsilon", help="Of one user in all, wished for.", show_default=False)],
    weeks: Annotated[int, typer.Option("--weeks", help="How long it runs.", show_default=False)],
    delta: Annotated[float, typer.Option("--delta", help="Chance that epsilon does not hold.")] = 1e-5,
    searches: Annotated[int, typer.Option("--searches", help="Of a person in a week.")] = 40,
    dropout: Annotated[float, typer.Option("--dropout", help="Share of people lost in a round.")] = 0.1,
    data: Annotated[str | None, typer.Option("--data", help="Simulate on this collection (default: plan up).")] = None,
    json_: Json = False,
) -> None:
    """Releases, clip, noise and expected quality for a wish of privacy, by simulation; a minute or two."""
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
    for said in planner.advice(found):
        out.print(said, highlight=False, markup=False)


@app.command("audit")
def audit(run: Run, json_: Json = False) -> None:
    """Attacks on a run's own messages: clicks guessed, members found, epsilon bounded from below."""
    require("lab")
    from foltr.lab.audit.privacy_audit import audit_run
    from foltr.lab.audit.privacy_audit_table import audit_tables
    from foltr.lab.reporting.labels import label_name
    from foltr.lab.runs.card import finished

    finished(run)
    with err.status("attacking; about a minute a setting"):
        found = audit_run(run)
    if json_:
        print_json(found)
        return
    for table in audit_tables(found):
        out.print(table)
    for one in found["settings"]:
        if one["note"]:
            out.print(f"{label_name(one['label'])}: {one['note']}", highlight=False, markup=False)
