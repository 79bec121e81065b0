"""The papers' figures and tables: one TOML each, with the question, the settings and the published numbers.

[base]            tables of a spec that all parts share
[[part]]          a spec with its own sweep; `part` names it
[[expected]]      published numbers: where, metric, at, tolerance, by = [keys], rows = [[values..., number], ...]
[[claim]]         a published conclusion that numbers can decide
[[comparison]]    two groups of settings side by side, with significance
[[remark]]        what was looked into
"""

import tomllib
from pathlib import Path
from typing import Any, NamedTuple

from foltr.errors import InputError
from foltr.experiments.spec import Plan, plan

HOME = Path(__file__).parent / "figures"
QUICK = "quick form: fold 1, one seed, a tenth of the rounds; not comparable with the papers"


class Figure(NamedTuple):
    id: str
    title: str
    question: str
    source: str
    content: dict[str, Any]  # the whole TOML
    text: str


def ids() -> list[str]:
    return sorted(path.relative_to(HOME).with_suffix("").as_posix() for path in HOME.rglob("*.toml"))


def read(name: str) -> Figure:
    """A figure by its id."""
    path = HOME / f"{name}.toml"
    if name not in ids():
        raise InputError(f"no figure {name!r}; `foltr reproduce --list` shows all: {', '.join(ids())}")
    text = path.read_text(encoding="utf-8")
    content = tomllib.loads(text)
    return Figure(name, content["title"], content["question"], content["source"], content, text)


def plan_of(figure: Figure, *, quick: bool = False, folds: str | None = None, seeds: int | None = None) -> Plan:
    """All parts of a figure as one plan."""
    settings = []
    base = figure.content.get("base", {})
    for part in figure.content["part"]:
        raw = _merged(base, part)
        overrides = [f'data.folds="{folds}"'] if folds else []
        overrides += [f"runs.seeds={seeds}"] if seeds else []
        if quick:
            rounds = raw.get("federation", {}).get("rounds", 1000)
            overrides += ['data.folds="1"', "runs.seeds=1", f"federation.rounds={max(20, rounds // 10)}"]
            raw["sweep"] = {k: _shorter(k, v) for k, v in raw.get("sweep", {}).items()}
        made = plan(raw, overrides, where=f"figure {figure.id}, part {part.get('part', '?')}").settings
        settings += [one for one in made if one not in settings]
    return Plan(f"{figure.title}", settings, figure.text)


def _shorter(key: str, values: list[Any]) -> list[Any]:
    """Rounds that are swept shrink like the others."""
    if key == "federation":
        return [{**v, "rounds": max(20, v["rounds"] // 10)} if "rounds" in v else v for v in values]
    return [max(20, v // 10) for v in values] if key == "federation.rounds" else values


def _merged(base: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    """Tables of the part win over the base, key by key unless they change the kind."""
    out = dict(base)
    for key, value in part.items():
        both = isinstance(value, dict) and isinstance(out.get(key), dict) and key != "sweep"
        same_kind = both and value.get("kind", out[key].get("kind")) == out[key].get("kind")
        out[key] = {**out[key], **value} if same_kind else value
    return out
