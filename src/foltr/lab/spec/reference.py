"""The keys of a spec as a table: kinds, defaults, choices and meanings, all read from the structs themselves.

The meaning of a key is the comment behind its field. `docs/how-to-run-an-experiment.md` holds the tables between two
marker lines; `foltr keys --write PATH` writes them anew, and a test compares.
"""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from foltr import registry
from foltr.clicks import MODELS, USERS
from foltr.errors import InputError, did_you_mean
from foltr.lab.data.normalize import KINDS as SCALINGS
from foltr.lab.spec.setting import DEFAULTS, SLOTS, TABLES, TEXT_TABLES, Setting

_COMMENT = re.compile(r"^    (\w+): .*?  # (?!noqa|type:)(.+)$", re.MULTILINE)
# the tables stand between these lines of a document; NAME is "clicks", "silo" or "people"
_MARKED = re.compile(r"(<!-- keys: (\w+) -->\n).*?(<!-- end of keys -->\n)", re.DOTALL)


class Key(NamedTuple):
    name: str
    default: str  # as TOML; "" where there is none
    choices: tuple[str, ...]  # other values, where they can be listed
    meaning: str


class Row(NamedTuple):
    """A table of a spec with one of its kinds, or with several that have the same keys."""

    table: str
    kinds: tuple[str, ...]  # none where the table has no kinds
    keys: tuple[Key, ...]


def rows(form: str = "clicks") -> list[Row]:
    """The tables of a spec on clicks, or of one with a table `silo` or `people`."""
    if form not in ("clicks", *TEXT_TABLES):
        raise InputError(f"no form of specs {form!r}; there are clicks, silo, people.{did_you_mean(form, TEXT_TABLES)}")
    merged: dict[tuple[str, tuple[Key, ...]], tuple[str, ...]] = {}
    for table, kind, struct in _structs(form):
        keys = tuple(_keys(table, struct))
        merged[table, keys] = (*merged.get((table, keys), ()), *([kind] if kind else []))
    return [Row(table, kinds, keys) for (table, keys), kinds in merged.items()]


def _structs(form: str) -> Iterator[tuple[str, str, type[msgspec.Struct]]]:
    """Table, kind and struct, the default kind first; of a spec on texts the table that only it has."""
    if form != "clicks":
        yield from ((form, kind, struct) for kind, struct in TEXT_TABLES[form][form].items())
        return
    for table in Setting.__struct_fields__:
        for kind, struct in TABLES.get(table, {}).items():
            yield table, kind, struct
        if table in SLOTS:
            usual = DEFAULTS[table]
            for kind in sorted(registry.built_in(SLOTS[table]), key=lambda name: name != usual):
                yield table, kind, registry.kind(SLOTS[table], kind)


def _keys(table: str, struct: type[msgspec.Struct]) -> Iterator[Key]:
    meanings = dict(_COMMENT.findall(inspect.getsource(struct)))
    about = msgspec.inspect.type_info(struct)
    for field in about.fields if isinstance(about, msgspec.inspect.StructType) else ():
        default = "" if field.required else _toml(_default(field))
        listed = [_toml(value) for value in _choices(f"{table}.{field.name}", field.type)]
        others = tuple(value for value in listed if value != default)
        meaning = re.sub(r"\bNone: ", "left out: ", meanings.get(field.name, ""))
        yield Key(field.name, default, others, meaning)


def _default(field: msgspec.inspect.Field) -> Any:
    return field.default if field.default is not msgspec.NODEFAULT else field.default_factory()


def _choices(key: str, kind: msgspec.inspect.Type) -> tuple[Any, ...]:
    """The values of a key that takes one of a few."""
    named = {
        "data.normalize": SCALINGS,
        "users.clicks": tuple(USERS),
        "users.model": MODELS,
        "federation.aggregator": registry.built_in("aggregator"),
    }
    if key in named:
        return tuple(named[key])
    if isinstance(kind, msgspec.inspect.LiteralType):
        return tuple(kind.values)
    if isinstance(kind, msgspec.inspect.UnionType):
        return tuple(value for one in kind.types for value in _choices("", one))
    return (True, False) if isinstance(kind, msgspec.inspect.BoolType) else ()


def _toml(value: Any) -> str:
    """A value as a spec writes it; "" for None, which a spec leaves out."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, msgspec.Struct):
        inside = ((name, _toml(getattr(value, name))) for name in value.__struct_fields__)
        return "{ " + ", ".join(f"{name} = {text}" for name, text in inside if text) + " }"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return f'"{value}"' if isinstance(value, str) else f"{value:g}"


def markdown(form: str) -> str:
    """The tables as Markdown."""
    lines = ["| table | kind | keys |", "|---|---|---|"]
    for row in rows(form):
        kinds = ", ".join(f'"{kind}"' for kind in row.kinds)
        lines.append(f"| `{row.table}` | {kinds} | {'; '.join(map(_said, row.keys))} |")
    return "\n".join(lines) + "\n"


def listed(form: str) -> str:
    """The tables as plain text, a line a key."""
    lines = []
    for row in rows(form):
        kinds = f", kind = {' / '.join(row.kinds)}" if row.kinds else ""
        lines += [f"{row.table}{kinds}", *(f"  {_said(key).replace('`', '')}" for key in row.keys), ""]
    return "\n".join(lines)


def _said(key: Key) -> str:
    default = f" = {key.default}" if key.default else ""
    others = " / ".join(key.choices)
    values = f"{default} / {others}" if default and others else default or (f": {others}" if others else "")
    return f"`{key.name}`{values}" + (f" ({key.meaning})" if key.meaning else "")


def rewritten(document: str) -> str:
    """A document with every marked table written anew."""
    return _MARKED.sub(lambda found: found[1] + markdown(found[2]) + found[3], document)


def write(path: Path) -> None:
    try:
        document = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise InputError(f"{path}: cannot be read as text ({problem})") from None
    if not _MARKED.search(document):
        raise InputError(f"{path}: no table of keys; it stands between <!-- keys: clicks --> and <!-- end of keys -->")
    path.write_text(rewritten(document), encoding="utf-8")
