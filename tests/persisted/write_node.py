"""Writes `before/node` and `before/node.json`: the home of a node with settings, index, log, memory, pins and weights,
and what its version answered.

Run once, with the code of the commit that the README names, where the folder of `ROOT` can be created:

    .venv/bin/python tests/persisted/write_node.py tests/persisted/before

The documents are on a disk that is away when the files are read again: the root is deleted after it was indexed.
"""

import json
import shutil
import sys
import time
from pathlib import Path

import foltr.node
from foltr.node import settings as node_settings
from foltr.node.search import pins

ROOT = Path("/media/foltr-stored-disk/notes")
NOW = 1_760_000_000.0  # seconds since 1970
TREES = ("maple", "cedar", "willow", "poplar", "spruce", "hazel")
QUERIES = ("tree", "maple", "cedar tree", "willow tree garden", "hazel")


def main(folder: Path) -> None:
    clock = iter(range(10_000))
    time.time = lambda: NOW + next(clock)
    ROOT.mkdir(parents=True)
    for number, tree in enumerate(TREES):
        (ROOT / f"{tree}.md").write_text(f"# The {tree} tree\n\nIt stands in garden {number}, beside the house.\n")
    (ROOT / "skipped.log").write_text("a tree")
    home = folder / "node"
    shutil.rmtree(home, ignore_errors=True)
    with foltr.node.open(home) as node:
        node.add([ROOT])
        node.exclude(["*.log"])
        node.save_settings(node_settings.changed(node.settings, retention_days=36_500))
        list(node.index())
        for round_ in range(4):
            for query in QUERIES[:3]:
                results = node.search(query)
                node.choose(results, results.rows[(round_ + 1) % len(results.rows)].id)
        pins.put(node.log, "tree", str(ROOT / "spruce.md"), "pinned")
        pins.put(node.log, "tree", str(ROOT / "cedar.md"), "hidden")
        node.refit()
        answers = {
            "settings": {"roots": node.settings.roots, "exclude": node.settings.exclude,
                         "retention_days": node.settings.retention_days},
            "searches": [[search.query, [choice.document for choice in search.choices]] for search in node.history()],
            "remembered": sorted([use.typed, use.document] for use in node.log.uses()),
            "version": node.status().version,
            "lists": {query: [[row.path, row.score, row.remembered] for row in node.search(query).rows]
                      for query in QUERIES},
        }  # fmt: skip
    (folder / "node.json").write_text(json.dumps(answers, indent=1) + "\n")
    shutil.rmtree(ROOT.parent)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
