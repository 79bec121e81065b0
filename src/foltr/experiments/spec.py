"""One TOML says everything: read a spec, spread its sweep, refuse what cannot be before anything is computed.

Each table is a struct that stands beside its algorithm, with the papers' values as defaults; this module only puts
them together. A setting is one point of the sweep; its label is what sets it apart from the others.
"""

import itertools
import re
import tomllib
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec

from foltr.clicks.models import Users
from foltr.errors import InputError, SpecError
from foltr.federation.aggregate import RULES
from foltr.federation.rounds import Central, Federated
from foltr.learners.evolution import Evolution
from foltr.learners.pdgd import Pdgd
from foltr.privacy.mechanisms import Fpdgd, NoPrivacy, RandomizedResponse
from foltr.rankers import Linear, Mlp


class DataChoice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    folds: str | int | list[int] = "1-5"
    normalize: str | None = None  # None: as is usual for the collection


class Runs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    seeds: Annotated[int, msgspec.Meta(ge=1)] = 1
    first_seed: Annotated[int, msgspec.Meta(ge=0)] = 1
    evaluate_every: Annotated[int, msgspec.Meta(ge=1)] | None = None  # None: about a hundred times a run


class Setting(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One point of a sweep, complete."""

    data: DataChoice
    ranker: Linear | Mlp
    learner: Pdgd | Evolution
    users: Users
    federation: Federated | Central
    privacy: NoPrivacy | Fpdgd | RandomizedResponse
    runs: Runs
    part: str = ""


class Plan(NamedTuple):
    """All settings of a run, and what it is called."""

    name: str
    settings: list[Setting]
    text: str  # the spec as given


# table -> kind -> struct; the first kind is the default
TABLES: dict[str, dict[str, type[msgspec.Struct]]] = {
    "data": {"": DataChoice},
    "ranker": {"linear": Linear, "mlp": Mlp},
    "learner": {"pdgd": Pdgd, "evolution": Evolution},
    "users": {"": Users},
    "federation": {"federated": Federated, "central": Central},
    "privacy": {"none": NoPrivacy, "fpdgd": Fpdgd, "randomized-response": RandomizedResponse},
    "runs": {"": Runs},
}


def read(path: Path, overrides: list[str] | None = None) -> Plan:
    """A spec file with `--set key=value` applied."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such spec file") from None
    except (OSError, UnicodeDecodeError) as problem:
        raise InputError(f"{path}: cannot be read as text ({problem}); a spec is a TOML file") from None
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise SpecError(f"{path}: not TOML: {problem}") from None
    return plan(raw, overrides or [], where=str(path), text=text)


def plan(raw: dict[str, Any], overrides: list[str] | None = None, *, where: str = "spec", text: str = "") -> Plan:
    """A spec given as a dictionary."""
    raw = dict(raw)
    for override in overrides or []:
        key, value = _override(override)
        raw = _put(raw, key, value)
    name, sweep = raw.pop("name", "unnamed"), raw.pop("sweep", {})
    if not isinstance(sweep, dict) or not all(isinstance(v, list) and v for v in sweep.values()):
        raise SpecError(f'{where}: sweep: expected "table.key" = [values], with at least one value each')
    settings = []
    for values in itertools.product(*sweep.values()):
        point = raw
        for key, value in zip(sweep, values, strict=True):
            point = _put(point, key, value)
        settings.append(setting(point, where=where))
    return Plan(str(name), settings, text)


def setting(raw: dict[str, Any], *, where: str = "spec") -> Setting:
    """One point of a sweep, checked."""
    if "data" not in raw:
        raise SpecError(f'{where}: data: missing; say which collection: data = {{ name = "mq2007" }}')
    full: dict[str, Any] = {**raw}
    for table, kinds in TABLES.items():
        content = full.get(table, {})
        if not isinstance(content, dict):
            raise SpecError(f"{where}: {table}: expected a table such as {table} = {{ ... }}, got {content!r}")
        first = next(iter(kinds))
        full[table] = {"kind": first, **content} if first else content
    try:
        made = msgspec.convert(full, Setting)
    except msgspec.ValidationError as problem:
        raise SpecError(f"{where}: {_explain(str(problem), full)}") from None
    check(made, where=where)
    return made


def check(made: Setting, *, where: str = "spec") -> None:
    """Pairs that make no sense are refused, with the right choices."""
    learner, federation, privacy = made.learner, made.federation, made.privacy
    evolution = isinstance(learner, Evolution)
    complaint = ""
    if evolution and isinstance(federation, Central):
        complaint = 'learner.kind = "evolution" needs clients; use federation = { clients = ..., rounds = ... }'
    elif isinstance(federation, Central) and not isinstance(privacy, NoPrivacy):
        complaint = 'federation.kind = "central" sends no updates; use privacy = { kind = "none" }'
    elif evolution and isinstance(privacy, Fpdgd):
        complaint = 'privacy.kind = "fpdgd" noises parameters, which evolution does not send; use "randomized-response"'
    elif not evolution and isinstance(privacy, RandomizedResponse):
        complaint = 'privacy.kind = "randomized-response" belongs to learner.kind = "evolution"; for pdgd use "fpdgd"'
    elif isinstance(federation, Federated):
        complaint = _check_federated(made, federation)
    if complaint:
        raise SpecError(f"{where}: {complaint}")


def _check_federated(made: Setting, federation: Federated) -> str:
    interactions = federation.interactions
    fewest = min(interactions) if isinstance(interactions, tuple) else interactions
    if federation.rule not in RULES:
        return f"federation.rule: no rule {federation.rule!r}; there are {', '.join(RULES)}"
    if federation.cohort is not None and federation.cohort > federation.clients:
        return (
            f"federation.cohort = {federation.cohort} of {federation.clients} clients; use at most {federation.clients}"
        )
    if isinstance(made.learner, Evolution) and made.learner.antithetic and fewest < 2:
        return "federation.interactions: antithetic evolution splits them in two halves; use at least 2 for each client"
    if isinstance(made.learner, Evolution) and made.learner.objective == "dcg" and made.users.shown < 2:
        return "users.shown: the dcg objective needs a list of at least 2"
    return ""


def folds_of(data: DataChoice) -> list[int]:
    """ "1-5", "1,3", 2 or [1, 2] as a list."""
    folds = data.folds
    if isinstance(folds, int):
        return [folds]
    if isinstance(folds, list):
        return folds
    chosen: list[int] = []
    for piece in folds.split(","):
        match = re.fullmatch(r"\s*(\d+)\s*(?:-\s*(\d+))?\s*", piece)
        if not match:
            raise SpecError(f"data.folds = {folds!r}: expected a number, a range such as 1-5, or a list such as 1,3")
        first, last = int(match[1]), int(match[2] or match[1])
        chosen += range(first, last + 1)
    if not chosen:
        raise SpecError(f"data.folds = {folds!r}: that is no fold at all; the first number must not be the larger")
    return chosen


def resolved(made: Setting) -> dict[str, Any]:
    """A setting as plain data, every default written out."""
    plain: dict[str, Any] = msgspec.to_builtins(made)
    return plain


def labels(settings: list[Setting]) -> list[dict[str, Any]]:
    """What sets each setting apart: the keys whose values differ, flat."""
    flat = [_flat(resolved(made)) for made in settings]
    keys = dict.fromkeys(key for one in flat for key in one)
    absent = object()
    told = [k for k in keys if len({repr(one.get(k, absent)) for one in flat}) > 1]
    return [{k: one[k] for k in told if k in one} for one in flat]


def _flat(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, value in tree.items():
        out |= _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return out


def _put(tree: dict[str, Any], key: str, value: Any) -> dict[str, Any]:
    """A copy of the tree with the value at a dotted key."""
    head, _, rest = key.partition(".")
    if not rest:
        return {**tree, head: value}
    inner = tree.get(head, {})
    if not isinstance(inner, dict):
        raise SpecError(f"{key}: {head} is not a table")
    return {**tree, head: _put(inner, rest, value)}


def _override(text: str) -> tuple[str, Any]:
    """key=value, the value as TOML has it; a bare word is taken as a string."""
    key, found, value = text.partition("=")
    if not found or not key.strip():
        raise SpecError(f"--set {text}: expected key=value, such as federation.rounds=100")
    try:
        return key.strip(), tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return key.strip(), value.strip()


def _explain(problem: str, raw: dict[str, Any]) -> str:
    """msgspec's words with the key first and the choices last."""
    message, _, path = problem.partition(" - at `$")
    path = path.rstrip("`").lstrip(".")
    table = path.partition(".")[0]
    if "unknown field" in message:
        known = _fields(table, raw) if table else [*TABLES, "name", "sweep", "part"]
        return f"{path + ': ' if path else ''}{message[0].lower()}{message[1:]}; known keys are {', '.join(known)}"
    if path.endswith(".kind"):
        return f"{path}: {message[0].lower()}{message[1:]}; there are {', '.join(TABLES[table])}"
    return f"{path + ': ' if path else ''}{message[0].lower()}{message[1:]}"


def _fields(table: str, raw: dict[str, Any]) -> list[str]:
    kinds = TABLES.get(table, {})
    kind = raw.get(table, {}).get("kind", "")
    struct = kinds.get(kind)
    return (["kind"] if "" not in kinds else []) + (list(struct.__struct_fields__) if struct else [])
