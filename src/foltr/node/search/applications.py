"""Programs of the desktop: which one opens a type of file, and how it is told the page or the line.

Reads what freedesktop.org's specifications say where it stands: `globs2` and `subclasses` of the shared MIME database,
`mimeapps.list` for defaults, desktop entries for commands. Nothing of it goes through a shell. A command is a list of
arguments in which the file is one argument of its own, as an absolute path, which no program takes for an option; an
entry that wants the file inside of another argument (`sh -c "view %f"`) is not used.
"""

import fnmatch
import os
import re
import shlex
import shutil
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path, PurePath
from typing import NamedTuple

from foltr.files import xdg_folder

PLAIN_TEXT = "text/plain"
_EDITOR_CATEGORIES = frozenset({"TextEditor", "IDE"})
_ESCAPES = {"s": " ", "n": "\n", "t": "\t", "r": "\r", "\\": "\\"}
_LONGEST_ENTRY = 256_000  # bytes of a desktop entry
_TERMINALS = ("xdg-terminal-exec", "x-terminal-emulator", "gnome-terminal", "konsole", "xfce4-terminal", "xterm")

# {file} and {n}: the path, and the page or line from 1 on; {uri}: the path as an address
_AT_PAGE = {
    "evince": "--page-index={n} {file}", "atril": "--page-index={n} {file}", "xreader": "--page-index={n} {file}",
    "okular": "--page {n} {file}", "zathura": "--page={n} {file}", "xpdf": "{file} {n}", "mupdf": "{file} {n}",
    "qpdfview": "{file}#{n}", "firefox": "{uri}#page={n}", "chromium": "{uri}#page={n}",
    "google-chrome": "{uri}#page={n}",
}  # fmt: skip
_AT_LINE = {
    "gedit": "+{n} {file}", "pluma": "+{n} {file}", "xed": "+{n} {file}", "kate": "--line {n} {file}",
    "kwrite": "--line {n} {file}", "code": "--goto {file}:{n}", "codium": "--goto {file}:{n}", "vim": "+{n} {file}",
    "vi": "+{n} {file}", "gvim": "+{n} {file}", "nvim": "+{n} {file}", "nano": "+{n} {file}", "emacs": "+{n} {file}",
    "emacsclient": "+{n} {file}", "geany": "--line {n} {file}", "mousepad": "--line={n} {file}",
    "subl": "{file}:{n}", "micro": "+{n} {file}",
}  # fmt: skip
_TERMINAL_EDITORS = frozenset({"vim", "vi", "nvim", "nano", "micro"})


class Application(NamedTuple):
    """A program of the desktop."""

    id: str  # name of its desktop entry, such as org.gnome.Evince.desktop
    name: str  # for people
    command: tuple[str, ...]  # arguments, with field codes such as %f
    types: frozenset[str]
    categories: frozenset[str]
    terminal: bool  # it needs one

    @property
    def program(self) -> str:
        return PurePath(self.command[0]).name

    @property
    def edits_text(self) -> bool:
        return bool(self.categories & _EDITOR_CATEGORIES) or self.program in _AT_LINE


# ---- types of files


def type_of(name: str) -> str:
    """The MIME type that a file's name stands for; application/octet-stream where it stands for none."""
    lowered = name.lower()
    for _, kind, pattern in _globs(_stamps("mime/globs2")):
        if lowered.endswith(pattern[1:]) if pattern.startswith("*.") else fnmatch.fnmatchcase(lowered, pattern):
            return kind
    return "application/octet-stream"


def _supertypes(kind: str) -> Iterator[str]:
    """A type, and the more general ones that a program for it may take."""
    parents = dict(_subclasses(_stamps("mime/subclasses")))
    seen: list[str] = []
    while kind and kind not in seen:
        seen.append(kind)
        kind = parents.get(kind, PLAIN_TEXT if kind.startswith("text/") else "")
    yield from seen


# ---- programs


def default_application(kind: str) -> Application | None:
    """The program that the desktop opens a type with."""
    return next(iter(applications(kind)), None)


def text_editor(kind: str) -> Application | None:
    """The person's program for a type of text if it is an editor: an interpreter would run the file. Else their editor
    for plain text; else that of VISUAL or EDITOR."""
    every = [*applications(kind), *applications(PLAIN_TEXT)]
    editors = (application for application in every if application.edits_text)
    return next(editors, None) or _editor_of_the_shell()


def applications(kind: str) -> list[Application]:
    """Programs for a type that can be started, the default first."""
    entries = _entries()
    ids = dict.fromkeys(name for one in _supertypes(kind) for name in _associated(one, entries))
    return [entries[name] for name in ids if name in entries]


def command_for(application: Application, path: str, *, page: int | None = None, line: int | None = None) -> list[str]:
    """The arguments that open a file, at a page or a line where the program is known to go there."""
    form = _AT_PAGE.get(application.program) if page else _AT_LINE.get(application.program) if line else None
    if form and "{file}:" in form and ":" in PurePath(path).name:
        form = None  # the program would take a part of the name for a line
    words = [application.command[0], *_at(form, path, page or line or 1)] if form else _expanded(application, path)
    return [*_in_terminal(), *words] if application.terminal else words


def goes_to(application: Application, *, page: int | None = None, line: int | None = None) -> bool:
    """Whether a program is known to go to the page or line."""
    return bool((page and application.program in _AT_PAGE) or (line and application.program in _AT_LINE))


def _at(form: str, path: str, number: int) -> list[str]:
    values = {"file": path, "n": str(number), "uri": _uri(path)}
    return [word.format_map(values) for word in form.split(" ")]


def _uri(path: str) -> str:
    return PurePath(path).as_uri()


def _expanded(application: Application, path: str) -> list[str]:
    words: list[str] = []
    for word in application.command:
        if word in ("%f", "%F"):
            words.append(path)
        elif word in ("%u", "%U"):
            words.append(_uri(path))
        elif word not in ("%i", "%c", "%k", "%d", "%D", "%n", "%N", "%v", "%m"):
            words.append(word.replace("%%", "%"))
    takes_file = any(word in ("%f", "%F", "%u", "%U") for word in application.command)
    return words if takes_file else [*words, path]


def _in_terminal() -> list[str]:
    chosen = os.environ.get("TERMINAL", "")
    for name in (chosen, *_TERMINALS):
        program = shutil.which(name) if name else None
        if program is not None:
            option = {"xdg-terminal-exec": [], "gnome-terminal": ["--"], "xfce4-terminal": ["-x"]}
            return [program, *option.get(PurePath(program).name, ["-e"])]
    return []


def _editor_of_the_shell() -> Application | None:
    for variable in ("VISUAL", "EDITOR"):
        try:
            words = shlex.split(os.environ.get(variable, ""))
        except ValueError:
            continue
        if words and shutil.which(words[0]):
            terminal = PurePath(words[0]).name in _TERMINAL_EDITORS
            if not terminal or _in_terminal():
                return Application(variable, words[0], tuple(words), frozenset(), frozenset({"TextEditor"}), terminal)
    return None


# ---- files of the desktop


def _data_folders() -> list[Path]:
    """Folders with programs and types, the person's own first."""
    stated = os.environ.get("XDG_DATA_DIRS") or "/usr/local/share:/usr/share"
    return [xdg_folder("XDG_DATA_HOME"), *(Path(one) for one in stated.split(":") if one.startswith("/"))]


def _mimeapps() -> list[Path]:
    """Files with associations, those that decide first. Those of one desktop come before those of all."""
    stated = os.environ.get("XDG_CONFIG_DIRS") or "/etc/xdg"
    configured = [xdg_folder("XDG_CONFIG_HOME"), *(Path(one) for one in stated.split(":") if one.startswith("/"))]
    folders = [*configured, *(folder / "applications" for folder in _data_folders())]
    desktops = [name.lower() for name in os.environ.get("XDG_CURRENT_DESKTOP", "").split(":") if name.isalnum()]
    names = [*(f"{name}-mimeapps.list" for name in desktops), "mimeapps.list"]
    return [folder / name for folder in folders for name in names]


def _associated(kind: str, entries: dict[str, Application]) -> list[str]:
    """Names of entries for exactly this type: defaults, what the person added, and who offers it."""
    defaults: list[str] = []
    added: list[str] = []
    removed: set[str] = set()
    for file in _mimeapps():
        sections = _read(file)
        defaults += _list(sections.get("Default Applications", {}).get(kind, ""))
        added += [name for name in _list(sections.get("Added Associations", {}).get(kind, "")) if name not in removed]
        removed |= set(_list(sections.get("Removed Associations", {}).get(kind, ""))) - set(added)
    offered = sorted(name for name, entry in entries.items() if kind in entry.types and name not in removed)
    return [*defaults, *added, *offered]


def _entries() -> dict[str, Application]:
    """Programs that can be started, by the names of their entries; the person's own hide those of the system."""
    entries: dict[str, Application | None] = {}
    for folder in _data_folders():
        top = folder / "applications"
        for file in sorted(top.rglob("*.desktop")):
            name = "-".join(file.relative_to(top).parts)
            if name not in entries:
                entries[name] = _entry(name, _read(file).get("Desktop Entry", {}))
    return {name: entry for name, entry in entries.items() if entry is not None}


def _entry(name: str, values: dict[str, str]) -> Application | None:
    command = _words(_unescaped(values.get("Exec", "")))
    hidden = values.get("Hidden") == "true" or values.get("Type", "Application") != "Application"
    tried = values.get("TryExec")
    if hidden or not command or shutil.which(command[0]) is None or (tried and shutil.which(tried) is None):
        return None
    if any("%" in word.replace("%%", "") and not re.fullmatch(r"%[a-zA-Z]", word) for word in command):
        return None  # a file inside of another argument
    terminal = values.get("Terminal") == "true"
    if terminal and not _in_terminal():
        return None
    return Application(
        name, _unescaped(values.get("Name", name)), tuple(command), frozenset(_list(values.get("MimeType", ""))),
        frozenset(_list(values.get("Categories", ""))), terminal,
    )  # fmt: skip


def _words(text: str) -> list[str]:
    """The arguments of an Exec line: separated by spaces, in double quotes where they have some."""
    try:
        return shlex.split(text, comments=False, posix=True)
    except ValueError:
        return []


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[0]), text)


def _list(text: str) -> list[str]:
    return [one for one in text.split(";") if one]


def _read(file: Path) -> dict[str, dict[str, str]]:
    """The sections of a file of keys and values; of keys that stand twice the first counts."""
    sections: dict[str, dict[str, str]] = {}
    values: dict[str, str] = {}
    for line in _lines(file):
        if line.startswith("[") and line.endswith("]"):
            values = sections.setdefault(line[1:-1], {})
        elif "=" in line and not line.startswith("#"):
            key, _, value = line.partition("=")
            values.setdefault(key.strip(), value.strip())
    return sections


def _lines(file: Path) -> list[str]:
    try:
        with file.open("rb") as opened:
            return opened.read(_LONGEST_ENTRY).decode("utf-8", "replace").splitlines()
    except OSError:
        return []


Stamps = tuple[tuple[str, int], ...]


def _stamps(name: str) -> Stamps:
    """A file in all folders that have it, with its time of change: the key under which its content is held."""
    found = []
    for folder in _data_folders():
        try:
            found.append((str(folder / name), (folder / name).stat().st_mtime_ns))
        except OSError:
            continue
    return tuple(found)


@lru_cache(maxsize=2)
def _globs(files: Stamps) -> tuple[tuple[int, str, str], ...]:
    """(weight, type, pattern), those that decide first: the heaviest, then the longest."""
    rows = (line.split(":") for file, _ in files for line in _whole(file) if not line.startswith("#"))
    globs = [(int(row[0]), row[1], row[2].lower()) for row in rows if len(row) >= 3 and row[0].isdecimal()]
    return tuple(sorted(globs, key=lambda glob: (-glob[0], -len(glob[2]))))


@lru_cache(maxsize=2)
def _subclasses(files: Stamps) -> tuple[tuple[str, str], ...]:
    rows = (line.split(" ") for file, _ in files for line in _whole(file))
    return tuple((row[0], row[1]) for row in rows if len(row) == 2)


def _whole(file: str) -> Iterable[str]:
    try:
        return Path(file).read_text("utf-8", "replace").splitlines()
    except OSError:
        return ()
