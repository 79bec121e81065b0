"""Features and texts by one name space: what `foltr data add`, `list` and `show` call.

Runs import `catalog` (features) or `corpora` (texts) alone, so that a change of the one leaves stored results of the
other valid.
"""

from pathlib import Path
from typing import Literal

from foltr.errors import DataError
from foltr.lab.data import catalog, corpora, places, synthetic
from foltr.lab.data.catalog import Listed
from foltr.lab.data.published import COLLECTIONS
from foltr.text.corpus import Corpus


def add(
    name: str, path: str | Path, *, max_features: int = places.MAX_FEATURES, nan: Literal["error", "zero"] = "error"
) -> catalog.Added | Corpus:
    """Registers the place of a collection after reading it as a whole."""
    if name.partition("@")[0] in synthetic.SHAPES:
        raise DataError(f"the name {name!r} belongs to a built-in collection; choose another")
    root = Path(path).expanduser().resolve()
    if root.exists() and name not in COLLECTIONS and places.find(root) is None:
        if corpora.find(root):
            return corpora.add(name, root)
        raise DataError(
            f"{root}: none of the known layouts is there; looked for features ({places.LOOKED_FOR}) and for texts "
            f"({corpora.LOOKED_FOR}, one .jsonl or .trec file, or text files)"
        )
    return catalog.add(name, root, max_features=max_features, nan=nan)


def listing() -> list[Listed]:
    """Every collection and the place it lies in; nothing is parsed."""
    texts = [_listed_texts(name) for name in dict.fromkeys([*corpora.names(), *places.remembered()])]
    shown = {one.name: one for one in texts if one}
    features = [one for one in catalog.listing() if one.name not in shown]
    return [*features, *shown.values()]


def _listed_texts(name: str) -> Listed | None:
    """A collection of texts that is on this machine."""
    if name == corpora.BUILT_IN:
        return Listed(name, "built in", 0, 0, 0, 0, "texts")
    located = texts_of(name)
    return Listed(name, str(located[0]), 0, 0, 0, 0, f"texts, {located[1].layout}") if located else None


def texts_of(name: str) -> tuple[Path, corpora.TextFiles] | None:
    """The place and files of a collection of texts; a folder of features with a readme in it is none."""
    if name in COLLECTIONS or any(places.find(root) for root in places.candidates(name)):
        return None
    return corpora.locate(name)
