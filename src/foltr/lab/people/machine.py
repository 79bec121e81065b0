"""The documents of a machine: manual pages, documentation and source files below some folders, as plain text.

The same files make the same documents on every machine: files are ordered by the hash of their path, folders take turns
until the limit is reached, and a text that occurs twice counts once. What a file is follows from its name; markup of
manual pages and of HTML is removed by patterns, because a lab that measures ranking needs no complete parser.

Left out: names that thousands of files share (copyright, changelogs), translations of manual pages, files that are not
UTF-8 text, and texts that are too short to ask for.
"""

import gzip
import hashlib
import html
import re
import sysconfig
import zlib
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from foltr.errors import DataMissing

FOLDERS = ("/usr/share/doc", "/usr/share/man", "/usr/share/perl", "/usr/share/perl5", "/usr/share/cmake")
LIMIT = 8000  # documents
FEWEST = 300  # below, the sources of Python's standard library are added, which every machine has
_LONGEST = 20_000  # characters of a text
_SHORTEST = 200
_LARGEST_FILE = 2_000_000  # bytes, also after decompression

_ENDINGS = r"\.(txt|text|md|rst|html?|py|pl|pm|pod|cmake|c|h|sh|conf|awk)$"
_TEXT = re.compile(rf"(?i:{_ENDINGS})|^[A-Z][A-Z0-9._-]*$")
_MANUAL = re.compile(r"\.[1-8][a-z]*$")
_COMMON = re.compile(r"^(copyright|changelog|news\.debian|__init__|index)\b", re.IGNORECASE)
_TRANSLATED = re.compile(r"^man/(?!man\d)")
_INSTALLED = re.compile(r"/(site-packages|dist-packages|tests?)/")


class File(NamedTuple):
    """A document of the machine."""

    path: str  # below the folder's parent, with "/"
    title: str
    body: str


def machine_documents(folders: Iterable[str | Path] = FOLDERS, limit: int = LIMIT, *, fewest: int = 0) -> list[File]:
    """Up to `limit` documents, in the order of their paths; with Python's sources where they are below `fewest`."""
    roots = [root for folder in folders for root in _with_version(Path(folder))]
    chosen = _documents(roots, limit)
    if len(chosen) < min(fewest, limit):
        chosen = _documents([*roots, Path(sysconfig.get_paths()["stdlib"])], limit)
    if not chosen:
        raise DataMissing(f"no text file below {', '.join(map(str, roots))}; name a folder with documents")
    return sorted(chosen, key=lambda file: file.path)


def _with_version(folder: Path) -> list[Path]:
    """The folder itself, and those whose name has a version behind it (cmake-3.25)."""
    return [folder, *sorted(folder.parent.glob(f"{folder.name}-[0-9]*"))]


def _documents(roots: list[Path], limit: int) -> list[File]:
    chosen: list[File] = []
    texts: set[str] = set()
    in_turns = zip_longest(*(_files(root) for root in roots if root.is_dir()))
    for path, inner in (one for some in in_turns for one in some if one is not None):
        if len(chosen) == limit:
            break
        file = read_file(path, inner)
        if file is not None and file.body not in texts:
            texts.add(file.body)
            chosen.append(file)
    return chosen


def _files(root: Path) -> Iterator[tuple[Path, str]]:
    """Text files below a folder with their paths, in the order of their hashes."""
    found = []
    for path in root.rglob("*"):
        inner = f"{root.name}/{path.relative_to(root).as_posix()}"
        plain = path.name.removesuffix(".gz")
        readable = _TEXT.search(plain) or _MANUAL.search(plain)
        unwanted = _COMMON.match(plain) or _TRANSLATED.match(inner) or _INSTALLED.search(inner)
        if readable and not unwanted:
            found.append((hashlib.sha256(inner.encode("utf-8", "surrogateescape")).digest(), path, inner))
    for _, path, inner in sorted(found):
        yield path, inner


def read_file(path: Path, inner: str) -> File | None:
    """The document of a file; None where it is no text, too short, or cannot be read."""
    raw = _bytes(path)
    if raw is None or b"\0" in raw:
        return None
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        return None
    name = path.name.removesuffix(".gz")
    title, body = _markup(name, text[: 4 * _LONGEST])
    if len(body) < _SHORTEST:
        return None
    return File(inner.removesuffix(".gz"), (title or Path(name).stem)[:150], body[:_LONGEST])


def _bytes(path: Path) -> bytes | None:
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > _LARGEST_FILE:
            return None
        if path.suffix != ".gz":
            return path.read_bytes()
        with gzip.open(path) as packed:
            return packed.read(_LARGEST_FILE)
    except (OSError, EOFError, zlib.error):
        return None


def _markup(name: str, text: str) -> tuple[str, str]:
    """Title and plain text."""
    if _MANUAL.search(name) and re.search(r"^\.(SH|Sh)", text, re.MULTILINE):
        return _manual(text)
    if name.lower().endswith((".html", ".htm")):
        return _html(text)
    if name.endswith(".py"):
        found = re.search(r'^(?:#.*\n|\s)*[rRuU]?(?:"""|\'\'\')\s*(.+)', text)
        return (found[1].strip(" \"'") if found else ""), text
    return _first_line(text), text


def _manual(text: str) -> tuple[str, str]:
    """A page in roff: its line NAME, and the text without requests and escapes."""
    text = re.sub(r"^[.'](?:\\\"|\s*(?:ie|el|if|ds|de|nr|TH|Dd|Dt|Os)\b).*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"^\.\s*[A-Za-z]{1,3}\b *", "", text, flags=re.MULTILINE)
    text = re.sub(r"\\(?:f\(..|f\[[^\]]*\]|f.|\*\(..|s[+-]?\d|&|/|,|\||\^|c|e|:)", "", text)
    text = re.sub(r"\\\((?:hy|em|en|mi)", "-", text)
    text = re.sub(r"\\\(..|\\\[[^\]]*\]", " ", text).replace("\\-", "-").replace('"', "")
    found = re.search(r"^NAME\s*\n+(.*)", text, re.MULTILINE)
    return (found[1].strip() if found else _first_line(text)), text.strip()


def _html(text: str) -> tuple[str, str]:
    found = re.search(r"<title[^>]*>([^<]*)", text, re.IGNORECASE)
    text = re.sub(r"(?is)<(script|style)\b.*?</\1\s*>|<!--.*?-->|<[^>]*>", " ", text)
    return (html.unescape(found[1]).strip() if found else ""), html.unescape(text).strip()


def _first_line(text: str) -> str:
    """The first line with a word in it, without comment signs and underlines."""
    for line in text[:4000].splitlines():
        plain = line.strip(" \t#*=-/;\"'!<>.:")
        if re.search(r"[A-Za-z]{3}", plain) and "!" not in line[:2] and "-*-" not in line:
            return plain
    return ""
