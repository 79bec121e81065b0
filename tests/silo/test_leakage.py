"""What the paper's queries and answers reveal, what the valid ones do not, and anonymity sets."""

from itertools import product

import numpy as np
import pytest
from silos import FAMILY, TARGET, asker, opened, owner_of, seeded, sketches

from foltr.errors import SpecError
from foltr.silo import messages
from foltr.silo.leakage import (
    anonymity_set_size,
    identify,
    matching_rows,
    remove_shared_noise,
)
from foltr.silo.owners import answer
from foltr.silo.protocol import ask_counts, obfuscate

TEXT = "fever " * 9 + "cough " * 4 + " ".join(f"w{n}" for n in range(25))
VOCABULARY = [f"word{n}" for n in range(20_000)]


def answered(noise_kind, term):
    """What an asker is sent about the document, and what the cells really hold."""
    owner = owner_of(noise_kind, counts=sketches([TEXT]), uniforms=seeded(2))
    one = asker(real_rows=10, decoys=VOCABULARY[:500], secret=bytes(32))
    reply = opened(answer(owner, next(ask_counts(one, TARGET, term, np.zeros(1))))[1], messages.CountAnswer)
    question = obfuscate(one, term)
    return (
        messages.count_cells(reply, 1, 30)[0],
        sketches([TEXT]).cells[0, np.arange(30), question.columns],
        question.rows,
    )


@pytest.mark.parametrize("term", ["fever", "cough", "w3", "unheard"])
def test_differences_of_the_papers_answers_are_exact(term):
    reported, truth, _ = answered("paper", term)
    assert not np.any(reported == truth)
    assert reported[1:] - reported[0] == pytest.approx(truth[1:] - truth[0], abs=1e-6)


@pytest.mark.parametrize("term", ["fever", "cough", "w3", "unheard"])
def test_the_papers_noise_comes_off_where_most_cells_are_empty(term):
    reported, truth, rows = answered("paper", term)
    assert np.array_equal(remove_shared_noise(reported), truth)
    signs = obfuscate(asker(real_rows=10, decoys=VOCABULARY[:500], secret=bytes(32)), term).hashes.signs[0]
    assert np.median((signs * remove_shared_noise(reported))[rows]) == TEXT.split().count(term)


def test_from_valid_answers_neither_comes_back():
    """Of 29 differences of noise of scale 60 one is right by chance in about 1 of 200."""
    reported, truth, _ = answered("one_shot", "fever")
    assert np.count_nonzero(np.abs(reported[1:] - reported[0] - truth[1:] + truth[0]) < 0.5) <= 3
    assert np.count_nonzero(remove_shared_noise(reported) == truth) <= 3


def test_five_real_rows_identify_the_term():
    """Of 20,000 words .008 others are candidates on average, for 40 queries .3: above 4 once in 60,000 keys."""
    one = asker(real_rows=5, decoys=VOCABULARY, secret=bytes(32))
    found = [identify(obfuscate(one, word).columns, VOCABULARY, FAMILY, real_rows=5) for word in VOCABULARY[:40]]
    assert all(word in words for word, words in zip(VOCABULARY, found, strict=False))
    assert sum(words != [word] for word, words in zip(VOCABULARY, found, strict=False)) <= 4


@pytest.mark.parametrize("real_rows", [1, 2, 3])
def test_as_many_other_words_are_candidates_as_expected(real_rows):
    """Sums over 40 questions of nearly independent words: within five sd, false alarm 1 in a million."""
    one = asker(real_rows=real_rows, decoys=VOCABULARY, secret=bytes(32))
    rows = [matching_rows(obfuscate(one, word).columns, VOCABULARY, FAMILY) for word in VOCABULARY[:40]]
    others = sum(int(np.count_nonzero(found >= real_rows)) - 1 for found in rows)
    expected = 40 * anonymity_set_size(real_rows=real_rows, rows=30, columns=200, vocabulary=len(VOCABULARY))
    decoys = 40 * (30 - real_rows) if real_rows == 1 else 0  # each row's decoy fits one row for certain
    assert abs(others - decoys - expected) < 5 * np.sqrt(expected) + decoys * 0.2


def test_another_family_is_refused():
    with pytest.raises(SpecError, match="the same family"):
        matching_rows(np.zeros(3), VOCABULARY[:3], FAMILY)


@pytest.mark.parametrize(("real_rows", "size"), [(2, 991), (3, 46), (4, 1.5), (5, 0.04)])
def test_of_a_hundred_thousand_words_at_the_papers_sketch(real_rows, size):
    found = anonymity_set_size(real_rows=real_rows, rows=30, columns=200, vocabulary=100_000)
    assert found == pytest.approx(size, rel=0.03)


def test_it_is_what_counting_all_columns_of_another_word_gives():
    rows, columns = 4, 3
    hits = sum(row.count(0) >= 2 for row in product(range(columns), repeat=rows))  # the question is 0 everywhere
    found = anonymity_set_size(real_rows=2, rows=rows, columns=columns, vocabulary=11)
    assert found == pytest.approx(10 * hits / columns**rows)


@pytest.mark.parametrize("wrong", [{"real_rows": 0}, {"real_rows": 31}, {"columns": 0}, {"vocabulary": 0}])
def test_impossible_questions_are_refused(wrong):
    with pytest.raises(SpecError, match="real rows"):
        anonymity_set_size(**{"real_rows": 3, "rows": 30, "columns": 200, "vocabulary": 9} | wrong)
