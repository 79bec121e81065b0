"""Mutated documents of every format between good ones: none stops the pool, hides a good file or spoils the index.

By default 20 mutants of every format go through the whole way (scan, pool of child processes, index, search). With
`-m slow` 5,000 of every format go through the pool, and 300 of every format the whole way.
"""

import resource

import psutil
import pytest
from document_mutants import GOOD, mutant

import foltr.node
from foltr.node.extract import Extracted, Extractor, Failure, Limits

BATCH = 500  # mutants in a folder
STATES = {"indexed", "excluded", "skipped", "failed", "waiting"}
CHILD_BYTES = 400 << 20  # resident
PARENT_BYTES = 200 << 20  # more than before
LIMITS = Limits(cpu_seconds=5)


def write_mutants(folder, name, numbers):
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for number in numbers:
        path = folder / f"m{number}.{name}"
        path.write_bytes(mutant(name, number))
        paths.append(path)
    return paths


def write_good(folder, number):
    path = folder / f"good{number}.txt"
    path.write_text(f"sound document goodword{number}")
    return path


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def check_batch(extractor, folder, name, numbers):
    """Extracts mutants with a good file after every fifty; how many of them became documents."""
    paths = write_mutants(folder, name, numbers)
    for place in range(0, len(paths), 51):
        paths.insert(place, write_good(folder, place))
    found = list(extractor.extract(paths))
    assert [path for path, _ in found] == paths
    for path, result in found:
        assert isinstance(result, Extracted | Failure)
        if path.name.startswith("good"):
            assert result.documents[0].body == path.read_text()
        elif isinstance(result, Failure):
            assert result.state in ("skipped", "failed")
            assert 0 < len(result.reason) <= 300
        path.unlink()
    assert all(psutil.Process(pid).memory_info().rss < CHILD_BYTES for pid in extractor.processes())
    return sum(isinstance(result, Extracted) for path, result in found if path.name.startswith("m"))


@pytest.mark.parametrize("name", GOOD)
def test_the_examples_are_good(tmp_path, name):
    path = tmp_path / f"a.{name}"
    path.write_bytes(GOOD[name])
    with Extractor() as extractor:
        ((_, found),) = extractor.extract([path])
    assert isinstance(found, Extracted), found
    assert "fox" in (found.documents[0].body + found.documents[-1].title).lower() or name in ("eml", "mbox")


@pytest.mark.slow
@pytest.mark.parametrize("name", GOOD)
def test_five_thousand_mutants_of_a_format(tmp_path, name):
    before, read = peak(), 0
    with Extractor(limits=LIMITS) as extractor:
        for start in range(0, 5_000, BATCH):
            read += check_batch(extractor, tmp_path, name, range(start, start + BATCH))
    assert peak() - before < PARENT_BYTES
    assert read > 500  # many mutants get past the first check of their format


def index_mutants(folder, count):
    """Indexes `count` mutants of every format between good files, and checks states, completeness and search."""
    documents = folder / "documents"
    mutants = [path for name in GOOD for path in write_mutants(documents / name, name, range(count))]
    good = [write_good(documents / name, place) for place, name in enumerate(GOOD)]
    before = peak()
    with foltr.node.open(folder / "home") as node:
        node.add([documents])
        *_, last = node.index()
        assert last.phase == "done"
        status = node.status()
        assert set(status.states) <= STATES
        assert sum(status.states.values()) == len(good) + len(mutants)
        assert status.states.get("waiting", 0) == 0
        for place, path in enumerate(good):
            assert [row.path for row in node.search(f'"goodword{place}"').rows] == [str(path)]
        reasons = {path: node.why(path) for path in mutants}
        assert {one.state for one in reasons.values()} <= {"indexed", "skipped", "failed"}
        assert all(one.reason for one in reasons.values() if one.state != "indexed")
        assert node.search("fox").rows
    assert peak() - before < PARENT_BYTES


def test_an_index_with_mutants_of_every_format_is_complete(tmp_path):
    index_mutants(tmp_path, 20)


@pytest.mark.slow
def test_an_index_with_many_mutants_of_every_format_is_complete(tmp_path):
    index_mutants(tmp_path, 300)
