"""Indexing: scan, extract, analyse, store, candidates; progress comes as records.

    for progress in index(places, settings): ...

One process at a time (a lock file). Whatever stops it, the next call goes on where it ended: states are in the
database, a batch is a transaction, candidates are caught up from the store.

No file stops it: whatever error a file causes, in whichever stage, is stored as its state, `failed` with the reason.
Only errors of the storage (a full disk, a damaged index) end a run.
"""

import sqlite3
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from foltr.errors import FoltrError
from foltr.files import held
from foltr.node.extract import Extracted, Extractor, Failure
from foltr.node.extract import Limits as ExtractionLimits
from foltr.node.extract.file_version import bounded_size, bounded_time, reason_of
from foltr.node.index import background, files, layout, moves
from foltr.node.index.candidates import Candidates, Refused
from foltr.node.index.moves import Move
from foltr.node.index.rules import Rules
from foltr.node.index.scan import exclude_away, scan, scan_folders
from foltr.node.index.writing import Result, Writer, storage_error
from foltr.node.places import Places, create
from foltr.node.settings import Settings
from foltr.text.analysis import TextAnalysis

_BATCH_DOCUMENTS, _BATCH_CHARACTERS, _BATCH_SECONDS = 512, 4_000_000, 5.0
_MANY_FILES = 200
_SUSPECTS = 16  # files of each worker that may have caused an error of extraction
_SEARCHABLE_SECONDS = 15.0  # candidates follow at least so often
_NAMES_SECONDS = 3.0  # and names, while folders are scanned


class Progress(NamedTuple):
    """Progress of indexing."""

    phase: str  # "scan", "names" (all names are searchable), "index", "done", or why it waits: "paused", "on battery"
    done: int  # files
    total: int
    per_second: float
    seconds_left: float | None  # None: unknown
    moved: tuple[Move, ...] = ()  # of the files that are followed, at the end


def _nothing() -> Collection[str]:
    return ()


class Indexer:
    """The index opened for writing; see `indexer`."""

    def __init__(self, places: Places, settings: Settings, followed: Callable[[], Collection[str]] = _nothing) -> None:
        """`followed` returns the files whose renaming matters, and the same object while these are the same."""
        self.places, self.settings, self._followed = places, settings, followed
        self._looked_at: Collection[str] | None = None
        analysis = TextAnalysis(language=settings.language)
        self.folder = layout.writing_folder(places, analysis)
        self.rules = Rules(settings, places)
        self.writer: Writer = layout.open_writer(places, self.folder, analysis, max_words=settings.limits.words)
        self.candidates = Candidates(self.folder, write=True)
        self.names = Candidates(self.folder, write=True, names=True)
        for part in (self.candidates, self.names):
            if part.is_unrelated_to(self.writer.store):  # after a power cut
                part.rebuild(self.writer.store)
        self.extractor = Extractor(
            settings.workers,
            timeout=settings.limits.seconds,
            memory=settings.limits.memory_mb << 20,
            limits=ExtractionLimits(file_bytes=settings.limits.file_mb << 20),
        )

    def close(self) -> None:
        self.extractor.close()
        self.candidates.close()
        self.names.close()
        self.writer.close()

    def use(self, settings: Settings) -> None:
        """Takes over changed settings (roots and rules; language and limits wait for the next start)."""
        self.settings, self.rules = settings, Rules(settings, self.places)

    def run(self, folders: Iterable[str] | None = None) -> Iterator[Progress]:
        """Scans all roots, or some folders, and indexes what is new or changed."""
        try:
            yield from self._run(folders)
        except sqlite3.Error as problem:
            raise storage_error(self.writer.store.path, problem) or problem from None

    def _run(self, folders: Iterable[str] | None) -> Iterator[Progress]:
        self.use(self.settings)  # the node's own folders may be others than before
        moves.look(self.writer.connection, self._followed())
        changed, last_update = (0, 0), time.monotonic()
        scanning = scan(self.writer, self.rules) if folders is None else scan_folders(self.writer, self.rules, folders)
        for seen in scanning:
            if seen.named > changed[1] and time.monotonic() - last_update > _NAMES_SECONDS:
                self._update_candidates()
                last_update = time.monotonic()
            changed = seen.removed, seen.named
            yield Progress("scan", seen.files, seen.files, 0.0, None)
        if any(changed):
            self._update_candidates()
            yield Progress("names", seen.files, seen.files, 0.0, None)
        if changed[0]:
            self.writer.clean()
        yield from self.work()

    def work(self) -> Iterator[Progress]:
        """Indexes the files that wait."""
        waiting = files.waiting(self.writer.connection)
        by_path = {one.path: one for one in waiting}
        if len(waiting) > _MANY_FILES:
            self.writer.expect_many()
        start = last_update = time.monotonic()
        done, batch = 0, _Batch()
        held: str | None = None
        for path, outcome in self._extracted(list(by_path)):
            batch.add(_result(by_path[path], outcome))
            done += 1
            if batch.is_full():
                batch.write(self.writer)
                if time.monotonic() - last_update > _SEARCHABLE_SECONDS:
                    self._update_candidates()
                    last_update = time.monotonic()
                yield _progress(done, len(waiting), start)
                held = background.hold_reason(self.places, self.settings)
                if held:
                    break
        batch.write(self.writer)
        if self.extractor.protections is not None:
            self.writer.note("confinement", str(self.extractor.protections))
        self._finish(complete=held is None)
        moved = tuple(moves.moved(self.writer.connection, self.rules))
        yield Progress(held or "done", done, len(waiting), _rate(done, start), 0.0 if held is None else None, moved)
        moves.look(self.writer.connection, self._followed())  # with the new paths

    def look_at_followed(self) -> None:
        """Looks at the files that are followed, where these are others than before."""
        followed = self._followed()
        if followed is not self._looked_at:
            moves.look(self.writer.connection, followed)
            self._looked_at = followed

    def _extracted(self, paths: Sequence[str]) -> Iterator[tuple[str, Extracted | Failure]]:
        """The outcome of every file. After an unexpected error the files that may have caused it are extracted one by
        one, and the one that causes it again has failed."""
        left = dict.fromkeys(paths)
        while left:
            try:
                for path, outcome in self.extractor.extract(list(left)):
                    del left[path]
                    yield path, outcome
                return
            except FoltrError:
                raise
            except Exception:
                for path in list(left)[: _SUSPECTS * self.settings.workers]:
                    del left[path]
                    yield path, self._extracted_alone(path)

    def _extracted_alone(self, path: str) -> Extracted | Failure:
        try:
            ((_, outcome),) = self.extractor.extract([path])
        except FoltrError:
            raise
        except Exception as problem:
            return Failure("failed", reason_of(problem))
        return outcome

    def _update_candidates(self) -> None:
        """Brings the candidates up to date. Files with documents that cannot be added have failed."""
        refused = self._write_candidates()
        if refused:
            rows = [(files.of_document(self.writer.connection, number), refused[number]) for number in refused]
            results = {file.id: Result(file.id, "failed", reason, *file[2:]) for file, reason in rows}
            self.writer.write_batch(list(results.values()))
            self._write_candidates()

    def _write_candidates(self) -> Refused:
        return {**self.candidates.update(self.writer.store), **self.names.update(self.writer.store)}

    def _finish(self, *, complete: bool) -> None:
        self._update_candidates()
        if complete and layout.live_folder(self.places) != self.folder:
            layout.publish(self.places, self.folder)

    def forget(self) -> None:
        """Makes what was removed vanish from the bytes of all files too."""
        self._update_candidates()
        self.candidates.rebuild(self.writer.store)
        self.names.rebuild(self.writer.store)
        self.writer.connection.execute("DELETE FROM followed")
        self.writer.clean()
        self.writer.connection.execute("VACUUM")
        self.writer.clean()


class _Batch:
    """Results that wait for one transaction."""

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self._results: list[Result] = []
        self._documents = self._characters = 0
        self._since = time.monotonic()

    def add(self, result: Result) -> None:
        self._results.append(result)
        self._documents += 1 + len(result.documents)
        self._characters += sum(len(one.body) for one in result.documents)

    def is_full(self) -> bool:
        return (
            self._documents >= _BATCH_DOCUMENTS
            or self._characters >= _BATCH_CHARACTERS
            or time.monotonic() - self._since > _BATCH_SECONDS
        )

    def write(self, writer: Writer) -> None:
        if self._results:
            writer.write_batch(self._results)
        self._clear()


@contextmanager
def indexer(
    places: Places, settings: Settings, followed: Callable[[], Collection[str]] = _nothing
) -> Iterator[Indexer]:
    """The one writer; an error names the process that is already indexing."""
    create(places)
    with held(places.cache / "index.lock", "indexing"):
        opened = Indexer(places, settings, followed)
        try:
            yield opened
        finally:
            opened.close()


def index(places: Places, settings: Settings, followed: Callable[[], Collection[str]] = _nothing) -> Iterator[Progress]:
    """Brings the index up to date with the files under the roots."""
    create(places)
    held = background.hold_reason(places, settings)
    if held:
        yield Progress(held, 0, 0, 0.0, None)
        return
    with indexer(places, settings, followed) as opened:
        yield from opened.run()


def apply_removals(places: Places, settings: Settings) -> None:
    """After a root or what a rule excludes was taken out of the settings: removes it from the index and its bytes."""
    with indexer(places, settings) as opened:
        for _ in scan(opened.writer, opened.rules):
            pass
        exclude_away(opened.writer, opened.rules)
        opened.forget()
        if layout.live_folder(places) != opened.folder:
            layout.publish(places, opened.folder)  # an index of an earlier version cannot be written, only deleted


def erase(places: Places) -> None:
    """Deletes the whole index."""
    import shutil

    create(places)
    with held(places.cache / "index.lock", "indexing"):
        (places.cache / "index.json").unlink(missing_ok=True)
        for folder in places.cache.glob("index-*"):
            shutil.rmtree(folder)


def _result(file: files.Waiting, outcome: Extracted | Failure) -> Result:
    try:
        return _result_of(file, outcome)
    except Exception as problem:
        return Result(file.id, "failed", reason_of(problem), *file[2:])


def _result_of(file: files.Waiting, outcome: Extracted | Failure) -> Result:
    if isinstance(outcome, Failure):
        named = outcome.state != "waiting" and not outcome.unnamed
        return Result(file.id, outcome.state, outcome.reason, *file[2:], named=named)
    notes = []
    if outcome.truncated or any(one.truncated for one in outcome.documents):
        notes.append(files.CUT)
    if outcome.secrets:
        notes.append(f"{outcome.secrets} messages look like secrets and were left out")
    reason = "; ".join(notes) or None
    size, mtime_ns = bounded_size(outcome.size), bounded_time(outcome.modified)
    return Result(file.id, "indexed", reason, size, mtime_ns, file.inode, outcome.documents)


def _progress(done: int, total: int, start: float) -> Progress:
    rate = _rate(done, start)
    return Progress("index", done, total, rate, (total - done) / rate if rate else None)


def _rate(done: int, start: float) -> float:
    return done / max(time.monotonic() - start, 1e-9)
