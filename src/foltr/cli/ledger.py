"""`foltr privacy ledger`: what a node has released and what it cost; repairs, a changed budget, a lost ledger."""

import math
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import typer

from foltr.cli.output import out, print_json
from foltr.errors import InputError
from foltr.privacy.events import EVERYBODY, Event, multiplier, with_shares
from foltr.privacy.ledger import closed_epsilon
from foltr.privacy.ledger_file import LEDGER, Limit
from foltr.privacy.ledger_repair import Inspection, accept_ledger, change_budget, inspect_ledger, repair_ledger

if TYPE_CHECKING:
    from foltr.cli.privacy import LedgerOptions

WHO = {
    "recipients": "whoever gets the ranker",
    "server": "a curious server",
    "malicious": "a malicious server with its colluders",
}


def show_ledger(options: "LedgerOptions") -> bool:
    """Prints a ledger, after its repair where that is asked for. False: the ledger is refused."""
    path, witness = _files(options)
    found = inspect_ledger(path, witness=witness)
    charged = None
    if options.repair:
        charged = _repaired(options, path, witness, found)
        found = inspect_ledger(path, witness=witness)
    if options.budget is not None or options.accept:
        _decide(options, path, witness, found)
        found = inspect_ledger(path, witness=witness)
    if options.json_:
        print_json(_as_data(found, options.delta) | {"file": str(path)} | ({"charged": charged} if charged else {}))
    else:
        _show(found, path, witness, options.delta)
    return not found.problem


def _files(options: "LedgerOptions") -> tuple[Path, Path | None]:
    if not 0 < options.delta < 1:
        raise InputError(f"--delta {options.delta:g}: it must lie between 0 and 1; a usual choice is 1e-5")
    deciding = options.budget is not None or bool(options.accept)
    if options.missing and not options.repair:
        raise InputError("--missing goes with --repair")
    if options.yes and not (options.repair or deciding):
        raise InputError("--yes goes with --repair, --budget or --accept")
    if options.budget is not None and not 0 <= options.budget < math.inf:
        raise InputError(f"--budget {options.budget:g}: use a finite epsilon of 0 or more")
    if options.accept and not re.fullmatch("[0-9a-f]{32}", options.accept):
        raise InputError(f"--accept {options.accept}: give the 32 digits that the refusal tells")
    if deciding and options.json_ and not options.yes:
        raise InputError("--budget and --accept with --json cannot ask; add --yes")
    if options.repair and options.witness is None:
        raise InputError("--repair needs --witness: what is missing is told by the witness")
    if options.repair and options.json_ and not options.yes:
        raise InputError("--repair with --json cannot ask; add --yes")
    path, witness = _file_in(options.folder), options.witness and _file_in(options.witness)
    if not path.parent.is_dir():
        raise InputError(f"{options.folder}: there is no such folder")
    if not path.exists() and not (witness and witness.exists()):
        raise InputError(f"{path}: there is no ledger; name the folder that has the file {LEDGER}")
    return path, witness


def _file_in(given: Path) -> Path:
    return given / LEDGER if given.is_dir() else given


def _repaired(options: "LedgerOptions", path: Path, witness: Path | None, found: Inspection) -> int:
    assert witness is not None
    if not witness.exists() and not options.missing:
        raise InputError(
            f"{witness}: there is no witness; state with --missing how many releases may be missing from {path}"
        )
    if witness.exists() and found.witnessed is None:
        raise InputError(
            f"{witness}: the witness is damaged; move it away, and state with --missing how many releases may be lost"
        )
    number = found.missing + options.missing
    if not number and not found.problem:
        return 0
    if not options.yes:
        if found.problem:
            out.print(found.problem, highlight=False, markup=False)
        if found.records is None and path.exists():
            out.print("The damaged file will be renamed.")
        out.print("A charge cannot be taken back.")
        typer.confirm(f"Charge {_releases(number)}, at the worst event ever charged?", abort=True)
    return repair_ledger(path, witness=witness, missing=options.missing)


def _decide(options: "LedgerOptions", path: Path, witness: Path | None, found: Inspection) -> None:
    """Changes the budget, or accepts a ledger in the place of a lost one, after showing what that means."""
    if found.problem:
        raise InputError(f"{found.problem}; repair the ledger first")
    limit = None if options.budget is None else Limit(options.budget, options.delta, "malicious")
    if not options.yes:
        spent = closed_epsilon(found.counts, options.delta, "malicious")
        out.print(
            f"Spent: epsilon {spent:.3g} at delta {options.delta:g}, against {WHO['malicious']}.", highlight=False
        )
        if options.accept:
            out.print("Releases that only the lost ledger counted are not in it: the true epsilon is higher.")
            typer.confirm(f"Count with this ledger in the place of {options.accept}?", abort=True)
        if limit is not None:
            typer.confirm(f"Change the budget from {_budget(found.limit)} to {_budget(limit)}?", abort=True)
    if options.accept:
        accept_ledger(path, options.accept, witness=witness)
    if limit is not None:
        change_budget(path, limit, witness=witness)


def _budget(limit: Limit | None) -> str:
    return "none" if limit is None else f"epsilon {limit.budget:g} at delta {limit.delta:g}"


def _releases(number: int) -> str:
    return f"{number:,} release{'' if number == 1 else 's'}"


def _costs(found: Inspection, delta: float) -> dict[str, float]:
    """Epsilon against each adversary: who has no colluders does not know their shares of the noise either."""
    without: Counter[Event] = Counter()
    for event, times in found.counts.items():
        without[with_shares(event, event.present + event.colluders)] += times
    return {
        against: closed_epsilon(found.counts if against == "malicious" else without, delta, against)
        for against in EVERYBODY
    }


def _as_data(found: Inspection, delta: float) -> dict[str, Any]:
    costs = {against: cost if math.isfinite(cost) else "infinite" for against, cost in _costs(found, delta).items()}
    return found._asdict() | {
        "counts": [{"event": msgspec.to_builtins(event), "times": times} for event, times in found.counts.items()],
        "limit": msgspec.to_builtins(found.limit),
        "delta": delta,
        "epsilon": costs if found.records is not None else None,
    }


def _show(found: Inspection, path: Path, witness: Path | None, delta: float) -> None:
    said = [_state(found, witness)]
    if found.records is not None:
        total = sum(found.counts.values())
        out.print(f"{path}: {_releases(total)} charged", highlight=False, markup=False, soft_wrap=True)
        if found.counts:
            out.print(_table(found))
            said.insert(0, _cost_words(found, delta))
        said.insert(len(said) - 1, f"Budget of all federations together: {_budget(found.limit)}.")
        said[1:1] = [f"Highest round of {name}: {round:,}." for name, round in sorted(found.rounds.items())]
        said += [f"Repaired: {note}." for note in found.repairs]
    for sentence in said:
        out.print(sentence, highlight=False, markup=False)


def _table(found: Inspection) -> Any:
    from rich import box
    from rich.table import Table

    rows = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    rows.add_column("mechanism")
    for name in ("noise / bound", "shares", "colluders", "parameters", "releases"):
        rows.add_column(name, justify="right")
    for event, times in found.counts.items():
        figures = (event.noise_contributors, event.colluders, event.parameters, times)
        rows.add_row(event.mechanism, f"{multiplier(event):.4g}", *(f"{figure:,}" for figure in figures))
    return rows


def _cost_words(found: Inspection, delta: float) -> str:
    costs = [
        f"{WHO[against]} {f'{cost:.3g}' if math.isfinite(cost) else 'infinite'}"
        for against, cost in _costs(found, delta).items()
    ]
    event = next(iter(found.counts))
    unit = "node" if event.unit == "user" else event.unit
    return f"Epsilon at delta {delta:g}, one {unit}, {event.adjacency}: {', '.join(costs)}."


def _state(found: Inspection, witness: Path | None) -> str:
    if found.problem:
        return f"Refused: {found.problem}."
    if found.note:
        return f"Usable: {found.note}."
    if witness is None:
        return "No witness: a ledger that was restored from a backup is not noticed."
    if found.witnessed is None:
        return "The witness is new: it is written with the next use."
    return f"The ledger and its witness agree (record {found.witnessed:,})."
