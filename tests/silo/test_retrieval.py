"""Ways to find are measured, and the numbers say what was measured."""

import msgspec
import pytest

from foltr.lab.silo.retrieval import Retrieval, deleted_documents, measure, without
from foltr.lab.silo.tasks import synthetic_task

TASK = synthetic_task(300, vocabulary=2000, asked=8)
SMALL = Retrieval(top=30)


def of(**changed):
    return measure(TASK, msgspec.structs.replace(SMALL, **changed), seed=1)


@pytest.mark.parametrize("by", ["paper", "sound", "sampled", "naive-each", "naive", "naive-by-cell"])
def test_every_way_is_measured(by):
    found = of(by=by)
    assert found["ms a query"] > 0
    assert 0 < found["recall"] <= found["recall@K"] <= 1


def test_naive_finds_the_same_however_it_is_laid_out():
    ways = [of(by=by) for by in ("naive-each", "naive", "naive-by-cell")]
    assert len({(found["recall@K"], found["recall"]) for found in ways}) == 1
    assert ways[0]["kB sent"] == 300 * 30 * 8 / 1e3


def test_space_grows_with_top_and_rows_but_hardly_with_documents():
    many = synthetic_task(600, vocabulary=2000, asked=8)
    assert measure(many, SMALL, seed=1)["size_mb"] < 1.01 * of()["size_mb"]
    assert of(top=60)["size_mb"] > 1.9 * of()["size_mb"]
    assert of(rows=60)["size_mb"] == pytest.approx(2 * of()["size_mb"], rel=0.01)


def test_made_up_documents_are_long_varied_and_repeat_their_words():
    task = synthetic_task(20, asked=5)
    different = [len(set(task.documents.terms[a:b].tolist())) for a, b in zip(
        task.documents.offsets, task.documents.offsets[1:], strict=False)]  # fmt: skip
    assert set(task.documents.lengths) == {1000}
    assert all(300 < number < 600 for number in different)
    assert set(task.asked) <= set(task.documents.terms)


def test_what_is_deleted_is_not_found_and_a_new_sketch_knows_nothing_of_it():
    some = msgspec.structs.replace(SMALL, deleted_fraction=0.25)
    deleted = deleted_documents(TASK, some)
    assert len(deleted) == 75
    left = without(TASK, deleted)
    assert not left.documents.lengths[deleted].any()
    assert left.documents.lengths.sum() == 225 * 1000
    assert of(deleted_fraction=0.25, rebuilt=True)["recall"] >= of(deleted_fraction=0.25)["recall"] > 0
