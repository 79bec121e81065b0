"""The noised sketches of an owner, one release for every version of a document, stored with what they cost.

Noise of a document is drawn when a version of it is released and is stored with it: the same question gets the same
answer, today and after a restart. `release` takes the owner's documents as they are now and the releases so far:

    unchanged   the stored cells; nothing is charged
    edited      new noise, and the document is charged again: its words have spent epsilon twice
    new         new noise, charged once
    deleted     its cells go, its charges stay: should it come back, it goes on from there

A version is a digest of the exact sketch of a document, which is all that a release depends on. Beyond the budget a
document is not released again, and nothing is written. `release_to_file` stores a release before anybody can be
answered from it: noise that was served and lost would be drawn again, and two draws are averaged. The file holds
digests of exact counts: it is the owner's own.

Adversary: whoever gets answers, and the server with a colluding member. Unit word, adjacency zero-out (`noise`).

Differs from the paper: it draws noise for every answer and counts no releases.
"""

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from foltr.atomic import atomic_write
from foltr.errors import DataError, PrivacyError, SpecError
from foltr.silo import messages, noise, storage
from foltr.silo.sketches import Sketch, require_same_shape
from foltr.silo.statistics import StatisticsTable
from foltr.types import Array

_ROUNDING = 1 + 1e-9


class Releases(NamedTuple):
    sketch: Sketch  # [documents, z, w] with noise
    epsilon: float  # of one release
    names: tuple[str, ...]  # [documents]
    versions: Array  # [documents, 16] uint8: digest of the exact sketch
    times: Array  # [documents] int64 releases of each
    deleted: dict[str, int]  # releases of documents that are no longer there


def release(
    exact: Sketch, names: Sequence[str], before: Releases | None, *, epsilon: float,
    budget: float | None = None, uniforms: noise.Uniforms = noise.from_system,
) -> Releases:  # fmt: skip
    """The releases after these documents; `budget`: the largest epsilon that any word may spend."""
    noise.check_noise("one_shot", epsilon)
    if exact.cells.ndim != 3 or len(names) != len(exact.cells) or len(set(names)) < len(names):
        raise SpecError(f"{len(names)} names for sketches {exact.cells.shape}; give every document a name of its own")
    if before is not None:
        require_same_shape(before.sketch.shape, exact.shape)
        if before.epsilon != epsilon:
            raise SpecError(
                f"releases of epsilon {before.epsilon:g} go on with epsilon {epsilon:g}; use the same, or a new file: "
                "all documents are then released again"
            )
    versions = np.stack([_version(cells) for cells in exact.cells]) if len(names) else np.empty((0, 16), np.uint8)
    places = {} if before is None else {name: place for place, name in enumerate(before.names)}
    spent = _spent(before)
    times = np.array([spent.get(name, 0) for name in names], np.int64)
    both = zip(names, versions, strict=True)
    unchanged = np.array([_same(before, places.get(name), version) for name, version in both], bool)
    times[~unchanged] += 1
    _require_affordable(names, times, ~unchanged, epsilon, budget)
    cells = np.empty_like(exact.cells)
    for place, name in enumerate(names):
        if unchanged[place] and before is not None:
            cells[place] = before.sketch.cells[places[name]]
    drawn = noise.perturb_sketch(exact._replace(cells=exact.cells[~unchanged]), epsilon, uniforms)
    cells[~unchanged] = drawn.cells
    deleted = {name: count for name, count in spent.items() if name not in set(names)}
    return Releases(exact._replace(cells=cells), epsilon, tuple(names), versions, times, deleted)


def release_to_file(
    path: Path, exact: Sketch, names: Sequence[str], *, epsilon: float, budget: float | None = None
) -> Releases:
    """The releases in a file after these documents, stored before they are returned; noise of the operating system."""
    before = load_releases(path) if path.exists() else None
    releases = release(exact, names, before, epsilon=epsilon, budget=budget)
    save_releases(path, releases)
    return releases


def statistics_to_file(path: Path, release_table: Callable[[], StatisticsTable]) -> StatisticsTable:
    """The table of word statistics in a file; drawn by `release_table` and stored only where there is none.

    A second table of the same documents would be a second release: to tell new statistics, use a new file and charge
    its event again (`owners.with_statistics`).
    """
    if path.exists():
        try:
            return messages.statistics_table(messages.decode(path.read_bytes(), messages.StatisticsAnswer))
        except DataError as problem:
            raise DataError(f"{path} holds no statistics ({problem}); restore it from a copy") from None
    table = release_table()
    with atomic_write(path) as temporary:
        temporary.write_bytes(messages.encode(messages.statistics_answer(table)))
    storage.sync_folder(path)
    return table


def save_releases(path: Path, releases: Releases) -> int:
    """Written atomically and synchronised; returns the bytes on disk."""
    about = {"epsilon": releases.epsilon, "names": list(releases.names), "deleted": releases.deleted}
    more = {"versions": releases.versions, "times": releases.times}
    size = storage.save(path, releases.sketch, about=about, more=more)
    storage.sync_folder(path)
    return size


def load_releases(path: Path) -> Releases:
    sketch, about, more = storage.load_with(path, ("versions", "times"))
    names, deleted, epsilon = about.get("names"), about.get("deleted"), about.get("epsilon")
    known = isinstance(names, list) and isinstance(deleted, dict) and isinstance(epsilon, float | int)
    if not known or sketch.cells.ndim != 3 or not len(names or ()) == len(sketch.cells) == len(more["times"]):
        raise DataError(f"{path} holds no releases of documents; build it again: every document is then charged again")
    versions = more["versions"].reshape(len(sketch.cells), -1)
    return Releases(sketch, float(epsilon or 0), tuple(names or ()), versions, more["times"], dict(deleted or {}))


def _version(cells: Array) -> Array:
    digest = hashlib.blake2b(np.ascontiguousarray(cells, "<i4").tobytes(), digest_size=16)
    return np.frombuffer(digest.digest(), np.uint8)


def _spent(before: Releases | None) -> dict[str, int]:
    if before is None:
        return {}
    return before.deleted | dict(zip(before.names, before.times.tolist(), strict=True))


def _same(before: Releases | None, place: int | None, version: Array) -> bool:
    return before is not None and place is not None and np.array_equal(before.versions[place], version)


def _require_affordable(
    names: Sequence[str], times: Array, released: Array, epsilon: float, budget: float | None
) -> None:
    if budget is None:
        return
    beyond = np.flatnonzero(released & (times * epsilon > budget * _ROUNDING))
    if len(beyond):
        first = int(beyond[0])
        raise PrivacyError(
            f"{names[first]}: release {times[first]} of epsilon {epsilon:g} would exceed the budget of "
            f"{budget:g} for its words ({len(beyond):,} documents in all); nothing was released: leave its edits out, "
            "or raise the budget"
        )
