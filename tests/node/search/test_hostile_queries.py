"""Long queries and texts that fit them everywhere: bounded work for a list, filters, a preview and a suggestion."""

import time
from itertools import product

import pytest

from foltr.node.index import store
from foltr.node.page import search
from foltr.node.search import query
from foltr.node.search.presentation import words_to_mark
from foltr.rng import stream

LETTERS = "abcdefghijklmnopqrstuvwxyz"
PAIRS = [first + second for first, second in product(LETTERS, LETTERS)]
SECONDS = 20.0  # of processor time for a list, its filters and a preview; before there were bounds, minutes


def drawn(letters, count, purpose):
    draws = stream(3, round=count, client=len(letters), purpose=purpose).uniform(count)
    return [letters[int(draw * len(letters))] for draw in draws]


HAN = [chr(0x4E00 + n) for n in range(300)]
WORDS = ["".join(drawn(LETTERS, 5 + n % 60, "attack"))[: 5 + n % 60] for n in range(2_000)]
QUERIES = {
    "pairs of letters": ",".join(PAIRS),
    "letters": ",".join(LETTERS * 40),
    "Han": "".join(drawn(HAN, 2_000, "attack")),
    "Han and commas": ",".join(drawn(HAN, 1_000, "attack")),
    "one word": "wait," * 400,
    "one phrase": '"wait wait" ' * 150,
    "misspelt": ",".join(word[:-1] + "q" for word in WORDS),
    "filters": " ".join(f"-path:a{n}" for n in range(49)) + " path:absent",
    "alternatives": " OR ".join(WORDS),
    "marks": "\u0301\u0323" * 1_000,
    "digits": "1" * 2_000,
    "fields": 'path:"' * 400,
    "quotes": '"' * 2_000,
    "spaces": " " * 1_999 + "a",
}  # fmt: skip


@pytest.fixture
def node(node_of):
    return node_of(
        **{
            "pairs.txt": " ".join(drawn(PAIRS, 60_000, "attack")),
            "han.txt": "".join(drawn(HAN, 100_000, "attack")),
            "wait.txt": "wait " * 60_000,
            "words.txt": " ".join(WORDS * 20),
            "accents.txt": " ".join(f"é{word}" for word in WORDS * 20),
            "marks.txt": "wait \u0301\u0323" + "\u0301\u0323" * 60_000,
            "digits.txt": "wait " + "1" * 200_000,
        }
    )


def test_no_query_takes_long(node):
    slow = {}
    for name, text in QUERIES.items():
        began = time.process_time()
        view = search.list_view(node, search.asked_of(text))
        search.filters(node, view.asked)
        for row in view.rows[:2]:
            node.preview(view.results, row.id)
        spent = time.process_time() - began
        if spent > SECONDS:
            slow[name] = spent
    assert slow == {}


def test_a_query_is_searched_for_with_a_bounded_number_of_words(node):
    """What ranking, snippets and suggestions cost is a multiple of this number."""
    with node.reading() as reader:
        for name in ("pairs of letters", "Han", "Han and commas", "one word", "misspelt"):
            asked = reader.asked(query.parse(QUERIES[name]))
            assert 1 <= len(asked.terms) <= len(asked.order) <= store.MAX_WORDS
            found = node.listed(QUERIES[name])
            assert len(words_to_mark(reader.store, found.query, found.ranking).terms) <= 2 * store.MAX_WORDS


def test_the_first_words_of_a_long_query_are_found(node):
    first, *_ = node.search(",".join(["wait", *PAIRS])).rows
    assert first.snippet.highlights


def test_an_empty_list_with_many_filters_searches_once(node, monkeypatch):
    searches = []
    original = search.search
    monkeypatch.setattr(search, "search", lambda *given: searches.append(given) or original(*given))
    assert not search.list_view(node, search.asked_of(QUERIES["filters"])).rows
    assert len(searches) == 1
    assert search.list_view(node, search.asked_of("wait path:absent")).dropped
