"""The one analyser."""

import sys
import types

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foltr.errors import SpecError
from foltr.text import analysis
from foltr.text.analysis import (
    LANGUAGES,
    LONGEST,
    PLAIN,
    STOP_WORDS,
    TextAnalysis,
    fold,
    query_words,
    stem,
    stop_words,
    terms,
    tokens,
    words,
    words_of,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Os.open, re-read 2x: FUN!", "os open re read 2x fun"),
        ("path_join __init__ 2023_04", "pathjoin path join init 202304 2023 04"),
        ("getHTTPName parseXml utf8Decode", "gethttpname get http name parsexml parse xml utf8decode utf8 decode"),
        ("PDFs mRNA iPhone PhD pH McDonald", "pdfs pdf mrna rna iphone phone phd ph ph mcdonald mc donald"),
        ("snake_withCamel", "snakewithcamel snake withcamel with camel"),
        ("3.1 v3.1 Python3.11.4 3.1rc2 1.", "3.1 v 3.1 python 3.11.4 3.1 rc2 1"),
        ("It's Alzheimer’s; doesn't can't o'clock", "it alzheimer does can o clock"),
        ("ﬁrst FIRST ｆｉｒｓｔ", "first first first"),
        ("é e\u0301 Straße Øre Łódź İstanbul ÆON", "e e strasse ore lodz istanbul aeon"),
        ("Поиск Ёлка Йод αναζήτηση", "поиск елка йод αναζητηση"),
        ("كِتَاب שָׁלוֹם ٣.١", "كتاب שלום 3.1"),
        ("हिन्दी में", "हिन्दी में"),
        ("検索語 Python入門 猫", "検索 索語 語 python 入門 門 猫"),
        ("한국어", "한국 국어 어"),
        ("ภาษา", "ภา าษ ษา า"),
        ("soft\u00adhyphen zero\u200bwidth right\u200fleft", "softhyphen zerowidth rightleft"),
        ("", ""),
        (" ... !? ", ""),
    ],
)  # fmt: skip
def test_words(text, expected):
    assert words(text) == expected.split()


def test_terms_are_stems_without_stop_words():
    assert terms("The running cats and the hat") == ["run", "cat", "hat"]
    assert terms("The cats", PLAIN) == ["the", "cats"]
    assert terms("The cats", TextAnalysis(stem=False)) == ["cats"]
    assert terms("The cats", TextAnalysis(stop=False)) == ["the", "cat"]


def test_languages_have_their_stems_and_stop_words():
    assert terms("Die Häuser und das Haus", TextAnalysis(language="german")) == ["haus", "haus"]
    assert terms("Он читает книги", TextAnalysis(language="russian")) == ["чита", "книг"]
    assert terms("l'homme et les hommes", TextAnalysis(language="french")) == ["homm", "homm"]
    assert all(stem("a", TextAnalysis(language=language)) for language in LANGUAGES)


def test_an_unknown_language_lists_the_known_ones():
    with pytest.raises(SpecError, match=r"language='klingon' is unknown; there are arabic, .*english"):
        TextAnalysis(language="klingon")


@pytest.mark.parametrize("language", LANGUAGES)
def test_stop_words_have_the_form_of_words(language):
    assert all(words(word) == [word] for word in stop_words(language))
    assert len(set(stop_words(language))) == len(stop_words(language))
    assert stop_words("english") == STOP_WORDS


def test_folding_is_for_names_and_titles():
    assert fold("  Ré\u200bsumé \n OF  Łukasz.PDF ") == "resume of lukasz.pdf"


# -- queries ---------------------------------------------------------------------------------------------------------


def asked(text, **options):
    return [(word.text, word.stems, word.prefix) for word in query_words(text, **options)]


def test_stop_words_count_only_where_there_is_nothing_else():
    assert asked("the running cats") == [("running", ("run",), False), ("cats", ("cat",), False)]
    assert [word.text for word in query_words("to be or not")] == ["to", "be", "or", "not"]
    assert all(word.with_stop for word in query_words("to be or not"))
    assert not any(word.with_stop for word in query_words("to be cat"))
    assert asked("") == asked(" ?! ", prefix=True) == []


def test_the_last_word_is_a_beginning_while_it_is_typed():
    assert asked("cats runn", prefix=True) == [("cats", ("cat",), False), ("runn", ("runn", "run"), True)]
    assert asked("cats run ", prefix=True)[-1] == ("run", ("run",), False)
    assert asked("vitamin c", prefix=True)[-1] == ("c", ("c",), False)  # every text has a word with c
    assert asked("c", prefix=True)[-1][2]
    assert asked("cat the", prefix=True)[-1] == ("the", ("the",), True)  # perhaps "theory"
    assert asked("my getNa", prefix=True) == [
        ("getna", ("getna",), True), ("get", ("get",), False), ("na", ("na",), True)
    ]  # fmt: skip


@pytest.mark.parametrize("word", ["running", "hoping", "studies", "boxes", "cried", "happily"])
def test_every_beginning_of_an_inflected_word_has_its_stem_or_is_a_beginning_of_it(word):
    root = stem(word)
    for end in range(3, len(word) + 1):
        (found,) = query_words(word[:end], prefix=True)
        assert root in found.stems or root.startswith(word[:end])


def test_one_character_of_a_script_without_spaces_is_a_beginning():
    assert asked("猫") == [("猫", ("猫",), True)]
    assert asked("黒猫") == [("黒猫", ("黒猫",), False)]


# -- hostile texts ---------------------------------------------------------------------------------------------------


@given(st.text(max_size=60))
def test_words_are_never_empty_long_or_split_again(text):
    for word in words(text):
        assert 0 < len(word) <= LONGEST
        assert not any(sign.isspace() for sign in word)
    assert [word for token in tokens(text) for word in words_of(token)] == words(text)
    query_words(text, prefix=True)
    assert terms(text, PLAIN) == words(text)


@given(st.text("aZ1._'é\u0301\u200b ", max_size=40))
def test_cutting_words_again_changes_nothing(text):
    once = words(text)
    assert words(" ".join(once)) == once


def test_lone_surrogates_divide_words_and_reach_no_stemmer():
    assert terms("cats\ud800dogs \udfff") == ["cat", "dog"]


@pytest.mark.parametrize(
    "unit",
    [
        "x",
        "aB",
        "_a",
        "1.",
        "a'",
        "漢",
        "\u0301",
        "e\u0301",
        "\u200d",
        "ﷺ",
        "ก\u0e35",
        "\u0301\u0316",
        "\U0001d165\U0001d167",
    ],
)
def test_a_token_of_a_megabyte_gives_short_words_in_linear_time(unit):
    found = words("é" + unit * (1_000_000 // len(unit)))
    fold(unit * 10_000)
    assert len(found) <= 20_000_000
    assert all(len(word) <= LONGEST for word in set(found))
    assert unit * 20 not in analysis._known


def test_ever_new_tokens_do_not_fill_the_memory(monkeypatch):
    monkeypatch.setattr(analysis, "_REMEMBERED", 100)
    monkeypatch.setattr(analysis, "_known", {})
    text = " ".join(f"word{number}" for number in range(1000))
    assert words(text) == text.split()
    assert len(analysis._known) <= 100


# -- stemmers --------------------------------------------------------------------------------------------------------


@pytest.fixture
def forgetful():
    analysis.stemmer.cache_clear()
    yield
    analysis.stemmer.cache_clear()


@pytest.mark.usefixtures("forgetful")
def test_snowballstemmer_is_used_where_pystemmer_is_missing(monkeypatch):
    snowball = types.SimpleNamespace(stemWord=lambda word: word.removesuffix("s"))
    module = types.SimpleNamespace(stemmer={"english": snowball}.__getitem__)
    monkeypatch.setitem(sys.modules, "Stemmer", None)
    monkeypatch.setitem(sys.modules, "snowballstemmer", module)
    assert terms("The cats sat") == ["cat", "sat"]


@pytest.mark.usefixtures("forgetful")
def test_stems_without_snowball_say_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "Stemmer", None)
    monkeypatch.setitem(sys.modules, "snowballstemmer", None)
    with pytest.raises(SpecError, match=r"pip install 'foltr\[text\]'"):
        terms("cats")
