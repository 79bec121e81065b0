"""Counts say what they count, and filters count the same documents."""

import itertools
import os
from pathlib import Path

import pytest

import foltr.node
from foltr.node import settings as node_settings
from foltr.node.learning import curations
from foltr.node.page import search as page_search
from foltr.node.search.results import Counts, counted
from foltr.rng import stream

WORDS = ("maple", "cedar", "willow", "poplar", "spruce")


@pytest.fixture(scope="module")
def forest(tmp_path_factory):
    """1,300 documents with random subsets of five words, and these subsets by path."""
    folder = tmp_path_factory.mktemp("forest")
    chances, subsets = stream(3, purpose="queries").uniform(1300 * len(WORDS)).reshape(1300, -1), {}
    shares = (0.9, 0.5, 0.2, 0.02, 0.9)
    for number in range(1300):
        file = folder / ("even" if number % 2 else "odd") / f"{number}.{'md' if number % 3 else 'txt'}"
        file.parent.mkdir(exist_ok=True)
        subset = {word for word, share, chance in zip(WORDS, shares, chances[number], strict=True) if chance < share}
        file.write_text(" ".join(sorted(subset)) + " tree")
        subsets[str(file)] = subset
    with foltr.node.open(folder / "home") as node:
        node.add([folder / "even", folder / "odd"])
        list(node.index())
        yield node, subsets


def expected(subsets, words):
    matching = [words & subset for subset in subsets]
    return sum(map(bool, matching)), sum(found == words for found in matching)


@pytest.mark.parametrize("words", [set(some) for size in (2, 3) for some in itertools.combinations(WORDS, size)],
                         ids=lambda words: " ".join(sorted(words)))  # fmt: skip
def test_counts_are_exact_up_to_a_thousand(forest, words):
    node, subsets = forest
    some, every = expected(subsets.values(), words)
    counts = node.search(" ".join(sorted(words)) + " ").counts
    assert (counts.some_words, counts.more) == ((some, False) if some < 1000 else (1000, True))
    assert (counts.all_words, counts.more_with_all) == ((every, False) if every <= 1000 else (1000, True))
    assert counts.kind == "exactly"


@pytest.mark.parametrize(
    ("condition", "holds"),
    [("path:even", lambda path, _: "/even/" in path), ("type:text", lambda path, _: path.endswith(".txt")),
     ("-cedar", lambda _, subset: "cedar" not in subset)],
)  # fmt: skip
def test_conditions_are_part_of_the_counts(forest, condition, holds):
    node, subsets = forest
    kept = [subset for path, subset in subsets.items() if holds(path, subset)]
    some, every = expected(kept, {"willow", "poplar"})
    counts = node.search(f"{condition} willow poplar ").counts
    assert (counts.some_words, counts.all_words, counts.kind) == (some, every, "exactly")


def test_filters_count_the_documents_of_the_list(forest):
    node, _ = forest
    for text in ("willow poplar ", "type:markdown willow poplar "):
        asked = page_search.asked_of(text)
        counts = page_search.list_view(node, asked).results.counts
        for group in page_search.filters(node, asked):
            if group.name in ("Type", "Folder"):
                assert sum(choice.documents for choice in group.choices) == counts.some_words
                for choice in group.choices:
                    assert node.search(choice.query).counts.some_words == choice.documents


def test_hidden_and_deleted_documents_are_not_counted(forest):
    node, _ = forest
    text = "willow poplar"
    before = node.search(text).counts
    first, second = node.search(text).rows[:2]
    curations.put(node.log, text, first.path, "hidden", 1.0)
    os.rename(second.path, second.path + ".gone")  # noqa: PTH104
    after = node.search(text).counts
    os.rename(second.path + ".gone", second.path)  # noqa: PTH104
    assert after == before._replace(some_words=before.some_words - 2, all_words=before.all_words - 2)


def test_what_cannot_be_counted_exactly_is_said(forest):
    node, _ = forest
    assert node.search('"willow tree" maple ').counts.kind == "at most"
    assert node.search("wi").counts.kind == "exactly"  # one word begins so
    assert counted(node.search("xyzzy").counts) == "0 results"


@pytest.mark.parametrize(
    ("counts", "words"),
    [(Counts(1, None), "1 result"), (Counts(0, None), "0 results"), (Counts(7, 7), "7 results"),
     (Counts(900, 312), "312 with all words, 900 with some"),
     (Counts(1000, 312, more=True), "312 with all words, more than 1,000 with some"),
     (Counts(1000, 1000, more=True, more_with_all=True), "more than 1,000 with all words"),
     (Counts(1000, 1000, more=True), "1,000 with all words, more than 1,000 with some"),
     (Counts(40, None, kind="at least"), "at least 40 results"),
     (Counts(40, None, kind="at most"), "at most 40 results"),
     (Counts(1000, None, more=True, kind="at most"), "perhaps more than 1,000 results"),
     (Counts(1000, None, more=True, kind="at least"), "more than 1,000 results")],
)  # fmt: skip
def test_counts_in_words(counts, words):
    assert counted(counts) == words


def test_a_result_of_a_text_that_was_cut_says_so(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "long.txt").write_text("maple " * 50 + "cedar")
    (tmp_path / "docs" / "short.txt").write_text("maple")
    with foltr.node.open(tmp_path / "home") as node:
        node.add([tmp_path / "docs"])
        node.save_settings(node_settings.changed(node.settings, limits={"words": 50}))
        list(node.index())
        assert {Path(row.path).name: row.cut for row in node.search("maple").rows} == {
            "long.txt": True,
            "short.txt": False,
        }
        assert not node.search("cedar ").rows
        assert "beginning is indexed" in node.why(tmp_path / "docs" / "long.txt").reason
