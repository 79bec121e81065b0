"""`foltr node export` and `import`: settings, memory and weights on another machine."""

import sys
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from foltr.cli.node_output import say
from foltr.cli.output import Json, print_json, with_options
from foltr.errors import InputError


def add_to(app: typer.Typer) -> None:
    app.command("export")(export_)
    app.command("import")(import_)


def export_(path: Annotated[Path, typer.Argument(help="The file to write.", show_default=False)]) -> None:
    """Write settings, memory and weights to a file, for another machine."""
    from foltr.cli.node import opened

    with opened() as node:
        node.export(path)
    say(f"{path}: settings, memory of choices and weights; it tells what you searched, keep it to yourself")


class Import(NamedTuple):
    """Options of `foltr node import`."""

    path: Annotated[Path, typer.Argument(help="A file that `export` wrote.", show_default=False)]
    moved: Annotated[
        list[str] | None, typer.Option("--moved", help="OLD=NEW: a folder that has another path here. Repeatable.")
    ] = None
    roots: Annotated[
        str | None, typer.Option("--roots", help="Folders of the file to search: all or none. Default: ask for each.")
    ] = None
    only: Annotated[
        list[str] | None, typer.Option("--only", help="Take this part: settings, memory or weights. Repeatable.")
    ] = None
    json_: Json = False


@with_options(Import)
def import_(chosen: Import) -> None:
    """Read settings, memory and weights of another machine. Limits and exclusions only become stricter."""
    from foltr.cli.node import opened
    from foltr.node.learning.transfer import PARTS

    pairs = [one.partition("=") for one in chosen.moved or []]
    if any(not old or not new for old, _, new in pairs):
        raise InputError("--moved takes OLD=NEW, such as --moved /home/ada/notes=/Users/ada/notes")
    if chosen.roots not in (None, "all", "none"):
        raise InputError(f"--roots {chosen.roots}: write all or none, or leave it out to be asked")
    with opened() as node:
        content = node.read_export(chosen.path, {old: new for old, _, new in pairs})
        parts = tuple(chosen.only or PARTS)
        offered = [one for one in content.settings.roots if one not in node.settings.roots and "settings" in parts]
        roots = _chosen_roots(offered, chosen.roots, quiet=chosen.json_)
        found = node.import_(content, roots=roots, parts=parts)
    if chosen.json_:
        print_json({**found._asdict(), "roots_not_taken": [one for one in offered if one not in roots]})
        return
    say(f"{found.choices:,} choices, {found.roots} folders, {found.exclusions} exclusions"
        + (", weights" if found.weights else ""))  # fmt: skip
    if len(roots) < len(offered) and chosen.roots is None:
        say(f"{len(offered) - len(roots)} folders were not taken: foltr node add FOLDER, or import with --roots all")
    if found.not_taken:
        say(f"Not taken over, since it would index what is excluded by default: {', '.join(found.not_taken)}")
    if found.stricter:
        say(f"Your own settings are stricter and stay: {', '.join(found.stricter)}")
    say("Next: foltr node index")


def _chosen_roots(offered: list[str], said: str | None, *, quiet: bool) -> list[str]:
    """The folders of a file that shall be searched: each is listed, with a warning where one is due, and asked for."""
    from foltr.node.search.snippets import escaped
    from foltr.node.settings import root_warning

    asks = said is None and not quiet and sys.stdin.isatty()
    taken = []
    for root in offered:
        warned = f" (careful: {words})" if (words := root_warning(root)) else ""
        missing = "" if Path(root).exists() else " (not on this machine)"
        if asks and typer.confirm(f"Search {escaped(root)}{warned}{missing}?", default=False):
            taken.append(root)
        elif not asks and not quiet:
            say(f"folder {root}{warned}{missing}")
    return offered if said == "all" else taken
