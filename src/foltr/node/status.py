"""What a node has: files by state, documents, sizes, what was logged and learned, and which index is searched."""

from typing import NamedTuple

from foltr.node import roots
from foltr.node.index import follower, layout
from foltr.node.index.follower import Follower
from foltr.node.index.layout import Rebuild
from foltr.node.index.store import Store
from foltr.node.learning import versions
from foltr.node.learning.log import Log
from foltr.node.places import Places
from foltr.node.settings import Settings
from foltr.text.analysis import TextAnalysis


class Status(NamedTuple):
    states: dict[str, int]  # files by state; they add up to all files under the roots
    documents: int
    roots: tuple[str, ...]
    index_bytes: int
    data_bytes: int
    searches: int  # in the log
    clicks: int
    version: int  # of the weights
    paused: bool
    confinement: str | None  # what confined the processes that read files, when they last did; None: none did yet
    rebuilding: Rebuild | None  # an earlier index is searched until the new one is complete
    following: Follower | None  # whether changes are followed; None: no server of the page does


def status(places: Places, settings: Settings, log: Log, store: Store | None) -> Status:
    """`store` is the index that is searched; None while there is none."""
    analysis = TextAnalysis(language=settings.language)
    return Status(
        states={} if store is None else store.states(),
        documents=0 if store is None else store.collection().documents,
        roots=settings.roots,
        index_bytes=roots.bytes_below(places.cache),
        data_bytes=roots.bytes_below(places.data),
        searches=log.impressions(),
        clicks=log.clicks(),
        version=versions.serving(log).current.version,
        paused=places.pause_file.exists(),
        confinement=None if store is None else store.meta("confinement", "") or None,
        rebuilding=None if store is None else layout.rebuilding(places, store, analysis),
        following=follower.read(places),
    )
