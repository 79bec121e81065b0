"""File names as people type them: `-`, `_` and `.` are spaces, and endings may be left out.

    whole_names("git-cherry-pick.1.gz")   -> git cherry pick 1 gz | git cherry pick 1 | git cherry pick
    missing_endings("git show", "git-show.html") -> 1

The last part behind a point always counts as an ending, a part before it where it is short: "fstab.5.gz" and
"archive.tar.gz" have two endings, "json.loads.html" has one.
"""

import re
from collections.abc import Sequence

_SPACES = re.compile(r"[\s\-_.]+")
_LAST_ENDING = re.compile(r"[^\W_]{1,10}")
_INNER_ENDING = re.compile(r"[^\W_]{1,4}")


def name_words(folded: str) -> tuple[str, ...]:
    """The words of a folded name or query."""
    return tuple(filter(None, _SPACES.split(folded)))


def whole_names(folded: str) -> list[tuple[str, ...]]:
    """The words of a folded name, then those without one ending, without two, and so on."""
    forms, ending_of = [name_words(folded)], _LAST_ENDING
    while True:
        folded, _, ending = folded.rpartition(".")
        if not ending_of.fullmatch(ending) or not name_words(folded):
            return forms
        forms.append(name_words(folded))
        ending_of = _INNER_ENDING


def missing_endings(query: str, name: str) -> int | None:
    """How many endings of a name a query leaves out; None where it is another name. Both are folded.

    Where the name's own ending is not the typed one, as in "report.pdf" for report.odt, all endings are missing.
    """
    forms, typed = whole_names(name), whole_names(query)
    if typed[0] and typed[0] in forms:
        return forms.index(typed[0])
    return len(forms) if typed[0] and len(typed) > 1 and typed[1] in forms[1:] else None


def stands_in(query: Sequence[str], name: Sequence[str]) -> bool:
    """Whether the words of a query stand in a name one after the other; the last one may be a beginning."""
    if not query:
        return False
    *whole, last = query
    places = range(len(name) - len(whole))
    return any(
        name[place + len(whole)].startswith(last) and list(name[place : place + len(whole)]) == whole
        for place in places
    )
