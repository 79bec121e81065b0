"""Patterns in gitignore syntax, matched in time linear in the length of a name.

An ignore file may come with somebody else's archive, so its patterns are hostile input. The usual translation of
`*a*a*a*b` into a regular expression takes hours on a long name; here each piece between stars is an atomic group: a
star takes as little as possible and never more, which is enough for globs. Files are read up to a bound.

Supported: comments, `!`, escapes, trailing spaces, `dir/`, anchors (a slash at the start or inside), `*`, `?`, `[a-z]`,
`[!a-z]`, `[[:alpha:]]`, `**/`, `/**`, `/**/`. The last pattern that matches decides.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

_MAX_BYTES, _MAX_LINES, _MAX_PATTERN = 1 << 18, 5000, 1024
_CLASSES = {
    "alnum": "a-zA-Z0-9", "alpha": "a-zA-Z", "blank": " \\t", "cntrl": "\\x00-\\x1f\\x7f", "digit": "0-9",
    "graph": "!-~", "lower": "a-z", "print": " -~", "punct": "!-/:-@\\[-`{-~", "space": "\\s", "upper": "A-Z",
    "xdigit": "0-9a-fA-F",
}  # fmt: skip


class Pattern(NamedTuple):
    """One line of an ignore file."""

    line: int
    text: str
    negated: bool
    folders_only: bool
    on_path: bool  # compared with the path below the ignore file, not with the name alone
    regex: re.Pattern[str]


class Ignore(NamedTuple):
    """The patterns of one ignore file: those without wildcards and `*.ending` are looked up, the others tried."""

    names: dict[str, list[Pattern]]
    endings: dict[str, list[Pattern]]
    others: list[Pattern]  # last line first

    def decide(self, path: str, *, is_folder: bool) -> Pattern | None:
        """The last pattern that matches a path below the ignore file; None: none does."""
        if not (self.names or self.endings or self.others):
            return None
        name = path.rpartition("/")[2]
        found = [*self.names.get(name, ()), *(self.endings.get(name[name.rfind(".") :], ()) if "." in name else ())]
        best = max((one for one in found if is_folder or not one.folders_only), default=None, key=_line)
        for one in self.others:
            if best is not None and best.line > one.line:
                break
            if (is_folder or not one.folders_only) and one.regex.fullmatch(path if one.on_path else name):
                return one
        return best


def read(content: bytes) -> Ignore:
    """The patterns of an ignore file as it stands on disk."""
    return parse(content[:_MAX_BYTES].decode("utf-8", "surrogateescape").split("\n")[:_MAX_LINES])


def parse(lines: Iterable[str]) -> Ignore:
    names: dict[str, list[Pattern]] = {}
    endings: dict[str, list[Pattern]] = {}
    others: list[Pattern] = []
    for number, line in enumerate(lines, start=1):
        one = _pattern(number, line)
        if one is None:
            continue
        plain = _without_marks(one.text)
        if not one.on_path and re.fullmatch(r"[^*?\[\]\\]+", plain):
            names.setdefault(plain, []).append(one)
        elif not one.on_path and re.fullmatch(r"\*\.[^*?\[\]\\.]+", plain):
            endings.setdefault(plain[1:], []).append(one)
        else:
            others.append(one)
    return Ignore(names, endings, others[::-1])


def _pattern(number: int, line: str) -> Pattern | None:
    text = _trimmed(line.removesuffix("\r"))
    if not text or text.startswith("#") or len(text) > _MAX_PATTERN:
        return None
    plain = _without_marks(text)
    on_path = "/" in plain or text.removeprefix("!").startswith("/")
    regex = _translated(plain)
    if not plain or regex is None:
        return None
    return Pattern(number, text, text.startswith("!"), text.endswith("/"), on_path, regex)


def _line(one: Pattern) -> int:
    return one.line


def _without_marks(text: str) -> str:
    """Without the exclamation mark, the anchor and the slash of folders."""
    return text.removeprefix("!").removesuffix("/").removeprefix("/")


def _trimmed(line: str) -> str:
    """Without trailing spaces, unless they are escaped."""
    stripped = line.rstrip(" ")
    escapes = len(stripped) - len(stripped.rstrip("\\"))
    return stripped + " " if escapes % 2 and len(stripped) < len(line) else stripped


def _translated(plain: str) -> re.Pattern[str] | None:
    """A glob as a regular expression; None where git would match nothing (an open bracket, a trailing backslash)."""
    segments = plain.split("/")
    runs: list[list[str]] = [[]]  # names between two `**`
    for segment in segments:
        if segment == "**" and len(segments) > 1:
            runs.append([])
            continue
        piece = _segment(segment)
        if piece is None:
            return None
        runs[-1].append(piece)
    try:
        return re.compile(_joined(runs), re.DOTALL)
    except re.error:
        return None


def _joined(runs: list[list[str]]) -> str:
    """The first run starts the path, the last one ends it, those between stand at the first place where they fit."""
    first, *rest = ("/".join(run) for run in runs)
    if not rest:
        return first
    inner = "".join(f"(?>(?:[^/]+/)*?{run}/)" for run in rest[:-1] if run)
    return (first + "/" if first else "") + inner + (f"(?:[^/]+/)*{rest[-1]}" if rest[-1] else ".+")


def _segment(glob: str) -> str | None:
    """One name. Pieces between stars are atomic: the first place where a piece fits is as good as any later one."""
    pieces: list[str] = [""]
    i = 0
    while i < len(glob):
        sign = glob[i]
        if sign == "*":
            if pieces[-1] or len(pieces) == 1:
                pieces.append("")
        elif sign == "?":
            pieces[-1] += "[^/]"
        elif sign == "[":
            read_class = _bracket(glob, i)
            if read_class is None:
                return None
            piece, i = read_class
            pieces[-1] += piece
        elif sign == "\\":
            i += 1
            if i == len(glob):
                return None
            pieces[-1] += re.escape(glob[i])
        else:
            pieces[-1] += re.escape(sign)
        i += 1
    first, *rest = pieces
    if not rest:
        return first
    inner = "".join(f"(?>[^/]*?{piece})" for piece in rest[:-1] if piece)
    # the last piece ends the name: the star before it takes all but as many characters
    return first + inner + (f"[^/]*{rest[-1]}" if rest[-1] else "[^/]*+")


def _bracket(glob: str, start: int) -> tuple[str, int] | None:
    """A character class and the place of its closing bracket."""
    i = start + 1
    negated = glob[i : i + 1] in ("!", "^")
    i += negated
    inside, first = "", True
    while i < len(glob) and (glob[i] != "]" or first):
        named = re.match(r"\[:(\w+):\]", glob[i:])
        if named:
            if named[1] not in _CLASSES:
                return None
            inside += _CLASSES[named[1]]
            i += named.end()
        else:
            if glob[i] == "\\":
                i += 1
            if i >= len(glob):
                return None
            is_range = glob[i] == "-" and inside and glob[i + 1 : i + 2] not in ("", "]")
            inside += "-" if is_range else re.escape(glob[i])
            i += 1
        first = False
    if i >= len(glob):
        return None
    return (f"(?:(?!/)[^{inside}])" if negated else f"(?:(?!/)[{inside}])"), i
