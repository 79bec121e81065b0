"""Runs a plan with a progress bar, judges it against a figure and prints it: `foltr run`, `reproduce`, `demo`."""

import contextlib
import datetime
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from foltr.errors import DataMissing, Interrupted
from foltr.lab import records
from foltr.lab.figures import compare
from foltr.lab.figures.claims import claims
from foltr.lab.figures.figures import QUICK, Figure, deciding, drawing_of, matching, plan_of
from foltr.lab.reporting.counted import counted_note, other_words
from foltr.lab.reporting.labels import mean_sd
from foltr.lab.runs.run import available, finish, prepare, results, run_missing, to_do
from foltr.lab.simulation.population import interactions_in
from foltr.lab.spec.parse import parsed_baseline, with_baseline
from foltr.lab.spec.setting import Plan, Setting, TextSetting

_SMOOTH = 0.2  # weight of the newest value in the displayed quality


class Rate(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(f"{(task.finished_speed or task.speed or 0) / 1000:,.0f} k/s")


def run_plan(
    plan: Plan, out: Path, *, jobs: int | None = None, quiet: bool = False, extra: dict[str, Any] | None = None
) -> records.Run:
    """Runs what is not on disk yet, with a bar on standard error; then writes the run and reads it back."""
    console = Console(stderr=True)
    started = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    prepared = prepare(plan, out)
    missing = to_do(prepared)
    if missing:
        _print_reused(console, len(prepared.jobs), len(missing))
        if any(isinstance(job.setting, Setting) for job in missing):
            _compile(console)
        left = {job.number for job in missing}
        try:
            _follow(console, prepared, missing, left, jobs)
        except KeyboardInterrupt:
            done = len(prepared.jobs) - len(left)
            raise Interrupted(
                f"stopped: {done} of {len(prepared.jobs)} single runs are stored in {out}; the same command resumes"
            ) from None
    short = {f["name"]: f["shorter_than_k"] for f in prepared.facts if f["shorter_than_k"]}
    for name, count in short.items():
        if not quiet:
            console.print(f"{name}: {count} lists have fewer than k documents; all of theirs are displayed",
                          style="dim", highlight=False)  # fmt: skip
    return finish(prepared, {"started": started, **(extra or {})})


def _print_reused(console: Console, all_runs: int, missing: int) -> None:
    if missing < all_runs:
        console.print(f"{all_runs - missing} of {all_runs} single runs are on disk", style="dim", highlight=False)


def _compile(console: Console) -> None:
    from foltr.lab.simulation.compiled import warm_up

    began = time.perf_counter()
    with _status(console, "compiling (seconds, once after an installation)"):
        warm_up()
    if time.perf_counter() - began > 3:
        console.print(f"compiled in {time.perf_counter() - began:.0f} s, cached", style="dim")


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
        TextColumn(f"{_quality_name(missing)} {{task.fields[quality]:.3f}}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    ]
    with Progress(*columns, console=console, speed_estimate_period=20) as bar:
        task = bar.add_task(f"0/{len(missing)} runs", total=total, quality=0.0)
        quality = 0.0
        for event in run_missing(prepared, jobs=jobs):
            if event.done:
                left.discard(event.job)
                bar.update(task, description=f"{len(missing) - len(left)}/{len(missing)} runs")
            elif event.interactions:
                quality = event.quality if quality == 0 else (1 - _SMOOTH) * quality + _SMOOTH * event.quality
                bar.update(task, advance=event.interactions, quality=quality)


def _quality_name(jobs: list[Any]) -> str:
    """The figure of the newest run on the progress bar: with texts a recall, an AUC or nDCG, by the kind of setting."""
    return "quality" if any(isinstance(job.setting, TextSetting) for job in jobs) else "nDCG"


class Request(NamedTuple):
    """Which form of a figure is run, and how."""

    quick: bool = False
    only: tuple[str, ...] = ()  # key=value: settings with these values
    seeds: int | None = None
    folds: str | None = None
    jobs: int | None = None
    quiet: bool = False
    baseline: tuple[str, ...] = ()  # key=value: the setting that the others are tested against
    claims: tuple[str, ...] = ()  # ids: the settings that these claims compare


def reproduced(figure: Figure, out: Path, request: Request) -> dict[str, Any]:
    """Runs a figure, judges it, writes its page and prints the verdicts."""
    console = Console()
    quick, seeds, folds, quiet = request.quick, request.seeds, request.folds, request.quiet
    whole = plan_of(figure, quick=quick, folds=folds, seeds=seeds)
    whole = matching(deciding(whole, figure, request.claims) if request.claims else whole, request.only)
    here, missing = available(whole)
    if not here.settings:
        raise DataMissing(
            f"{figure.id} needs {', '.join(missing)}, which are not on this machine: foltr data show NAME"
        )
    here = with_baseline(here, parsed_baseline(request.baseline), where="--baseline")
    began, drawing = time.perf_counter(), drawing_of(figure)
    if quick:  # no published lines beside curves that cannot be compared
        drawing = msgspec.structs.replace(drawing, published=[])
    chosen = [f"--claim {name}" for name in request.claims] + [f"--only {one}" for one in request.only]
    chosen += [f"--{name} {value}" for name, value in (("seeds", seeds), ("folds", folds)) if value is not None]
    extra = {
        "quick": quick,
        "chosen": " ".join(chosen),
        "figure": drawing,
    }
    run = run_plan(here, out, jobs=request.jobs, quiet=quiet, extra=extra)
    run = judged(run, figure, missing)
    page = _page(run)
    answer = {
        "id": figure.id, "run": run.manifest.run, "dir": str(run.dir), "page": str(page), "quick": quick,
        "seconds": time.perf_counter() - began,
        **{name: msgspec.to_builtins(getattr(run.manifest, name)) for name in ("verdicts", "claims", "comparisons")},
        "missing": missing, "results": results(run)["results"],
    }  # fmt: skip
    if not quiet:
        _print_verdicts(console, figure, run, page, missing)
    return answer


def chapter(name: str, figures: list[Figure], out: Path, request: Request) -> list[dict[str, Any]]:
    """All figures of a chapter whose data is on this machine, and one page of them."""
    from foltr.lab.reporting.page import write_page

    console, answers = Console(stderr=request.quiet), []
    for figure in figures:
        try:
            answers.append(reproduced(figure, out, request))
        except DataMissing as problem:
            console.print(str(problem), style="dim", highlight=False)
    if not answers:
        raise DataMissing(f"{name}: none of its figures has its data on this machine: foltr data list")
    page = write_page([Path(one["dir"]) for one in answers], out / f"{name.strip('/')}.html", title=f"foltr: {name}")
    console.print(f"Page: {page}", highlight=False, soft_wrap=True)
    return answers


def judged(run: records.Run, figure: Figure, missing: list[str]) -> records.Run:
    """The run with verdicts, claims and comparisons in its manifest."""
    content = figure.content
    run = _with(run, verdicts=compare.verdicts(run, content, missing))
    run = _with(
        run,
        comparisons=compare.comparisons(run, content),
        claims=claims(run, content, missing),  # some are about the verdicts
        remarks=[*content.get("remarks", []), *_missing_remark(missing)],
    )
    records.write_manifest(run.dir, run.manifest)
    return run


def _with(run: records.Run, **known: Any) -> records.Run:
    return run._replace(manifest=msgspec.structs.replace(run.manifest, **known))


def _missing_remark(missing: list[str]) -> list[str]:
    return [f"Not run, because the data is not on this machine: {', '.join(missing)}."] if missing else []


def _page(run: records.Run) -> Path:
    from foltr.lab.reporting.page import write_page

    return write_page([run.dir], run.dir / "report.html")


def _print_verdicts(console: Console, figure: Figure, run: records.Run, page: Path, missing: list[str]) -> None:
    """Verdicts and claims for a terminal of 80 columns."""
    counted = [row for row in run.manifest.verdicts if row.ours is not None]
    data = ", ".join(dict.fromkeys(row.data for row in counted))
    console.print(
        f"\n[bold]{figure.title}[/bold]  ({figure.source}; {data or 'no published numbers'})", highlight=False
    )
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    published = [] if run.manifest.quick else ["published"]
    ours = "ours ± sd" if any(row.runs > 1 for row in counted) else "ours"
    for name in ("what", *published, ours, "runs", "verdict"):
        table.add_column(name, justify="left" if name in ("what", "verdict") else "right", overflow="fold")
    for row in counted:
        numbers = [f"{row.published:g}"] if published else []
        ours = "\n".join(filter(None, [mean_sd(row.ours, row.sd, row.runs), other_words(row.other, row.empty)]))
        table.add_row(row.what, *numbers, ours, str(row.runs), row.verdict)
    if counted:
        console.print(table)
    decided = [claim for claim in run.manifest.claims if claim.holds is not None]
    note = counted_note(run, [row.metric for row in counted] + [claim.metric for claim in decided])
    console.print(note, style="dim", highlight=False) if note else None
    for claim in decided:
        word = "holds" if claim.holds else "does not hold"
        console.print(f"- {escape(claim.claim)}: [bold]{word}[/bold] ({escape(claim.evidence)})", highlight=False)
    good = sum(row.verdict == "reproduced" for row in counted)
    if run.manifest.quick:
        console.print(QUICK, style="bold", highlight=False)
    elif counted:
        console.print(f"{good} of {len(counted)} published numbers reproduced", highlight=False)
    if missing:
        console.print(f"not run, because the data is not on this machine: {', '.join(missing)}", highlight=False)
    console.print(f"Page: {page}", highlight=False, soft_wrap=True)
