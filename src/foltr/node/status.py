"""Reports on a node: counts, sizes, what was learned, which index is searched, and why a file is, or is not, found."""

import os
from typing import NamedTuple

from foltr.node import places as node_places
from foltr.node.index import files, follower, layout
from foltr.node.index.away import away
from foltr.node.index.follower import Follower
from foltr.node.index.layout import Rebuild
from foltr.node.index.rules import Rules
from foltr.node.index.store import Store
from foltr.node.learning import versions
from foltr.node.learning.log import Log
from foltr.node.learning.versions import Trial
from foltr.node.places import Places
from foltr.node.settings import Settings
from foltr.text.analysis import TextAnalysis


class Status(NamedTuple):
    states: dict[str, int]  # files by state; they add up to all files under the roots
    documents: int  # with a text
    names: int  # files that are found by their name only
    roots: tuple[str, ...]
    away: dict[str, str]  # roots that are not there now, with the reason; their documents stay
    index_bytes: int
    data_bytes: int
    searches: int  # in the log
    clicks: int
    version: int  # of the weights
    trial: Trial | None  # lists mix its order with that of the trusted version; None: the version is trusted
    paused: bool
    confinement: str | None  # what confined the processes that read files, when they last did; None: none did yet
    rebuilding: Rebuild | None  # an earlier index is searched until the new one is complete
    following: Follower | None  # whether changes are followed; None: no server of the page does


def status(places: Places, settings: Settings, log: Log, store: Store | None) -> Status:
    """Counts what a node has. `store` is the index that is searched; None while there is none."""
    analysis = TextAnalysis(language=settings.language)
    return Status(
        states={} if store is None else store.states(),
        documents=0 if store is None else store.collection().documents,
        names=0 if store is None else store.count_names(),
        roots=settings.roots,
        away={} if store is None else _roots_away(store, settings),
        index_bytes=node_places.bytes_below(places.cache),
        data_bytes=node_places.bytes_below(places.data),
        searches=log.impressions(),
        clicks=log.clicks(),
        version=versions.serving(log).current.version,
        trial=versions.trial(log),
        paused=places.pause_file.exists(),
        confinement=None if store is None else store.meta("confinement", "") or None,
        rebuilding=None if store is None else layout.rebuilding(places, store, analysis),
        following=follower.read(places),
    )


def _roots_away(store: Store, settings: Settings) -> dict[str, str]:
    reasons = {root: away(store.connection, root) for root in settings.roots}
    return {root: reason for root, reason in reasons.items() if reason}


# ---- one file


class Why(NamedTuple):
    """The state of one path, and the reason."""

    path: str
    state: str  # a state of files, "outside" (of all roots), "away" (its root) or "absent" (no such file)
    reason: str | None
    documents: int


def why(store: Store, rules: Rules, path: str) -> Why:
    """Returns the state of a path: what the index says comes first, then what the next scan would say."""
    path = os.path.abspath(path)  # noqa: PTH100 - keeps links as they are
    root = rules.root_of(path)
    if root is None:
        roots = ", ".join(rules.roots) or "none"
        return Why(path, "outside", f"it is below none of the roots ({roots})", 0)
    refused = rules.root_verdict(root)
    if refused:
        return Why(path, "excluded", f"the root {root}: {refused}", 0)
    known = _with_its_root(store, path, root) or _stored(store, path) or _above(store, path, root)
    return known or _in_root(store, path, root) or _expected(rules, path)


def _with_its_root(store: Store, path: str, root: str) -> Why | None:
    """The state of a path whose root is away."""
    reason = away(store.connection, root)
    if reason is None:
        return None
    row = files.state_of(store.connection, path)
    documents = 0 if row is None else files.count_documents(store.connection, row[0])
    consequence = "; its documents are kept and found" if documents else ""
    return Why(path, "away", f"the root {root}: {reason}{consequence}", documents)


def _stored(store: Store, path: str) -> Why | None:
    row = files.state_of(store.connection, path)
    if row is None:
        return None
    number, is_folder, state, reason = row
    documents = files.count_documents(store.connection, number)
    if not os.path.lexists(path):
        return Why(path, "absent", "it was deleted since the last scan; the next one removes it", documents)
    if is_folder and reason:
        reason = f"the whole folder, by {reason}" if state == "excluded" else reason
    return Why(path, state, reason, documents)


def _above(store: Store, path: str, root: str) -> Why | None:
    """A folder above the path that is one row for all that is below it."""
    folder = path.rpartition("/")[0]
    while len(folder) >= len(root.rstrip("/")) and folder:
        row = files.state_of(store.connection, folder)
        if row is not None and row[1]:
            return Why(path, row[2], f"it is in {folder}: {row[3]}", 0)
        folder = folder.rpartition("/")[0]
    return None


def _in_root(store: Store, path: str, root: str) -> Why | None:
    """A root that could not be scanned."""
    problem = files.root_problems(store.connection).get(root)
    return Why(path, "failed", f"the root {root}: {problem}", 0) if problem else None


def _expected(rules: Rules, path: str) -> Why:
    if not os.path.lexists(path):
        return Why(path, "absent", "there is no such file", 0)
    excluded = rules.verdict(path)
    if excluded:
        return Why(path, "excluded", excluded, 0)
    if os.path.isdir(path) and not os.path.islink(path):  # noqa: PTH112, PTH114
        return Why(path, "indexed", "a folder: ask for a file in it", 0)
    return Why(path, "waiting", "not seen yet; the next scan finds it", 0)
