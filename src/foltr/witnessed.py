"""State that must not go back: a file, and a witness of its newest content in a folder that no backup restores with it.

Who restores an old copy of such a file would charge, answer or open a second time what the file has forgotten. Three
forms, each with functions over plain data:

    chain    read_chain, append          records that are all kept, each with the digest of those before it: the ledger
    state    read_state, write_state     one content that is replaced whole and names the digest of the one before it,
                                         with a witness or without: files of a silo
    sealed   head, load, save, erase     one secret content under a key of its own for every write, which only the
                                         witness has: rounds of a node, memory of an aggregator

Chain and state are written first, their witness second (`write_witness`). `compare` tells how the two stand:

    agrees    the newest content is the one that the witness saw
    ahead     a crash between the two writes: the content counts, and the witness follows
    older     the file was restored from a backup, or is lost
    forked    the file has another content at that number: a copy was used elsewhere

Of a sealed state only the newest file opens. A crash between its two writes loses it; no content comes back. Its number
is in both files, so that a witness that is damaged or missing makes no number free.

Not noticed: both folders restored together. Files that are overwritten may remain on a disk; memory is not wiped.
"""

import contextlib
import errno
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Annotated, ClassVar, Generic, Literal, NamedTuple, Protocol, TypeAlias, TypeVar

import msgspec

from foltr.errors import SecureAggregationError, SpecError, StateError, StorageError
from foltr.files import explained, locked, opened, sync_folder, write_durably
from foltr.secagg import crypto
from foltr.secagg.crypto import HidesSecrets

VERSION = 1  # of witnesses
START = bytes(32)  # the digest before the first record
_DIGITS = 2 * len(START)  # hexadecimal
_TORN_FIRST = re.compile(rb"\0*|[0-9a-f]{0,64}|[0-9a-f]{64} [^\n]{0,200}\n?")
_SEALED = re.compile(rb"foltr sealed 1 ([0-9]{1,20}) ([ -~]{0,256})\n")  # number and owner: they outlive the witness
Natural = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
HexDigest = Annotated[str, msgspec.Meta(pattern=f"^[0-9a-f]{{{_DIGITS}}}$")]
Standing: TypeAlias = Literal["agrees", "ahead", "older", "forked"]


class Place(NamedTuple):
    path: Path
    witness: Path | None
    name: str  # in messages; authenticated with a sealed state
    remedy: str = "restore the newest file"  # what the person can do about a state that is refused


class Numbered(Protocol):
    """A record of a chain."""

    @property
    def number(self) -> int: ...
    @property
    def merged(self) -> tuple[int, str] | None: ...  # number and digest of the witness that a repair answers


class Sighting(Protocol):
    """Content that a witness holds at least."""

    @property
    def number(self) -> int: ...
    @property
    def digest(self) -> str: ...  # hexadecimal
    @property
    def version(self) -> int: ...


Record = TypeVar("Record", bound=Numbered)
Witness = TypeVar("Witness", bound=Sighting)
Content = TypeVar("Content", bound=msgspec.Struct)


# --- both files -------------------------------------------------------------------------------------------------------


def checked(place: Place) -> Place:
    """The place without symbolic links, so that two names of a file are one; refuses a witness in the folder that it
    watches, or below it."""
    resolved = place._replace(path=place.path.resolve(), witness=place.witness and place.witness.resolve())
    if resolved.witness is not None and resolved.witness.is_relative_to(resolved.path.parent):
        raise SpecError(
            f"{place.witness}: the witness of a {place.name} belongs in another folder, one that is not backed up and "
            f"restored together with {resolved.path.parent}"
        )
    return resolved


@contextmanager
def exclusive(place: Place) -> Iterator[None]:
    """One process at a time reads and writes both files."""
    with locked(*(path for path in place[:2] if path is not None)):
        yield


def compare(digests: Mapping[int, bytes], seen: Sighting) -> Standing:
    """Relation of a file to its witness. `digests`: of the contents that the file names, by number."""
    newest = max(digests, default=0)
    if newest < seen.number:
        return "older"
    if digests and digests.get(seen.number) != bytes.fromhex(seen.digest):
        return "forked"
    return "agrees" if newest == seen.number else "ahead"


def read_witness(place: Place, kind: type[Witness]) -> Witness | None:
    """The witness; None where there is no file."""
    content = None if place.witness is None else _read(place.witness, f"the witness of the {place.name}")
    if content is None:
        return None
    try:
        witness = msgspec.json.decode(content, type=kind)
        if len(bytes.fromhex(witness.digest)) != len(START):
            raise ValueError(f"a digest of {len(witness.digest)} digits")
    except (msgspec.DecodeError, ValueError) as problem:
        raise StateError(f"{place.witness}: not the witness of a {place.name}, or damaged ({problem})") from None
    if witness.version != VERSION:
        raise StateError(f"{place.witness}: a witness of version {witness.version}; this program reads {VERSION}")
    return witness


def write_witness(place: Place, witness: Sighting) -> None:
    """On the disk when this returns; a crash leaves the old one or the new one. Nothing where there is no witness."""
    if place.witness is not None:
        write_durably(place.witness, msgspec.json.encode(witness), instead="another folder for the witness")


def _read(path: Path, called: str) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise StorageError(f"{path}: {called} cannot be read ({problem.strerror or problem})") from None


# --- a chain of records -----------------------------------------------------------------------------------------------


class Chain(NamedTuple, Generic[Record]):
    """A file of records, one a line, `digest payload`. The digest is SHA-256 over the digest before it and the payload,
    JSON: no record can be changed, removed or exchanged without breaking all after it. Numbers rise by one; that of a
    repair is above the witness's that it answers."""

    records: tuple[Record, ...]
    digests: Mapping[int, bytes]  # of each number, and of the witnesses that repairs answer
    size: int  # bytes of whole records
    torn: int  # bytes of a torn record after them, as a crash leaves it: its digest is wrong and no record follows


def read_chain(place: Place, kind: type[Record]) -> Chain[Record] | None:
    """Every record checked; None: there is no file, an empty one, or a torn first record."""
    path, content = place.path, _read(place.path, f"the {place.name}")
    if content is None:
        return None
    records: list[Record] = []
    digests: dict[int, bytes] = {}
    digest, size = START, 0
    while size < len(content):
        end = content.find(b"\n", size) + 1
        line, number = content[size : end - 1], records[-1].number + 1 if records else 0
        if not end or line[: _DIGITS + 1] != sha256(digest + line[_DIGITS + 1 :]).hexdigest().encode() + b" ":
            break
        record = _decoded(path, line, kind)
        if record.number < number or (record.number > number and record.merged is None):
            break
        digest = bytes.fromhex(line[:_DIGITS].decode())
        digests |= _named(record, digest)
        records.append(record)
        size = end
    torn = content[size:]
    if torn.find(b"\n", 0, -1) >= 0 and _continues(torn):
        raise StateError(f"{path}: damaged after record {len(records)}, and further records follow: this is no crash")
    if not records and not _TORN_FIRST.fullmatch(content):
        raise StateError(f"{path}: not the {place.name} of a node, or damaged in its first record")
    return Chain(tuple(records), digests, size, len(torn)) if records else None


def digest_of(record: Numbered, chain: Chain[Record] | None = None) -> bytes:
    """Of a record that is appended to a chain."""
    before = chain.digests[chain.records[-1].number] if chain else START
    return sha256(before + msgspec.json.encode(record)).digest()


def append(place: Place, chain: Chain[Record] | None, record: Record) -> Chain[Record]:
    """On the disk when this returns. A torn record is cut off first."""
    path, digest, instead = place.path, digest_of(record, chain), f"another folder for the {place.name}"
    line = digest.hex().encode() + b" " + msgspec.json.encode(record) + b"\n"
    size = chain.size if chain else 0
    with opened(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, instead=instead) as file:
        os.ftruncate(file, size)
        try:
            written = os.pwrite(file, line, size)
            if written < len(line):
                raise OSError(errno.ENOSPC, "the record was not written whole")
            os.fsync(file)
        except OSError as problem:
            with contextlib.suppress(OSError):  # what is left of it is a torn record, which counts
                os.ftruncate(file, size)
            raise explained(path, problem, instead) from None
    if not chain:
        sync_folder(path.parent)
    records = (*chain.records, record) if chain else (record,)
    return Chain(records, {**(chain.digests if chain else {}), **_named(record, digest)}, size + len(line), 0)


def _decoded(path: Path, line: bytes, kind: type[Record]) -> Record:
    try:
        record = msgspec.json.decode(line[_DIGITS + 1 :], type=kind)
        if record.merged is not None:
            bytes.fromhex(record.merged[1])
    except (msgspec.DecodeError, ValueError) as problem:  # the digest is right: another program wrote it
        raise StateError(f"{path}: a record that this version cannot read ({problem}); use a newer one") from None
    return record


def _named(record: Numbered, digest: bytes) -> dict[int, bytes]:
    merged = {} if record.merged is None else {record.merged[0]: bytes.fromhex(record.merged[1])}
    return {**merged, record.number: digest}


def _continues(rest: bytes) -> bool:
    """Whether after a wrong record there are more: lines that begin with a digest and a payload."""
    return any(line[_DIGITS : _DIGITS + 2] == b" {" for line in rest.split(b"\n")[1:])


# --- one content, replaced whole --------------------------------------------------------------------------------------


class State(NamedTuple):
    content: bytes | None  # None: nothing was stored yet
    number: int  # of writes with a witness
    digest: bytes  # of the file


class Seen(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The witness of a state."""

    number: Natural
    digest: HexDigest
    version: int = VERSION


class _Witnessed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A state file that has a witness; without one, and in earlier versions of foltr, the file is the content."""

    number: Natural
    before: HexDigest  # of the file before it
    content: msgspec.Raw


def read_state(place: Place) -> State:
    """The stored content, checked against its witness, which is begun where there is none yet."""
    stored = _read(place.path, f"the {place.name}")
    digest, wrapped = sha256(stored or b"").digest(), None
    with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError):
        wrapped = msgspec.json.decode(stored or b"", type=_Witnessed)
    seen = read_witness(place, Seen)
    if wrapped is not None and seen is None:
        where = place.witness or place.path
        raise StateError(f"{where}: this {place.name} has a witness, which is missing; {place.remedy}")
    if wrapped is None:
        state, digests = State(stored, 0, digest), {0: digest}
    else:
        state = State(bytes(wrapped.content), wrapped.number, digest)
        digests = {wrapped.number - 1: bytes.fromhex(wrapped.before), wrapped.number: digest}
    if seen is not None and compare(digests, seen) in ("older", "forked"):
        raise StateError(
            f"{place.path}: not the {place.name} of write {seen.number}, which its witness {place.witness} saw: an "
            f"older one was restored, a copy was used elsewhere, or it is lost; nothing leaves: {place.remedy}"
        )
    if seen is None or seen.number < state.number:
        write_witness(place, Seen(state.number, digest.hex()))
    return state


def write_state(place: Place, before: State, content: bytes) -> State:
    """Replaces a state; on the disk when this returns. `content`: JSON. `before`: as it was read under `exclusive`."""
    number, written = before.number, content
    if place.witness is not None:
        number += 1
        written = msgspec.json.encode(_Witnessed(number, before.digest.hex(), msgspec.Raw(content)))
    write_durably(place.path, written)
    digest = sha256(written).digest()
    write_witness(place, Seen(number, digest.hex()))
    return State(content, number, digest)


# --- one secret content -----------------------------------------------------------------------------------------------


class Head(HidesSecrets, msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The witness of a sealed state."""

    number: int  # the highest that was saved; -1: none
    digest: bytes = b""  # of the file; empty: erased
    key: bytes = b""  # secret
    owner: str = ""  # to whom the state belongs, such as a federation or a ledger
    check: bytes = b""  # digest of the fields before it; earlier versions of foltr wrote none

    shown: ClassVar[tuple[str, ...]] = ("number",)


def head(place: Place) -> Head:
    """The witness of a sealed state, also of one that was erased."""
    content = _read(_witness_path(place), f"the witness of the {place.name}")
    if content is None and _head_of_file(place).number < 0:
        return Head(-1)
    if content is None:
        raise StateError(f"{place.witness}: the witness of {place.path} is missing; nothing is sent: {place.remedy}")
    try:
        newest = msgspec.msgpack.decode(content, type=Head)
        if newest.check and newest.check != _check_of(newest):
            raise ValueError("its digest is wrong")
    except (msgspec.DecodeError, ValueError) as problem:
        raise StateError(
            f"{place.witness}: the witness of the {place.name} is damaged ({problem}); nothing is sent: {place.remedy}"
        ) from None
    return newest


def load(place: Place, kind: type[Content]) -> Content:
    """The newest content; an older file, and one without its witness, does not open."""
    newest = head(place)
    if not newest.key:
        raise SecureAggregationError(f"this node has no open {place.name}; join one first")
    sealed = _read(place.path, f"the {place.name}") or b""
    if sha256(sealed).digest() != newest.digest:
        raise SecureAggregationError(
            f"{place.path} is not the newest state of {place.name} {newest.number}: it was restored from a copy, or a "
            f"write was interrupted; this {place.name} is lost and nothing is sent; join the next one"
        )
    line = _SEALED.match(sealed)
    prefix = line[0] if line else b""
    plain = crypto.decrypt(newest.key, sealed[len(prefix) :], place.name.encode() + prefix)
    try:
        return msgspec.msgpack.decode(plain, type=kind)
    except (msgspec.DecodeError, ValueError) as problem:
        raise SecureAggregationError(f"{place.path}: of another version of foltr ({problem}); it is lost") from None


def save(place: Place, number: int, content: msgspec.Struct, *, owner: str = "") -> None:
    """State first, then its head: after a crash between the two the content is lost and not answered twice."""
    key, prefix = crypto.new_secret(), f"foltr sealed 1 {number} {owner}\n".encode("ascii")
    sealed = prefix + crypto.encrypt(key, msgspec.msgpack.encode(content), place.name.encode() + prefix)
    if not _witness_path(place).exists():  # a state is never seen without its witness, also after a crash
        _write_head(place, Head(-1, owner=owner))
    write_durably(place.path, sealed)
    _write_head(place, Head(number, sha256(sealed).digest(), key, owner))


def erase(place: Place, *, highest: int | None = None) -> None:
    """Key and digest go first: without them the state opens no more. The number stays used.

    Where the witness is damaged or missing, number and owner are those of the state file; where this is lost too, the
    person states the `highest` number that may have been used.
    """
    try:
        newest = head(place)
    except StateError as problem:
        newest = _head_of_file(place)
        if newest.number < 0 and highest is None:
            raise StateError(f"{problem}; state the highest number that may have been used (highest = ...)") from None
    number = newest.number if highest is None else max(newest.number, highest)
    _write_head(place, Head(number, owner=newest.owner))
    place.path.unlink(missing_ok=True)


def _write_head(place: Place, newest: Head) -> None:
    content = msgspec.msgpack.encode(msgspec.structs.replace(newest, check=_check_of(newest)))
    write_durably(_witness_path(place), content)


def _check_of(newest: Head) -> bytes:
    return sha256(msgspec.msgpack.encode(msgspec.structs.replace(newest, check=b""))).digest()


def _head_of_file(place: Place) -> Head:
    """Number and owner of a sealed state without its witness; -1 where there is no file, or one of an earlier version
    of foltr, which did not say them."""
    line = _SEALED.match(_read(place.path, f"the {place.name}") or b"")
    return Head(int(line[1]), owner=line[2].decode("ascii")) if line else Head(-1)


def _witness_path(place: Place) -> Path:
    if place.witness is None:
        raise SpecError(f"{place.path}: a sealed {place.name} needs a witness; name its path")
    return place.witness
