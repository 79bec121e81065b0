"""Ways to find are measured, and the numbers say what was measured."""

import msgspec
import pytest

from foltr.lab.silo.retrieval import Retrieval, deleted_documents, key_of, measure, without
from foltr.lab.silo.tasks import synthetic_task
from foltr.silo import rtk
from foltr.silo.allowance import Limits, in_memory
from foltr.silo.index import build_index
from foltr.silo.keys import group_in_process
from foltr.silo.owners import NoiseChoice, answer, make_owner
from foltr.silo.protocol import Target, ask_top, make_asker
from foltr.silo.sketches import family, hash_terms

TASK = synthetic_task(300, vocabulary=2000, asked=8)
SMALL = Retrieval(top=30)


def of(**changed):
    return measure(TASK, msgspec.structs.replace(SMALL, **changed), seed=1)


@pytest.mark.parametrize("by", ["index", "paper", "sound", "sampled", "naive-each", "naive", "naive-by-cell"])
def test_every_way_is_measured(by):
    found = of(by=by)
    assert found["ms a query"] > 0
    assert 0 < found["recall"] <= found["recall@K"] <= 1


def test_naive_finds_the_same_however_it_is_laid_out():
    ways = [of(by=by) for by in ("naive-each", "naive", "naive-by-cell")]
    assert len({(found["recall@K"], found["recall"]) for found in ways}) == 1
    assert ways[0]["kB of numbers"] == 300 * 30 * 8 / 1e3


@pytest.mark.parametrize("by", ["index", "sound", "sampled"])
def test_kb_sent_are_the_bytes_of_the_sealed_messages(by):
    """Not the numbers alone: 8 bytes an entry are shown for 14 that a sampled one takes, with padding and seals."""
    functions = family(key_of(1), rows=30, columns=200)
    owns, asks = group_in_process(2, functions.key)
    if by == "index":
        lists = build_index(TASK.documents, TASK.words, functions, top=30)
    else:
        hashes = hash_terms(TASK.words, functions)
        lists = rtk.empty(hashes.shape, variant=by, top=30)
        rtk.add_documents(lists, TASK.documents, hashes)
    owner = make_owner(owns, lists=lists, choice=NoiseChoice("none"), allowance=in_memory(Limits(10**9, 10**9), b""))
    asker = make_asker(asks, functions, real_rows=None if by == "index" else 30)
    request = next(ask_top(asker, Target(owns.place), TASK.words[5], top=1))
    reply = answer(owner, request)[1]
    assert of(by=by)["kB sent"] == (len(request) + len(reply)) / 1e3


def test_an_index_is_exact_and_sends_little():
    index, sketch = of(by="index"), of(by="sampled")
    assert (index["recall@K"], index["recall"]) == (1.0, 1.0)
    assert index["kB sent"] < 0.05 * sketch["kB sent"]
    assert of(by="index", deleted_fraction=0.25)["recall"] == 1.0


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
