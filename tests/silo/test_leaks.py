"""What the paper's answers and questions give away, and what the valid ones do not."""

import numpy as np
import pytest
from silos import FAMILY, seeded, sketches

from foltr.errors import SpecError
from foltr.silo import messages
from foltr.silo.anonymity import others_that_fit
from foltr.silo.answering import answered, owner
from foltr.silo.asking import ask_count, asked, asker
from foltr.silo.leaks import differences, fits, named, undone

TEXT = "fever " * 9 + "cough " * 4 + " ".join(f"w{n}" for n in range(25))
VOCABULARY = [f"word{n}" for n in range(20_000)]


def answer(noise_kind, term):
    """What an asker is sent about the document, and what the cells really hold."""
    who = owner(counts=sketches([TEXT]), noise_kind=noise_kind, epsilon=0.5, uniforms=seeded(2))
    asking = asker(FAMILY, true_rows=10, decoys=VOCABULARY[:500], secret=bytes(32))
    reply = messages.decoded(answered(who, next(ask_count(asking, term, 0)))[1], messages.CountAnswer)
    question = asked(asking, term)
    return messages.told_cells(reply, 30), sketches([TEXT]).cells[0, np.arange(30), question.columns], question.rows


@pytest.mark.parametrize("term", ["fever", "cough", "w3", "unheard"])
def test_differences_of_the_papers_answers_are_exact(term):
    told, truth, _ = answer("paper", term)
    assert not np.any(told == truth)
    assert np.array_equal(differences(told), truth[1:] - truth[0])


@pytest.mark.parametrize("term", ["fever", "cough", "w3", "unheard"])
def test_the_papers_noise_comes_off_where_most_cells_are_empty(term):
    told, truth, rows = answer("paper", term)
    assert np.array_equal(undone(told), truth)
    signs = asked(asker(FAMILY, true_rows=10, decoys=VOCABULARY[:500], secret=bytes(32)), term).hashes.signs[0]
    assert np.median((signs * undone(told))[rows]) == TEXT.split().count(term)


@pytest.mark.parametrize("noise_kind", ["cells", "once"])
def test_from_valid_answers_neither_comes_back(noise_kind):
    """Of 29 differences of noise of scale 60 one is right by chance in about 1 of 200."""
    told, truth, _ = answer(noise_kind, "fever")
    assert np.count_nonzero(differences(told) == truth[1:] - truth[0]) <= 3
    assert np.count_nonzero(undone(told) == truth) <= 3


def test_five_true_rows_name_the_term():
    """Of 20,000 words .008 others fit on average, of 40 questions .3: more than 4 happen once in 60,000 keys."""
    who = asker(FAMILY, true_rows=5, decoys=VOCABULARY, secret=bytes(32))
    found = [named(asked(who, word).columns, VOCABULARY, FAMILY, true_rows=5) for word in VOCABULARY[:40]]
    assert all(word in words for word, words in zip(VOCABULARY, found, strict=False))
    assert sum(words != [word] for word, words in zip(VOCABULARY, found, strict=False)) <= 4


@pytest.mark.parametrize("true_rows", [1, 2, 3])
def test_as_many_other_words_fit_as_expected(true_rows):
    """Sums over 40 questions of nearly independent words: within five deviations, false alarm 1 in a million."""
    who = asker(FAMILY, true_rows=true_rows, decoys=VOCABULARY, secret=bytes(32))
    rows = [fits(asked(who, word).columns, VOCABULARY, FAMILY) for word in VOCABULARY[:40]]
    others = sum(int(np.count_nonzero(one >= true_rows)) - 1 for one in rows)
    expected = 40 * others_that_fit(true_rows=true_rows, rows=30, columns=200, vocabulary=len(VOCABULARY))
    decoys = 40 * (30 - true_rows) if true_rows == 1 else 0  # each row's decoy fits one row for certain
    assert abs(others - decoys - expected) < 5 * np.sqrt(expected) + decoys * 0.2


def test_another_family_is_refused():
    with pytest.raises(SpecError, match="the same family"):
        fits(np.zeros(3), VOCABULARY[:3], FAMILY)
