"""Reads a spec (TOML), expands its sweep into settings, and refuses invalid ones before anything is computed.

A setting is one point of the sweep; its label states the keys in which it differs from the others.
"""

import itertools
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
from msgspec import inspect

from foltr import registry
from foltr.errors import InputError, SpecError, did_you_mean
from foltr.lab.spec.checks import check
from foltr.lab.spec.renamed import renamed, renamed_value
from foltr.lab.spec.setting import (
    TEXT_SETTINGS,
    AnySetting,
    Plan,
    Setting,
    flat,
    resolved,
    struct_of,
    tables_of,
    text_table,
)

TUNED_ON = ("test", "validation")


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
    return plan(raw, overrides or [], where=str(path), text=text, folder=path.parent)


_OF_ALL = ("name", "sweep", "baseline", "tune")  # keys of a whole spec, not of one setting


def plan(
    raw: dict[str, Any], overrides: list[str] | None = None, *, where: str = "spec", text: str = "",
    folder: Path = Path(),
) -> Plan:  # fmt: skip
    """The plan of a spec given as a dictionary. An override replaces the sweep of its key too.

    Paths of plug-ins are relative to `folder`.
    """
    given = [parsed_override(override) for override in overrides or []]
    given = [(key, _as_table(value) if key == "metrics" else value) for key, value in given]
    raw = {key: _as_table(value) if key == "metrics" else value for key, value in raw.items()}
    for key, value in given:
        raw = _put(raw, key, value)
    name, sweep = raw.pop("name", "unnamed"), raw.pop("sweep", {})
    baseline, tune = raw.pop("baseline", {}), raw.pop("tune", "test")
    if tune not in TUNED_ON:
        raise SpecError(f"{where}: tune: expected one of {', '.join(TUNED_ON)}, got {tune!r}")
    if not isinstance(name, str):
        raise SpecError(f"{where}: name: expected a text in quotes, got {name!r}")
    if not isinstance(sweep, dict) or not all(isinstance(v, list) and v for v in sweep.values()):
        raise SpecError(f'{where}: sweep: expected "table.key" = [values], with at least one value each')
    swept = {key: values for key, values in sweep.items() if not any(_covers(said, key) for said, _ in given)}
    settings: list[AnySetting] = []
    for values in itertools.product(*swept.values()):
        point = raw
        for key, value in [*zip(swept, values, strict=True), *given]:
            point = _put(point, key, value) if key.partition(".")[0] not in _OF_ALL else point
        one = setting(point, where=where, folder=folder)
        settings += [one] if one not in settings else []
    return with_baseline(Plan(name, settings, text, tune=tune), baseline, where=f"{where}: baseline")


def with_baseline(plan: Plan, values: Any, *, where: str) -> Plan:
    """The plan with the baseline of its tests; values that no setting has are refused."""
    if not isinstance(values, dict):
        raise SpecError(f'{where}: expected a table such as {{ "learner.kind" = "pdgd" }}, got {values!r}')
    values = flat(values)
    known = [flat(resolved(one)) for one in plan.settings]
    for key, value in values.items():
        present = list(dict.fromkeys(str(one[key]) for one in known if key in one))
        if not present:
            raise SpecError(f"{where}: {key}: no setting has this key.{did_you_mean(key, known[0])}")
        if str(value) not in present:
            raise SpecError(f"{where}: {key} = {value!r}: no setting has this value; there are {', '.join(present)}")
    matching = sum(all(str(one.get(key)) == str(value) for key, value in values.items()) for one in known)
    if not matching:
        raise SpecError(f"{where}: no setting has all of these values: {values}")
    if values and matching == len(known) > 1:
        raise SpecError(f"{where}: every setting has these values, which leaves none to test: {values}")
    return plan._replace(baseline=values)


def setting(raw: dict[str, Any], *, where: str = "spec", folder: Path = Path()) -> AnySetting:
    """One point of a sweep, checked; a table `silo` or `people` makes it one on texts."""
    if "data" not in raw:
        raise SpecError(f'{where}: data: missing; say which collection: data = {{ name = "mq2007" }}')
    plugins = _loaded_plugins(raw.get("plugins", []), where, folder)
    tables = tables_of(raw)
    for key in raw:
        if key not in (*tables, "part", "plugins"):
            raise SpecError(f"{where}: {renamed(key) or _no_such_table(key, tables)}")
    content: dict[str, Any] = {table: _table(table, raw.get(table, {}), raw, where) for table in tables}
    part = str(raw.get("part", ""))
    on_texts = text_table(raw)
    one: AnySetting = (
        TEXT_SETTINGS[on_texts](**content, part=part) if on_texts else Setting(**content, plugins=plugins, part=part)
    )
    check(one, where=where)
    return one


def _loaded_plugins(paths: Any, where: str, folder: Path) -> tuple[str, ...]:
    """The files that register further kinds, loaded, by absolute paths: worker processes load them again."""
    if not isinstance(paths, list | tuple) or not all(isinstance(path, str) for path in paths):
        raise SpecError(f'{where}: plugins: expected a list of paths such as ["./my_aggregator.py"], got {paths!r}')
    files = tuple(str((folder / path).resolve()) for path in paths)
    owners: dict[tuple[str, str], str] = {}
    for file in files:
        try:
            kinds = registry.load_plugin(file).kinds
        except SpecError as problem:
            raise SpecError(f"{where}: {problem}") from None
        for slot, cls in kinds:
            name = registry.kind_name(cls)
            if owners.setdefault((slot, name), file) != file:
                raise SpecError(f"{where}: plugins: {owners[slot, name]} and {file} both register {slot} {name!r}")
    return files


def _table(table: str, content: Any, raw: dict[str, Any], where: str) -> msgspec.Struct:
    """One table as the struct of its kind."""
    content = _as_table(content) if table == "metrics" else content
    if not isinstance(content, dict):
        raise SpecError(f"{where}: {table}: expected a table such as {table} = {{ ... }}, got {content!r}")
    kind = content.get("kind")
    if kind is not None and not isinstance(kind, str):
        raise SpecError(f"{where}: {table}.kind: expected a text in quotes, got {kind!r}")
    try:
        struct = struct_of(table, kind, raw)
    except SpecError as problem:
        raise SpecError(f"{where}: {table}.kind: {renamed_value(table, 'kind', kind) or problem}") from None
    tagged = struct.__struct_config__.tag_field is not None
    if not tagged and kind is not None:
        raise SpecError(f"{where}: {table}.kind: no such key; {_known(struct)}")
    try:
        return msgspec.convert({**content, "kind": struct.__struct_config__.tag} if tagged else content, struct)
    except msgspec.ValidationError as problem:
        raise SpecError(f"{where}: {_explain(str(problem), table, content, struct)}") from None


def _as_table(metrics: Any) -> Any:
    """A list of metrics is short for a table with their names."""
    return {"names": metrics} if isinstance(metrics, list) else metrics


def _no_such_table(key: str, tables: list[str]) -> str:
    known = [*tables, "name", "sweep", "baseline", "tune", "part", "plugins"]
    return f"{key}: no such key; known keys are {', '.join(known)}.{did_you_mean(key, known)}"


def labels(settings: list[AnySetting]) -> list[dict[str, Any]]:
    """The label of each setting: as few keys as distinguish all settings, the part first."""
    known = [flat(resolved(setting)) for setting in settings]
    apart_by: list[str] = []
    apart = 1
    for key in dict.fromkeys(["part", *(key for one in known for key in one)]):
        now = len({repr([one.get(k) for k in (*apart_by, key)]) for one in known})
        if now > apart:
            apart_by, apart = [*apart_by, key], now
    return [{k: one[k] for k in apart_by if k in one} for one in known]


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
    """Whether a given key determines the other."""
    return swept == said or swept.startswith(f"{said}.")


def parsed_baseline(texts: Iterable[str]) -> dict[str, Any]:
    """The values of all --baseline options."""
    return dict(parsed_override(text, option="--baseline", such_as="learner.kind=pdgd") for text in texts)


def parsed_override(text: str, *, option: str = "--set", such_as: str = "federation.rounds=100") -> tuple[str, Any]:
    """key=value, the value as TOML has it; a bare word is taken as a string."""
    key, found, value = text.partition("=")
    if not found or not key.strip():
        raise SpecError(f"{option} {text}: expected key=value, such as {such_as}")
    try:
        return key.strip(), tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return key.strip(), value.strip()


def _explain(problem: str, table: str, content: dict[str, Any], struct: type[msgspec.Struct]) -> str:
    """msgspec's message with the key first and the choices last; an old key gets its new name."""
    message, _, path = problem.partition(" - at `$")
    path = path.rstrip("`").lstrip(".")
    full = f"{table}.{path}".rstrip(".")
    unknown = re.fullmatch(r"Object contains unknown field `(.*)`", message, re.DOTALL)
    at = _type_at(path, inspect.type_info(struct))
    if unknown:
        key = f"{full}.{unknown[1]}"
        fields = [field.name for field in at.fields] if isinstance(at, inspect.StructType) else []
        known = _known_fields(at) if isinstance(at, inspect.StructType) else ""
        return renamed(key) or f"{key}: no such key; {known}.{did_you_mean(unknown[1], fields)}"
    said = f"{full}: {message[0].lower()}{message[1:]}"
    if not isinstance(at, inspect.LiteralType):
        return said
    old = renamed_value(table, path, content.get(path))
    choices = [str(value) for value in at.values]
    close = did_you_mean(str(content.get(path)), choices)
    return f"{full}: {old}" if old else f"{said}; there are {', '.join(choices)}.{close}"


def _known(struct: type[msgspec.Struct]) -> str:
    at = inspect.type_info(struct)
    return _known_fields(at) if isinstance(at, inspect.StructType) else ""


def _known_fields(at: inspect.StructType) -> str:
    fields = [field.name for field in at.fields]
    if at.tag_field is None:
        return f"known keys are {', '.join(fields)}"
    return f'with {at.tag_field} = "{at.tag}" known keys are {", ".join([at.tag_field, *fields])}'


def _type_at(path: str, found: inspect.Type | None) -> inspect.Type | None:
    """The type of a dotted key."""
    for step in filter(None, path.split(".")):
        fields = found.fields if isinstance(found, inspect.StructType) else ()
        found = next((field.type for field in fields if field.name == step), None)
        if isinstance(found, inspect.UnionType):
            found = next((one for one in found.types if isinstance(one, inspect.StructType)), found)
    return found
