"""The papers' conclusions: `conclusions.toml`, checked against the claims of the figures.

A conclusion is decided by claims, or says why no claim decides it. A claim belongs to a conclusion, or is ours. Figures
that are another one on other data (`like`) have no claims of their own: those of the other one count for both.
"""

import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from foltr.errors import SpecError
from foltr.lab.figures import figures

FILE = Path(__file__).parent / "conclusions.toml"
PAPERS = ("S0", "S1", "S2", "S3", "S4")  # docs/ref-papers.md
HERE = ("holds", "holds in part", "does not hold", "not run")
NO_DATA, NO_CLAIM = "data missing", "no claim"
STATES = (*HERE, NO_DATA, NO_CLAIM)


class Conclusion(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A conclusion of a paper, in our words."""

    id: str  # "S0/table-2": paper and name
    place: str
    text: str
    claims: list[str] = []  # "figure:id"
    verdict: Literal["", "holds", "holds in part", "does not hold", "not run"] = ""
    evidence: str = ""
    needs: list[str] = []  # data sets
    reason: str = ""  # why no claim decides it

    @property
    def paper(self) -> str:
        return self.id.partition("/")[0]

    @property
    def state(self) -> str:
        """One of STATES."""
        return self.verdict or (NO_DATA if self.claims else NO_CLAIM)


def read_conclusions(path: Path = FILE) -> list[Conclusion]:
    """All conclusions; a fault of the file is refused."""
    try:
        listed = msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), dict[str, list[Conclusion]])
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as problem:
        raise SpecError(f"{path.name}: {problem}") from None
    conclusions = listed.get("conclusion", [])
    found = list(problems(conclusions, claims_of_figures()))
    if found:
        raise SpecError(f"{path.name}: " + "; ".join(found))
    return conclusions


def claims_of_figures() -> dict[str, dict[str, Any]]:
    """Every claim that a figure's file states, by "figure:id"."""
    tables = {name: content_of(name) for name in figures.figure_ids()}
    listed = [
        (name, claim) for name, table in tables.items() if "like" not in table for claim in table.get("claim", [])
    ]
    without_id = [f"{name}: {claim['text']!r}" for name, claim in listed if "id" not in claim]
    if without_id:
        raise SpecError(f"claims without an id: {', '.join(without_id)}")
    ids = [f"{name}:{claim['id']}" for name, claim in listed]
    _refuse_repeated(ids, "claims of one figure with the same id")
    return dict(zip(ids, (claim for _, claim in listed), strict=True))


def problems(conclusions: Sequence[Conclusion], claims: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Faults of the list, each as a sentence."""
    repeated = [name for name, count in Counter(one.id for one in conclusions).items() if count > 1]
    yield from (f"{name} stands there twice" for name in repeated)
    for conclusion in conclusions:
        yield from _problems_of(conclusion, claims)
    decided = {name for conclusion in conclusions for name in conclusion.claims}
    for name, claim in claims.items():
        if name not in decided and not claim.get("ours", False):
            yield f"claim {name} belongs to no conclusion; name it at one, or say `ours = true` in its figure"
        if name in decided and claim.get("ours", False):
            yield f"claim {name} is ours, but a conclusion names it"


def _problems_of(conclusion: Conclusion, claims: dict[str, dict[str, Any]]) -> Iterator[str]:
    name = conclusion.id
    if conclusion.paper not in PAPERS or not name.partition("/")[2]:
        yield f"{name}: an id is a paper ({', '.join(PAPERS)}), a slash and a name"
    if not (conclusion.place and conclusion.text):
        yield f"{name}: it needs a place and a text"
    yield from (f"{name}: there is no claim {claim}" for claim in conclusion.claims if claim not in claims)
    if not conclusion.claims and not conclusion.reason:
        yield f"{name}: neither a claim decides it nor a reason says why none does"
    if conclusion.claims and not (conclusion.verdict or conclusion.needs):
        yield f"{name}: it needs a verdict ({', '.join(HERE)}) or the data sets that it waits for (`needs`)"
    if conclusion.verdict and not conclusion.claims:
        yield f"{name}: a verdict without a claim"
    if (conclusion.verdict in HERE[:3]) != bool(conclusion.evidence):
        yield f"{name}: evidence belongs to a verdict of a run, and to nothing else"


class Counts(NamedTuple):
    """Number of conclusions of a paper in each of STATES."""

    paper: str
    conclusions: int
    states: dict[str, int]


def counted(conclusions: Sequence[Conclusion]) -> list[Counts]:
    """Counts of every paper."""
    by_paper = {paper: Counter(one.state for one in conclusions if one.paper == paper) for paper in PAPERS}
    return [
        Counts(paper, states.total(), {state: states[state] for state in STATES}) for paper, states in by_paper.items()
    ]


def content_of(name: str) -> dict[str, Any]:
    """The file of a figure, without what it takes from another one."""
    return tomllib.loads((figures.HOME / f"{name}.toml").read_text(encoding="utf-8"))


def _refuse_repeated(names: Sequence[str], what: str) -> None:
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise SpecError(f"{what}: {', '.join(repeated)}")
