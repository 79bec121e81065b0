"""Count sketch and count-min: against a slow reference, sums, and the error that theory allows."""

from statistics import median

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from foltr.errors import SpecError
from foltr.rng import stream
from foltr.silo.sketches import (
    KINDS,
    add,
    empty,
    estimate,
    family,
    hash_terms,
    sketch_documents,
    take_hashes,
)
from foltr.text.counts import count

WORDS = [f"word{number}" for number in range(8)]
kinds = pytest.mark.parametrize("kind", KINDS)
amounts = st.lists(st.integers(-5, 9), min_size=8, max_size=8)


def hashed(rows=4, columns=3, seed=0, words=WORDS):
    return hash_terms(words, family(bytes([seed]) * 32, rows=rows, columns=columns))


def slow_estimates(kind, hashes, counts):
    cells = {}
    for term, often in enumerate(counts):
        for row in range(hashes.shape.rows):
            sign = int(hashes.signs[term, row]) if kind == "count" else 1
            cell = row, int(hashes.columns[term, row])
            cells[cell] = cells.get(cell, 0) + sign * often
    read = []
    for term in range(len(counts)):
        rows = [(row, int(hashes.columns[term, row])) for row in range(hashes.shape.rows)]
        if kind == "count":
            read.append(median(int(hashes.signs[term, row]) * cells[row, column] for row, column in rows))
        else:
            read.append(min(cells[cell] for cell in rows))
    return read


@kinds
@given(counts=amounts, seed=st.integers(0, 50), rows=st.integers(1, 6))
def test_estimates_equal_the_slow_reference(kind, counts, seed, rows):
    hashes = hashed(rows, 3, seed)
    sketch = empty(kind, hashes.shape)
    add(sketch, hashes, counts)
    assert estimate(sketch, hashes).tolist() == slow_estimates(kind, hashes, counts)


@kinds
@given(one=amounts, other=amounts)
def test_the_sum_of_sketches_is_the_sketch_of_the_union_and_adding_less_takes_away(kind, one, other):
    hashes = hashed()
    first, second, both = (empty(kind, hashes.shape) for _ in range(3))
    add(first, hashes, one)
    add(second, hashes, other)
    add(both, hashes, np.add(one, other))
    assert np.array_equal(first.cells + second.cells, both.cells)
    add(both, hashes, np.negative(other))
    assert np.array_equal(both.cells, first.cells)


@kinds
def test_many_documents_at_once_are_each_alone(kind):
    bags = [{"a": 3, "b": 1}, {}, {"b": 2, "c": 70_000}]
    documents = count(bags, {"a": 0, "b": 1, "c": 2})
    hashes = hashed(words=["a", "b", "c"])
    together = sketch_documents(kind, documents, hashes)
    for number, bag in enumerate(bags):
        alone = empty(kind, hashes.shape)
        add(alone, take_hashes(hashes, ["abc".index(word) for word in bag]), list(bag.values()))
        assert np.array_equal(together.cells[number], alone.cells)
        assert np.array_equal(estimate(together, hashes)[number], estimate(alone, hashes))


@given(counts=st.lists(st.integers(0, 9), min_size=8, max_size=8), seed=st.integers(0, 50))
def test_count_min_is_never_below_the_count(counts, seed):
    hashes = hashed(seed=seed)
    sketch = empty("count-min", hashes.shape)
    add(sketch, hashes, counts)
    assert np.all(estimate(sketch, hashes) >= counts)


def zipf_errors(keys=300, rows=30, columns=40, terms=200):
    """[keys, terms, z] error of single rows, [keys, terms] of the median, and the counts behind."""
    counts = (60 / np.arange(1, terms + 1)).astype(int) + 1
    single, medians = np.empty((keys, terms, rows)), np.empty((keys, terms))
    words = [f"word{n}" for n in range(terms)]
    for key in range(keys):
        hashes = hash_terms(words, family(key.to_bytes(32, "big"), rows=rows, columns=columns))
        sketch = empty("count", hashes.shape)
        add(sketch, hashes, counts)
        single[key] = hashes.signs * sketch.cells[np.arange(rows), hashes.columns] - counts[:, None]
        medians[key] = estimate(sketch, hashes) - counts
    return single, medians, counts


def test_estimates_are_unbiased_and_within_the_bound_of_theorem_2():  # false alarm below 1 in 1,000, keys fixed
    rows, columns = 30, 40
    single, medians, counts = zipf_errors(rows=rows, columns=columns)
    for term in (0, 1, 10, 150):
        spread = np.sqrt((np.square(counts).sum() - counts[term] ** 2) / columns)  # of one row: F2 of the others / w
        assert abs(single[:, term].mean()) < 4.1 * spread / np.sqrt(single[:, term].size)
        assert single[:, term].std() == pytest.approx(spread, rel=0.1)
        assert abs(medians[:, term].mean()) < 4.1 * medians[:, term].std() / np.sqrt(len(medians))
    residual = np.square(counts[columns // 8 :]).sum()
    bound = np.sqrt(64 * residual / columns)
    tried = single.shape[0] * rows  # rows of one term under different keys know nothing of each other
    most = binom.isf(1e-5, tried, 3 / 8)
    assert all(np.count_nonzero(np.abs(single[:, term]) > bound) <= most for term in (0, 1, 10, 150))
    wrong = binom.sf(rows // 2 - 1, rows, 3 / 8)  # half of the rows beyond the bound, each at the rate of 3/8
    assert np.count_nonzero(np.abs(medians[:, 10]) > bound) <= binom.isf(1e-5, len(medians), wrong)


def test_noise_shared_by_all_rows_breaks_theorem_2_at_any_number_of_rows():  # false alarm 1 in 10,000, seed fixed
    tries, epsilon = 20_000, 0.5
    unit = stream(1, purpose="noise").uniform(tries) - 0.5
    noise = -np.sign(unit) * np.log1p(-2 * np.abs(unit)) / epsilon
    for rows in (3, 99):
        hashes = hashed(rows, 200, words=["alone"])
        sketch = empty("count", hashes.shape)
        add(sketch, hashes, [7])
        exact = hashes.signs[0] * sketch.cells[np.arange(rows), hashes.columns[0]]
        errors = np.array([np.median(exact + shared) - 7 for shared in noise[:2000]])
        assert errors == pytest.approx(noise[:2000])  # no number of rows averages it out
    beyond = np.count_nonzero(np.abs(noise) > 4 / epsilon)  # the bound where no other term collides
    assert beyond >= binom.ppf(1e-4, tries, np.exp(-4))


@kinds
def test_a_document_of_a_million_terms_and_an_empty_one(kind):
    hashes = hashed(3, 50)
    sketch = empty(kind, hashes.shape)
    add(sketch, take_hashes(hashes, np.arange(1_000_000) % 8), np.ones(1_000_000, np.int64))
    assert np.abs(sketch.cells).sum(axis=1).max() <= 1_000_000
    before = sketch.cells.copy()
    add(sketch, take_hashes(hashes, np.zeros(0, np.int64)), [])
    assert np.array_equal(sketch.cells, before)


def refusals():
    hashes = hashed()
    sketch = empty("count", hashes.shape)
    documents = count([{"a": 1}], {"a": 0})
    return {
        "no sketch 'bloom'; there are count": lambda: empty("bloom", hashes.shape),
        "do not belong together: 4 x 3 .*key.*, and 4 x 3": lambda: estimate(sketch, hashed(seed=3)),
        "4 x 3 .*and 4 x 5": lambda: estimate(sketch, hashed(columns=5)),
        "a count for every term": lambda: add(sketch, hashes, [1]),
        "give one sketch": lambda: add(empty("count", hashes.shape, 2), hashes, [1] * 8),
        "beyond 2,147,483,647": lambda: add(sketch, hashes, [2**30] * 8),
        "hash the vocabulary": lambda: sketch_documents("count", documents, hashes),
        "beyond their vocabulary": lambda: sketch_documents(
            "count", documents._replace(terms=np.array([1]), vocabulary_size=1), hashed(words=["a"])
        ),
    }


@pytest.mark.parametrize("said", refusals())
def test_what_cannot_be_is_refused_in_words(said):
    with pytest.raises(SpecError, match=said):
        refusals()[said]()
