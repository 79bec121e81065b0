"""Files that are written whole or not at all, files that only their owner reads, locks, and the user's folders.

    atomic_write     a temporary file that gets its name on success; a crash leaves the old file
    write_durably    private and atomic, and on the disk when it returns: content, then name
    create_private   a new private file, for keys: an existing one is never overwritten; `erase_file` overwrites it
    private_folder   0700, tightened where it exists; private_folders: 0700 where it is created, others as they are
    locked           waits for other processes; `held`: refuses at once and says who holds the lock

A file is private from its first byte on, whatever the umask. Names that this module creates (temporary files, locks,
private files) are never followed through a symbolic link, so a planted link redirects no write. A link that the user
made to a state file is resolved first: both names mean one file and one lock.
"""

import contextlib
import errno
import fcntl
import io
import json
import math
import os
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from foltr.errors import StorageError

_NEW = os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
_PRIVATE_FILE, _PRIVATE_FOLDER = 0o600, 0o700


# --- the user's folders -----------------------------------------------------------------------------------------------


_XDG = {
    "XDG_CONFIG_HOME": ".config", "XDG_DATA_HOME": ".local/share", "XDG_STATE_HOME": ".local/state",
    "XDG_CACHE_HOME": ".cache",
}  # fmt: skip


def cache_home() -> Path:
    """The folder of cached data and machine code; `FOLTR_CACHE` overrides it."""
    stated = os.environ.get("FOLTR_CACHE")
    return Path(stated) if stated else xdg_folder("XDG_CACHE_HOME") / "foltr"


def xdg_folder(variable: str) -> Path:
    """An XDG folder, by its variable. The standard ignores relative paths."""
    stated = os.environ.get(variable, "")
    return Path(stated) if stated.startswith("/") else Path.home() / _XDG[variable]


# --- whole or not at all ----------------------------------------------------------------------------------------------


@contextmanager
def atomic_write(path: Path, *, instead: str = "another folder", private: bool = False) -> Iterator[Path]:
    """A temporary path that is renamed to `path` on success and removed on failure."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.unlink(missing_ok=True)  # of a killed process with this number; or a link that somebody planted
        if private:
            os.close(os.open(temporary, _NEW | os.O_EXCL, _PRIVATE_FILE))
        yield temporary
        with temporary.open("rb") as written:  # content before the name: a power cut leaves no empty file
            os.fsync(written.fileno())
        temporary.replace(path)
    except OSError as problem:
        raise explained(path, problem, instead) from None
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str, *, instead: str = "another folder", private: bool = False) -> None:
    with atomic_write(path, instead=instead, private=private) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, content: Any, *, instead: str = "another folder", private: bool = False) -> None:
    write_text(path, dump_json(content), instead=instead, private=private)


def write_arrays(path: Path, arrays: Mapping[str, Any], *, instead: str = "another folder") -> int:
    """Writes an .npz file, returns its size; packed in memory first, because np.savez hides errors of a full disk."""
    import numpy as np

    with atomic_write(path, instead=instead) as temporary:
        packed = io.BytesIO()
        np.savez(packed, **arrays)
        return temporary.write_bytes(packed.getbuffer())


def write_durably(path: Path, content: bytes, *, instead: str = "another folder") -> None:
    """Replaces a private file; content and name are on the disk when this returns. Missing folders are private."""
    private_folders(path.parent, instead=instead)
    with atomic_write(path, instead=instead, private=True) as temporary:
        temporary.write_bytes(content)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Names in a folder reach the disk: files that were created, renamed or deleted in it."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as problem:
        raise explained(folder, problem, "another folder") from None


def check_writable(folder: Path, *, instead: str = "another folder") -> None:
    """Refuses a folder in which no file can be written; it is created where it is missing."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as problem:
        raise explained(folder, problem, instead) from None


# --- readable by the owner only ---------------------------------------------------------------------------------------


def private_folder(folder: Path) -> Path:
    """Creates a folder with mode 0700; one that exists is tightened."""
    try:
        folder.mkdir(mode=_PRIVATE_FOLDER, parents=True, exist_ok=True)
        folder.chmod(_PRIVATE_FOLDER)
    except OSError as problem:
        raise StorageError(
            f"{folder}: cannot be used ({problem.strerror}); set FOLTR_NODE_HOME to a folder of your own"
        ) from None
    return folder


def private_folders(folder: Path, *, instead: str = "another folder") -> None:
    """Creates the folders of a path that are missing, with mode 0700; those that exist stay as they are."""
    try:
        for missing in reversed([one for one in (folder, *folder.parents) if not one.exists()]):
            missing.mkdir(mode=_PRIVATE_FOLDER, exist_ok=True)
    except OSError as problem:
        raise explained(folder, problem, instead) from None


def private_file(path: Path) -> Path:
    """Creates an empty file with mode 0600 unless it exists; a link in its place is refused."""
    try:
        os.close(os.open(path, _NEW, _PRIVATE_FILE))
        path.chmod(_PRIVATE_FILE)
    except OSError as problem:
        raise StorageError(
            f"{path}: cannot be written ({problem.strerror}); free the path or choose another home"
        ) from None
    return path


def create_private(path: Path, content: bytes) -> None:
    """Writes a new private file, for keys: what stands at the path is never overwritten."""
    try:
        descriptor = os.open(path, _NEW | os.O_EXCL, _PRIVATE_FILE)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError as problem:
        raise StorageError(
            f"{path} could not be written: {problem.strerror or problem}; give the path of a new file"
        ) from None
    sync_folder(path.parent)


def erase_file(path: Path) -> None:
    """Overwrites a file with zeros, then deletes it; both are on the disk when this returns. Flash memory and snapshots
    may keep the old bytes."""
    try:
        with path.open("r+b", buffering=0) as file:
            file.write(bytes(path.stat().st_size))
            os.fsync(file.fileno())
        path.unlink()
    except FileNotFoundError:
        return
    except OSError as problem:
        raise explained(path, problem, "another folder") from None
    sync_folder(path.parent)


def private_files(folder: Path) -> None:
    """Gives the files of a folder mode 0600: for those that a library creates by the process's own rules."""
    for file in folder.iterdir():
        with contextlib.suppress(FileNotFoundError):  # merged with others meanwhile
            file.chmod(_PRIVATE_FILE)


# --- locks ------------------------------------------------------------------------------------------------------------


@contextmanager
def locked(*paths: Path) -> Iterator[None]:
    """Holds the locks of files: one process at a time, and one thread. The kernel releases them when a process ends.

    The lock of a file is `.NAME.lock` beside it, and the file itself where it exists: names that lead to one file
    through symbolic links, hard links or mounts have one lock.
    """
    with ExitStack() as stack:
        for path in sorted({path.resolve() for path in paths}):
            private_folders(path.parent)
            lock = stack.enter_context(opened(path.with_name(f".{path.name}.lock"), _NEW))
            fcntl.flock(lock, fcntl.LOCK_EX)
        inodes = {}
        for path in paths:
            try:
                status = path.stat()
            except FileNotFoundError:
                continue
            except OSError as problem:
                raise explained(path, problem, "another folder") from None
            inodes[status.st_dev, status.st_ino] = path
        for _, path in sorted(inodes.items()):
            fcntl.flock(stack.enter_context(opened(path, os.O_RDONLY | os.O_CLOEXEC)), fcntl.LOCK_EX)
        yield


@contextmanager
def held(path: Path, work: str) -> Iterator[None]:
    """Holds a lock file, or refuses at once with the number of the process that holds it. `work`: what it does."""
    private_file(path)
    with path.open("r+b", buffering=0) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = (lock.read(32) or b"").strip().decode("ascii", "replace") or "unknown"
            raise StorageError(f"{path}: another process (number {owner}) is {work}; wait for it or end it") from None
        with contextlib.suppress(OSError):  # a full disk: only the number for the message above is missing
            lock.truncate(0)
            lock.write(f"{os.getpid()}\n".encode("ascii"))
        yield


@contextmanager
def announced(path: Path, content: str) -> Iterator[None]:
    """A private file that is locked while its writer lives (`is_announced`), and deleted afterwards."""
    with private_file(path).open("r+", encoding="utf-8") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        stream.truncate(0)
        stream.write(content)
        stream.flush()
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def is_announced(path: Path) -> bool:
    """Whether the process that wrote an announcement lives; its number may belong to another process by now."""
    try:
        with path.open("rb") as stream:
            fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # it ended meanwhile
        return False
    return False


@contextmanager
def opened(path: Path, flags: int, *, instead: str = "another folder") -> Iterator[int]:
    """A file descriptor; a file that is created is private."""
    try:
        descriptor = os.open(path, flags, _PRIVATE_FILE)
    except OSError as problem:
        raise explained(path, problem, instead) from None
    try:
        yield descriptor
    finally:
        os.close(descriptor)


# --- JSON and messages ------------------------------------------------------------------------------------------------


def dump_json(content: Any) -> str:
    """Every JSON text that foltr writes: NaN becomes null and an infinity "infinite", since JSON has neither."""
    return json.dumps(_without_nan(content), indent=1, ensure_ascii=False, allow_nan=False)


def _without_nan(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else "infinite" if value > 0 else "-infinite"
    return value


def explained(path: Path, problem: OSError, instead: str) -> StorageError:
    """An error of the operating system as a message that says what to do."""
    if problem.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageError(f"{path}: the disk is full; free some space or choose {instead}, then try again")
    if problem.errno == errno.EFBIG:
        return StorageError(f"{path}: a limit on the size of files was reached; raise it (ulimit -f), then try again")
    if problem.errno == errno.ELOOP:
        return StorageError(f"{path}: a symbolic link stands where a file of foltr's own belongs; remove it")
    return StorageError(f"{path}: cannot be written ({problem.strerror or problem}); choose {instead}")
