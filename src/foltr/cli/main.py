"""The command line. Each command imports what it needs, so that `foltr --help` is fast.

Exit codes: 0 done, 1 the job failed, 2 the call or its input is wrong. `--json` prints one JSON object on standard
output and nothing else there; progress goes to standard error.
"""

import errno
import os
import signal
import sys
from pathlib import Path
from typing import Annotated, Any, NamedTuple, NoReturn

import typer
from click.exceptions import NoSuchOption, UsageError

from foltr import __version__
from foltr.cli import aggregator as cli_aggregator
from foltr.cli import coordinator as cli_coordinator
from foltr.cli import data as cli_data
from foltr.cli import demo as cli_demo
from foltr.cli import node as cli_node
from foltr.cli import privacy as cli_privacy
from foltr.cli import silo as cli_silo
from foltr.cli.output import EXTRAS, Commands, Json, err, not_installed, out, print_json, require, with_options
from foltr.errors import FoltrError, InputError, did_you_mean

app = typer.Typer(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},  # of all commands below it too
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Federated online learning to rank: clients train one shared ranker on their clicks and share updates only.",
)
app.add_typer(cli_aggregator.app, name="aggregator")
app.add_typer(cli_coordinator.app, name="coordinator")
app.add_typer(cli_data.app, name="data")
app.add_typer(cli_node.app, name="node")
app.add_typer(cli_privacy.app, name="privacy")
app.add_typer(cli_silo.app, name="silo")

Out = Annotated[Path, typer.Option("--out", help="Folder for runs; finished single runs in it are reused.")]
Jobs = Annotated[int | None, typer.Option("--jobs", min=1, help="Processes at once (default: all cores).")]


Baseline = Annotated[
    list[str] | None,
    typer.Option("--baseline", help="key=value; the setting that the others are tested against. Repeatable."),
]


def _version(wanted: bool) -> None:
    if wanted:
        out.print(f"foltr {__version__}", highlight=False)
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_version, help="The version of foltr.")
    ] = False,
) -> None:
    """Options of `foltr` itself."""


def main() -> None:
    """Runs a command; a known error is printed as one message without a traceback."""
    signal.signal(signal.SIGTERM, _stop)
    try:
        code = app(prog_name="foltr", standalone_mode=False)
        sys.stdout.flush()
        if code:
            raise KeyboardInterrupt if code == _CTRL_C else SystemExit(code)
    except FoltrError as problem:
        _end(str(problem), problem.exit_code)
    except ModuleNotFoundError as problem:
        _end_without(problem)
    except (typer.Abort, KeyboardInterrupt):
        _end("stopped", 1)
    except MemoryError as problem:
        _end(f"not enough memory ({problem}); use fewer clients, a cohort, or fewer --jobs", 1)
    except OSError as problem:
        _unwritten(problem)
    except Exception as problem:
        code = _usage(problem)
        if code is None:
            raise
        sys.exit(code)


_CTRL_C = 130  # exit code of typer for Ctrl-C


def _stop(*_: object) -> NoReturn:
    """SIGTERM is handled like Ctrl-C."""
    raise KeyboardInterrupt


def _end(message: str, code: int) -> NoReturn:
    err.print(f"foltr: {message}", style="bold red", highlight=False, markup=False, soft_wrap=True)
    sys.exit(code)


def _end_without(problem: ModuleNotFoundError) -> NoReturn:
    """A package of an extra is missing; any other missing module is a fault of the program."""
    module = (problem.name or "").partition(".")[0]
    extra = next((extra for extra, modules in EXTRAS.items() if module in modules), None)
    if extra is None:
        raise problem
    _end(str(not_installed(extra)), InputError.exit_code)


def _unwritten(problem: OSError) -> NoReturn:
    """Without a file name, standard output was closed or is full: its buffer cannot be flushed."""
    if problem.filename is None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if problem.errno == errno.EPIPE:
        sys.exit(1)
    _end(f"{problem.filename or 'standard output'}: {problem.strerror or problem}", 1)


def _usage(problem: Exception) -> int | None:
    """Usage errors are raised and printed by click."""
    if isinstance(problem, NoSuchOption):
        problem = _misspelt(problem)
    show, code = getattr(problem, "show", None), getattr(problem, "exit_code", None)
    if isinstance(code, int):
        if callable(show):
            show()
        return code
    return None


def _misspelt(problem: NoSuchOption) -> UsageError:
    """The unknown option with our own suggestion in place of click's."""
    parameters = problem.ctx.command.get_params(problem.ctx) if problem.ctx else []
    options = [option for parameter in parameters for option in parameter.opts if option.startswith("-")]
    name = problem.option_name
    return UsageError(f"No such option {name!r}.{did_you_mean(name, options)}", problem.ctx)


app.command("demo")(cli_demo.demo)


@app.command("run")
def run_spec(
    spec: Annotated[Path, typer.Argument(help="Spec file (TOML).", show_default=False)],
    set_: Annotated[list[str] | None, typer.Option("--set", help="key=value; overrides the spec. Repeatable.")] = None,
    seeds: Annotated[int | None, typer.Option("--seeds", min=1, help="Seeds a fold.")] = None,
    folds: Annotated[str | None, typer.Option("--folds", help="Such as 1-5 or 2,4.")] = None,
    baseline: Baseline = None,
    jobs: Jobs = None,
    folder: Out = Path("runs"),
    json_: Json = False,
) -> None:
    """Run a spec. The same command resumes an interrupted run, or prints a finished one."""
    require("lab")
    from foltr.lab.reporting.terminal import terminal_table, terminal_tests
    from foltr.lab.runs.progress import run_plan
    from foltr.lab.runs.run import results
    from foltr.lab.spec import parse as specs

    overrides = [*(set_ or [])]
    overrides += [f"runs.seeds={seeds}"] if seeds else []
    overrides += [f'data.folds="{folds}"'] if folds else []
    plan = specs.read(spec, overrides)
    if baseline:
        plan = specs.with_baseline(plan, specs.parsed_baseline(baseline), where="--baseline")
    run = run_plan(plan, folder, jobs=jobs, quiet=json_)
    if json_:
        print_json(results(run))
        return
    out.print(terminal_table(run))
    out.print(terminal_tests(run))
    out.print(f"\n{run.dir}\nfoltr report {run.dir}   writes a page", highlight=False, soft_wrap=True)


class Reproduction(NamedTuple):
    """Options of `foltr reproduce`."""

    ids: Annotated[
        list[str] | None,
        typer.Argument(help="Figure (fpdgd/table2) or chapter (noniid).", show_default=False),
    ] = None
    list_: Annotated[
        bool, typer.Option("--list", help="List figures, their data, and the papers' conclusions by verdict.")
    ] = False
    only: Annotated[list[str] | None, typer.Option("--only", help="key=value; only these settings. Repeatable.")] = None
    claim: Annotated[
        list[str] | None, typer.Option("--claim", help="Id; only the settings that this claim compares. Repeatable.")
    ] = None
    quick: Annotated[bool, typer.Option("--quick", help="Reduced form, about a minute; not comparable.")] = False
    seeds: Annotated[int | None, typer.Option("--seeds", min=1, help="Seeds a fold (default: as in the paper).")] = None
    folds: Annotated[str | None, typer.Option("--folds", help="Such as 1-5.")] = None
    baseline: Baseline = None
    jobs: Jobs = None
    folder: Out = Path("runs")
    json_: Json = False


@app.command("reproduce")
@with_options(Reproduction)
def reproduce(chosen: Reproduction) -> None:
    """Reproduce figures and tables of the papers, with a verdict for every published number."""
    listed = chosen.list_ or not chosen.ids
    require("lab", *([] if listed else ["report"]))
    if listed:
        _list_figures(chosen.json_)
        if not chosen.list_:
            raise InputError("name a figure, such as: foltr reproduce fpdgd/table2 --quick")
        return
    from foltr.lab.figures.figures import chosen_ids, read_figure
    from foltr.lab.runs.progress import Request, chapter, reproduced

    names = chosen.ids or []
    request = Request(
        chosen.quick, tuple(chosen.only or ()), chosen.seeds, chosen.folds, chosen.jobs, chosen.json_,
        tuple(chosen.baseline or ()), tuple(chosen.claim or ()),
    )  # fmt: skip
    answers: list[dict[str, Any]] = []
    for name, figures in [(name, [read_figure(one) for one in chosen_ids(name)]) for name in names]:
        one_figure = len(figures) == 1
        answers += (
            [reproduced(figures[0], chosen.folder, request)]
            if one_figure
            else chapter(name, figures, chosen.folder, request)
        )
    if chosen.json_:
        print_json(answers[0] if len(answers) == 1 else answers)


def _list_figures(json_: bool) -> None:
    from rich.table import Table

    from foltr.lab.figures.conclusions import STATES, counted, read_conclusions
    from foltr.lab.figures.listing import listed_figures

    figures, counts = listed_figures(), counted(read_conclusions())
    if json_:
        print_json({
            "figures": [{**figure._asdict(), "runs": figure.runs} for figure in figures],
            "conclusions": [count._asdict() for count in counts],
        })  # fmt: skip
        return
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    for figure in figures:
        without = f"without {', '.join(figure.missing)}" if figure.runs == "partly" else ""
        needed = f"needs {', '.join(figure.missing)}" if figure.runs == "no" else without
        table.add_row(figure.id, f"{figure.title} ({needed})" if needed else figure.title)
    out.print(table, highlight=False)
    runs = [sum(figure.runs == word for figure in figures) for word in ("yes", "partly", "no")]
    out.print(
        f"\n{len(figures)} figures: {runs[0]} run with the data that is here, {runs[1]} in part, {runs[2]} not.\n"
        "Conclusions of the papers (lab/figures/conclusions.toml), by verdict:\n", highlight=False, soft_wrap=True,
    )  # fmt: skip
    totals = Table.grid(padding=(0, 2))
    for name in ("", "all", *STATES):
        totals.add_column(justify="left" if not name else "right", max_width=9)
    totals.add_row("paper", "all", *STATES)
    for count in counts:
        totals.add_row(count.paper, str(count.conclusions), *(str(count.states[state]) for state in STATES))
    out.print(totals, highlight=False)


@app.command()
def report(
    runs: Annotated[list[Path], typer.Argument(help="Folders of finished runs.", show_default=False)],
    to: Annotated[Path | None, typer.Option("--to", help="The page (default: report.html in the first run).")] = None,
    baseline: Baseline = None,
) -> None:
    """Write one self-contained HTML page: curves, tables, significance, spec, data, versions."""
    require("lab", "report")
    from foltr.lab.reporting.page import write_page
    from foltr.lab.spec.parse import parsed_baseline

    page = write_page(runs, to or runs[0] / "report.html", baseline=parsed_baseline(baseline or []))
    out.print(str(page), highlight=False, soft_wrap=True)


@app.command()
def bench(
    json_: Json = False,
    smoke: Annotated[bool, typer.Option("--smoke", help="Small sizes, to check that it runs.")] = False,
    large: Annotated[bool, typer.Option("--large", help="Also a secure sum of 10,000 clients (minutes).")] = False,
) -> None:
    """Measure speed against a NumPy reference and against this machine's memory bandwidth."""
    require("lab")
    from foltr.lab.bench.bench import measure, report_lines

    measured = measure(smoke=smoke, large=large, say=lambda words: err.print(words, style="dim", highlight=False))
    if json_:
        print_json(measured)
    else:
        out.print(report_lines(measured))


@app.command()
def keys(
    form: Annotated[str, typer.Argument(help="clicks, silo or people.")] = "clicks",
    write: Annotated[Path | None, typer.Option("--write", help="A document whose tables of keys are renewed.")] = None,
    json_: Json = False,
) -> None:
    """List the keys of a spec: tables, kinds, defaults, choices and meanings."""
    require("lab")
    from foltr.lab.spec import reference

    rows = reference.rows(form)
    if write:
        reference.write(write)
    elif json_:
        print_json([{**row._asdict(), "keys": [key._asdict() for key in row.keys]} for row in rows])
    else:
        out.print(reference.listed(form), markup=False, highlight=False, soft_wrap=True, end="")


if __name__ == "__main__":
    main()
