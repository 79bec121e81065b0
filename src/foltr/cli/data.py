"""`foltr data`: data sets on this machine. Commands import what they need."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from foltr.cli.output import Commands, Json, out, print_json, require

app = typer.Typer(cls=Commands, no_args_is_help=True, help="Data sets on this machine.")


@app.command("list")
def data_list(json_: Json = False) -> None:
    """List known data sets, and which of them are on this machine."""
    require("lab")
    from rich.table import Table

    from foltr.lab.data import registered

    listed = registered.listing()
    if json_:
        print_json([one._asdict() for one in listed])
        return
    table = Table(box=None, pad_edge=False)
    for name in ("name", "queries", "documents", "features", "grades", "here"):
        table.add_column(name, justify="left" if name in ("name", "here") else "right")
    for one in listed:
        here = f"{one.note}, {one.where}" if one.where else "no: foltr data show " + one.name
        table.add_row(one.name, *(f"{n:,}" if n else "" for n in one[2:6]), here)
    out.print(table)


@app.command("add")
def data_add(
    name: Annotated[str, typer.Argument(help="Its name in a spec.", show_default=False)],
    path: Annotated[Path, typer.Argument(help="Folder or file of the data.", show_default=False)],
    max_features: Annotated[
        int, typer.Option("--max-features", min=1, help="Highest feature number that a line may have.")
    ] = 5_000,
    nan: Annotated[Literal["error", "zero"], typer.Option("--nan", help="What NaN means: an error, or 0.")] = "error",
) -> None:
    """Register the location of a data set after reading it: a folder or .zip of features, or texts.

    Texts are JSON lines or TREC files, or a folder of text files.
    """
    require("lab")
    from foltr.lab.data import registered
    from foltr.text.corpus import Corpus

    found = registered.add(name, path, max_features=max_features, nan=nan)
    if isinstance(found, Corpus):
        out.print(f"{name}: texts, {len(found.ids):,} documents, {len(found.query_ids):,} queries, "
                  f"{len(found.judgments):,} judgments in {path}", highlight=False, soft_wrap=True)  # fmt: skip
        return
    folds = f"{len(found.folds)} fold{'s' * (len(found.folds) != 1)}"
    out.print(f"{name}: {folds} of {found.queries:,} queries, {found.documents:,} documents, {found.features:,} "
              f"features in {path}", highlight=False, soft_wrap=True)  # fmt: skip


@app.command("remove")
def data_remove(
    name: Annotated[str, typer.Argument(help="A name that was added.", show_default=False)],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Remove the registration of a data set and our parsed copies of it; your own files stay."""
    require("lab")
    from foltr.lab.data import catalog

    path = catalog.registered_path(name)
    if not yes:
        typer.confirm(f"Remove {name}? Its files in {path} stay.", abort=True)
    removed = catalog.remove(name)
    copies = f"{removed.copies} parsed cop{'y' if removed.copies == 1 else 'ies'} deleted"
    out.print(f"{name}: removed, {copies}; the files in {path} are as they were", highlight=False, soft_wrap=True)


@app.command("show")
def data_show(
    name: Annotated[str, typer.Argument(help="A name that `foltr data list` shows.", show_default=False)],
    json_: Json = False,
) -> None:
    """Show counts, grades, files and checksums of a data set."""
    require("lab")
    from foltr.lab.data import catalog, corpora, registered

    if name == corpora.BUILT_IN or registered.texts_of(name):
        _show_texts(corpora.describe(name), json_=json_)
        return
    about = catalog.describe(name)
    if json_:
        print_json(_plain(about))
        return
    out.print(f"{about.name}: {about.note}; {about.features} features, {about.grades} grades, "
               f"scaling {about.scaling}\n{about.where}", highlight=False)  # fmt: skip
    for fold, parts in about.folds.items():
        for split, part in parts.items():
            mix = " ".join(f"{100 * n / max(part.documents, 1):.1f}" for n in part.grade_counts)
            out.print(f"  fold {fold} {split:<10} {part.queries:>6} queries {part.documents:>8} documents, "
                       f"grades in %: {mix}", highlight=False)  # fmt: skip
        out.print(f"  fold {fold} checksum   {about.checksums[fold][:16]}", highlight=False)


def _show_texts(about: Any, *, json_: bool) -> None:
    if json_:
        print_json(_plain(about))
        return
    parts = ", ".join(f"{part} {queries:,}" for part, queries in about.parts.items()) or "none"
    mix = " ".join(f"{count:,}" for count in about.grade_counts)
    out.print(f"{about.name}: texts, {about.documents:,} documents, {about.queries:,} queries\n{about.where}\n"
              f"  judged queries: {parts}\n  {about.judgments:,} judgments, of grade 0, 1, ...: {mix or 'none'}\n"
              f"  left out: {about.unjudged:,} of -1 (not judged), {about.unknown:,} of missing queries or documents",
              highlight=False, soft_wrap=True)  # fmt: skip


def _plain(value: Any) -> Any:
    if hasattr(value, "_asdict"):
        return {k: _plain(v) for k, v in value._asdict().items()}
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    return [_plain(v) for v in value] if isinstance(value, list | tuple) else value
