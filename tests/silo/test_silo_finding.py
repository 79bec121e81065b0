"""Ways to find are measured, and the numbers say what was measured."""

import msgspec
import pytest

from foltr.lab.silo.retrieval import Finding, gone_of, measured, without
from foltr.lab.silo.tasks import made_up

TASK = made_up(300, vocabulary=2000, asked=8)
SMALL = Finding(top=30)


def of(**changed):
    return measured(TASK, msgspec.structs.replace(SMALL, **changed), seed=1)


@pytest.mark.parametrize("by", ["paper", "sound", "sampled", "naive-each", "naive", "naive-by-cell"])
def test_every_way_is_measured(by):
    found = of(by=by)
    assert found["ms a query"] > 0
    assert 0 < found["found rate"] <= found["cover"] <= 1


def test_naive_finds_the_same_however_it_is_laid_out():
    ways = [of(by=by) for by in ("naive-each", "naive", "naive-by-cell")]
    assert len({(found["cover"], found["found rate"]) for found in ways}) == 1
    assert ways[0]["kB sent"] == 300 * 30 * 8 / 1e3


def test_space_grows_with_top_and_rows_but_hardly_with_documents():
    many = made_up(600, vocabulary=2000, asked=8)
    assert measured(many, SMALL, seed=1)["MB kept"] < 1.01 * of()["MB kept"]
    assert of(top=60)["MB kept"] > 1.9 * of()["MB kept"]
    assert of(rows=60)["MB kept"] == pytest.approx(2 * of()["MB kept"], rel=0.01)


def test_made_up_documents_are_long_varied_and_repeat_their_words():
    task = made_up(20, asked=5)
    different = [len(set(task.documents.terms[a:b].tolist())) for a, b in zip(
        task.documents.offsets, task.documents.offsets[1:], strict=False)]  # fmt: skip
    assert set(task.documents.lengths) == {1000}
    assert all(300 < number < 600 for number in different)
    assert set(task.asked) <= set(task.documents.terms)


def test_what_is_deleted_is_not_found_and_a_new_sketch_knows_nothing_of_it():
    some = msgspec.structs.replace(SMALL, gone=0.25)
    gone = gone_of(TASK, some)
    assert len(gone) == 75
    left = without(TASK, gone)
    assert not left.documents.lengths[gone].any()
    assert left.documents.lengths.sum() == 225 * 1000
    assert of(gone=0.25, rebuilt=True)["found rate"] >= of(gone=0.25)["found rate"] > 0
