"""A disk that is full while indexing: an error with advice, nothing half-written, and the next run completes."""

import os
import subprocess
import sys

import pytest
from small_index import node_at, run, searched
from test_index_statistics import assert_exact

from foltr.node.index.layout import Reader

# a limit on the size of files stands for the disk: writes beyond it fail as they do there
CHILD = """
import resource, sys
from pathlib import Path
from small_index import node_at, run
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), -1))
from foltr.errors import StorageError
from foltr.node.index import indexing
indexing._BATCH_DOCUMENTS, indexing._SEARCHABLE_SECONDS = 20, 0.0
try:
    run(*node_at(Path(sys.argv[1]), sys.argv[2]))
except StorageError as problem:
    print(problem)
    sys.exit(7)
"""


@pytest.mark.parametrize("limit", [60_000, 150_000, 250_000])
def test_a_full_disk_stops_indexing_and_harms_nothing(tmp_path, limit):
    root = tmp_path / "docs"
    root.mkdir()
    for i in range(200):
        (root / f"{i}.txt").write_text(" ".join(f"word{i}x{j}" for j in range(100)) + " apple")
    ended = subprocess.run(
        [sys.executable, "-c", CHILD, str(tmp_path), str(root), str(limit)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}, capture_output=True, text=True, check=False,
        timeout=300,
    )  # fmt: skip
    assert ended.returncode == 7, ended.stderr
    assert "free some space" in ended.stdout or "delete the file" in ended.stdout
    places, settings = node_at(tmp_path, root)
    run(places, settings)
    reader = Reader(places)
    assert reader.store.states()["indexed"] == 200
    assert len(searched(reader, "apple")) == 100
    assert searched(reader, "word7x3") == {"7.txt"}
    assert_exact(reader.store)
    reader.close()
