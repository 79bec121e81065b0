"""The Python interface of a node, which the command line, the page and a federation use.

    with foltr.node.open() as node:
        node.add(["/home/me/notes"])
        for progress in node.index(): ...
        results = node.search("tax 24")           # a list, not yet logged
        node.settle(results)                      # the person looked at it: logged as an impression
        node.choose(results, results.rows[0].id)  # the person opened a document: durable when it returns

Documents are named by their number, never by a path from outside. One node may be used by several threads; several
processes may open the same home, of which one indexes at a time.
"""

import threading
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from foltr.errors import InputError, SpecError
from foltr.files import private_folders
from foltr.node import places as node_places
from foltr.node import settings as node_settings
from foltr.node import status as node_status
from foltr.node.index import background, files, indexing, layout
from foltr.node.index.indexing import Progress
from foltr.node.index.rules import Rules, allowing, innermost_root, is_default
from foltr.node.learning import erasure, log_files, memory, renames, transfer, versions
from foltr.node.learning.erasure import Erased, Scope
from foltr.node.learning.habits import NO_OPENINGS
from foltr.node.learning.log import Displayed, Log, Retention
from foltr.node.learning.transfer import PARTS, Content, Imported
from foltr.node.learning.versions import Refit, Version
from foltr.node.places import Places
from foltr.node.search import listing, messages, presentation, ranking
from foltr.node.search import results as node_results
from foltr.node.search.desktop import IndexedFile
from foltr.node.search.listing import Listed, RecentRankings
from foltr.node.search.presentation import Preview
from foltr.node.search.ranking import Context
from foltr.node.search.reader import Reader
from foltr.node.search.results import Contribution, RecentLists, ResultList, Results, Row, digest
from foltr.node.settings import STRICTEST, Settings
from foltr.node.status import Status, Why


def open(home: str | Path | None = None) -> "Node":  # noqa: A001 - foltr.node.open
    """Opens a node, and creates its folders the first time. `home` puts everything below one folder."""
    return Node(node_places.create(node_places.find(home)))


class Node:
    """An open node; close it, or use it as a context manager. `log` has a lock of its own."""

    def __init__(self, places: Places) -> None:
        self.places = places
        self.problem: str | None = None  # of the settings file: searching goes on, nothing is changed
        self._lock = threading.RLock()
        self._fitting = threading.Lock()
        self._lists = RecentLists()
        self._rankings = RecentRankings()
        self._live: layout.Reader | None = None
        self._reader: Reader | None = None
        messages.clean_up(self.copies)
        stamp = node_settings.stamp(places.settings_file)
        self._use(self._load_settings(), stamp)
        self.log = Log(places.data / "log.sqlite", Retention(days=self.settings.retention_days))

    @property
    def settings(self) -> Settings:
        """The settings of the file, which another process may have changed."""
        stamp = node_settings.stamp(self.places.settings_file)
        if stamp != self._settings_stamp:
            with self._lock:
                self._use(self._load_settings(), stamp)
        return self._settings

    def _use(self, settings: Settings, stamp: tuple[int, int] | None) -> None:
        """Takes over settings; `stamp` of the file that has them."""
        self._settings, self._settings_stamp = settings, stamp
        self._rankings.clear()

    def _load_settings(self) -> Settings:
        self.problem = None
        try:
            return node_settings.load(self.places.settings_file)
        except SpecError as problem:
            self.problem = str(problem)
            return STRICTEST

    def check_settings(self) -> None:
        """Raises the problem of the settings file. Without its folders and rules nothing may be indexed or erased."""
        if self.settings is STRICTEST and self.problem is not None:  # `settings` has looked at the file
            raise SpecError(self.problem)

    def __enter__(self) -> "Node":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        with self._lock:
            self._close_reader()
            self.log.close()

    # ---- documents

    def add(self, paths: Iterable[str | Path]) -> None:
        """Adds folders or files to what is searched; `index` reads them."""
        with self._lock:
            new = [node_settings.absolute_path(path) for path in paths]
            for path in new:
                node_settings.check_root(path)
            self.save_settings(
                node_settings.changed(self.settings, roots=node_settings.united(self.settings.roots, new))
            )

    def remove(self, path: str | Path) -> None:
        """Stops searching a folder, and erases what index, log and memory have of it, down to the bytes."""
        with self.reading() as reader:
            self.check_settings()
            root, known = node_settings.absolute_path(path), self.settings.roots
            if root not in known:
                raise InputError(f"{root}: is not searched by itself; there are {', '.join(known) or 'no folders'}")
            documents = [] if reader is None else reader.store.documents(reader.store.documents_of(root))
            changed = node_settings.changed(self.settings, roots=[other for other in known if other != root])
            self._remove_from_index(changed)
            self.save_settings(changed)
            erasure.scrub(self.log, {root, *map(ranking.key_of, documents)}, folders=[root])

    def exclude(self, rules: Iterable[str]) -> None:
        """Adds exclusions in gitignore syntax, and erases what index, log and memory have of what they fit."""
        with self._lock:
            changed = node_settings.changed(self.settings, exclude=node_settings.united(self.settings.exclude, rules))
            checked = Rules(changed, self.places)
            self._remove_from_index(changed)
            self.save_settings(changed)
            keys = self.log.document_keys()
            erasure.scrub(self.log, {key for key in keys if checked.verdict(memory.split_key(key)[0])})

    def index_anyway(self, file: int) -> str:
        """Allows one file or folder, by its number in the index, that a default rule leaves out; returns its path. The
        next scan reads it, unless its content looks like a secret."""
        with self.reading() as reader:
            found = None if reader is None else files.excluded(reader.store.connection, file)
            root = None if found is None else innermost_root(self.settings.roots, found[0])
            if found is None or root is None or not is_default(found[1]):
                raise InputError("no default rule leaves this file out any more; look at the index again")
            pattern = allowing(found[0], root, is_folder=found[2])
            self.save_settings(
                node_settings.changed(self.settings, allow=node_settings.united(self.settings.allow, [pattern]))
            )
            return found[0]

    def index(self) -> Iterator[Progress]:
        """Brings the index up to date, and yields how far it is; searching goes on meanwhile."""
        self.check_settings()
        for progress in indexing.index(self.places, self.settings, lambda: renames.followed_paths(self.log)):
            if progress.moved:
                renames.follow(self.log, progress.moved)
            yield progress
        erasure.prune(self.log, time.time())

    def pause(self) -> None:
        """Nothing is indexed until `resume`, by any process."""
        background.pause(self.places)

    def resume(self) -> None:
        background.resume(self.places)

    def why(self, path: str | Path) -> Why:
        """Why a file is, or is not, among the results."""
        with self.reading() as reader:
            if reader is None:
                return Why(
                    node_settings.absolute_path(path),
                    "waiting",
                    "nothing has been indexed yet; run `foltr node index`",
                    0,
                )
            return node_status.why(reader.store, Rules(self.settings, self.places), node_settings.absolute_path(path))

    def status(self) -> Status:
        with self.reading() as reader:
            return node_status.status(self.places, self.settings, self.log, reader.store if reader else None)

    def forget(self) -> None:
        """Erases everything: index, log, memory, weights and settings. Only the ledger of a federation stays, without
        which a privacy budget could be spent twice; it holds no text."""
        with self._lock:
            self._close_reader()
            self._lists.clear()
            indexing.erase(self.places)
            messages.clean_up(self.copies, older_than=0)
            erasure.erase(self.log, erasure.EVERYTHING)
            for file in [*self.places.config.iterdir(), *self.places.data.glob("*.json")]:
                if not file.is_dir():
                    file.unlink()
            self.problem = None
            self._use(Settings(), None)

    # ---- searching

    def search(self, text: str, limit: int = 10, offset: int = 0, *, newest_first: bool = False) -> Results:
        """A list of results. It is not logged: call `settle` when the person has looked at it. `newest_first` orders
        the candidates that were scored by date. A list ends after 1,000 documents unless more are asked for."""
        if limit < 1 or offset < 0:
            raise InputError(f"limit={limit}, offset={offset}: ask for at least one result, from place 0 on")
        with self._lock:
            found = self.listed(text, newest_first=newest_first, depth=offset + limit)
            if found is None:
                return _results(self._context(text), (), offset=offset, total=0)
            page, rows = listing.rows_at(found, slice(offset, offset + limit))
            results = _results(found.context, rows, offset=offset, total=found.total)
            results = results._replace(
                suggestion=found.ranking.suggestion, corrected=bool(found.ranking.respelt), counts=found.counts
            )
            self._lists.put(node_results.result_list(results, page, found.ranking, found.context.model))
            return results

    def listed(self, text: str, *, newest_first: bool = False, depth: int = 0) -> Listed | None:
        """The whole list of a query, of at least `depth` documents if so many match, with what it was computed from;
        None while there is no index."""
        with self.reading() as reader:
            if reader is None:
                return None
            context = self._context(text)
            context = context._replace(depth=max(context.depth, depth))
            return self._rankings.listed(reader, self.log, context, newest_first=newest_first)

    def known_list(self, search: Results | str) -> ResultList:
        """A list that was given out, by its id; an error where it is not known any more."""
        with self._lock:
            return self._lists.get(search)

    def preview(self, search: Results | str, document: int) -> Preview:
        """The beginning of a row's text with the words of the query marked."""
        with self._lock:
            known = self._lists.get(search)
            node_results.place_of(known, document)
            found = self.listed(known.results.query)
            if found is None:
                raise InputError("there is no index any more; index again")
            return presentation.preview(found.reader.store, found.query, found.ranking, document)

    def explain(self, search: Results | str, document: int) -> list[Contribution]:
        """Contributions of the features to the score of a row; the points add up to it."""
        with self._lock:
            return node_results.explanation(self._lists.get(search), document)

    def settle(self, search: Results | str) -> int | None:
        """Logs a list that the person has looked at; its number in the log. None for a page behind the end of a list,
        and for recent documents where there are none: nothing was searched then."""
        with self._lock:
            found = self._lists.find(search)
            if found is not None and found.impression is not None:
                return found.impression
            results = search if isinstance(search, Results) else self._lists.get(search).results
            if not results.rows and (results.total or not results.query.strip()):
                return None
            if results.rows:
                record = node_results.impression(self._lists.get(search), time.time())
            else:
                record = node_results.empty_impression(results, time.time())
            number = self.log.record(record)
            if found is not None:
                self._lists.put(found._replace(impression=number))
            return number

    def choose(self, search: Results | str, document: int) -> None:
        """Logs that a document of a list was opened; durable when it returns. Every ten choices weights are fitted."""
        with self._lock:
            place = node_results.place_of(self._lists.get(search), document)
            number = self.settle(search)
            assert number is not None  # the list has this document
            self._log_choice(number, place)
        self._fit_if_due()

    def choose_place(self, impression: int, place: int) -> str:
        """Logs a choice from a list in the log, by number and place (from 0); returns the document's key."""
        with self._lock:
            key = self._log_choice(impression, place)
        self._fit_if_due()
        return key

    def _log_choice(self, impression: int, place: int) -> str:
        documents = self.log.displayed(impression).documents
        key = documents[place] if 0 <= place < len(documents) else None
        if not documents:
            raise InputError("the last search found nothing, so that there is nothing to open; search again")
        if key is None:
            raise InputError(f"the list has {len(documents)} documents; number {place + 1} is not there any more")
        self.log.choose_position(impression, place, time.time())
        return key

    def _fit_if_due(self) -> None:
        """Fits without the node's lock, so that searches go on; one fit at a time, a later choice brings the next."""
        if not self.settings.learning or not self._fitting.acquire(blocking=False):
            return
        try:
            if versions.refit_due(self.log):
                versions.refit(self.log, time.time())
        finally:
            self._fitting.release()

    def indexed_file(self, path: str) -> IndexedFile:
        """A file as the index knows it, for `search.desktop`."""
        with self.reading() as reader:
            inode = None if reader is None else files.inode_of(reader.store.connection, path)
            return IndexedFile(path, innermost_root(self.settings.roots, path), inode)

    def file_to_open(self, key: str, query: str) -> IndexedFile:
        """The file of a document (a key of the log), with the page or line that has the words of a query."""
        path, part = memory.split_key(key)
        with self.reading() as reader:
            file, found = self.indexed_file(path), self.listed(query)
            if reader is None or found is None:
                return file
            documents = [one for one in reader.store.documents(reader.store.documents_of(path)) if one.part == part]
            if not documents:
                return file
            page, line = presentation.page_and_line(reader.store, found.query, found.ranking, documents[0])
            return file._replace(kind=documents[0].kind, part=part, page=page, line=line)

    @property
    def copies(self) -> Path:
        """The folder for messages that are opened (`search.messages`)."""
        return self.places.cache / "messages"

    def take_back(self, search: Results | str, document: int) -> bool:
        """Withdraws a choice after a quick return; False where there was none."""
        with self._lock:
            found = self._lists.get(search)
            key = ranking.key_of(node_results.document_of(found, document))
            return found.impression is not None and self.log.take_back(found.impression, key)

    def forget_choice(self, query: str, document: int) -> int:
        """Forgets that a document was chosen for a query or for what it begins; the history still lists it."""
        with self.reading() as reader:
            found = reader.store.documents([document]) if reader else []
            return sum(self.log.forget_choice(query, ranking.key_of(one)) for one in found)

    def forget_place(self, impression: int, place: int) -> int:
        """Forgets a choice by its list in the log and its place."""
        with self._lock:
            found = self.log.displayed(impression)
            key = found.documents[place] if 0 <= place < len(found.documents) else None
            return 0 if key is None or found.query is None else self.log.forget_choice(found.query, key)

    # ---- history and weights

    def history(self, limit: int = 50, before: int | None = None, *, text: str = "") -> list[Displayed]:
        """The newest lists and what was chosen from them; `before` the number of a list, to page on. `text` is what
        their query must have in it."""
        return self.log.history(limit=limit, before=before, text=text)

    def delete_history(
        self, searches: Iterable[int] | None = None, *, since: float | None = None, until: float | None = None,
        reset_weights: bool = False,
    ) -> Erased:  # fmt: skip
        """Deletes searches by number or by time, or all of them (`erasure.erase`). Weights that were fitted to them
        stay unless `reset_weights`."""
        scope: Scope = erasure.ALL_SEARCHES
        if searches is not None:
            scope = erasure.Searches(tuple(searches))
        elif since is not None or until is not None:
            scope = erasure.Period(since or 0.0, until if until is not None else float("inf"))
        with self._lock:
            self._lists.clear()
            self._rankings.clear()
            return erasure.erase(self.log, scope, reset_weights=reset_weights)

    def export_history(self, path: str | Path, *, ubi: bool = False) -> int:
        """Writes the log as JSON lines, or as the two files of User Behavior Insights into a folder; how many lists."""
        target = Path(path)
        if ubi:
            private_folders(target)
            transfer.write_lines(target / "events.jsonl", log_files.ubi_events(self.log))
            return transfer.write_lines(target / "queries.jsonl", log_files.ubi_queries(self.log))
        transfer.write_lines(target, log_files.export_lines(self.log))
        return self.log.impressions()

    def versions(self) -> list[Version]:
        """The versions of the weights, newest first; version 0, the start weights, is not listed."""
        return versions.versions(self.log)

    def refit(self) -> Refit:
        """Fits the weights to the log now."""
        return versions.refit(self.log, time.time(), force=True)

    def go_back(self, version: int) -> None:
        """An older version ranks again; 0 is the start."""
        versions.go_back(self.log, version)

    # ---- to another machine

    def export(self, path: str | Path) -> None:
        """Writes settings, memory and weights to a file."""
        current = versions.serving(self.log).current
        transfer.write(Path(path), self.settings, self.log.uses(), current if current.version else None)

    def read_export(self, path: str | Path, moved: Mapping[str, str] | None = None) -> Content:
        """The checked content of such a file, for `import_`; `moved` names folders that have another path here."""
        return transfer.read(Path(path), moved)

    def import_(self, content: Content, *, roots: Collection[str] = (), parts: Collection[str] = PARTS) -> Imported:
        """Takes over parts of an export, and those of its roots that are named. All or nothing; nothing that the person
        chose becomes less strict."""
        with self._lock:
            self.check_settings()
            file, own = self.places.settings_file, self.settings
            settings, imported = transfer.take_over(self.log, file, own, content, roots=roots, parts=parts)
            self._use(settings, node_settings.stamp(self.places.settings_file))
            return imported

    # ---- settings and index

    def save_settings(self, settings: Settings) -> None:
        """Stores settings; `remove` and `exclude` also erase what they take out of the index."""
        with self._lock:
            self.check_settings()
            node_settings.save(self.places.settings_file, settings)
            self._use(settings, node_settings.stamp(self.places.settings_file))

    @contextmanager
    def reading(self) -> Iterator[Reader | None]:
        """The live index, which nothing in this process replaces meanwhile; None while there is none."""
        with self._lock:
            yield self._open_reader()

    def _open_reader(self) -> Reader | None:
        """The live index, which another process may have replaced; None while there is none."""
        if layout.live_folder(self.places) is None:
            self._close_reader()
            return None
        self._live = layout.Reader(self.places) if self._live is None else self._live.refresh()
        if self._reader is None or self._reader.store is not self._live.store:
            self._reader = Reader(self._live.store, self._live.candidates, self._live.names)
        return self._reader

    def _close_reader(self) -> None:
        if self._live is not None:
            self._live.close()
        self._live = self._reader = None
        self._rankings.clear()

    def _remove_from_index(self, changed: Settings) -> None:
        """Removes what changed settings do not include any more, with its bytes, which no reader may hold on to. An
        error, such as another process that indexes, leaves everything as it was."""
        self.check_settings()
        self._close_reader()
        self._lists.clear()
        indexing.apply_removals(self.places, changed)
        messages.clean_up(self.copies, older_than=0)

    def _context(self, text: str) -> Context:
        now, serving, reader = time.time(), versions.serving(self.log), self._reader
        return Context(
            text=text,
            model=ranking.model_of(serving.current),
            trusted=None if serving.trusted is None else ranking.model_of(serving.trusted),
            openings=reader.weighed(self.log.openings(now)) if reader and self.settings.memory else NO_OPENINGS,
            remembered=self.log.lookup(text, now) if self.settings.memory else [],
            now=now,
            exploration=self.settings.exploration,
        )


def _results(context: Context, rows: tuple[Row, ...], *, offset: int, total: int) -> Results:
    version = context.model.version
    name = digest(context.text, [row.id for row in rows], [row.score for row in rows], version)
    return Results(name, context.text, rows, offset, total, None, False, version)
