"""Start weights are fitted over an index in memory and used over the index on disk: both give the same features."""

import os
from pathlib import Path

import numpy as np
import pytest

from foltr.node.search.ranking import NAMES
from foltr.text.matching import features
from foltr.text.memory_index import MemoryIndex

QUERIES = [
    "thread wait", "parse dates", "running threads run", "json", "the", "of the and", "compress file archive",
    "unknownword parse", "getTempDir temp_dir", "3.1 version",
]  # fmt: skip


@pytest.fixture
def both(node):
    with node.reading() as reader:
        store = reader.store
    ids = [number for (number,) in store.connection.execute("SELECT id FROM documents ORDER BY id")]
    documents = store.documents(ids)
    below = {one.path: os.path.dirname(one.path)[len(os.path.dirname(one.root)) :] for one in documents}  # noqa: PTH120
    texts = {
        "title": [one.title for one in documents],
        "body": [store.text(one.id) for one in documents],
        "name": [Path(one.path).name for one in documents],
        "path": [below[one.path] for one in documents],
    }
    return store, ids, MemoryIndex(texts)


@pytest.mark.parametrize("prefix", [False, True])
@pytest.mark.parametrize("query", QUERIES)
def test_features_on_disk_equal_those_in_memory(query, prefix, both):
    store, ids, memory = both
    on_disk, in_memory = store.query_text(query, prefix=prefix), memory.query_text(query, prefix=prefix)
    assert [term.text for term in on_disk.terms] == [term.text for term in in_memory.terms]
    zeros = np.zeros(len(ids))
    facts = store.facts(ids, zeros, zeros)
    found = features(on_disk, store.tokens(ids), store.collection(), facts)
    expected = features(in_memory, memory.tokens(np.arange(len(ids))), memory.collection, facts)
    # the document frequency of a beginning is a sum over its stems on disk, and exact in memory
    frequency = [one.document_frequency for one in on_disk.terms] == [one.document_frequency for one in in_memory.terms]
    weighted = [] if frequency else [i for i, name in enumerate(NAMES) if name.startswith(("bm25", "idfcov", "ql"))]
    same = np.setdiff1d(np.arange(len(NAMES)), weighted)
    np.testing.assert_allclose(found[:, same], expected[:, same], rtol=1e-9, atol=1e-12)
    assert frequency or prefix
