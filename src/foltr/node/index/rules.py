"""Rules that decide what is not indexed, each with its reason.

The node's own folders (settings, log, keys of the page, the index) are excluded whatever the settings say, by whatever
path they are reached, and also where a root is one of them or lies in one. Then three sources, in this order:
1. `exclude` of the settings, in gitignore syntax below every root; `!pattern` there includes what it matches.
2. The default rules below, in named groups; `allow` of the settings switches groups or patterns off.
3. `.gitignore` and `.foltrignore` files, each for its folder and what is below. They come with other people's files,
   so they can exclude more, and never include what the first two exclude: a secret stays one.

An excluded folder is not entered. The person chose the roots, so only the rules about secrets apply to the folders
above them.
"""

import fnmatch
import os
import re
import stat
from collections.abc import Collection, Iterable
from functools import lru_cache
from pathlib import PurePath
from typing import NamedTuple

from foltr.node.index import ignore
from foltr.node.places import Places, identities
from foltr.node.settings import Settings

OWN = "a folder of this node, which is never indexed"
IGNORE_FILES = (".gitignore", ".foltrignore")
_SYSTEM = frozenset({"/proc", "/sys", "/dev", "/run"})

# names of folders (with a slash) and of files, without regard to case
GROUPS: dict[str, str] = {
    "secrets": """
        .ssh/ .gnupg/ .password-store/ .aws/ .azure/ .kube/ .docker/ keyrings/ .pki/ .local-keychains/
        .env* *.pem *.key *.kdbx *.kdb *.psafe3 *.p12 *.pfx *.p8 *.ppk *.jks *.keystore *.keychain *.keychain-db
        *.ovpn *.agilekeychain/ *.opvault/ .1password/ id_rsa id_dsa id_ecdsa id_ecdsa_sk id_ed25519 id_ed25519_sk
        id_xmss id_rsa.* id_dsa.* id_ecdsa.* id_ed25519.* .netrc _netrc .authinfo* .pgpass .my.cnf .git-credentials
        .htpasswd .npmrc .pypirc .dockercfg .vault-token .s3cfg .boto .cargo-credentials
        credentials.json client_secret*.json service-account*.json secring.* private-keys-v1.d/ wallet.dat *.wallet
        *.keyring .*_history .lesshst .viminfo .iceauthority .xauthority
        key3.db key4.db cert8.db cert9.db logins.json logins-backup.json signons.sqlite cookies.sqlite
    """,
    "browser profiles": """
        .mozilla/ google-chrome*/ bravesoftware/ microsoft-edge*/ .librewolf/ .waterfox/ .tor-browser/
    """,
    "version control": ".git/ .git .hg/ .svn/ .bzr/ .jj/ .pijul/ _darcs/ cvs/ .fossil/",
    "caches": """
        __pycache__/ .cache/ .mypy_cache/ .pytest_cache/ .ruff_cache/ .tox/ .nox/ .npm/ .yarn/ .gradle/ .m2/ .cargo/
        .ipynb_checkpoints/ .trash/ .trash-*/ cachestorage/ gpucache/ .thumbnails/ lost+found/
        $recycle.bin/ .ds_store thumbs.db *.swp *.swo *~ *.tmp *.part *.crdownload .#* #*#
    """,
    "build output": """
        node_modules/ bower_components/ *.egg-info/ .eggs/ cmakefiles/ .next/ .nuxt/ .parcel-cache/ .terraform/
        *.min.js *.min.css *.map *.pyc *.pyo *.o *.obj *.a *.lo *.la *.lib *.class *.elc *.beam *.hi *.rlib *.rmeta
        *.gcda *.gcno
    """,
    "virtual environments": ".venv/ .virtualenv/ .virtualenvs/ .conda/ conda-meta/ .direnv/",
    "hidden folders": ".*/",
}
# names that also are ordinary folders: excluded where such a file stands beside them
_BESIDE = {
    "target": ("cargo.toml", "pom.xml", "build.sbt"),
    "build": ("cmakelists.txt", "setup.py", "pyproject.toml", "build.gradle", "build.gradle.kts", "package.json"),
    "dist": ("setup.py", "pyproject.toml", "package.json"),
    "out": ("package.json", "cmakelists.txt"),
    "vendor": ("composer.json", "go.mod", "gemfile"),
}
# folders that are known by a file inside
_INSIDE = {
    "pyvenv.cfg": "virtual environments",
    "key4.db": "browser profiles",
    "Login Data": "browser profiles",
    "CACHEDIR.TAG": "caches",
}
_MAIL_FOLDERS = ("Mail", "ImapMail")  # in a profile of Thunderbird, which also has a key4.db
BINARIES = "binaries"  # in `allow`: files are read whatever their endings promise
_KEY_WORDS = 8  # of a file *.key that is no key


class _Glob(NamedTuple):
    group: str
    pattern: str
    regex: re.Pattern[str]


class Table(NamedTuple):
    """Patterns of groups for files or for folders: those without wildcards and `*.ending` are looked up."""

    names: dict[str, str]  # name -> group
    endings: dict[str, str]
    others: re.Pattern[str]  # all other patterns
    globs: tuple[_Glob, ...]  # the same one by one

    def match(self, name: str) -> str | None:
        """Group and pattern that match a name in lower case; the first group wins."""
        found = self.names.get(name)
        if found is not None:
            return f"{found}: {name}"
        dot = name.rfind(".")
        ending = self.endings.get(name[dot:]) if dot >= 0 else None
        if self.others.fullmatch(name):
            glob = next(glob for glob in self.globs if glob.regex.fullmatch(name))
            if ending is None or _ORDER[glob.group] <= _ORDER[ending]:
                return f"{glob.group}: {glob.pattern}"
        return None if ending is None else f"{ending}: *{name[dot:]}"


_ORDER = {name: place for place, name in enumerate(GROUPS)}


class Rules:
    """The rules of one node. `places` are its own folders, as they are when this is made."""

    def __init__(self, settings: Settings, places: Places | None = None) -> None:
        self.roots = settings.roots
        self._own = frozenset() if places is None else identities(places)
        switched_off = {text for text in settings.allow if text in GROUPS}
        groups = tuple(name for name in GROUPS if name not in switched_off)
        self._files, self._folders = _table(groups, folders=False), _table(groups, folders=True)
        private = tuple(name for name in ("secrets", "browser profiles") if name in groups)
        self._private_folders = _table(private, folders=True)
        self._allow = ignore.parse(text for text in settings.allow if text not in GROUPS)
        self._exclude = ignore.parse(settings.exclude)
        self._inside = {file: group for file, group in _INSIDE.items() if group not in switched_off}
        self._beside = {} if "build output" in switched_off else _BESIDE
        self._deliveries = "caches" not in switched_off
        self.reads_binaries = BINARIES in settings.allow

    def enter(self, root: str) -> "FolderRules":
        """The rules at a root."""
        return FolderRules(self, root.rstrip("/"), "", ())

    def is_own(self, status: os.stat_result) -> bool:
        """Whether a folder is one of the node's."""
        return (status.st_dev, status.st_ino) in self._own

    def root_verdict(self, root: str) -> str | None:
        """Why a root is refused; None: it is not. A root inside a secret folder, also through a link, needs `allow` in
        the settings; one inside the node's own folders is always refused."""
        if self._own and self._is_inside_own(root):
            return OWN
        for name in filter(None, [*root.split("/"), *os.path.realpath(root).split("/")]):
            found = self._private_folders.match(name.lower())
            if found and self._allow.decide(name, is_folder=True) is None:
                return f"{found}/"
        return f"system folder: {root}" if root in _SYSTEM else None

    def _is_inside_own(self, path: str) -> bool:
        resolved = PurePath(os.path.realpath(path))
        every = (_status(str(folder)) for folder in (resolved, *resolved.parents))
        return any(status is not None and self.is_own(status) for status in every)

    def root_of(self, path: str) -> str | None:
        return innermost_root(self.roots, path)

    def verdict(self, path: str) -> str | None:
        """Why a path below a root is excluded, itself or by a folder above it; None: it is not."""
        root = self.root_of(path)
        if root is None:
            return None
        found = self.root_verdict(root)
        here = self.enter(root)
        names = path[len(root.rstrip("/")) + 1 :].split("/") if path != root else []
        for i, name in enumerate(names):
            if found:
                return found
            here = here.with_ignore_files(_listing(here.folder))
            status = _status(f"{here.folder}/{name}")
            is_folder = i < len(names) - 1 or (status is not None and stat.S_ISDIR(status.st_mode))
            found = OWN if status is not None and self.is_own(status) else None
            found = found or here.verdict(name, is_folder=is_folder, beside=_listing(here.folder))
            if not found and is_folder:
                here = here.below(name)
                found = here.verdict_inside()
        return found

    def default(self, name: str, *, is_folder: bool, beside: Collection[str]) -> str | None:
        lower = name.lower()
        found = (self._folders if is_folder else self._files).match(lower)
        if found:
            return f"{found}/" if is_folder else found
        if is_folder and lower in self._beside:
            markers = {one.lower() for one in beside}.intersection(self._beside[lower])
            if markers:
                return f"build output: {lower}/ beside {min(markers)}"
        if is_folder and name == "tmp" and self._deliveries and {"cur", "new"} <= set(beside):
            return "caches: tmp/ of a Maildir, whose messages are being delivered"
        return None


def allowing(path: str, root: str, *, is_folder: bool) -> str:
    """An entry of `allow` that fits one path below a root."""
    below = re.sub(r"([\\*?\[\] ])", r"\\\1", path[len(root.rstrip("/")) :])
    return below + "/" * is_folder


def is_default(reason: str) -> bool:
    """Whether a verdict is one of a default rule, which `allow` switches off."""
    return reason.partition(": ")[0] in GROUPS


def innermost_root(roots: Iterable[str], path: str) -> str | None:
    """The innermost root that is a path or above it."""
    above = [root for root in roots if path == root or path.startswith(root.rstrip("/") + "/")]
    return max(above, key=len, default=None)


class FolderRules(NamedTuple):
    """The rules in one folder, with the ignore files from the root down to it."""

    rules: Rules
    folder: str  # absolute
    below_root: str  # "" at the root
    ignore_files: tuple[tuple[str, str, ignore.Ignore], ...]  # (file, folder below the root, patterns)

    def below(self, name: str) -> "FolderRules":
        inner = f"{self.below_root}/{name}" if self.below_root else name
        return self._replace(folder=f"{self.folder}/{name}", below_root=inner)

    def with_ignore_files(self, names: Collection[str]) -> "FolderRules":
        """These rules together with the ignore files of this folder."""
        found = tuple(
            (f"{self.folder}/{name}", self.below_root, ignore.read(content))
            for name in IGNORE_FILES
            if name in names and (content := _read(f"{self.folder}/{name}")) is not None
        )
        return self._replace(ignore_files=self.ignore_files + found) if found else self

    def verdict(self, name: str, *, is_folder: bool, beside: Collection[str] = ()) -> str | None:
        """Why an entry of this folder is excluded; None: it is not."""
        path = f"{self.below_root}/{name}" if self.below_root else name
        rules = self.rules
        chosen = rules._exclude.decide(path, is_folder=is_folder)
        if chosen is not None:
            return None if chosen.negated else f"settings, exclude: {chosen.text}"
        allowed = rules._allow.decide(path, is_folder=is_folder)
        if allowed is None or allowed.negated:
            found = rules.default(name, is_folder=is_folder, beside=beside)
            if found and not (found == _KEYS and _is_no_key(f"{self.folder}/{name}")):
                return found
            if is_folder and f"{self.folder}/{name}" in _SYSTEM:
                return f"system folder: {self.folder}/{name}"
        return self._by_ignore_file(path, is_folder=is_folder)

    def verdict_inside(self) -> str | None:
        """Why this folder is excluded because of a file in it; None: it is not. A root never is."""
        if not self.below_root:
            return None
        for file, group in self.rules._inside.items():
            if os.path.lexists(f"{self.folder}/{file}"):
                allowed = self.rules._allow.decide(self.below_root, is_folder=True)
                if allowed is not None and not allowed.negated:
                    return None
                return f"{group}: a folder with {file}{self._how_to_add()}"
        return None

    def _how_to_add(self) -> str:
        """A profile of a mail program is added on purpose: it holds the person's mail, and the keys stay out."""
        is_mail = any(os.path.isdir(f"{self.folder}/{folder}") for folder in _MAIL_FOLDERS)  # noqa: PTH112
        return "; it holds mail: add this folder itself to search it" if is_mail else ""

    def _by_ignore_file(self, path: str, *, is_folder: bool) -> str | None:
        for file, base, patterns in reversed(self.ignore_files):  # the innermost file decides
            found = patterns.decide(path[len(base) + 1 :] if base else path, is_folder=is_folder)
            if found is not None:
                return None if found.negated else f"{file}, line {found.line}: {found.text}"
        return None


@lru_cache(maxsize=64)
def _table(groups: tuple[str, ...], *, folders: bool) -> Table:
    names: dict[str, str] = {}
    endings: dict[str, str] = {}
    others: dict[str, list[str]] = {}
    for group in groups:
        for pattern in GROUPS[group].lower().split():
            if pattern.endswith("/") != folders:
                continue
            plain = pattern.removesuffix("/")
            if not _is_glob(plain):
                names.setdefault(plain, group)
            elif re.fullmatch(r"\*\.[^*.]+", plain):
                endings.setdefault(plain[1:], group)
            else:
                others.setdefault(group, []).append(plain)
    globs = tuple(_Glob(group, glob, _any_of([glob])) for group, some in others.items() for glob in some)
    return Table(names, endings, _any_of([glob.pattern for glob in globs]), globs)


_KEYS = "secrets: *.key"


def _is_no_key(path: str) -> bool:
    """Whether a file *.key is a presentation (Keynote, a zip file) or prose: keys have no words."""
    head = _read(path, most=4096)
    if head is None or b"PRIVATE KEY" in head:
        return False
    words = re.findall(rb"(?<!\S)[A-Za-z]{2,12}(?!\S)", head)
    return head.startswith(b"PK\3\4") or (b"\0" not in head and len(words) >= _KEY_WORDS)


def _is_glob(pattern: str) -> bool:
    return "*" in pattern


def _any_of(globs: list[str]) -> re.Pattern[str]:
    return re.compile("|".join(map(fnmatch.translate, globs)) or r"(?!)", re.DOTALL)


def _listing(folder: str) -> frozenset[str]:
    try:
        return frozenset(os.listdir(folder))  # noqa: PTH208 - names, not paths
    except OSError:
        return frozenset()


def _status(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except (OSError, ValueError):
        return None


def _read(path: str, most: int = 1 << 18) -> bytes | None:
    """The beginning of a file, such as an ignore file; None for a link, a pipe or a device in its place."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        return file.read(most)
