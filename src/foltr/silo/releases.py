"""Releases of an owner's documents: one for every content of a document, with noise that follows from that content.

Noise belongs to content, not to a name. A version is a digest of what a release depends on (a document's exact sketch,
or its words and counts in an index, both under the group's key). Its noise follows from a secret of the owner and the
version: the same question gets the same answer today, after a restart, under another name, and when an earlier content
comes back. `release` takes the owner's documents as they are now and the releases so far:

    unchanged   the same noise; nothing is charged
    renamed     the same noise and the same account, which the new name goes on with; so is a copy
    edited      new noise, and the document is charged again: its words have spent epsilon twice
    returned    to a content that it had before, by an edit or after a deletion: that content's noise, and no charge
    new         new noise, charged once

An account is the list of contents of one document. A content that has left the name it was under takes its account
along. A name that stays keeps its account, whatever is written into it; a new name with a content of earlier goes on
with the longest account that can be its own: of a name that is still there with another content, the part up to this
content, so that copies of a template do not add up. In doubt an account is too long. Beyond the budget a document is
not released, and nothing is written.

`release_to_file` stores accounts and secret before anybody can be answered; the file is the owner's own. An account
file of an earlier version (noised sketches) is read as what its documents have spent: its noise belonged to names, so
every document is released again and charged again.

Not covered: a document that gets a new name and a new content between two releases counts as a new one, and its words
are in two accounts. Exact copies have equal answers, which shows that they are copies. A file that is restored from a
backup has the accounts of its day; the noise stays the same.

Adversary: whoever gets answers, and the server with a colluding member. Unit word (one occurrence in a document and its
exact copies), adjacency zero-out (`noise`).

Differs from the paper: it draws noise for every answer and counts no releases.
"""

import hashlib
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from foltr.atomic import write_durably
from foltr.errors import DataError, PrivacyError, SpecError
from foltr.privacy.ledger_records import locked
from foltr.secagg.crypto import SECRET
from foltr.silo import messages, noise, storage
from foltr.silo.index import Index
from foltr.silo.sketches import Sketch
from foltr.silo.statistics import StatisticsTable
from foltr.types import Array

VERSION = 1  # of the file of accounts
_FORGOTTEN = "forgotten"  # a release of an earlier version of foltr, which stored the newest content only
_ROUNDING = 1 + 1e-9


class Releases(NamedTuple):
    held: Sketch | Index  # sketches with noise; an index gets its noise when it is read
    epsilon: float  # of one release
    names: tuple[str, ...]  # [documents]
    secret: bytes  # of the noise
    accounts: dict[str, tuple[str, ...]]  # contents released under each name, oldest first; also of deleted ones


class _Stored(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    version: int
    epsilon: float
    secret: str  # hexadecimal digits
    names: tuple[str, ...]  # of the documents that are there
    accounts: dict[str, tuple[str, ...]]


def release(
    exact: Sketch | Index, names: Sequence[str], before: Releases | None, *, epsilon: float,
    budget: float | None = None, uniforms: noise.Uniforms = noise.from_system,
) -> Releases:  # fmt: skip
    """The releases after these documents; `budget`: the largest epsilon that any word may spend."""
    stored = None if before is None else _stored(before)
    after = _charge(stored, _versions(exact), names, epsilon=epsilon, budget=budget, uniforms=uniforms)
    return _released(exact, after)


def release_to_file(
    path: Path, exact: Sketch | Index, names: Sequence[str], *, epsilon: float, budget: float | None = None
) -> Releases:
    """The releases in a file after these documents, stored before they are returned; noise of the operating system."""
    with locked(path):
        before = _read(path) if path.exists() else None
        after = _charge(before, _versions(exact), names, epsilon=epsilon, budget=budget, uniforms=noise.from_system)
        write_durably(path, msgspec.json.encode(after))
    return _released(exact, after)


def release_times(releases: Releases) -> Array:
    """[documents] how many releases the account of each document has."""
    return np.array([len(releases.accounts[name]) for name in releases.names], np.int64)


def statistics_to_file(path: Path, release_table: Callable[[], StatisticsTable]) -> StatisticsTable:
    """The table of word statistics in a file; drawn by `release_table` and stored only where there is none.

    A second table of the same documents would be a second release: to tell new statistics, use a new file and charge
    its event again (`owners.with_statistics`).
    """
    with locked(path):
        if path.exists():
            try:
                return messages.statistics_table(messages.decode(path.read_bytes(), messages.StatisticsAnswer))
            except DataError as problem:
                raise DataError(f"{path} holds no statistics ({problem}); restore it from a copy") from None
        table = release_table()
        write_durably(path, messages.encode(messages.statistics_answer(table)))
    return table


def _released(exact: Sketch | Index, after: _Stored) -> Releases:
    secret = bytes.fromhex(after.secret)
    held = exact if isinstance(exact, Index) else _noised(exact, after.epsilon, secret)
    return Releases(held, after.epsilon, after.names, secret, dict(after.accounts))


def _noised(exact: Sketch, epsilon: float, secret: bytes) -> Sketch:
    cells = np.empty_like(exact.cells)
    for place, version in enumerate(_versions(exact)):
        one = exact._replace(cells=exact.cells[place : place + 1])
        draws = noise.of_content(secret, bytes.fromhex(version))
        cells[place] = noise.perturb_sketch(one, epsilon, draws).cells[0]
    return exact._replace(cells=cells)


def _versions(exact: Sketch | Index) -> list[str]:
    """[documents] digests of contents."""
    if isinstance(exact, Index):
        return [bytes(version).hex() for version in exact.versions]
    if exact.cells.ndim != 3:
        raise SpecError(f"one sketch a document is needed, not cells {exact.cells.shape}")
    each = (np.ascontiguousarray(cells, "<i4").tobytes() for cells in exact.cells)
    return [hashlib.blake2b(content, digest_size=16).hexdigest() for content in each]


def _charge(
    before: _Stored | None, versions: Sequence[str], names: Sequence[str], *, epsilon: float, budget: float | None,
    uniforms: noise.Uniforms,
) -> _Stored:  # fmt: skip
    """The accounts after these documents; refuses what exceeds the budget."""
    noise.check_noise("one_shot", epsilon)
    if len(names) != len(versions) or len(set(names)) < len(names):
        raise SpecError(f"{len(names)} names for {len(versions)} documents; give every document a name of its own")
    if before is not None and before.epsilon != epsilon:
        raise SpecError(
            f"releases of epsilon {before.epsilon:g} go on with epsilon {epsilon:g}; use the same, or a new file: "
            "all documents are then released again"
        )
    contents = dict(zip(names, versions, strict=True))
    spent = {} if before is None else dict(before.accounts)
    accounts = _accounts(spent, () if before is None else before.names, contents)
    _require_affordable(spent, accounts, epsilon, budget)
    secret = uniforms(4).tobytes().hex() if before is None else before.secret
    return _Stored(VERSION, epsilon, secret, tuple(names), spent | accounts)


def _accounts(
    spent: Mapping[str, tuple[str, ...]], present: Sequence[str], contents: Mapping[str, str]
) -> dict[str, tuple[str, ...]]:
    """The account of every document, the current content last. `present`: the names before."""
    left = {spent[name][-1]: name for name in present if contents.get(name) != spent[name][-1]}
    earlier = _origins(spent, contents)
    accounts = {}
    for name, version in contents.items():
        stays = name in present and spent[name][-1] == version
        before = spent[name] if stays else spent[left[version]] if version in left else spent.get(name)
        before = earlier.get(version, ()) if before is None else before
        accounts[name] = (*(other for other in before if other != version), version)
    return accounts


def _origins(spent: Mapping[str, tuple[str, ...]], contents: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """The longest account that a new name goes on with, by content."""
    longest: dict[str, tuple[str, ...]] = {}
    for name, account in spent.items():
        for place, version in enumerate(account):
            shared = account[: place + 1] if name in contents else account
            if len(shared) > len(longest.get(version, ())):
                longest[version] = shared
    return longest


def _require_affordable(
    spent: Mapping[str, tuple[str, ...]], accounts: Mapping[str, tuple[str, ...]], epsilon: float, budget: float | None
) -> None:
    """Only what is released for the first time, or lengthens the account of its name, is refused."""
    if budget is None:
        return
    released = {version for account in spent.values() for version in account}
    beyond = [
        name
        for name, account in accounts.items()
        if len(account) * epsilon > budget * _ROUNDING
        and (account[-1] not in released or len(account) > len(spent.get(name, account)))
    ]
    if beyond:
        first = beyond[0]
        raise PrivacyError(
            f"{first}: release {len(accounts[first])} of epsilon {epsilon:g} would exceed the budget of "
            f"{budget:g} for its words ({len(beyond):,} documents in all); nothing was released: leave its edits out, "
            "or raise the budget"
        )


def _stored(releases: Releases) -> _Stored:
    return _Stored(VERSION, releases.epsilon, releases.secret.hex(), releases.names, releases.accounts)


def _read(path: Path) -> _Stored:
    """The stored accounts; of a file of an earlier version: what its documents have spent, and a new secret."""
    if zipfile.is_zipfile(path):
        return _of_earlier_version(path)
    try:
        stored = msgspec.json.decode(path.read_bytes(), type=_Stored)
        usable = stored.version == VERSION and len(bytes.fromhex(stored.secret)) == SECRET
    except (OSError, ValueError, msgspec.DecodeError) as problem:
        raise DataError(f"{path} holds no releases of documents ({problem}); restore it from a copy") from None
    if not usable or not set(stored.names) <= set(stored.accounts):
        raise DataError(f"{path} holds releases of another version of foltr, or damaged ones; restore it from a copy")
    return stored


def _of_earlier_version(path: Path) -> _Stored:
    about, times = storage.releases_of_earlier_version(path)
    names, deleted, epsilon = (about.get(key) for key in ("names", "deleted", "epsilon"))
    if not isinstance(names, list) or not isinstance(deleted, dict) or not isinstance(epsilon, float | int):
        raise DataError(f"{path} holds no releases of documents; restore it from a copy")
    if len(names) != len(times):
        raise DataError(f"{path} holds releases of {len(times)} documents and {len(names)} names; restore it")
    spent = deleted | dict(zip(names, times, strict=True))
    accounts = {name: (_FORGOTTEN,) * int(number) for name, number in spent.items()}
    secret = noise.from_system(4).tobytes().hex()
    return _Stored(VERSION, float(epsilon), secret, tuple(names), accounts)
