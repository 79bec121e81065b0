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
    new key     of a new epoch of the group: new noise for everything, and everything is charged again; a name that is
                new at the same time goes on with the longest account of those that are gone

An account is the list of contents of one document. A content that has left the name it was under takes its account
along. A name that stays keeps its account, whatever is written into it; a new name with a content of earlier goes on
with the longest account that can be its own: of a name that is still there with another content, the part up to this
content, so that copies of a template do not add up. Where a document can have come from several names, its account has
the contents of all of them: in doubt an account is too long. Beyond the budget a document is not released, and nothing
is written.

`release_to_file` stores accounts and secret before anybody can be answered; the file is the owner's own. An account
file of an earlier version (noised sketches) is read as what its documents have spent: its noise belonged to names, so
every document is released again and charged again.

Not covered: a document that gets a new name and a new content between two releases counts as a new one, and its words
are in two accounts; so does one that was deleted, whose name a new document has got, and that comes back under another
name with an older content. Exact copies have equal answers, which shows that they are copies. Without a `witness`, a
file that is restored from a backup has the accounts of its day; the noise stays the same. A file that is deleted takes
accounts and noise with it: the next release is a second one of everything.

Files of releases do not know each other: a document that is released in two of them (for two groups, fields or
collections) has noise of its own in each, has spent the sum, and each ledger states its part.

Adversary: whoever gets answers, and the server with a colluding member. Unit word (one occurrence in a document and its
exact copies), adjacency zero-out (`noise`).

Differs from the paper: it draws noise for every answer and counts no releases.
"""

import hashlib
import io
import zipfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from itertools import count
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from foltr.errors import DataError, PrivacyError, SpecError
from foltr.files import locked, write_durably
from foltr.secagg.crypto import SECRET
from foltr.silo import messages, noise, storage
from foltr.silo.index import Index
from foltr.silo.sketches import Sketch
from foltr.silo.statistics import StatisticsTable
from foltr.types import Array
from foltr.witnessed import Place, checked, exclusive, read_state, write_state

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
    key: str = ""  # fingerprint of the group's key; "": of a file that did not store it


def release(
    exact: Sketch | Index, names: Sequence[str], before: Releases | None, *, epsilon: float,
    budget: float | None = None, uniforms: noise.Uniforms = noise.from_system,
) -> Releases:  # fmt: skip
    """The releases after these documents; `budget`: the largest epsilon that any word may spend."""
    stored = None if before is None else _stored(before)
    after = _charge(stored, exact, names, epsilon=epsilon, budget=budget, uniforms=uniforms)
    return _released(exact, after)


def release_to_file(
    path: Path, exact: Sketch | Index, names: Sequence[str], *, epsilon: float, budget: float | None = None,
    witness: Path | None = None,
) -> Releases:  # fmt: skip
    """The releases in a file after these documents, stored before they are returned; noise of the operating system.

    `witness`: a file in a folder that no backup restores with the first; needed from its first use on.
    """
    place = checked(Place(path, witness, "file of releases"))
    with exclusive(place):
        state = read_state(place)
        before = None if state.content is None else _decoded(path, state.content)
        after = _charge(before, exact, names, epsilon=epsilon, budget=budget, uniforms=noise.from_system)
        write_state(place, state, msgspec.json.encode(after))
    return _released(exact, after)


def release_times(releases: Releases) -> Array:
    """[documents] how many releases the account of each document has."""
    return np.array([len(releases.accounts[name]) for name in releases.names], np.int64)


def statistics_to_file(path: Path, release_table: Callable[[], StatisticsTable]) -> StatisticsTable:
    """The table of word statistics in a file; drawn by `release_table` and stored only where there is none.

    A second table of the same documents is a second release with new noise: to tell new statistics, use a new file and
    say how many tables were told (`tables` of `owners.with_statistics`).
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
    before: _Stored | None, exact: Sketch | Index, names: Sequence[str], *, epsilon: float, budget: float | None,
    uniforms: noise.Uniforms,
) -> _Stored:  # fmt: skip
    """The accounts after these documents; refuses what exceeds the budget."""
    noise.check_noise("one_shot", epsilon)
    versions, key = _versions(exact), exact.shape.fingerprint
    if len(names) != len(versions) or len(set(names)) < len(names):
        raise SpecError(f"{len(names)} names for {len(versions)} documents; give every document a name of its own")
    if before is not None and before.epsilon != epsilon:
        raise SpecError(
            f"releases of epsilon {before.epsilon:g} go on with epsilon {epsilon:g}; use the same, or a new file: "
            "all documents are then released again"
        )
    contents = dict(zip(names, versions, strict=True))
    spent = {} if before is None else dict(before.accounts)
    rekeyed = before is not None and before.key not in ("", key)
    accounts = _accounts(spent, () if before is None else before.names, contents, rekeyed=rekeyed)
    _require_affordable(spent, accounts, epsilon, budget)
    secret = uniforms(4).tobytes().hex() if before is None else before.secret
    return _Stored(VERSION, epsilon, secret, tuple(names), spent | accounts | _displaced(spent, accounts), key)


def _accounts(
    spent: Mapping[str, tuple[str, ...]], present: Sequence[str], contents: Mapping[str, str], *, rekeyed: bool
) -> dict[str, tuple[str, ...]]:
    """The account of every document, the current content last. `present`: the names before.

    `rekeyed`: no content has its digest of before, so a new name may have been any of those that are gone.
    """
    left: dict[str, list[str]] = {}  # content -> names that it has left
    for name in present:
        if contents.get(name) != spent[name][-1]:
            left.setdefault(spent[name][-1], []).append(name)
    unchanged = {name for name in present if contents.get(name) == spent[name][-1]}
    arrived = Counter(version for name, version in contents.items() if name not in unchanged)
    earlier = _origins(spent, {name for name, version in contents.items() if version not in left})
    gone = max((spent[name] for name in present if rekeyed and name not in contents), key=len, default=())
    accounts = {}
    for name, version in contents.items():
        own, origin = spent.get(name, ()), earlier.get(version, () if name in spent else gone)
        if name in unchanged:
            before = [own]
        elif version in left:  # moved here from one of these names, or this name's document is back at it
            before = [*(spent[other] for other in left[version]), own if version in own else ()]
            before += [origin] if arrived[version] > len(left[version]) else []  # or a copy, or undeleted
        else:
            before = [own, origin]
        longest = max(before, key=len)
        more = dict.fromkeys(other for account in before for other in account if other not in longest)
        accounts[name] = (*(other for other in (*longest, *more) if other != version), version)
    return accounts


def _displaced(
    spent: Mapping[str, tuple[str, ...]], accounts: Mapping[str, tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    """Accounts of deleted documents whose names another document has taken, under names that no document has."""
    having: dict[str, list[tuple[str, ...]]] = {}
    for account in accounts.values():
        for version in account:
            having.setdefault(version, []).append(account)
    displaced: dict[str, tuple[str, ...]] = {}
    for name in accounts.keys() & spent.keys():
        account = spent[name]
        if not any(set(account) <= set(other) for other in having.get(account[-1], ())):
            free = (key for number in count(1) if (key := f"{name} ({number})") not in {*spent, *accounts})
            displaced[next(free)] = account
    return displaced


def _origins(spent: Mapping[str, tuple[str, ...]], stays: Set[str]) -> dict[str, tuple[str, ...]]:
    """The longest account that a new name goes on with, by content. `stays`: names that no other document has taken."""
    longest: dict[str, tuple[str, ...]] = {}
    for name, account in spent.items():
        for place, version in enumerate(account):
            shared = account[: place + 1] if name in stays else account
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
    key = releases.held.shape.fingerprint
    return _Stored(VERSION, releases.epsilon, releases.secret.hex(), releases.names, releases.accounts, key)


def _decoded(path: Path, content: bytes) -> _Stored:
    """The stored accounts; of a file of an earlier version: what its documents have spent, and a new secret."""
    if zipfile.is_zipfile(io.BytesIO(content)):
        return _of_earlier_version(path)
    try:
        stored = msgspec.json.decode(content, type=_Stored)
        usable = stored.version == VERSION and len(bytes.fromhex(stored.secret)) == SECRET
    except (ValueError, msgspec.DecodeError) as problem:
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
