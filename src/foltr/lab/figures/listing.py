"""The list of `foltr reproduce --list`: every figure with the data that it needs and whether that is here."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from foltr.lab.data import registered
from foltr.lab.figures.figures import Figure, figure_ids, read_figure

_GENERATED = ("synthetic-", "made-up-", "machine")  # beginnings of names that need no files of a publisher


class ListedFigure(NamedTuple):
    id: str
    title: str
    source: str
    data: list[str]
    missing: list[str]  # of them, on this machine

    @property
    def runs(self) -> str:
        """Whether it runs with the data that is here: "yes", "partly" or "no"."""
        if not self.missing:
            return "yes"
        return "no" if len(self.missing) == len(self.data) else "partly"


def listed_figures() -> list[ListedFigure]:
    """Every figure; no data is read."""
    here = {collection.name for collection in registered.listing() if collection.where}
    listed = []
    for figure in map(read_figure, figure_ids()):
        data = data_of(figure)
        missing = [name for name in data if not _is_here(name, here)]
        listed.append(ListedFigure(figure.id, figure.title, figure.source, data, missing))
    return listed


def data_of(figure: Figure) -> list[str]:
    """Names of the data sets of all its settings, in the order of their parts."""
    base = figure.content.get("base", {})
    return list(dict.fromkeys(name for part in figure.content["part"] for name in _names(base, part)))


def _names(base: dict[str, Any], part: dict[str, Any]) -> Iterator[str]:
    sweep = part.get("sweep", {})
    if "data.name" in sweep:
        yield from sweep["data.name"]
    elif "data" in sweep:
        yield from (table["name"] for table in sweep["data"])
    else:
        yield {**base.get("data", {}), **part.get("data", {})}["name"]


def _is_here(name: str, here: set[str]) -> bool:
    return name in here or name.startswith(_GENERATED) or (Path(name).is_absolute() and Path(name).is_dir())
