"""Queries of the benchmark beside Recoll are words as they stand in a text, whatever an analyser would make of them."""

import re
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

import known_items
from known_items import KINDS, Text, draw

FILLER = "alpha beta gamma delta epsilon zeta eta theta iota kappa"


def text(number, body, *, language="en", title=""):
    return Text(f"doc/file{number}-{chr(97 + number % 26) * 2}.txt", "text", language, title, f"{body} {FILLER}")


def picture(number):
    return Text(f"doc/photo{number}.png", "unread", "", "", "")


def corpus():
    """Three hundred texts, each with words of its own, some of them within identifiers; and sixty pictures."""
    letters = "abcdefghij"
    own = [letters[n // 100] + letters[n // 10 % 10] + letters[n % 10] for n in range(300)]
    return [
        text(
            n,
            f"max_{tag}size foo-{tag}bar node.{tag}run e{tag}4 Walk{tag} (swim{tag}) climb{tag}, then rest{tag}. "
            f"Never walk slow{tag} again today.",
            language="de" if n % 2 else "en",
            title=f"walk{tag} - how to swim{tag}",
        )
        for n, tag in enumerate(own)
    ] + [picture(n) for n in range(60)]


@pytest.mark.parametrize("kind", KINDS)
def test_every_word_of_a_query_stands_as_such_in_its_document(kind):
    documents = {one.path: one for one in corpus()}
    queries = [query for query in draw(list(documents.values()), 40, seed=1) if query.kind == kind]
    assert len(queries) == 40
    for query in queries:
        one = documents[query.target]
        stem = Path(one.path).stem
        if kind in ("name", "unread"):
            assert query.text in (stem, stem.replace("-", " "))
            assert (one.sort == "unread") == (kind == "unread")
            continue
        if kind == "partial":
            assert stem.startswith(query.text.replace(" ", "-"))
            assert len(query.text) < len(stem)
            continue
        source = one.title if kind == "title" else one.body
        standing = {word.lower() for word in re.findall(r"(?<![\w.-])[^\W\d_]+(?![\w-]|\.\w)", source)}
        asked = query.text.strip('"').split()
        unknown = [word for word in asked if word not in standing]
        assert len(unknown) == (1 if kind == "typo" else 0), (query, unknown)


def test_a_phrase_stands_in_its_document_word_by_word():
    documents = {one.path: one for one in corpus()}
    for query in draw(list(documents.values()), 20, seed=2):
        if query.kind == "phrase":
            assert query.text.strip('"') in documents[query.target].body.lower()


def test_other_languages_have_queries_of_their_own():
    documents = {one.path: one for one in corpus()}
    by_kind = {(query.kind, documents[query.target].language) for query in draw(list(documents.values()), 20, seed=1)}
    assert ("language", "de") in by_kind
    assert ("language", "en") not in by_kind
    assert ("words", "de") not in by_kind


def test_an_error_is_one_swapped_missing_or_replaced_letter_of_the_longest_word():
    for seed in range(1, 30):
        draws = known_items.stream(seed, purpose="queries")
        short, wrong = known_items._misspelt(["oak", "elephant"], draws)
        assert short == "oak"
        assert wrong != "elephant"
        assert abs(len(wrong) - len("elephant")) <= 1
        assert sorted(wrong) == sorted("elephant") or len(set("elephant") - set(wrong)) <= 1
