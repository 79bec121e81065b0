"""The two files of a node's ledger: an append-only chain of records, and a witness of its newest one.

Ledger: one record a line, `digest payload`. The payload is JSON and starts with the record's number; the digest is
SHA-256 over the digest before it and the payload, so no record can be changed, removed or exchanged without breaking
all after it. The first record holds a random identifier: no two ledgers share a digest.

Witness: number and digest of the newest record, the highest round of every federation, and the worst event of each
kind that was ever charged (what a missing record costs at most). It is replaced by an atomic rename.

What a crash leaves behind: the last record of the ledger is torn, or the witness is one record behind. A record is torn
when its digest is wrong AND no record follows it. A wrong digest before the last record is damage.
"""

import contextlib
import fcntl
import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import msgspec

from foltr.atomic import atomic_write, explained
from foltr.errors import PrivacyError, StorageError
from foltr.privacy.events import Event

VERSION = 1
START = bytes(32)  # the digest before the first record
_DIGEST = 2 * len(START)  # hexadecimal digits
_TORN_FIRST = re.compile(rb"\0*|[0-9a-f]{0,64}|[0-9a-f]{64} [^\n]{0,200}\n?")
Natural = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
Charges = tuple[tuple[Event, Natural], ...]  # events with how often each is counted


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """`ledger`: the first one, where there is no witness. `witness`: from here on there is one. `release`: one charge.
    `repair`: charges for records that are missing; its number may jump, `merged` names the witness that it answers."""

    number: Natural
    kind: Literal["ledger", "release", "witness", "repair"]
    events: Charges = ()
    rounds: dict[str, Natural] = {}  # highest round of federations
    merged: tuple[Natural, str] | None = None
    note: str = ""


class Chain(NamedTuple):
    """A ledger file as read."""

    records: tuple[Record, ...]
    digests: Mapping[int, bytes]  # of each number, and of the witnesses that repairs answer
    size: int  # bytes of whole records
    torn: int  # bytes of a torn record after them


class Witness(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    number: Natural
    digest: str
    rounds: dict[str, Natural]
    worst: tuple[Event, ...]  # one for each kind of composition
    version: int = VERSION


@contextmanager
def locked(*paths: Path) -> Iterator[None]:
    """One process at a time, and one thread; the kernel lets go when a process ends, however it ends."""
    with ExitStack() as stack:
        for path in sorted(paths):
            lock = stack.enter_context(_opened(path.with_name(f".{path.name}.lock"), os.O_RDWR | os.O_CREAT))
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def read_chain(path: Path) -> Chain | None:
    """Every record checked; None: there is no file, an empty one, or a torn first record."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise StorageError(f"{path}: the ledger cannot be read ({problem.strerror or problem})") from None
    records: list[Record] = []
    digests: dict[int, bytes] = {}
    digest, size = START, 0
    while size < len(content):
        end = content.find(b"\n", size) + 1
        record = _decoded(content[size : end - 1], digest, records[-1].number if records else -1) if end else None
        if record is None:
            break
        digest = bytes.fromhex(content[size : size + _DIGEST].decode())
        if record.merged is not None:
            digests[record.merged[0]] = bytes.fromhex(record.merged[1])
        digests[record.number] = digest
        records.append(record)
        size = end
    torn = content[size:]
    if torn.find(b"\n", 0, -1) >= 0 and _continues(torn):
        raise PrivacyError(
            f"{path}: damaged after record {len(records)}, and further records follow: this is no crash; restore the "
            "file as it was, or repair the ledger from its witness"
        )
    if not records and not _TORN_FIRST.fullmatch(content):
        raise PrivacyError(f"{path}: not the ledger of a node, or damaged in its first record")
    return Chain(tuple(records), digests, size, len(torn)) if records else None


def _continues(rest: bytes) -> bool:
    """Whether after a wrong record there are more: lines that begin with a digest and a payload."""
    return any(line[_DIGEST : _DIGEST + 2] == b" {" for line in rest.split(b"\n")[1:])


def digest_of(record: Record, chain: Chain | None = None) -> bytes:
    """Of a record that is appended to a chain."""
    before = chain.digests[chain.records[-1].number] if chain else START
    return hashlib.sha256(before + msgspec.json.encode(record)).digest()


def append(path: Path, chain: Chain | None, record: Record) -> Chain:
    """On the disk when this returns. A torn record is cut off first."""
    digest = digest_of(record, chain)
    line = digest.hex().encode() + b" " + msgspec.json.encode(record) + b"\n"
    size = chain.size if chain else 0
    with _opened(path, os.O_RDWR | os.O_CREAT) as file:
        os.ftruncate(file, size)
        try:
            written = os.pwrite(file, line, size)
            if written < len(line):
                raise OSError(28, "no space left")
            os.fsync(file)
        except OSError as problem:
            with contextlib.suppress(OSError):  # what is left of it is a torn record, which counts
                os.ftruncate(file, size)
            raise explained(path, problem, "another folder for the ledger") from None
    if not chain:
        sync_folder(path.parent)
    records = (*chain.records, record) if chain else (record,)
    digests = {**(chain.digests if chain else {}), record.number: digest}
    if record.merged is not None:
        digests[record.merged[0]] = bytes.fromhex(record.merged[1])
    return Chain(records, digests, size + len(line), 0)


def _decoded(line: bytes, before: bytes, number: int) -> Record | None:
    """A record in its place; None where digest, form or number is wrong."""
    digest, payload = line[:_DIGEST], line[_DIGEST + 1 :]
    if hashlib.sha256(before + payload).hexdigest().encode() != digest or line[_DIGEST : _DIGEST + 1] != b" ":
        return None
    try:
        record = msgspec.json.decode(payload, type=Record)
    except msgspec.DecodeError as problem:  # the digest is right: another program wrote it
        raise PrivacyError(
            f"a record of the ledger that this version cannot read ({problem}); use a newer one"
        ) from None
    follows = record.number > number if record.kind == "repair" else record.number == number + 1
    return record if follows else None


def read_witness(path: Path) -> Witness | None:
    try:
        witness = msgspec.json.decode(path.read_bytes(), type=Witness)
        if witness.version != VERSION:
            raise PrivacyError(f"{path}: a witness of version {witness.version}; this program reads {VERSION}")
        if len(bytes.fromhex(witness.digest)) != len(START):
            raise ValueError("digest")
        return witness
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise StorageError(f"{path}: the witness cannot be read ({problem.strerror or problem})") from None
    except (msgspec.DecodeError, ValueError) as problem:
        raise PrivacyError(f"{path}: not the witness of a ledger, or damaged ({problem})") from None


def write_witness(path: Path, witness: Witness) -> None:
    """On the disk when this returns; a crash leaves the old one or the new one."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    with atomic_write(path, instead="another folder for the witness") as temporary, _opened(temporary, flags) as file:
        os.write(file, msgspec.json.encode(witness))
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """A new name in a folder is on the disk."""
    with _opened(folder, os.O_RDONLY) as opened:
        os.fsync(opened)


@contextmanager
def _opened(path: Path, flags: int) -> Iterator[int]:
    """A file that nobody but its owner reads."""
    try:
        if flags & os.O_CREAT:
            path.parent.mkdir(parents=True, exist_ok=True)
        number = os.open(path, flags, 0o600)
    except OSError as problem:
        raise explained(path, problem, "another folder for the ledger") from None
    try:
        yield number
    finally:
        os.close(number)
