"""The docstrings of Python's standard library as a folder of Markdown files, for a node that has no documents yet.

    json/decoder/JSONDecoder.md     # json.decoder.JSONDecoder, its docstring, then those of its methods

A file is a public module, function or class with its methods, and has the date of its source file. Files appear
complete: they are written beside the folder and moved into it.
"""

import os
import sysconfig
from pathlib import Path

from foltr.errors import InputError
from foltr.lab.data.docstrings import load_docstrings
from foltr.text.corpus import Corpus


def write_docstrings(folder: str | Path, corpus: Corpus | None = None) -> int:
    """Writes the files into a new or empty folder; how many."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    if any(target.iterdir()):
        raise InputError(f"{target}: is not empty; name a new folder")
    partial = target.with_name(f".{target.name}.partial")
    library, dates = Path(sysconfig.get_paths()["stdlib"]), dict[str, float | None]()
    texts = file_texts(load_docstrings() if corpus is None else corpus)
    for name, text in texts.items():
        file = partial.joinpath(*name.split(".")[:-1], name.rpartition(".")[2] + ".md")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8", errors="replace")
        module = name.rpartition(".")[0] or name
        date = dates[module] if module in dates else dates.setdefault(module, _date(library, module))
        if date is not None:
            os.utime(file, (date, date))
    for entry in sorted(partial.iterdir()):
        entry.rename(target / entry.name)
    partial.rmdir()
    return len(texts)


def file_texts(corpus: Corpus) -> dict[str, str]:
    """Name of a public object -> Markdown; methods stand with their class."""
    found: dict[str, list[str]] = {}
    for name, text in zip(corpus.ids, corpus.bodies, strict=True):
        parts = name.split(".")
        if any(part.startswith("_") for part in parts):
            continue
        last = next((place for place, part in enumerate(parts) if part[:1].isupper()), len(parts) - 1)
        owner, inner = ".".join(parts[: last + 1]), ".".join(parts[last + 1 :])
        found.setdefault(owner, [f"# {owner}"]).append(f"## {inner}\n\n{text}" if inner else text)
    return {name: "\n\n".join(pieces) + "\n" for name, pieces in found.items()}


def _date(library: Path, name: str) -> float | None:
    """When the source file of an object was changed; None where it is not found."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        inner = library.joinpath(*parts[:length])
        for file in (inner.with_suffix(".py"), inner / "__init__.py"):
            if file.is_file():
                return file.stat().st_mtime
    return None
