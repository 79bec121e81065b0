"""The papers' figures and tables: one TOML each, with the question, the settings and the published numbers.

[base]            tables of a spec that all parts share
[[part]]          a spec with its own sweep; `part` names it
[[expected]]      published numbers: where, metric, at, tolerance, by = [keys], rows = [[values..., number], ...]
[[claim]]         a conclusion that numbers can decide, with an `id`; `ours = true`: no paper states it, otherwise
                  `conclusions.toml` names it beside the paper's conclusion
[[comparison]]    two groups of settings side by side, with significance
remarks           findings, a list of sentences
like, data        another figure with other collections
"""

import re
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from foltr.errors import InputError, SpecError, did_you_mean
from foltr.lab.records import FigureRecord
from foltr.lab.spec.parse import parsed_override, plan
from foltr.lab.spec.setting import Plan, flat, resolved, text_table

HOME = Path(__file__).parent
QUICK = (
    "quick form: a tenth of the rounds or few queries, by default fold 1 and one seed; not comparable with the papers"
)
# limits of the quick form of figures on texts: table -> kind -> key -> limit
_SMALL: dict[str, dict[str, dict[str, int]]] = {
    "silo": {
        "train": {"queries": 40},
        "retrieval": {"asked": 40},
        "disclosure": {"asked": 5},
        "projection": {"points": 100},
    },
    "people": {
        "known-items": {"people": 1, "tests": 15, "longest": 10, "documents": 800},
        "topical": {"people": 1, "tests": 30, "longest": 10, "documents": 800},
        "spill": {"people": 1, "openings": 10, "words": 20, "documents": 800},
        "together": {"people": 4, "searches_with_click": 10, "tests": 10, "documents": 800},
    },
}


class Figure(NamedTuple):
    id: str
    title: str
    question: str
    source: str
    content: dict[str, Any]  # the whole TOML
    text: str


def drawing_of(figure: Figure) -> FigureRecord:
    """Drawing instructions of a figure; its table `figure` is checked here, before anything runs."""
    drawing = {"id": figure.id, "question": figure.question, **figure.content.get("figure", {})}
    try:
        return msgspec.convert(drawing, FigureRecord)
    except msgspec.ValidationError as problem:
        raise SpecError(f"figure {figure.id}, table figure: {problem}") from None


def figure_ids() -> list[str]:
    return sorted(path.relative_to(HOME).with_suffix("").as_posix() for path in HOME.glob("*/*.toml"))


def chapters() -> list[str]:
    return sorted({name.partition("/")[0] for name in figure_ids()})


def chosen_ids(name: str) -> list[str]:
    """A figure's id, or all of a chapter, such as "poisoning"; in the order of their numbers."""
    of_chapter = [one for one in figure_ids() if one.startswith(f"{name.rstrip('/')}/")]
    return sorted(of_chapter, key=_number) or [name]


def _number(name: str) -> tuple[bool, bool, list[int], str]:
    """Figures first, then tables, then names without a number."""
    numbers = [int(digits) for digits in re.findall(r"\d+", name)]
    return not numbers, "table" in name, numbers, name


def read_figure(name: str) -> Figure:
    """A figure by its id."""
    path = HOME / f"{name}.toml"
    if name not in figure_ids():
        close = did_you_mean(name, [*figure_ids(), *chapters()])
        raise InputError(f"no figure {name!r}.{close} `foltr reproduce --list` shows all: {', '.join(figure_ids())}")
    text = path.read_text(encoding="utf-8")
    content = tomllib.loads(text)
    if "like" in content:
        content = _on_other_data(read_figure(content["like"]).content, content)
    return Figure(name, content["title"], content["question"], content["source"], content, text)


def _on_other_data(content: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """A figure for other collections; a claim about one named collection is asked of each of the others."""
    parts = [{**part, "sweep": {**part["sweep"], "data.name": other["data"]}} for part in content["part"]]
    claims = [
        moved
        for claim in content.get("claim", [])
        for moved in ([_moved(claim, name) for name in other["data"]] if "data.name" in claim["left"] else [claim])
    ]
    return {**content, "part": parts, "claim": claims, "title": other["title"], "source": other["source"]}


def _moved(claim: dict[str, Any], name: str) -> dict[str, Any]:
    """A claim about one collection as one about another; its text says for which collection it was stated."""
    stated = claim["left"]["data.name"]
    sides = {
        side: {**claim[side], "data.name": name} for side in ("left", "right") if "data.name" in claim.get(side, {})
    }
    text = re.sub(re.escape(stated), name, claim["text"], flags=re.IGNORECASE)
    return {**claim, **sides, "text": f"{text} (stated for {stated})"}


def plan_of(figure: Figure, *, quick: bool = False, folds: str | None = None, seeds: int | None = None) -> Plan:
    """All parts of a figure as one plan; the quick form has fold 1 and one seed by default."""
    settings = []
    base = figure.content.get("base", {})
    folds, seeds = folds or ("1" if quick else None), seeds or (1 if quick else None)
    overrides = [f'data.folds="{folds}"'] if folds else []
    overrides += [f"runs.seeds={seeds}"] if seeds else []
    for part in figure.content["part"]:
        raw = _merged(base, part)
        if quick and text_table(raw):
            raw = _smaller(raw)
        elif quick:
            raw["federation"] = _fewer(raw.get("federation", {}))
            raw["sweep"] = {k: _shorter(k, v) for k, v in raw.get("sweep", {}).items()}
        mine = [
            one for one in overrides if not text_table(raw) or not one.startswith("data.folds")
        ]  # texts have no folds
        found = plan(raw, mine, where=f"figure {figure.id}, part {part.get('part', '?')}").settings
        settings += [one for one in found if one not in settings]
    return Plan(f"{figure.title}", settings, figure.text, tune=base.get("tune", "test"))


def matching(plan: Plan, filters: Sequence[str]) -> Plan:
    """The settings that have these values, each given as key=value."""
    chosen = plan.settings
    for text in filters:
        key, value = parsed_override(text)
        chosen = [one for one in chosen if flat(resolved(one)).get(key) == value]
    if not chosen:
        raise InputError(f"--only {' --only '.join(filters)}: no setting of this figure has that")
    return plan._replace(settings=chosen)


def deciding(plan: Plan, figure: Figure, ids: Sequence[str]) -> Plan:
    """The settings that these claims of the figure compare."""
    stated = {claim["id"]: claim for claim in figure.content.get("claim", []) if "id" in claim}
    for name in ids:
        if name not in stated:
            close = did_you_mean(name, stated)
            raise InputError(f"figure {figure.id} has no claim {name!r}.{close} Its claims: {', '.join(stated)}")
    labels = [flat(resolved(setting)) for setting in plan.settings]
    compared = {index for name in ids for index in _compared(stated[name], labels)}
    return plan._replace(settings=[setting for index, setting in enumerate(plan.settings) if index in compared])


def _compared(claim: dict[str, Any], labels: Sequence[dict[str, Any]]) -> Iterator[int]:
    """Positions of the settings that a claim compares; a claim about published numbers needs all."""
    if "left" not in claim:
        yield from range(len(labels))
        return
    left = [index for index, label in enumerate(labels) if _has(label, claim["left"])]
    yield from left
    shared = [{key: labels[index].get(key) for key in claim.get("by", [])} for index in left]
    for side in ("right", "other_left", "other_right"):
        wanted = [{**claim[side], **keys} for keys in shared] if side in claim else []
        yield from (index for index, label in enumerate(labels) if any(_has(label, where) for where in wanted))


def _has(label: dict[str, Any], where: dict[str, Any]) -> bool:
    return all(label.get(key) == value for key, value in where.items())


def _shorter(key: str, values: list[Any]) -> list[Any]:
    """Swept rounds are reduced like fixed ones."""
    if key == "federation":
        return [_fewer(value) for value in values]
    return [_fewer({"rounds": value})["rounds"] for value in values] if key == "federation.rounds" else values


def _smaller(raw: dict[str, Any]) -> dict[str, Any]:
    """Few queries, and a tenth of the documents where they are synthetic."""
    table = text_table(raw)
    kinds = _SMALL[table]
    few = kinds[raw[table].get("kind", next(iter(kinds)))]
    small = {key: min(limit, raw[table].get(key, limit)) for key, limit in few.items()}
    out = {**raw, table: {**raw[table], **small}}
    if "name" in raw.get("data", {}):
        out["data"] = {**raw["data"], "name": _tenth(raw["data"]["name"])}
    if "data.name" in raw.get("sweep", {}):
        out["sweep"] = {**raw["sweep"], "data.name": [_tenth(name) for name in raw["sweep"]["data.name"]]}
    return out


def _tenth(name: str) -> str:
    return re.sub(r"(?<=^made-up-)\d+$", lambda found: str(int(found[0]) // 10), name)


def _fewer(federation: dict[str, Any]) -> dict[str, Any]:
    return {**federation, "rounds": max(20, federation.get("rounds", 1000) // 10)}


def _merged(base: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    """Tables of the part win over the base, key by key unless they change the kind."""
    out = dict(base)
    for key, value in part.items():
        both = isinstance(value, dict) and isinstance(out.get(key), dict) and key != "sweep"
        same_kind = both and value.get("kind", out[key].get("kind")) == out[key].get("kind")
        out[key] = {**out[key], **value} if same_kind else value
    return out
