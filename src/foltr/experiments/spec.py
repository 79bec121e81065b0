"""One TOML says everything: read a spec, spread its sweep, refuse what cannot be before anything is computed.

Each table is a struct that stands beside its algorithm, with the papers' values as defaults; this module only puts
them together. A setting is one point of the sweep; its label is what sets it apart from the others.
"""

import itertools
import math
import re
import tomllib
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import inspect

from foltr.clicks.models import Users
from foltr.data.normalize import KINDS as SCALINGS
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
    first_seed: Annotated[int, msgspec.Meta(ge=0, le=2**62)] = 1
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
        text = path.read_text(encoding="utf-8-sig")
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
    """A spec given as a dictionary. What an override says wins over the sweep too."""
    raw, given = dict(raw), [parsed_override(override) for override in overrides or []]
    for key, value in given:
        raw = _put(raw, key, value)
    name, sweep = raw.pop("name", "unnamed"), raw.pop("sweep", {})
    if not isinstance(name, str):
        raise SpecError(f"{where}: name: expected a text in quotes, got {name!r}")
    if not isinstance(sweep, dict) or not all(isinstance(v, list) and v for v in sweep.values()):
        raise SpecError(f'{where}: sweep: expected "table.key" = [values], with at least one value each')
    swept = {key: values for key, values in sweep.items() if not any(_covers(said, key) for said, _ in given)}
    settings: list[Setting] = []
    for values in itertools.product(*swept.values()):
        point = raw
        for key, value in [*zip(swept, values, strict=True), *given]:
            point = _put(point, key, value) if key.partition(".")[0] not in ("name", "sweep") else point
        made = setting(point, where=where)
        settings += [made] if made not in settings else []
    return Plan(name, settings, text)


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
    """Pairs that make no sense and numbers out of range are refused, with the right choices."""
    complaint = _check_pairs(made) or _check_data(made.data) or _check_numbers(made)
    if complaint:
        raise SpecError(f"{where}: {complaint}")


def _check_pairs(made: Setting) -> str:
    learner, federation, privacy = made.learner, made.federation, made.privacy
    evolution = isinstance(learner, Evolution)
    if evolution and isinstance(federation, Central):
        return 'learner.kind = "evolution" needs clients; use federation = { clients = ..., rounds = ... }'
    if isinstance(federation, Central) and not isinstance(privacy, NoPrivacy):
        return 'federation.kind = "central" sends no updates; use privacy = { kind = "none" }'
    if evolution and isinstance(privacy, Fpdgd):
        return 'privacy.kind = "fpdgd" noises parameters, which evolution does not send; use "randomized-response"'
    if not evolution and isinstance(privacy, RandomizedResponse):
        return 'privacy.kind = "randomized-response" belongs to learner.kind = "evolution"; for pdgd use "fpdgd"'
    if not evolution and isinstance(made.ranker, Mlp) and made.ranker.activation == "relu":
        return 'ranker.activation = "relu" starts at zero, where pdgd finds no direction; use "sigmoid"'
    return _check_federated(made, federation) if isinstance(federation, Federated) else ""


def _check_data(data: DataChoice) -> str:
    if data.normalize is not None and data.normalize not in SCALINGS:
        return f"data.normalize: no scaling {data.normalize!r}; there are {', '.join(SCALINGS)}"
    return _folds(data.folds)[1]


_MOST = 10**9  # of anything that is counted


def _check_numbers(made: Setting) -> str:
    for key, value in flat(resolved(made)).items():
        if isinstance(value, float) and math.isinf(value):
            return f"{key} = {value}: expected a finite number"
        if key != "runs.first_seed" and isinstance(value, int) and value > _MOST:
            return f"{key} = {value}: that is out of reach; use at most {_MOST:,}"
    return ""


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
    chosen, complaint = _folds(data.folds)
    if complaint:
        raise SpecError(complaint)
    return chosen


def _folds(folds: str | int | list[int]) -> tuple[list[int], str]:
    """The chosen folds, and what is wrong with them."""
    said = f"data.folds = {folds!r}: "
    if isinstance(folds, str):
        ranges = [re.fullmatch(r"\s*(\d{1,3})\s*(?:-\s*(\d{1,3}))?\s*", piece) for piece in folds.split(",")]
        found = [range(int(one[1]), int(one[2] or one[1]) + 1) for one in ranges if one]
        if len(found) < len(ranges):
            return [], said + "expected a number, a range such as 1-5, or a list such as 1,3"
        if not all(found):
            return [], said + "that is no fold at all; the first number must not be the larger"
        chosen = [fold for one in found for fold in one]
    else:
        chosen = [folds] if isinstance(folds, int) else folds
    if not chosen or min(chosen) < 1:
        return [], said + "folds count from 1, and there must be one at least"
    if len(set(chosen)) < len(chosen):
        return [], said + "a fold is named twice"
    return chosen, ""


def resolved(made: Setting) -> dict[str, Any]:
    """A setting as plain data, every default written out."""
    plain: dict[str, Any] = msgspec.to_builtins(made)
    return plain


def labels(settings: list[Setting]) -> list[dict[str, Any]]:
    """What sets each setting apart: as few keys as tell them all apart, the part first."""
    known = [flat(resolved(made)) for made in settings]
    told: list[str] = []
    apart = 1
    for key in dict.fromkeys(["part", *(key for one in known for key in one)]):
        now = len({repr([one.get(k) for k in (*told, key)]) for one in known})
        if now > apart:
            told, apart = [*told, key], now
    return [{k: one[k] for k in told if k in one} for one in known]


def flat(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested tables as one, with dotted keys."""
    out: dict[str, Any] = {}
    for key, value in tree.items():
        out |= flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return out


def _put(tree: dict[str, Any], key: str, value: Any, done: str = "") -> dict[str, Any]:
    """A copy of the tree with the value at a dotted key."""
    head, _, rest = key.partition(".")
    if not rest:
        return {**tree, head: value}
    inner = tree.get(head, {})
    if not isinstance(inner, dict):
        raise SpecError(f"{done}{key}: {done}{head} is not a table")
    return {**tree, head: _put(inner, rest, value, f"{done}{head}.")}


def _covers(said: str, swept: str) -> bool:
    """Whether giving one key leaves nothing of the other to vary."""
    return swept == said or swept.startswith(f"{said}.")


def parsed_override(text: str) -> tuple[str, Any]:
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
    unknown = re.fullmatch(r"Object contains unknown field `(.*)`", message, re.DOTALL)
    if unknown:
        return f"{f'{path}.{unknown[1]}'.lstrip('.')}: no such key; {_known(path, raw)}"
    at, choices = _type_at(path, raw), ""
    if path.endswith(".kind"):
        choices = ", ".join(TABLES[path.partition(".")[0]])
    elif isinstance(at, inspect.LiteralType):
        choices = ", ".join(map(str, at.values))
    said = f"{path + ': ' if path else ''}{message[0].lower()}{message[1:]}"
    return f"{said}; there are {choices}" if choices else said


def _known(path: str, raw: dict[str, Any]) -> str:
    if not path:
        return f"known keys are {', '.join([*TABLES, 'name', 'sweep', 'part'])}"
    at = _type_at(path, raw)
    if not isinstance(at, inspect.StructType):
        return ""
    fields = [field.name for field in at.fields]
    if at.tag_field is None:
        return f"known keys are {', '.join(fields)}"
    return f'with {at.tag_field} = "{at.tag}" known keys are {", ".join([at.tag_field, *fields])}'


def _type_at(path: str, raw: Any) -> inspect.Type | None:
    """The type of a dotted key, following the kinds that were chosen."""
    found: inspect.Type | None = inspect.type_info(Setting)
    for step in filter(None, path.split(".")):
        fields = found.fields if isinstance(found, inspect.StructType) else ()
        found = next((field.type for field in fields if field.name == step), None)
        raw = raw.get(step) if isinstance(raw, dict) else None
        if isinstance(found, inspect.UnionType):
            kind = raw.get("kind") if isinstance(raw, dict) else None
            structs = [one for one in found.types if isinstance(one, inspect.StructType)]
            found = next((one for one in structs if one.tag in (None, kind)), None)
    return found
