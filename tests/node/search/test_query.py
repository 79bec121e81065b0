"""The query language: what each text stands for, and that every text stands for something."""

import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foltr.node.search.query import MAX_CLAUSES, Clause, Query, date_of, parse, to_text

WORD = Clause("", "tax")


def test_words_are_groups_and_the_last_one_may_go_on():
    assert parse("tax 24") == Query(((WORD,), (Clause("", "24"),)), prefix=True)


def test_whitespace_ends_the_last_word():
    assert parse("tax ") == Query(((WORD,),), prefix=False)


def test_quotes_make_a_phrase():
    assert parse('"tax  return"') == Query(((Clause("", "tax return", quoted=True),),), prefix=False)


@pytest.mark.parametrize(
    ("text", "clause"),
    [
        ("-tax", Clause("", "tax", negated=True)),
        ('-"tax return"', Clause("", "tax return", quoted=True, negated=True)),
        ("-path:old", Clause("path", "old", negated=True)),
        ("TYPE:pdf", Clause("type", "pdf")),
        ('from:"Ada L"', Clause("from", "Ada L", quoted=True)),
        ("before:2024-02", Clause("before", "2024-02")),
    ],
)
def test_conditions(text, clause):
    assert parse(text) == Query(((clause,),), prefix=False)
    assert parse(text).conditions == ((clause,),)
    assert parse(f"x {text}").positive[0] == (Clause("", "x"),)


def test_or_joins_alternatives():
    found = parse("tax OR duty OR toll 24")
    assert [[one.text for one in group] for group in found.groups] == [["tax", "duty", "toll"], ["24"]]
    assert found.conditions == ()


def test_alternatives_with_a_condition_are_a_condition():
    (condition,) = parse("tax type:pdf OR type:odt").conditions
    assert [one.text for one in condition] == ["pdf", "odt"]


@pytest.mark.parametrize(
    "text",
    ["size:5", "https://example.org/x", "C:\\windows", "before:lunch", "after:2024-13", "path:", "--verbose", "or"],
)
def test_what_is_no_operator_is_plain_words(text):
    assert parse(text) == Query(((Clause("", text),),), prefix=True)


def test_an_or_that_joins_nothing():
    assert parse("OR") == Query(((Clause("", "OR"),),), prefix=True)
    assert parse("tax OR") == Query(((WORD,),), prefix=False)
    assert parse("tax OR OR duty") == parse("tax OR duty")


def test_an_open_quote_is_ignored():
    assert parse('"annual rep') == parse("annual rep")


def test_nothing():
    assert parse("") == parse(' \t\n""') == Query((), prefix=False)


@pytest.mark.parametrize(
    ("text", "date"),
    [("2024", (2024, 1, 1)), ("2024-03", (2024, 3, 1)), ("2024-3-9", (2024, 3, 9)), ("2023-02-29", None),
     ("0000", None), ("٢٠٢٤", None), ("24", None)],
)  # fmt: skip
def test_dates(text, date):
    assert date_of(text) == (datetime.date(*date) if date else None)


QUERY_TEXT = st.one_of(
    st.text(),
    st.lists(st.sampled_from(["a", "OR", '"', "-", " ", ":", "path:", "before:", "2024", "Type:", "\n", "é", "x"])).map(
        "".join
    ),
)


@given(QUERY_TEXT)
def test_every_text_parses_and_writing_it_is_stable(text):
    query = parse(text)
    assert parse(to_text(query)) == query
    assert all(clause.text for group in query.groups for clause in group)


@given(st.integers(0, 3000), st.sampled_from(["a ", "a", "-b ", '"c d" ', "x OR "]))
def test_long_texts_are_cut(count, part):
    query = parse(part * count)
    assert sum(map(len, query.groups)) <= MAX_CLAUSES
    assert parse(to_text(query)) == query
