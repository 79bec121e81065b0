"""Passages, highlighted words, and text that is safe to print."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foltr.node.search.snippets import Wanted, best_snippet, escaped, find_hits, highlighted, matcher, printable


def fold(text):
    parts = unicodedata.normalize("NFD", text.casefold())
    return "".join(one for one in parts if not unicodedata.combining(one))


def stem(word):
    folded = fold(word)
    return folded.removesuffix("ing").removesuffix("s") if len(folded) > 4 else folded


def words(*terms, prefix=""):
    wanted = [Wanted((one,), "", 1.0) for one in terms] + [Wanted((), prefix, 1.0)] * bool(prefix)
    return matcher(wanted, stem=stem, fold=fold)


def marked(snippet):
    return [snippet.text[start:end] for start, end in snippet.highlights]


@pytest.mark.parametrize(
    ("text", "terms", "found"),
    [
        ("Running costs, run by run", ("run",), ["run", "run"]),
        ("Costs and costing", ("cost",), ["Costs", "costing"]),
        ("costly accost", ("cost",), []),
        ("getUserName user_name USER", ("user",), ["User", "user", "USER"]),
        ("Ein Résumé, re\u0301sume\u0301", ("resume",), ["Résumé", "résumé"]),
        ("東京都に住む", ("東京", "京都"), ["東京"]),
        ("version 3 of 13", ("3",), ["3"]),
        ("nothing here", (), []),
    ],
)
def test_words_are_marked_as_they_are_matched(text, terms, found):
    assert marked(highlighted(printable(text), words(*terms))) == found


def test_the_last_word_marks_every_word_that_begins_with_it():
    assert marked(highlighted("tax, taxation, syntax, Täxchen", words(prefix="tax"))) == ["tax", "taxation", "Täxchen"]


def test_the_passage_with_all_words_is_shown():
    text = "apple " + "filler " * 300 + "\nThe pear and the apple. " + "filler " * 300 + "pear"
    snippet = best_snippet(text, words("apple", "pear"))
    assert snippet.text.startswith("The pear and the apple.")
    assert marked(snippet) == ["pear", "apple"]


def test_a_rare_word_far_behind_is_found():
    text = "common filler " * 20_000 + "needle " + "filler " * 100
    assert "needle" in marked(best_snippet(text, words("needle")))


def test_without_a_word_the_beginning_is_shown():
    assert best_snippet("Once upon a time", words("zebra")) == ("Once upon a time", ())
    assert best_snippet("", words("zebra")) == ("", ())


HOSTILE = "a\x1b[31mred\x07\u202eevil\u200b\x00\n\t b\u0301\u0301\u0301\u0301\u0301\ud800"


def test_nothing_reaches_the_terminal_but_text():
    assert printable(HOSTILE) == "a[31mredevil b\u0301\u0301"
    assert escaped("a\x1b[31m\n\ud800é") == "a\\x1b[31m\\n\\ud800é"
    assert escaped("/plain/path é") == "/plain/path é"


@given(st.text(), st.lists(st.text(min_size=1, max_size=5), max_size=3))
def test_any_text_gives_a_printable_snippet_with_ranges_inside(text, terms):
    snippet = best_snippet(text, words(*(fold(one) for one in terms)), width=60)
    assert snippet.text.isprintable()
    assert len(snippet.text) <= 60
    ends = [place for one in snippet.highlights for place in one]
    assert ends == sorted(ends)
    assert all(0 <= place <= len(snippet.text) for place in ends)
    assert escaped(text).isprintable()


def test_a_long_run_of_letters_takes_linear_time():
    assert len(find_hits("a" * 60_000 + " " + "é" * 60_000, words("aaa", prefix="ab"))) == 0
