"""One TOML says everything: read a spec, spread its sweep, refuse what cannot be before anything is computed.

A setting is one point of the sweep; its label is what sets it apart from the others.
"""

import itertools
import re
import tomllib
from pathlib import Path
from typing import Any

import msgspec
from msgspec import inspect

from foltr.errors import InputError, SpecError
from foltr.lab.spec.checks import check
from foltr.lab.spec.setting import (
    SILO_TABLES,
    TABLES,
    AnySetting,
    Plan,
    Setting,
    SiloSetting,
    Tables,
    flat,
    resolved,
)


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
    settings: list[AnySetting] = []
    for values in itertools.product(*swept.values()):
        point = raw
        for key, value in [*zip(swept, values, strict=True), *given]:
            point = _put(point, key, value) if key.partition(".")[0] not in ("name", "sweep") else point
        made = setting(point, where=where)
        settings += [made] if made not in settings else []
    return Plan(name, settings, text)


def setting(raw: dict[str, Any], *, where: str = "spec") -> AnySetting:
    """One point of a sweep, checked; with a table `silo` it is about organisations."""
    if "data" not in raw:
        raise SpecError(f'{where}: data: missing; say which collection: data = {{ name = "mq2007" }}')
    full: dict[str, Any] = {**raw}
    for table, kinds in _tables(raw).items():
        content = full.get(table, {})
        if not isinstance(content, dict):
            raise SpecError(f"{where}: {table}: expected a table such as {table} = {{ ... }}, got {content!r}")
        first = next(iter(kinds))
        full[table] = {"kind": first, **content} if first else content
    try:
        made: AnySetting = msgspec.convert(full, _kind(raw))
    except msgspec.ValidationError as problem:
        raise SpecError(f"{where}: {_explain(str(problem), full)}") from None
    check(made, where=where)
    return made


def _kind(raw: dict[str, Any]) -> type[Setting] | type[SiloSetting]:
    return SiloSetting if "silo" in raw else Setting


def _tables(raw: dict[str, Any]) -> Tables:
    return SILO_TABLES if "silo" in raw else TABLES


def labels(settings: list[AnySetting]) -> list[dict[str, Any]]:
    """What sets each setting apart: as few keys as tell them all apart, the part first."""
    known = [flat(resolved(made)) for made in settings]
    told: list[str] = []
    apart = 1
    for key in dict.fromkeys(["part", *(key for one in known for key in one)]):
        now = len({repr([one.get(k) for k in (*told, key)]) for one in known})
        if now > apart:
            told, apart = [*told, key], now
    return [{k: one[k] for k in told if k in one} for one in known]


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
        choices = ", ".join(_tables(raw)[path.partition(".")[0]])
    elif isinstance(at, inspect.LiteralType):
        choices = ", ".join(map(str, at.values))
    said = f"{path + ': ' if path else ''}{message[0].lower()}{message[1:]}"
    return f"{said}; there are {choices}" if choices else said


def _known(path: str, raw: dict[str, Any]) -> str:
    if not path:
        return f"known keys are {', '.join([*_tables(raw), 'name', 'sweep', 'part'])}"
    at = _type_at(path, raw)
    if not isinstance(at, inspect.StructType):
        return ""
    fields = [field.name for field in at.fields]
    if at.tag_field is None:
        return f"known keys are {', '.join(fields)}"
    return f'with {at.tag_field} = "{at.tag}" known keys are {", ".join([at.tag_field, *fields])}'


def _type_at(path: str, raw: Any) -> inspect.Type | None:
    """The type of a dotted key, following the kinds that were chosen."""
    found: inspect.Type | None = inspect.type_info(_kind(raw))
    for step in filter(None, path.split(".")):
        fields = found.fields if isinstance(found, inspect.StructType) else ()
        found = next((field.type for field in fields if field.name == step), None)
        raw = raw.get(step) if isinstance(raw, dict) else None
        if isinstance(found, inspect.UnionType):
            kind = raw.get("kind") if isinstance(raw, dict) else None
            structs = [one for one in found.types if isinstance(one, inspect.StructType)]
            found = next((one for one in structs if one.tag in (None, kind)), None)
    return found
