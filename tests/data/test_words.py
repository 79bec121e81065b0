"""The one tokeniser."""

import sys
import types

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foltr.errors import SpecError
from foltr.text import analysis as words
from foltr.text.analysis import STOP_WORDS, TextAnalysis, terms


def test_terms_are_runs_of_letters_digits_and_underscores_in_lower_case():
    assert terms("Os.path_join, re-read 2x: it's FUN!") == ["os", "path_join", "re", "read", "2x", "it", "s", "fun"]


def test_forms_of_the_same_letter_are_one():
    assert terms("ﬁrst FIRST ｆｉｒｓｔ") == ["first"] * 3
    assert terms("é e\u0301") == ["é", "é"]  # one sign, or a letter and an accent


def test_scripts_without_case_are_words_too():
    assert terms("検索 Поиск αναζήτηση") == ["検索", "поиск", "αναζήτηση"]


def test_a_text_without_a_word_has_no_terms():
    assert terms("") == terms(" ... !? ") == []


def test_stop_words_are_left_out_on_request():
    assert terms("The cat and the hat", TextAnalysis(stop=True)) == ["cat", "hat"]
    assert terms("The cat") == ["the", "cat"]
    assert all(terms(word) == [word] for word in STOP_WORDS)  # the list is in the form that it is compared with


@given(st.text(max_size=60))
def test_cutting_terms_again_changes_nothing(text):
    once = terms(text)
    assert terms(" ".join(once)) == once


def test_stems_come_from_snowball(monkeypatch):
    stemmer = types.SimpleNamespace(stemWord=lambda word: word.removesuffix("s"))
    module = types.SimpleNamespace(stemmer={"english": stemmer}.__getitem__)
    monkeypatch.setitem(sys.modules, "Stemmer", None)
    monkeypatch.setitem(sys.modules, "snowballstemmer", module)
    words._stem_of.cache_clear()
    assert terms("The cats sat", TextAnalysis(stop=True, stem=True)) == ["cat", "sat"]
    words._stem_of.cache_clear()


def test_pystemmer_is_preferred(monkeypatch):
    stemmer = types.SimpleNamespace(stemWord=lambda word: word.upper())
    monkeypatch.setitem(sys.modules, "Stemmer", types.SimpleNamespace(Stemmer={"english": stemmer}.__getitem__))
    words._stem_of.cache_clear()
    assert terms("cats", TextAnalysis(stem=True)) == ["CATS"]
    words._stem_of.cache_clear()


def test_stems_without_snowball_say_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "Stemmer", None)
    monkeypatch.setitem(sys.modules, "snowballstemmer", None)
    words._stem_of.cache_clear()
    with pytest.raises(SpecError, match=r"pip install 'foltr\[text\]'"):
        terms("cats", TextAnalysis(stem=True))
    words._stem_of.cache_clear()
