"""How many other words fit a question."""

from itertools import product

import pytest

from foltr.errors import SpecError
from foltr.silo.anonymity import others_that_fit, spoken


@pytest.mark.parametrize(("true_rows", "others"), [(2, 991), (3, 46), (4, 1.5), (5, 0.04)])
def test_of_a_hundred_thousand_words_at_the_papers_sketch(true_rows, others):
    found = others_that_fit(true_rows=true_rows, rows=30, columns=200, vocabulary=100_000)
    assert found == pytest.approx(others, rel=0.03)


def test_it_is_what_counting_all_columns_of_another_word_gives():
    rows, columns = 4, 3
    hits = sum(row.count(0) >= 2 for row in product(range(columns), repeat=rows))  # the question is 0 everywhere
    found = others_that_fit(true_rows=2, rows=rows, columns=columns, vocabulary=11)
    assert found == pytest.approx(10 * hits / columns**rows)


def test_a_named_term_is_called_named():
    assert spoken(990.9) == "about 991 other words fit the question"
    assert "can name the term" in spoken(0.04)


@pytest.mark.parametrize("wrong", [{"true_rows": 0}, {"true_rows": 31}, {"columns": 0}, {"vocabulary": 0}])
def test_impossible_questions_are_refused(wrong):
    with pytest.raises(SpecError, match="true rows"):
        others_that_fit(**{"true_rows": 3, "rows": 30, "columns": 200, "vocabulary": 9} | wrong)
