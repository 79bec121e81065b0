"""The corpus that every machine has: the docstrings of Python's standard library.

A document is a module, class or function that has a docstring: its qualified name is the title, the docstring the
body. The source files are parsed, never imported. Modules that some systems package separately (tkinter, idlelib, ...)
and tests are left out, so that one version of Python has one corpus; it is read once and cached.

A known-item query has up to five words of an object's summary line, stop words removed, drawn by the seed, in their
order; only lines that no other object has are used. That object has grade 2, the others of its module grade 1. The
queries are cut here and not by the analyser, so that they stay the same when it changes.
"""

import ast
import contextlib
import hashlib
import inspect
import re
import sys
import sysconfig
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import msgspec

from foltr.errors import DataMissing, SpecError, StorageError
from foltr.files import atomic_write, cache_home
from foltr.rng import stream
from foltr.text.analysis import STOP_WORDS
from foltr.text.corpus import Corpus, Document, Judgment, Place, Query, assemble

NAME = "docstrings"
QUERIES = 800
_FORMAT = 1  # raise it when the same sources make other documents
_LONGEST_QUERY, _SHORTEST_QUERY = 5, 3  # words
_SMALLEST_MODULE = 5  # documents: below, there is next to nothing of grade 1
_APART = {"tkinter", "idlelib", "turtle", "turtledemo", "lib2to3", "distutils", "ensurepip", "venv", "pydoc_data"}
_TESTS = {"test", "tests"}
_Function = ast.FunctionDef | ast.AsyncFunctionDef


class Described(msgspec.Struct, frozen=True):
    name: str  # qualified
    module: str
    text: str
    file: str
    line: int


def load_docstrings(*, queries: int = QUERIES, seed: int = 1, root: Path | None = None) -> Corpus:
    """The corpus with some known-item queries; the same for one version of Python and one seed."""
    if queries < 1:
        raise SpecError(f"queries={queries} asks for nothing; use 1 or more")
    found = _described(root or Path(sysconfig.get_paths()["stdlib"]))
    documents = (Document(one.name, one.name, one.text, Place(one.file, one.line)) for one in found)
    asked, judged = _known_items(found, queries, seed)
    return assemble(NAME, documents, asked, {"all": judged})


def _described(root: Path) -> list[Described]:
    """Every documented object, from the cache where the same files were read before."""
    files = list(_sources(root))
    if not files:
        raise DataMissing(f"{root}: the source of Python's standard library is missing; use another corpus")
    place = cache_home() / "corpora" / f"{NAME}-{_key(root, files)}.json"
    with contextlib.suppress(OSError, msgspec.DecodeError):
        return msgspec.json.decode(place.read_bytes(), type=list[Described])
    found = [one for path in files for one in _objects(path, root)]
    # without a writable cache the next use reads the files again
    with contextlib.suppress(OSError, StorageError), atomic_write(place) as temporary:
        temporary.write_bytes(msgspec.json.encode(found))
    return found


def _sources(root: Path) -> Iterator[Path]:
    """The files of the library, module by module, without installed packages."""
    for name in sorted(sys.stdlib_module_names - _APART):
        inside = [path for path in (root / name).rglob("*.py") if not _TESTS & set(path.relative_to(root).parts)]
        yield from (path for path in [root / f"{name}.py", *sorted(inside)] if path.is_file())


def _key(root: Path, files: list[Path]) -> str:
    sizes = [[path.relative_to(root).as_posix(), path.stat().st_size] for path in files]
    label = msgspec.json.encode([_FORMAT, sys.version, sizes])
    return hashlib.sha256(label).hexdigest()[:32]


def _objects(path: Path, root: Path) -> Iterator[Described]:
    """Documented definitions of a file; of several definitions of one name, the first."""
    inner = path.relative_to(root)
    parts = inner.with_suffix("").parts
    module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    seen = set()
    for name, node in _definitions(ast.parse(path.read_bytes(), str(path)), module):
        text = ast.get_docstring(node, clean=False)
        if text and text.strip() and name not in seen:
            seen.add(name)
            yield Described(name, module, inspect.cleandoc(text), inner.as_posix(), getattr(node, "lineno", 1))


def _definitions(node: ast.AST, name: str) -> Iterator[tuple[str, ast.Module | ast.ClassDef | _Function]]:
    """The node and the definitions in it, also under `if` and `try`, but not within functions."""
    if isinstance(node, ast.Module | ast.ClassDef | _Function):
        yield name, node
    if isinstance(node, _Function):
        return
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | _Function):
            yield from _definitions(child, f"{name}.{child.name}")
        elif isinstance(child, ast.stmt | ast.ExceptHandler):
            yield from _definitions(child, name)


def _summary(one: Described) -> str:
    return one.text.split("\n", 1)[0].strip()


def _words(line: str) -> list[str]:
    return re.findall(r"\w+", unicodedata.normalize("NFKC", line).lower())


def _known_items(found: list[Described], queries: int, seed: int) -> tuple[list[Query], list[Judgment]]:
    same_line = Counter(_summary(one) for one in found)
    modules: dict[str, list[str]] = defaultdict(list)
    for one in found:
        modules[one.module].append(one.name)
    asked: list[Query] = []
    judged: list[Judgment] = []
    for number in stream(seed, purpose="choice").permutation(len(found)).tolist():
        one = found[number]
        words = [word for word in _words(_summary(one)) if word not in STOP_WORDS]
        fit = same_line[_summary(one)] == 1 and len(modules[one.module]) >= _SMALLEST_MODULE
        if not fit or len(words) < _SHORTEST_QUERY:
            continue
        query, place = f"q{number}", Place(one.file, one.line)
        asked.append(Query(query, _some(words, seed, number), place))
        judged += [Judgment(query, name, 1 + (name == one.name), place) for name in modules[one.module]]
        if len(asked) == queries:
            break
    return asked, judged


def _some(words: list[str], seed: int, number: int) -> str:
    chosen = stream(seed, client=number, purpose="choice").permutation(len(words))[:_LONGEST_QUERY]
    return " ".join(words[place] for place in sorted(chosen))
