"""Opening tokens and sessions: files in a folder that only the owner of the node can read.

    token      opens the page once, within ten minutes; `foltr node page` mints another at any time
    session    a browser that was let in; it ends when it is signed out, or after 30 days without use

A secret is 32 bytes of the operating system's generator. Its file is named by its SHA-256, so that the disk does not
hold it. Any process of the owner can mint a token or end sessions without asking the server, which looks at the files
on every request; a restart ends nothing. Deleting a token's file is what uses it up: of two requests one succeeds.
"""

import contextlib
import hashlib
import os
import secrets
import time
from collections.abc import Iterator
from pathlib import Path

from foltr.files import private_file, private_folder, sync_folder
from foltr.node.places import Places

TOKEN_SECONDS = 600  # of an address that is printed
BROWSER_SECONDS = 60  # of a token that a browser is started with
MOST_TOKENS = 100
IDLE_DAYS = 30  # a session ends after so many days without use
MOST_BROWSERS = 20  # the one that was not used for longest goes
_USE_SECONDS = 3600  # the last use is stored to the hour, so that a keystroke writes nothing
_DAY = 86_400.0
_GRACE = 60.0  # a token that another process is minting has not got its time yet


def page_folder(places: Places) -> Path:
    """Where the page keeps its tokens, its sessions and the addresses that are served."""
    return places.data / "page"


# ---- tokens


def mint(folder: Path, seconds: float = TOKEN_SECONDS) -> str:
    """A new token; the time of its file is when it expires."""
    tokens, now = private_folder(folder / "tokens"), time.time()
    _delete_expired(tokens, now)
    _keep_newest(tokens, MOST_TOKENS - 1)
    token = secrets.token_urlsafe(32)
    file = private_file(tokens / _name(token))
    os.utime(file, (now, now + seconds))
    return token


def redeem(folder: Path, token: str) -> str | None:
    """The cookie of a new session for a token, which is used up; None for a token that is not valid."""
    file = folder / "tokens" / _name(token)
    try:
        expires = file.stat().st_mtime
        file.unlink()
    except FileNotFoundError:
        return None
    if not 0 <= expires - time.time() <= TOKEN_SECONDS:  # more: the clock was turned back
        return None
    return _sign_in(folder)


def delete_tokens(folder: Path) -> None:
    for file in _files(folder / "tokens"):
        file.unlink(missing_ok=True)


def _delete_expired(tokens: Path, now: float) -> None:
    for file in _files(tokens):
        if not -_GRACE <= _time(file) - now <= TOKEN_SECONDS:
            file.unlink(missing_ok=True)


# ---- sessions


def is_signed_in(folder: Path, cookie: str) -> bool:
    """Whether a cookie belongs to a session; stores that it was used."""
    file, now = folder / "browsers" / _name(cookie), time.time()
    try:
        idle = now - file.stat().st_mtime
    except OSError:
        return False
    if not 0 <= idle <= _USE_SECONDS:
        with contextlib.suppress(OSError):  # ended meanwhile, or a disk that cannot be written
            file.unlink() if idle > IDLE_DAYS * _DAY else os.utime(file, (now, now))
    return idle <= IDLE_DAYS * _DAY


def last_uses(folder: Path) -> list[float]:
    """When each session was used last, newest first."""
    oldest = time.time() - IDLE_DAYS * _DAY
    return sorted((used for file in _files(folder / "browsers") if (used := _time(file)) >= oldest), reverse=True)


def sign_out(folder: Path, cookie: str) -> None:
    _delete(folder, [folder / "browsers" / _name(cookie)])


def sign_out_all(folder: Path) -> int:
    """Ends every session and deletes every token that was not used; how many sessions there were."""
    delete_tokens(folder)
    browsers = len(last_uses(folder))
    _delete(folder, _files(folder / "browsers"))
    return browsers


@contextlib.contextmanager
def temporary_sign_in(folder: Path) -> Iterator[str]:
    """The cookie of a session of a command, which ends with it."""
    cookie = _sign_in(folder)
    try:
        yield cookie
    finally:
        sign_out(folder, cookie)


def _sign_in(folder: Path) -> str:
    browsers, cookie = private_folder(folder / "browsers"), secrets.token_urlsafe(32)
    _keep_newest(browsers, MOST_BROWSERS - 1)
    private_file(browsers / _name(cookie))
    return cookie


def _delete(folder: Path, files: list[Path]) -> None:
    for file in files:
        file.unlink(missing_ok=True)
    if (folder / "browsers").is_dir():
        sync_folder(folder / "browsers")  # an ended session does not come back with a power cut


# ---- files


def _name(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _files(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except FileNotFoundError:
        return []


def _time(file: Path) -> float:
    with contextlib.suppress(FileNotFoundError):  # deleted meanwhile
        return file.stat().st_mtime
    return 0.0


def _keep_newest(folder: Path, count: int) -> None:
    files = sorted(_files(folder), key=_time, reverse=True)
    for file in files[count:]:
        file.unlink(missing_ok=True)
