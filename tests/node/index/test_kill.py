"""SIGKILL at random moments of indexing: whatever is stored is consistent, and the next run completes it."""

import os
import signal
import subprocess
import sys

from small_index import node_at, run, searched
from test_index_statistics import assert_exact

from foltr.node.index.candidates import Candidates
from foltr.node.index.layout import Reader, live_folder
from foltr.node.index.store import Store
from foltr.rng import stream

FILES, ROUNDS = 150, 12

# small batches and a commit of the candidates after each, so that a kill hits every kind of moment
CHILD = """
import sys
from pathlib import Path
from small_index import node_at
from foltr.node.index import indexing
indexing._BATCH_DOCUMENTS, indexing._SEARCHABLE_SECONDS = 5, 0.0
for progress in indexing.index(*node_at(Path(sys.argv[1]), sys.argv[2])):
    print(progress.phase, flush=True)
"""


def change_files(root, round_number, draws):
    """Writes a third of the files anew and deletes some."""
    for i in range(FILES):
        path = root / f"{i}.txt"
        if draws[i] < 0.33 or not round_number:
            path.write_text(
                " ".join(f"word{(i * 13 + j * round_number) % 500}" for j in range(40)) + f" round{round_number}"
            )
        elif draws[i] > 0.93:
            path.unlink(missing_ok=True)


def kill_somewhere(folder, root, moment):
    """Kills an indexing process after a number of progress records and a little more."""
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(folder), str(root)],
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    for _ in range(int(moment * 20)):
        if not child.stdout.readline():
            break
    try:
        child.wait(timeout=moment * 20 % 1 * 0.1)
    except subprocess.TimeoutExpired:
        child.send_signal(signal.SIGKILL)
    child.wait(timeout=60)
    child.stdout.close()


def test_a_killed_process_leaves_a_consistent_index(tmp_path):
    root = tmp_path / "docs"
    root.mkdir()
    places, settings = node_at(tmp_path, root)
    moments = stream(5, purpose="choice").uniform(ROUNDS)
    killed_midway = 0
    for number in range(ROUNDS):
        change_files(root, number, stream(number, purpose="data").uniform(FILES))
        kill_somewhere(tmp_path, root, moments[number])
        folder = live_folder(places)
        if folder is None or not (folder / "index.sqlite").exists():
            continue
        store = Store(folder / "index.sqlite")
        assert_exact(store)
        killed_midway += store.states()["waiting"] > 0
        indexed = store.connection.execute("SELECT id FROM files WHERE state = 'indexed'").fetchall()
        assert {row[0] for row in indexed} <= {
            row[0] for row in store.connection.execute("SELECT file FROM documents").fetchall()
        }
        assert store.connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
        assert store.connection.execute("PRAGMA foreign_key_check").fetchall() == []
        store.close()
    assert killed_midway >= 3
    run(places, settings)
    reader = Reader(places)
    names = {path.name for path in root.iterdir()}
    assert reader.store.states() == {"waiting": 0, "indexed": len(names), "excluded": 0, "skipped": 0, "failed": 0}
    assert_exact(reader.store)
    for number in range(ROUNDS):
        expected = {path.name for path in root.iterdir() if path.read_text().endswith(f"round{number}")}
        assert searched(reader, f"round{number}") == expected
    candidates = Candidates(live_folder(places))
    candidates.search(reader.store, reader.store.query_text("round1"))
    assert candidates._index.searcher().num_docs == len(names)
    assert len(list(live_folder(places).glob("candidates-*"))) == 1
    reader.close()
