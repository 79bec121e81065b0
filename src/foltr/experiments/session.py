"""From a plan to a finished run with bars on the screen; what `foltr run`, `reproduce` and `demo` share."""

import contextlib
import datetime
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text

from foltr import records
from foltr.errors import DataMissing, Interrupted
from foltr.experiments import catalogue, compare
from foltr.experiments.catalogue import Figure
from foltr.experiments.run import available, compute, finish, prepare, results, to_do, write_json
from foltr.experiments.single import interactions_in
from foltr.experiments.spec import Plan

_SMOOTH = 0.2  # weight of the newest word in the quality that is shown


class Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(f"{(task.finished_speed or task.speed or 0) / 1000:,.0f} k/s")


def carry_out(
    plan: Plan, out: Path, *, jobs: int | None = None, quiet: bool = False, extra: dict[str, Any] | None = None
) -> records.Run:
    """Computes what is missing with a bar on standard error, then writes and reads back the run."""
    console = Console(stderr=True)
    started = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    prepared = prepare(plan, out)
    missing = to_do(prepared)
    if missing:
        _say_what_is_there(console, len(prepared.jobs), len(missing))
        _compile(console)
        left = {job.number for job in missing}
        try:
            _follow(console, prepared, missing, left, jobs)
        except KeyboardInterrupt:
            done = len(prepared.jobs) - len(left)
            raise Interrupted(
                f"stopped: {done} of {len(prepared.jobs)} single runs are kept in {out}; "
                f"the same command goes on from there"
            ) from None
    short = {f["name"]: f["shorter_than_shown"] for f in prepared.facts if f["shorter_than_shown"]}
    for name, count in short.items():
        if not quiet:
            console.print(f"{name}: {count} queries have fewer documents than are shown; all they have is shown",
                          style="dim", highlight=False)  # fmt: skip
    return finish(prepared, {"started": started, **(extra or {})})


def _say_what_is_there(console: Console, all_runs: int, missing: int) -> None:
    if missing < all_runs:
        console.print(f"{all_runs - missing} of {all_runs} single runs are there already", style="dim", highlight=False)


def _compile(console: Console) -> None:
    from foltr.engines.compiled import warm_up

    began = time.perf_counter()
    with _status(console, "compiling (seconds, once after an installation)"):
        warm_up()
    if time.perf_counter() - began > 3:
        console.print(f"compiled in {time.perf_counter() - began:.0f} s, kept for next time", style="dim")


@contextlib.contextmanager
def _status(console: Console, words: str) -> Iterator[None]:
    if console.is_terminal:
        with console.status(words):
            yield
    else:
        yield


def _follow(console: Console, prepared: Any, missing: list[Any], left: set[int], jobs: int | None) -> None:
    total = sum(interactions_in(job.setting) for job in missing)
    columns = [
        TextColumn("{task.description}"),
        BarColumn(bar_width=16),
        TextColumn("{task.percentage:>3.0f} %"),
        Rate(),
        TextColumn("nDCG {task.fields[quality]:.3f}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    ]
    with Progress(*columns, console=console, speed_estimate_period=20) as bar:
        shown = bar.add_task(f"0/{len(missing)} runs", total=total, quality=0.0)
        quality = 0.0
        for event in compute(prepared, jobs=jobs):
            if event.done:
                left.discard(event.job)
                bar.update(shown, description=f"{len(missing) - len(left)}/{len(missing)} runs")
            elif event.interactions:
                quality = event.quality if quality == 0 else (1 - _SMOOTH) * quality + _SMOOTH * event.quality
                bar.update(shown, advance=event.interactions, quality=quality)


def reproduced(
    figure: Figure, out: Path, *, quick: bool, seeds: int | None, folds: str | None, jobs: int | None, quiet: bool
) -> dict[str, Any]:
    """A figure with its verdicts, its page, and the words for the terminal."""
    console = Console()
    whole = catalogue.plan_of(figure, quick=quick, folds=folds, seeds=seeds)
    here, missing = available(whole)
    if not here.settings:
        raise DataMissing(
            f"{figure.id} needs {', '.join(missing)}, which are not on this machine: foltr data show NAME"
        )
    began = time.perf_counter()
    extra = {
        "quick": quick,
        "figure": {"id": figure.id, "question": figure.question, **figure.content.get("figure", {})},
    }
    run = carry_out(here, out, jobs=jobs, quiet=quiet, extra=extra)
    run = judged(run, figure, missing)
    page = _page(run)
    answer = {
        "id": figure.id, "run": run.manifest["run"], "dir": str(run.dir), "page": str(page), "quick": quick,
        "seconds": time.perf_counter() - began, "verdicts": run.manifest["verdicts"], "claims": run.manifest["claims"],
        "comparisons": run.manifest["comparisons"], "missing": missing, "results": results(run)["results"],
    }  # fmt: skip
    if not quiet:
        _tell(console, figure, run, page, missing)
    return answer


def judged(run: records.Run, figure: Figure, missing: list[str]) -> records.Run:
    """The run with verdicts, claims and comparisons in its manifest."""
    from foltr.reporting.tables import paired_t

    content = figure.content
    run.manifest["verdicts"] = compare.verdicts(run, content, missing)
    run.manifest["comparisons"] = compare.comparisons(run, content, paired_t)
    run.manifest["claims"] = compare.claims(run, content)
    run.manifest["remarks"] = [*content.get("remarks", []), *_missing_words(missing)]
    write_json(run.dir / "manifest.json", run.manifest)
    return run


def _missing_words(missing: list[str]) -> list[str]:
    return [f"Not on this machine, and so not run: {', '.join(missing)}."] if missing else []


def _page(run: records.Run) -> Path:
    from foltr.reporting.page import write_page

    return write_page([run.dir], run.dir / "report.html")


def _tell(console: Console, figure: Figure, run: records.Run, page: Path, missing: list[str]) -> None:
    console.print(f"\n[bold]{figure.title}[/bold]  ({figure.source})", highlight=False)
    for row in run.manifest["verdicts"]:
        if row["verdict"] not in ("data missing", "not run"):
            ours = f"{row['ours']:.4f}" if row["ours"] < 10 else f"{row['ours']:.1f}"
            console.print(f"  {row['what']}: published {row['published']:g}, ours {ours} ± {row['sd']:.2g} "
                          f"({row['runs']} runs, {row['data']}): {row['verdict']}", highlight=False)  # fmt: skip
    for row in run.manifest["claims"]:
        word = {True: "holds", False: "does not hold", None: "not decided"}[row["holds"]]
        console.print(f"  {row['claim']}: [bold]{word}[/bold] ({row['evidence']})", highlight=False)
    counted = [row for row in run.manifest["verdicts"] if row["verdict"] not in ("data missing", "not run")]
    good = sum(row["verdict"] == "reproduced" for row in counted)
    console.print(
        f"{good} of {len(counted)} numbers reproduced" + (f"; data missing: {', '.join(missing)}" if missing else "")
    )
    if run.manifest["quick"]:
        console.print(catalogue.QUICK, style="bold")
    console.print(str(page), highlight=False, soft_wrap=True)
