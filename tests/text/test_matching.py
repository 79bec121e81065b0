"""Features against brute force, BM25 against bm25s, and the index in memory."""

from pathlib import Path

import bm25s
import brute_force
import numpy as np
import pytest

from foltr.errors import SpecError
from foltr.rng import stream
from foltr.text import occurrences
from foltr.text.analysis import STOP_WORDS, TextAnalysis, fold, stem, terms
from foltr.text.fields import FIELDS
from foltr.text.matching import (
    FEATURES,
    NAMES,
    Feature,
    bounded_history,
    columns,
    features,
    of_occurrences,
    scale,
    with_bounded_history,
)
from foltr.text.memory_index import MemoryIndex

WORDS = (
    "run", "running", "runs", "runner", "runt", "cat", "cats", "catalog", "the", "of", "and", "to", "relate",
    "relational", "relation", "study", "studies", "studied", "café", "naïve", "getName", "get", "name", "path_join",
    "3.1", "python", "検索", "黒猫", "猫", "report", "red", "blue", "a",
)  # fmt: skip
QUERIES = (
    "run cat", "running cats studies", "runn", "stud", "relationa", "the of", "of the cat", "cat cat red", "the",
    "unheard", "", "café", "get name", "name get", "python 3.1", "red blue report cat run", "ca", "blue re", "cat ca",
    "unheard cat",
)  # fmt: skip


def drawn(seed, *, documents=7):
    """Random texts in all fields, some empty."""
    longest = {"title": 4, "body": 25, "name": 2, "path": 5, "sender": 3, "recipients": 3}

    def text(field, document):
        draws = stream(seed, round=document, client=FIELDS.index(field), purpose="data").uniform(longest[field] + 1)
        size = int(draws[0] * (longest[field] + 1))
        return " ".join(WORDS[int(draw**1.5 * len(WORDS))] for draw in draws[1 : size + 1])

    return {field: [text(field, document) for document in range(documents)] for field in FIELDS}


@pytest.mark.parametrize("prefix", [False, True])
@pytest.mark.parametrize("seed", range(1, 6))
def test_every_feature_equals_brute_force_over_the_raw_text(seed, prefix):
    texts = drawn(seed)
    draws = stream(seed, purpose="choice").uniform(28).reshape(4, 7) * 100
    index = MemoryIndex(texts, age_days=draws[0], depth=draws[1])
    slow = brute_force.Collection(texts)
    documents = np.array([3, 0, 6, 1, 2])
    given = index.facts(documents, opened=draws[2, documents], folder_opened=draws[3, documents])
    named = (texts["title"][3], ".".join(texts["title"][0].split()), texts["name"][0], f"{texts['name'][6]}.pdf")
    for query in (*QUERIES, *named):
        found = features(index.query_text(query, prefix=prefix), index.tokens(documents), index.collection, given)
        for row, document in enumerate(documents.tolist()):
            facts = dict(zip(("age", "depth", "opened", "folder"), draws[:, document].tolist(), strict=True))
            folded = fold(query), fold(texts["title"][document]), fold(texts["name"][document])
            expected = brute_force.features(slow, query, document, *folded, facts, prefix)
            got = dict(zip(NAMES, found[row].tolist(), strict=True))
            assert not got.keys() ^ expected.keys(), "features that only one of the two computes"
            assert got == pytest.approx(expected, rel=1e-9, abs=1e-12), (query, document)


@pytest.mark.parametrize("cuts", [(1,), (2, 5), (0, 1, 2, 3, 4, 5, 6, 7)])
def test_documents_looked_through_block_by_block_have_the_same_features(cuts):
    for seed in range(1, 6):
        index, documents = MemoryIndex(drawn(seed)), np.arange(7)
        for text in QUERIES:
            query = index.query_text(text, prefix=True)
            blocks = [index.tokens(part) for part in np.split(documents, cuts)]
            found = occurrences.joined([occurrences.find(query, one, index.collection.stop_count) for one in blocks],
                                       len(query.terms))  # fmt: skip
            facts = index.facts(documents)
            whole = features(query, index.tokens(documents), index.collection, facts)
            assert np.array_equal(of_occurrences(query, found, index.collection, facts), whole), (seed, text)


def test_document_frequencies_are_those_of_the_terms():
    index = MemoryIndex(drawn(1))
    for text in QUERIES:
        assert index.document_frequencies(text) == [term.document_frequency for term in index.query_text(text).terms]


def test_large_word_numbers_are_searched_for_instead_of_looked_up(monkeypatch):
    texts = drawn(1)
    index, everything = MemoryIndex(texts), np.arange(7)
    given = index.query_text("cats run", prefix=True), index.tokens(everything), index.collection
    looked_up = features(*given, index.facts(everything))
    monkeypatch.setattr("foltr.text.occurrences._LARGEST_TABLE", 0)
    assert np.array_equal(features(*given, index.facts(everything)), looked_up)


def bm25s_scores(texts, query):
    """[documents] by the package bm25s, method "lucene", on the same terms."""
    cut = [terms(text) for text in texts]
    vocabulary = {word: number for number, word in enumerate(sorted(set().union(*cut)))}
    ids = [[vocabulary[word] for word in one] for one in cut]
    judge = bm25s.BM25(method="lucene", k1=1.2, b=0.75)
    judge.index((ids, vocabulary), show_progress=False)
    known = [word for word in terms(query) if word in vocabulary]
    return judge.get_scores(known) if known else np.zeros(len(texts))


@pytest.mark.parametrize("seed", range(1, 11))
def test_bm25_equals_bm25s(seed):
    texts = drawn(seed, documents=40)
    whole = [" ".join(texts[field][document] for field in FIELDS) for document in range(40)]
    index = MemoryIndex(texts)
    for query in ("run cat", "running cats", "red", "cat cat red", "unheard cat", "python 3.1 report"):
        asked = index.query_text(query)
        expected = bm25s_scores(whole, query)
        everything = np.arange(40)
        found = features(asked, index.tokens(everything), index.collection, index.facts(everything))[:, 0]
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(index.scores(asked), found, rtol=1e-12)


def test_candidates_are_the_best_by_bm25_equal_ones_in_their_order():
    index = MemoryIndex({"body": ["cat", "dog", "cat cat", "cat", "dog cat x y z", "bird"]})
    query = index.query_text("cats")
    assert index.candidates(query, 10).tolist() == [2, 0, 3, 4]
    assert index.candidates(query, 2).tolist() == [2, 0]
    assert index.candidates(index.query_text("unheard")).tolist() == []
    assert index.candidates(index.query_text("")).tolist() == []


def test_a_word_that_no_document_has_is_as_rare_as_possible_and_not_dropped():
    index = MemoryIndex({"title": ["cat", "cat dog"]})
    query = index.query_text("cat unheard")
    assert [term.document_frequency for term in query.terms] == [2, 0]
    raw = features(query, index.tokens([0]), index.collection, index.facts([0]))[0]
    rare, common = np.log(1 + 1.5 / 1.5), np.log(1 + 0.5 / 2.5)
    assert raw[NAMES.index("cov_title")] == 0.5
    assert raw[NAMES.index("idfcov_any")] == pytest.approx(common / (common + rare))


def test_stop_words_count_only_where_the_query_consists_of_them():
    index = MemoryIndex({"title": ["The Who", "the cat", "cat"]})
    assert index.collection.lengths[0] == 2
    assert index.collection.with_field[0] == 3
    assert [term.text for term in index.query_text("the cat").terms] == ["cat"]
    assert index.candidates(index.query_text("the who")).tolist() == [0, 1]
    assert index.vocabulary[: len(STOP_WORDS)] == list(STOP_WORDS)


@pytest.mark.parametrize("target", ["running", "relational", "studies", "catalogues", "cried"])
def test_no_beginning_loses_what_the_word_and_its_stem_find(target):
    """The documents that have only the stem's other forms stay in the list at every letter from the third."""
    others = {"running": "runs", "relational": "relate", "studies": "study", "catalogues": "catalogue", "cried": "cry"}
    index = MemoryIndex({"body": [target, others[target], "something else"]})
    assert stem(others[target]) == stem(target)
    assert sorted(index.candidates(index.query_text(target)).tolist()) == [0, 1]
    for end in range(3, len(target) + 1):
        assert {0, 1} <= set(index.candidates(index.query_text(target[:end], prefix=True)).tolist()), target[:end]


def test_one_character_is_found_where_words_are_pairs():
    index = MemoryIndex({"body": ["黒猫", "猫が好き", "犬"]})
    assert sorted(index.candidates(index.query_text("猫")).tolist()) == [0, 1]
    assert index.candidates(index.query_text("黒猫")).tolist() == [0]


def test_phrases_skip_stop_words_and_stay_in_their_field():
    index = MemoryIndex({"title": ["state", "art of state"], "body": ["art", "the state of the art"]})
    query = index.query_text("state of art")
    raw = features(query, index.tokens([0, 1]), index.collection, index.facts([0, 1]))
    assert raw[:, NAMES.index("phrase_body")].tolist() == [0.0, 1.0]
    assert raw[:, NAMES.index("phrase_title")].tolist() == [0.0, 0.0]
    assert raw[:, NAMES.index("ordered")].tolist() == [0.0, 0.5]
    assert raw[:, NAMES.index("unordered")].tolist() == [0.0, 2 / 3]


def test_the_shortest_window_with_all_terms_stays_in_its_field():
    far = " ".join(f"x{number}" for number in range(60))
    index = MemoryIndex({"title": ["cat", "dog cat"], "body": [f"dog {far} cat", "cat x dog"]})
    raw = features(index.query_text("cat dog"), index.tokens([0, 1]), index.collection, index.facts([0, 1]))
    assert raw[:, NAMES.index("minspan")] == pytest.approx([2 / 62, 1.0])


def test_the_title_is_compared_word_by_word_and_unstemmed():
    titles = [
        "json.load",
        "json.loads",
        "JSON loads()",
        "json_loads",
        "json.loads of",
        "loads json",
        "v3.1",
        "v3 1",
        "++",
    ]
    index, every = MemoryIndex({"title": titles}), np.arange(len(titles))

    def exact(typed):
        raw = features(index.query_text(typed), index.tokens(every), index.collection, index.facts(every))
        return [titles[row] for row in np.flatnonzero(raw[:, NAMES.index("title_exact")])]

    assert (
        exact("json loads")
        == exact("Json.LOADS")
        == exact("json_loads")
        == ["json.loads", "JSON loads()", "json_loads"]
    )
    assert exact("json load") == ["json.load"]
    assert exact("v3.1") == ["v3.1"]
    assert exact("++") == ["++"]
    assert exact("") == exact("json") == exact("+") == []


def test_the_file_name_counts_with_its_ending_and_without():
    index = MemoryIndex({"name": ["Report 2023", "Report"]})

    def exact(typed):
        raw = features(index.query_text(typed), index.tokens([0, 1]), index.collection, index.facts([0, 1]))
        return raw[:, NAMES.index("name_exact")].tolist()

    assert exact("report 2023") == exact("REPORT 2023.pdf") == [1.0, 0.0]
    assert exact("report.tar.gz") == [0.0, 1.0]
    assert exact("report. of") == exact("reports") == exact("") == [0.0, 0.0]


# -- scaling ---------------------------------------------------------------------------------------------------------


def test_scalings():
    chosen = [Feature(name, name, "lexical", len, name) for name in ("range", "none", "log", "saturating")]
    raw = np.array([[2.0, 5.0, 0.0, 1.0], [4.0, 6.0, np.e - 1, 3.0], [3.0, 7.0, 0.0, 0.0]])
    expected = [[0.0, 5.0, 0.0, 0.5], [1.0, 6.0, 0.1, 0.75], [0.5, 7.0, 0.0, 0.0]]
    np.testing.assert_allclose(scale(raw, chosen), expected)
    assert raw[0, 0] == 2.0  # not in place
    assert scale(np.full((3, 1), 7.0), chosen[:1]).tolist() == [[0.0]] * 3
    assert scale(np.empty((0, len(FEATURES)))).shape == (0, len(FEATURES))


def test_wrong_features_and_fields_say_what_there_is():
    with pytest.raises(SpecError, match="2 columns for 1 features"):
        scale(np.zeros((1, 2)), FEATURES[:1])
    with pytest.raises(SpecError, match="scaling='zscore' is unknown; there are range, none"):
        scale(np.zeros((1, 1)), [Feature("x", "zscore", "lexical", len, "x")])
    with pytest.raises(SpecError, match="unknown features bm26; there are bm25"):
        columns(["bm25", "bm26"])
    with pytest.raises(SpecError, match="unknown fields"):
        MemoryIndex({"titel": ["a"]})
    assert columns(["bm25_title", "bm25"]).tolist() == [1, 0]


# -- hostile collections ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "texts",
    [
        {"title": []},
        {"title": ["", ""]},
        {"title": ["\ud800", "\u200b" * 50]},
        {"body": ["the of and", "a" * 100_000]},
        {"title": ["\u202egnp.exe", "cafe\u0301"], "body": ["עברית", "\x00\x1b[31m"]},
    ],
)
def test_odd_collections_give_finite_features(texts):
    index = MemoryIndex(texts)
    everything = np.arange(index.collection.documents)
    for query in ("", "the", "a", "cat", "\ud800", "cafe", "עברית"):
        asked = index.query_text(query, prefix=True)
        raw = features(asked, index.tokens(everything), index.collection, index.facts(everything))
        assert raw.shape == (len(everything), len(FEATURES))
        assert np.isfinite(scale(raw)).all()
        index.candidates(asked)


def test_facts_that_are_not_finite_count_as_0():
    index = MemoryIndex({"title": ["cat"]}, age_days=np.array([np.nan]), depth=np.array([np.inf]))
    raw = features(index.query_text("cat"), index.tokens([0]), index.collection, index.facts([0]))
    assert raw[0, columns(["age", "depth"])].tolist() == [0.0, 0.0]


def test_other_analyses():
    plain = MemoryIndex({"body": ["the cats", "cat"]}, TextAnalysis(stop=False, stem=False))
    assert plain.candidates(plain.query_text("the cats")).tolist() == [0]
    german = MemoryIndex({"body": ["die Häuser", "Haus", "die"]}, TextAnalysis(language="german"))
    assert sorted(german.candidates(german.query_text("die Haus")).tolist()) == [0, 1]


def test_values_are_those_of_the_code_before_features_had_a_table():
    """`feature_values.npz` was written by that code. Logarithms and matrix products may round differently on another
    processor, so the columns with these are compared up to 1e-12; all others to the bit."""
    with np.load(Path(__file__).with_name("feature_values.npz")) as stored:
        before = {name: stored[name] for name in stored}
    names = before["names"].tolist()
    places = columns(names)
    raw = np.stack(list(stored_cases()))
    scaled = np.stack(list(map(scale, raw)))[..., places]
    raw = raw[..., places]
    exact = [place for place, name in enumerate(names) if not name.startswith(("bm25", "ql", "idfcov"))]
    assert raw[..., exact].tobytes() == before["raw"][..., exact].tobytes()
    np.testing.assert_allclose(raw, before["raw"], rtol=1e-12, atol=0)
    np.testing.assert_allclose(scaled, before["scaled"], rtol=1e-9, atol=1e-12)


def stored_cases():
    for seed in (1, 2, 3):
        texts = drawn(seed)
        draws = stream(seed, purpose="choice").uniform(28).reshape(4, 7) * 100
        index = MemoryIndex(texts, age_days=draws[0], depth=draws[1])
        documents = np.array([3, 0, 6, 1, 2])
        given = index.facts(documents, opened=draws[2, documents], folder_opened=draws[3, documents])
        for prefix in (False, True):
            for query in (*QUERIES, texts["title"][3], f"{texts['name'][6]}.pdf"):
                yield features(index.query_text(query, prefix=prefix), index.tokens(documents), index.collection, given)


def test_every_feature_has_different_words_for_people():
    words = [feature.words for feature in FEATURES]
    assert len(set(words)) == len(FEATURES)
    assert all(text and "_" not in text and text not in NAMES for text in words)


# --- history bounded by the query -----------------------------------------------------------------------------------


def test_others_get_no_more_history_than_the_least_of_the_named():
    opened, folder = np.array([0.0, 2.0, 9.0, -0.5]), np.array([1.0, 3.0, 2.0, 5.0])
    is_named = np.array([False, True, True, False])
    bounded = bounded_history(opened, folder, is_named)
    assert [one.tolist() for one in bounded] == [[0.0, 2.0, 9.0, -0.5], [1.0, 3.0, 2.0, 2.0]]


def test_history_is_not_bounded_where_no_title_and_no_name_has_all_words():
    opened, folder = np.array([4.0, 0.0]), np.array([0.5, 3.0])
    assert [one.tolist() for one in bounded_history(opened, folder, np.zeros(2, dtype=bool))] == [
        [4.0, 0.0],
        [0.5, 3.0],
    ]
    assert [len(one) for one in bounded_history(opened[:0], folder[:0], np.zeros(0, dtype=bool))] == [0, 0]


def test_bounding_history_changes_nothing_else_and_nothing_the_second_time():
    raw = np.zeros((3, len(NAMES)))
    raw[:, NAMES.index("cov_title")] = [1.0, 0.5, 0.0]
    raw[:, NAMES.index("cov_name")] = [0.0, 0.5, 0.0]  # half here and half there is not all in one
    raw[:, NAMES.index("folder")] = [1.0, 3.0, 0.0]
    raw[:, NAMES.index("bm25")] = [1.0, 2.0, 3.0]
    bounded = with_bounded_history(raw)
    assert bounded[:, NAMES.index("folder")].tolist() == [1.0, 1.0, 0.0]
    others = np.arange(len(NAMES)) != NAMES.index("folder")
    assert np.array_equal(bounded[:, others], raw[:, others])
    assert np.array_equal(with_bounded_history(bounded), bounded)
