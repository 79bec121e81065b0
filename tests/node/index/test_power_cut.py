"""A power cut: every file may be as it was at any earlier moment since it was last synced, and the next run repairs it.

The state of the node's cache is copied after every batch. After a cut the disk may hold the database of one moment,
its journal cut at any byte or missing, and the candidates of another moment: the three are written by different
system calls, and only the order within each is known. Whatever the combination, the next run must end with the index of
the files as they are. What cannot be simulated here: sectors that are torn inside of a file that was synced.
"""

import shutil

import pytest
from small_index import node_at, run, searched
from test_index_statistics import assert_exact

from foltr.node.index import indexing
from foltr.node.index.layout import Reader, live_folder
from foltr.rng import stream

FILES, CASES = 40, 24


def write_documents(root, edition):
    for i in range(FILES):
        (root / f"{i}.txt").write_text(f"apple edition{edition} " + " ".join(f"w{edition}x{i}x{j}" for j in range(20)))


def copy(source, target):
    """A copy of a folder in which threads of tantivy may be merging."""
    for _ in range(50):
        try:
            shutil.copytree(source, target, ignore=shutil.ignore_patterns(".tmp*"))
        except shutil.Error:
            shutil.rmtree(target)
        else:
            return
    pytest.fail(f"{source} does not come to rest")


@pytest.fixture(scope="module")
def moments(tmp_path_factory):
    """Copies of the cache after every batch: a first index, then a second edition of all files."""
    base = tmp_path_factory.mktemp("power")
    (base / "docs").mkdir()
    places, settings = node_at(base, base / "docs")
    before = indexing._BATCH_DOCUMENTS, indexing._SEARCHABLE_SECONDS
    indexing._BATCH_DOCUMENTS, indexing._SEARCHABLE_SECONDS = 10, 0.0
    copies = []
    try:
        for edition in (1, 2):
            write_documents(base / "docs", edition)
            for progress in indexing.index(places, settings):
                if progress.phase in ("index", "done"):
                    copies.append(base / f"copy{len(copies)}")
                    copy(places.cache, copies[-1])
    finally:
        indexing._BATCH_DOCUMENTS, indexing._SEARCHABLE_SECONDS = before
    assert len(copies) >= 8
    return places, settings, copies


@pytest.mark.parametrize("case", range(CASES))
def test_files_of_different_moments_are_made_whole_by_the_next_run(moments, case):
    places, settings, copies = moments
    draws = stream(case, purpose="choice")
    store, candidates = draws.integers(len(copies), 2).tolist()
    folder = live_folder(places).name
    shutil.rmtree(places.cache)
    shutil.copytree(copies[store], places.cache)  # the database with its journal
    for old in (places.cache / folder).glob("candidates*"):
        old.unlink() if old.is_file() else shutil.rmtree(old)
    for new in (copies[candidates] / folder).glob("candidates*"):
        target = places.cache / folder / new.name
        shutil.copy(new, target) if new.is_file() else shutil.copytree(new, target)
    journal = places.cache / folder / "index.sqlite-wal"
    if journal.exists():
        content = journal.read_bytes()
        journal.write_bytes(content[: int(draws.skip(2).uniform(1)[0] * 1.3 * len(content))])
    (places.cache / folder / "index.sqlite-shm").unlink(missing_ok=True)
    run(places, settings)
    reader = Reader(places)
    assert reader.store.states()["indexed"] == FILES
    assert_exact(reader.store)
    assert len(searched(reader, "edition2")) == FILES
    assert searched(reader, "edition1") == set()
    for i in range(0, FILES, 7):
        assert searched(reader, f"w2x{i}x3") == {f"{i}.txt"}
    assert reader.candidates._index.searcher().num_docs == FILES
    reader.close()
