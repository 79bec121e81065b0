"""One self-contained HTML page about one or several runs: nothing on it is loaded from anywhere.

The page depends on the runs alone (no clock, no machine of the reader), so the same runs give the same bytes.
"""

from pathlib import Path
from typing import Any

from foltr.atomic import write_text
from foltr.errors import InputError
from foltr.lab.records import read
from foltr.lab.reporting.sections import section


def write_page(runs: list[Path], out: Path, *, title: str | None = None) -> Path:
    """Read finished runs and write the page to `out`, whole or not at all; gives back `out`."""
    if not runs:
        raise InputError("a report needs at least one run folder")
    write_text(out, render([section(read(folder), place) for place, folder in enumerate(runs)], title))
    return out


def render(sections: list[dict[str, Any]], title: str | None = None) -> str:
    """The page as text; all that comes from a run is escaped, save the SVG that this package draws itself."""
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError as error:
        raise InputError("the report page needs the report extra: pip install 'foltr[report]'") from error
    loader = PackageLoader("foltr.lab.reporting", "templates")
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    headline = title or (sections[0]["name"] if len(sections) == 1 else f"{len(sections)} runs")
    return environment.get_template("page.html.j2").render(title=headline, sections=sections)
