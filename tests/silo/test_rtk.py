"""RTK-sketches against a slow reference of the same bounded structure, what a deletion loses, and what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference_rtk import REFERENCES

from foltr.errors import SpecError
from foltr.lab.silo.retrieval import counts_by_term, postings, recall, recall_at_k
from foltr.rng import stream
from foltr.silo import rtk
from foltr.silo.sketches import family, hash_terms, shape_of, take_hashes
from foltr.text.counts import count, take

KEY = bytes(32)
WORDS = [f"word{number}" for number in range(9)]
variants = pytest.mark.parametrize("variant", rtk.VARIANTS)

bags = st.dictionaries(st.sampled_from(range(9)), st.integers(1, 4), max_size=6)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(0, 7), bags),
        st.tuples(st.just("delete"), st.integers(0, 7), st.just({})),
        st.tuples(st.just("query"), st.integers(0, 8), st.just({})),
    ),
    max_size=25,
)


def vocabulary(rows=5, columns=3, words=WORDS, seed=0):
    return hash_terms(words, family(bytes([seed]) + KEY[1:], rows=rows, columns=columns))


def zipf_documents(documents, words=60, length=40, seed=1):
    """Counts of made-up documents, common words first."""
    draws = stream(seed, purpose="data").uniform(documents * length).reshape(documents, length)
    found = [np.unique((words**row).astype(int) - 1, return_counts=True) for row in draws]
    return count(
        [dict(zip(terms.tolist(), amounts.tolist(), strict=True)) for terms, amounts in found],
        {number: number for number in range(words)},
    )


def stored(sketch):
    """{cell: {(document, count)}} of what a sketch holds."""
    unpack = rtk.unpack_samples if sketch.variant == "sampled" else rtk.unpack_heaps
    documents, counts = unpack(sketch.entries)[:2]
    cells = {}
    for row, column in zip(*np.nonzero(sketch.sizes), strict=True):
        inside = slice(sketch.sizes[row, column])
        pairs = zip(documents[row, column, inside].tolist(), counts[row, column, inside].tolist(), strict=True)
        cells[int(row), int(column)] = set(pairs)
    return cells


def add(sketch, document, hashes, bag):
    rtk.add(sketch, document, take_hashes(hashes, list(bag)), list(bag.values()))


@variants
@given(
    steps=steps,
    seed=st.integers(0, 30),
    top=st.integers(1, 3),
    beta=st.sampled_from([0.1, 0.4, 1.0]),
    tags=st.sampled_from([3, 65_535]),  # of three tags many are shared
)
def test_any_order_of_operations_equals_the_slow_reference(variant, steps, seed, top, beta, tags):
    hashes = vocabulary(seed=seed)
    hashes = hashes._replace(tags=(hashes.tags % tags).astype(np.uint16))
    sketch = rtk.empty(hashes.shape, variant=variant, top=top, alpha=1.5)
    reference = REFERENCES[variant](hashes, variant, top, int(1.5 * top))
    for what, number, bag in steps:
        if what == "add" and number not in sketch.members:
            add(sketch, number, hashes, bag)
            reference.add(number, take_hashes(hashes, list(bag)), list(bag.values()))
        elif what == "delete" and number in sketch.members:
            rtk.delete(sketch, number)
            reference.delete(number)
        elif what == "query":
            term = take_hashes(hashes, [number])
            assert rtk.query(sketch, term, beta=beta).documents.tolist() == reference.query(term, beta)
        assert stored(sketch) == reference.stored()


@variants
@given(order=st.permutations(range(12)))
def test_the_order_of_insertion_does_not_matter(variant, order):
    documents, hashes = zipf_documents(12), vocabulary(words=[str(n) for n in range(60)])
    one, other = (rtk.empty(hashes.shape, variant=variant, top=2, alpha=2) for _ in range(2))
    rtk.add_documents(one, documents, hashes)
    for number in order:
        part = slice(documents.offsets[number], documents.offsets[number + 1])
        rtk.add(other, number, take_hashes(hashes, documents.terms[part]), documents.counts[part])
    assert stored(one) == stored(other)


def test_a_sketch_with_capacity_for_everything_is_exact():
    documents, hashes = zipf_documents(40), vocabulary(30, 50, [str(n) for n in range(60)])
    exact = list(counts_by_term(postings(documents), range(60), 40))
    sketch = rtk.empty(hashes.shape, variant="sampled", top=40, alpha=60)
    rtk.add_documents(sketch, documents, hashes)
    for term in range(60):
        found = rtk.query(sketch, take_hashes(hashes, [term]))
        assert exact[term][found.documents].tolist() == found.counts.tolist() == sorted(found.counts, reverse=True)
        assert recall(found.documents, exact[term], 40) == 1


@variants
def test_a_deletion_keeps_the_best_of_the_rest_and_cannot_bring_back_what_was_pushed_out(variant):
    documents, hashes = zipf_documents(200), vocabulary(10, 5, [str(n) for n in range(60)])
    sketch, fresh = (rtk.empty(hashes.shape, variant=variant, top=10, alpha=3) for _ in range(2))
    rtk.add_documents(sketch, documents, hashes)
    assert np.all(sketch.sizes == 30)
    for number in range(0, 200, 2):
        rtk.delete(sketch, number)
    odd = np.arange(1, 200, 2)
    rtk.add_documents(fresh, take(documents, odd), hashes, odd)
    left, whole = stored(sketch), stored(fresh)
    if variant != "sampled":  # a term's evicted documents leave its list shorter, and later terms move up
        assert all(left[cell] <= whole[cell] for cell in left)
    lost = 1 - sum(map(len, left.values())) / sum(map(len, whole.values()))
    assert 0.4 < lost < 0.6  # half of the documents are gone, and so is half of every full cell


def test_deleting_documents_that_filled_no_cell_loses_nothing():
    hashes = vocabulary()
    for variant in rtk.VARIANTS:
        sketch, fresh = (rtk.empty(hashes.shape, variant=variant, top=8, alpha=9) for _ in range(2))
        for number in range(6):
            add(sketch, number, hashes, {number: 2, 8: number + 1})
        rtk.delete(sketch, 3)
        for number in (0, 1, 2, 4, 5):
            add(fresh, number, hashes, {number: 2, 8: number + 1})
        assert stored(sketch) == stored(fresh)


def test_only_the_rows_asked_in_earnest_are_read():
    hashes, other = vocabulary(rows=30, columns=200), vocabulary(rows=30, columns=200, words=["decoy"])
    sketch = rtk.empty(hashes.shape, variant="sound", top=3)
    for number in range(3):
        add(sketch, number, hashes, {0: number + 1})
    rows = np.arange(5)
    columns = other.columns[0].copy()
    columns[rows] = hashes.columns[0, rows]
    cells = rtk.read(sketch, columns)
    found = rtk.rank("sound", cells, hashes.signs[0], hashes.tags[0], top=3, beta=0.1, rows=rows)
    assert found.documents.tolist() == [2, 1, 0]
    assert found.counts.tolist() == [3, 2, 1]
    assert found.rows.tolist() == [5, 5, 5]


def test_a_count_beyond_sixteen_bits_is_cut_by_samples_only():
    hashes = vocabulary()
    for variant, expected in (("paper", 10**6), ("sound", 10**6), ("sampled", 65_535)):
        sketch = rtk.empty(hashes.shape, variant=variant, top=1)
        add(sketch, 7, hashes, {0: 10**6})
        assert np.abs(rtk.query(sketch, take_hashes(hashes, [0]), beta=0).counts).max() == expected


@variants
def test_a_document_of_a_million_different_terms(variant):
    hashes = vocabulary(rows=3, columns=50)
    number = 1_000_000
    many = take_hashes(hashes, np.arange(number) % 9)
    sketch = rtk.empty(hashes.shape, variant=variant, top=4)
    rtk.add(sketch, 0, many, np.ones(number, np.int64))
    assert sketch.members == {0}
    assert rtk.query(sketch, take_hashes(hashes, [3])).documents.tolist() == [0]


@variants
def test_an_empty_document_is_a_member_that_no_term_finds(variant):
    hashes = vocabulary()
    sketch = rtk.empty(hashes.shape, variant=variant, top=2)
    add(sketch, 5, hashes, {})
    add(sketch, 6, hashes, {0: 3})
    assert sketch.members == {5, 6}
    assert rtk.query(sketch, take_hashes(hashes, [0])).documents[:1].tolist() == [6]
    rtk.delete(sketch, 5)
    assert sketch.members == {6}


def test_samples_find_nothing_for_a_term_that_no_document_has():
    hashes = vocabulary(rows=30, columns=200)
    sketch = rtk.empty(hashes.shape, variant="sampled", top=2)
    add(sketch, 1, hashes, {0: 3, 1: 1})
    unknown = vocabulary(rows=30, columns=200, words=["unheard of"])
    found = rtk.query(sketch, unknown)
    assert (len(found.documents), found.complete) == (0, 30)


def test_samples_say_when_no_row_keeps_a_term():
    hashes = vocabulary(rows=2, columns=1, words=[str(n) for n in range(200)])
    sketch = rtk.empty(hashes.shape, variant="sampled", top=1, alpha=5)
    add(sketch, 1, hashes, dict.fromkeys(range(200), 1))
    found = [rtk.query(sketch, take_hashes(hashes, [term])) for term in range(200)]
    assert sum(answer.complete for answer in found) == 10  # two rows of five places
    assert all(answer.documents.tolist() == ([1] if answer.complete else []) for answer in found)


@variants
def test_a_top_beyond_the_collection_gives_what_there_is(variant):
    hashes = vocabulary(rows=30, columns=200)
    sketch = rtk.empty(hashes.shape, variant=variant, top=50)
    add(sketch, 1, hashes, {0: 3})
    add(sketch, 2, hashes, {0: 5})
    found = rtk.query(sketch, take_hashes(hashes, [0]))
    assert set(found.documents.tolist()) == {1, 2}


def refusals():
    hashes = vocabulary()
    sketch = rtk.empty(hashes.shape, top=2)
    add(sketch, 1, hashes, {0: 1})
    term = take_hashes(hashes, [0])
    other_key, other_size = vocabulary(seed=9, words=["a"]), vocabulary(columns=4, words=["a"])
    cells = rtk.read(sketch, term.columns[0])
    swollen = cells._replace(sizes=cells.sizes + 100)
    return {
        "already in the sketch": lambda: add(sketch, 1, hashes, {0: 1}),
        "document 2 is not in the sketch": lambda: rtk.delete(sketch, 2),
        "do not belong together.*key": lambda: rtk.query(sketch, other_key),
        "5 x 3 .* and 5 x 4 ": lambda: rtk.query(sketch, other_size),
        "built for 2": lambda: rtk.query(sketch, term, top=3),
        "ask for one at a time": lambda: rtk.query(sketch, hashes),
        "beta = 2": lambda: rtk.query(sketch, term, beta=2),
        "one for each of 5 rows": lambda: rtk.read(sketch, np.full(5, 3)),
        "holds another number": lambda: rtk.rank("sound", swollen, term.signs[0], term.tags[0], top=1, beta=0.1),
        "numbered from 0": lambda: rtk.add(sketch, -1, term, [1]),
        "at least once": lambda: rtk.add(sketch, 3, term, [0]),
        "a count for every term": lambda: rtk.add(sketch, 3, term, [1, 2]),
        "no variant 'best'; there are paper": lambda: rtk.empty(hashes.shape, variant="best"),
        "an alpha of 1 or more": lambda: rtk.empty(hashes.shape, alpha=0.5),
        "beyond 64 GiB": lambda: rtk.empty(hashes.shape, top=10**10),
        "hash the vocabulary": lambda: rtk.add_documents(sketch, zipf_documents(3), hashes),
    }


@pytest.mark.parametrize("said", refusals())
def test_what_cannot_be_is_refused_in_words(said):
    with pytest.raises(SpecError, match=said):
        refusals()[said]()


@pytest.mark.data
@pytest.mark.usefixtures("real_data")
def test_variants_find_on_real_text_what_they_should():
    from foltr.lab.silo.retrieval import Retrieval, measure
    from foltr.lab.silo.tasks import text

    task = text("nfcorpus", asked=250)
    rows = {(by, top): measure(task, Retrieval(by=by, top=top), seed=1) for by in rtk.VARIANTS for top in (15, 51)}
    assert rows["sound", 15]["recall@K"] > 0.75 > 0.65 > rows["paper", 15]["recall@K"]
    assert rows["sound", 51]["recall@K"] > 0.9
    assert rows["sampled", 15]["recall@K"] > 0.98
    assert rows["sampled", 15]["recall"] > 0.95 > 0.5 > rows["sound", 15]["recall"]
    assert rows["sampled", 51]["recall"] > 0.99
    assert len({row["size_mb"] for row in rows.values()}) == 2  # the same space at the same K


def test_recall_and_shape_are_what_the_names_say():
    assert shape_of(family(KEY)) == (30, 200, "keyed", shape_of(family(KEY)).fingerprint)
    assert recall_at_k(np.array([0, 1]), np.array([3, 0, 2]), 2) == 0.5
