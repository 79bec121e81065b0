"""A search node: an index of one's own documents, ranking that remembers and learns, on this machine only.

    import foltr.node

    with foltr.node.open() as node:
        node.add(["~/notes"])
        for progress in node.index():
            ...
        results = node.search("tax 24")
        node.choose(results, results.rows[0].id)

Everything else is imported when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from foltr.node.node import Node, open  # noqa: A004 - foltr.node.open
    from foltr.node.search.results import Contribution, Results, Row
    from foltr.node.search.snippets import Snippet
    from foltr.node.status import Status

__all__ = ["Contribution", "Node", "Results", "Row", "Snippet", "Status", "open"]

_PLACES = {
    "Contribution": "search.results",
    "Node": "node",
    "Results": "search.results",
    "Row": "search.results",
    "Snippet": "search.snippets",
    "Status": "status",
    "open": "node",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
