"""The real collections, where they are at hand: their published counts."""

import numpy as np
import pytest

from foltr.lab.data import catalog, letor

pytestmark = pytest.mark.data


def total(fold):
    parts = (fold.train, fold.validation, fold.test)
    return sum(len(part.queries) for part in parts), sum(len(part.labels) for part in parts)


@pytest.mark.usefixtures("real_data")
@pytest.mark.parametrize(
    ("name", "fold", "queries", "documents", "width", "grades", "note"),
    [
        ("mq2008", 1, 784, 15_211, 46, 3, "complete"),
        ("mq2008", 4, 784, 15_211, 46, 3, "complete"),
        ("mq2007", 1, 1_692, 59_135, 46, 3, "85 % sample"),
        ("clueweb09", 1, 61, 26_646, 42, 5, "complete"),
    ],
)
def test_counts(name, fold, queries, documents, width, grades, note):
    loaded = catalog.load(name, fold=fold)
    assert total(loaded) == (queries, documents)
    assert loaded.train.features.shape[1] == width
    assert (loaded.grades, loaded.note) == (grades, note)
    assert max(part.labels.max() for part in (loaded.train, loaded.validation, loaded.test)) == grades - 1
    assert loaded.train.features.min() >= 0
    assert loaded.train.features.max() <= 1


def test_the_first_fold_tests_on_the_fifth_part(real_data):
    fifth = letor.read(str(real_data / "mq2008" / "S5.txt.xz"))
    loaded = catalog.load("mq2008", fold=1).test
    assert np.array_equal(loaded.features, fifth.features)
    assert np.array_equal(loaded.queries, fifth.queries)


@pytest.mark.usefixtures("real_data")
def test_document_ids_belong_to_the_rows():
    ids = catalog.document_ids("clueweb09")["test"]
    assert len(ids) == len(catalog.load("clueweb09").test.labels)
    assert all(name.startswith("clueweb09-en") for name in ids)


def test_mslr_pieces(real_data):
    pieces = sorted((real_data / "mslr-sample").glob("*.txt.xz"))
    if not pieces:
        pytest.skip("the pieces of MSLR are absent")
    documents = 0
    for piece in pieces:
        data = letor.read(str(piece))
        assert data.features.shape[1] == 136
        assert set(data.labels.tolist()) <= {0, 1, 2, 3, 4}
        documents += len(data.labels)
    assert documents == 22_363 + repeated(pieces)


def repeated(pieces):
    """Documents of queries that an earlier piece has already."""
    seen, again = set(), 0
    for piece in pieces:
        data = letor.read(str(piece), width=136)
        sizes = np.diff(data.offsets)
        again += sum(int(size) for query, size in zip(data.queries.tolist(), sizes, strict=True) if query in seen)
        seen |= set(data.queries.tolist())
    return again
