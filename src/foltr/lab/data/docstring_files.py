"""The docstrings of Python's standard library as a folder of Markdown files, for a node that has no documents yet.

    json/decoder/JSONDecoder.md     # json.decoder.JSONDecoder, a heading, then the docstring

A file has the date of its source file. The folder appears complete: it is written under another name and renamed.
"""

import os
import sysconfig
from pathlib import Path

from foltr.lab.data.docstrings import load_docstrings
from foltr.text.corpus import Corpus


def write_docstrings(folder: str | Path, corpus: Corpus | None = None) -> int:
    """Writes one file for each documented object, unless the folder exists; how many."""
    target = Path(folder)
    if target.exists():
        return 0
    corpus = load_docstrings() if corpus is None else corpus
    partial = target.with_name(f".{target.name}.partial")
    library = Path(sysconfig.get_paths()["stdlib"])
    for name, text in zip(corpus.ids, corpus.bodies, strict=True):
        file = partial.joinpath(*name.split(".")).with_suffix(".md")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"# {name}\n\n{text}\n", encoding="utf-8", errors="replace")
        date = _date(library, name)
        if date is not None:
            os.utime(file, (date, date))
    partial.rename(target)
    return len(corpus.ids)


def _date(library: Path, name: str) -> float | None:
    """When the source file of an object was changed; None where it is not found."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        inner = library.joinpath(*parts[:length])
        for file in (inner.with_suffix(".py"), inner / "__init__.py"):
            if file.is_file():
                return file.stat().st_mtime
    return None
