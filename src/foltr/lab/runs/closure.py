"""The static import closure of modules, and a digest of each source that changes only when its code does.

An `import` counts wherever it stands, in functions and under conditions too. It is followed inside `foltr`, and from a
file outside of it inside the package of that file (its folder, where that is no package). Strings that name modules
(`"module:Class"`, `import_module`) are not followed.

A module of foltr is given by its name, any other by the path of its file.
"""

import ast
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeAlias, TypeGuard

import foltr

_PACKAGE = "foltr"
_HOME = Path(foltr.__file__).parent
_INSTALLED = ("site-packages", "dist-packages")  # files side by side in these folders are unrelated

SourceOf: TypeAlias = Callable[[str], bytes | None]  # None: there is no file
Patterns: TypeAlias = tuple[str, ...]  # names of modules; `package.*` stands for a package and everything below it


class Import(NamedTuple):
    dots: int  # of a relative import
    module: str
    names: tuple[str, ...]  # each an attribute of the module, or a module below it


class Code(NamedTuple):
    """The code of a source file without comments, docstrings and annotations."""

    digest: str
    imports: tuple[Import, ...]


def import_closure(
    modules: Iterable[str],
    *,
    neutral: Patterns = (),
    switches: Mapping[str, Patterns] | None = None,
    implemented_by: Mapping[str, tuple[str, ...]] | None = None,
    source_of: SourceOf | None = None,
) -> list[str]:
    """These modules and all that they import, directly or through others; sorted.

    Modules that match `neutral` are left out, with what only they import. `switches` names imports of a module that
    are not followed, `implemented_by` modules that are followed from another as if it imported them.
    """
    switches, implemented_by = switches or {}, implemented_by or {}
    found: set[str] = set()
    waiting = list(modules)
    while waiting:
        module = waiting.pop()
        if module in found or matches(module, neutral):
            continue
        found.add(module)
        cut = switches.get(module, ())
        waiting += [target for target in imports_of(module, source_of or source_on_disk) if not matches(target, cut)]
        waiting += implemented_by.get(module, ())
    return sorted(found)


def matches(module: str, patterns: Patterns) -> bool:
    return any(module == one or (one.endswith(".*") and f"{module}.".startswith(one[:-1])) for one in patterns)


def is_inside(module: str) -> bool:
    """Whether a module is one of foltr."""
    return module == _PACKAGE or module.startswith(f"{_PACKAGE}.")


def source_on_disk(module: str) -> bytes | None:
    """The source of a module. A file outside foltr is read anew each time: it may be edited and loaded again."""
    if is_inside(module):
        return _inside_source(module)
    return Path(module).read_bytes() if Path(module).is_file() else None


@cache
def _inside_source(module: str) -> bytes | None:
    path = _inside_file(module)
    return path.read_bytes() if path else None


# --- what a module imports ------------------------------------------------------------------------------------------


def imports_of(module: str, source_of: SourceOf = source_on_disk) -> tuple[str, ...]:
    """The packages around a module, and what it imports itself and may be followed."""
    source = source_of(module)
    imports = code_in(source).imports if source is not None else ()
    if is_inside(module):
        return _inside_imports(module, imports)
    return _located(Path(module), imports)


@cache
def _inside_imports(module: str, imports: tuple[Import, ...]) -> tuple[str, ...]:
    path = _inside_file(module)
    return _located(path, imports) if path else ()


def _located(path: Path, imports: tuple[Import, ...]) -> tuple[str, ...]:
    """The modules that a file imports and the packages around it."""
    found: list[Path | None] = [*_packages(path)]
    for dots, module, names in imports:
        parts = module.split(".") if module else []
        root = path.parents[dots - 1] if dots else _root(path, parts[0])
        if root is None:
            continue
        found += [_file_at(root.joinpath(*parts[: i + 1])) for i in range(len(parts))]
        found += [_file_at(root.joinpath(*parts, name)) for name in names]
    return tuple(dict.fromkeys(_name(one) for one in found if one is not None))


def _root(path: Path, top: str) -> Path | None:
    """The folder where a file finds the top-level package of an absolute import; None if it is not followed."""
    if top == _PACKAGE:
        return _HOME.parent
    packages = _packages(path)
    if packages:
        outermost = packages[0].parent
        return outermost.parent if outermost.name == top else None
    if any(name in path.parts for name in _INSTALLED):
        return None
    return path.parent.parent if path.parent.name == top else path.parent  # a namespace package, or a file beside it


def _packages(path: Path) -> list[Path]:
    """The __init__ files of the packages around a file, outermost first."""
    found: list[Path] = []
    for folder in path.parents:
        here = folder / "__init__.py"
        if here.is_file():
            found.insert(0, here)
        elif not folder.is_relative_to(_HOME):  # some folders of foltr have no __init__
            break
    return found


def _file_at(place: Path) -> Path | None:
    """`place.py`, or `place/__init__.py`, whichever exists."""
    for path in (place.with_name(f"{place.name}.py"), place / "__init__.py"):
        if path.is_file():
            return path
    return None


def _inside_file(module: str) -> Path | None:
    return _file_at(_HOME.parent.joinpath(*module.split(".")))


def _name(path: Path) -> str:
    if not path.is_relative_to(_HOME):
        return str(path.resolve())
    parts = path.relative_to(_HOME.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


# --- what counts of a source ----------------------------------------------------------------------------------------


@cache
def code_in(source: bytes) -> Code:
    tree = ast.parse(source)
    imports = tuple(_imports_in(tree))
    return Code(hashlib.sha256(ast.dump(_bare(tree)).encode()).hexdigest(), imports)


def _imports_in(tree: ast.Module) -> Iterator[Import]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(0, alias.name, ())
        elif isinstance(node, ast.ImportFrom):
            yield Import(node.level, node.module or "", tuple(alias.name for alias in node.names))


def _bare(tree: ast.Module) -> ast.Module:
    """Without docstrings and annotations. Those of a class stay: they declare its fields."""
    for node in ast.walk(tree):
        for block in ("body", "orelse", "finalbody"):
            statements = getattr(node, block, None)
            if isinstance(statements, list):  # a lambda's body is no list
                setattr(node, block, [one for one in statements if not _is_text(one)])
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
        elif isinstance(node, ast.arg):
            node.annotation = None
        if isinstance(node, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef):
            for variable in filter(_is_annotated, node.body):
                variable.annotation = ast.Constant(None)
    return tree


def _is_text(statement: ast.stmt) -> bool:
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def _is_annotated(statement: ast.stmt) -> TypeGuard[ast.AnnAssign]:
    return isinstance(statement, ast.AnnAssign)
