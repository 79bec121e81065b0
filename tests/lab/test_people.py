"""Simulated people: the same from the same seed, with the words and preferences that they claim; learners of a node."""

import json

import numpy as np
import pytest

from foltr.clicks import Users, click_model, clicks_on
from foltr.errors import SpecError
from foltr.federation.schedule import Members
from foltr.lab.people import corpora, spill, start_weights, together
from foltr.lab.people.comparison import clicks_by, known_items, topical
from foltr.lab.people.experiment import Course, Situation, graded_gain, learners, quality_of, reciprocal_rank, trace
from foltr.lab.people.history import columns, next_day, no_history, opened
from foltr.lab.people.learners import NoLearning
from foltr.lab.people.people import FAVOURITES, person, searches_of, test_searches
from foltr.lab.people.plain_bm25 import PlainBm25, plain_terms
from foltr.lab.people.queries import field_text, known_item
from foltr.lab.people.remembering import Memory
from foltr.lab.people.runs import check
from foltr.lab.people.searching import Prepared, Searcher, with_features
from foltr.lab.people.settings import KnownItems, Spill, Together, Topical
from foltr.lab.people.weights import HISTORY, Weights, shipped, weights_for
from foltr.lab.spec.parse import setting
from foltr.learners.softmax import SoftmaxMap
from foltr.node.learning import habits, memory
from foltr.rng import stream
from foltr.text.analysis import stop_words, words
from foltr.text.matching import NAMES
from foltr.text.matching import columns as places_of

test_searches.__test__ = False  # a function of the lab, not a test

SUBJECTS = ["harbour", "glacier", "violin", "orchard", "lantern", "compass", "meadow", "turbine"]


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """Eight folders of fifteen files; every file has words of its folder and words of its own."""
    home = tmp_path_factory.mktemp("files")
    for subject in SUBJECTS:
        for number in range(15):
            own = " ".join(f"{subject}{chr(97 + (number * step) % 26)}{chr(97 + number)}x" for step in range(1, 8))
            place = home / subject / f"note_{subject}_{number}.txt"
            place.parent.mkdir(exist_ok=True)
            body = (
                f"Report {number} about the {subject}\n\n"
                + f"{own} {subject} " * (3 + number % 5)
                + "common words " * 30
            )
            place.write_text(body, encoding="utf-8")
    return corpora.load_texts(str(home))


@pytest.fixture(scope="module")
def searcher(texts):
    return Searcher(texts)


# --- queries and people ---------------------------------------------------------------------------------------------


def test_a_query_has_words_of_the_field_it_claims_and_perhaps_one_wrong_word(texts, searcher):
    kinds, wrong = set(), 0
    for number in range(200):
        query = known_item(texts, number % len(texts.titles), searcher.idf, stream(7, round=number, purpose="data"))
        own = set(words(field_text(texts, query.target, query.kind)))
        foreign = [word for word in query.text.split() if word not in own]
        assert foreign == ([query.wrong] if query.wrong else [])
        assert not set(query.text.split()) & set(stop_words("english"))
        kinds.add(query.kind)
        wrong += bool(query.wrong)
    assert kinds == {"title", "name", "body"}
    assert 18 <= wrong <= 64  # Binomial(200, .2): mean 40, four standard deviations; false alarm below 1 in 10,000


def test_a_wrong_word_is_of_another_document_and_not_of_the_target(texts, searcher):
    queries = [known_item(texts, 3, searcher.idf, stream(9, round=number, purpose="data")) for number in range(60)]
    wrong = {query.wrong for query in queries if query.wrong}
    own = {word for kind in ("title", "name", "body") for word in words(field_text(texts, 3, kind))}
    everywhere = {word for body in texts.bodies for word in words(body)}
    assert wrong
    assert not wrong & own
    assert wrong <= everywhere


def test_people_repeat_from_their_seed_and_differ_by_number(texts, searcher):
    one, again, other = (person(texts, seed=5, number=n, searches=50, preferences=True) for n in (0, 0, 1))
    assert np.array_equal(one.targets, again.targets)
    assert searches_of(texts, one, searcher.idf) == searches_of(texts, again, searcher.idf)
    assert not np.array_equal(one.targets, other.targets)


def test_a_person_with_preferences_stays_in_four_folders_and_looks_for_the_same_again(texts):
    someone = person(texts, seed=3, number=0, searches=1000, preferences=True)
    inside = np.isin(texts.folders[someone.targets], someone.favourites)
    assert len(someone.favourites) == FAVOURITES
    # 80 % of the fresh targets and those of the others that fall there by chance: .8 + .2 / 2
    assert 0.85 <= inside.mean() <= 0.95
    fresh = person(texts, seed=3, number=0, searches=1000, preferences=False)
    assert len(fresh.favourites) == 0
    spread = np.bincount(texts.folders[fresh.targets], minlength=len(SUBJECTS)) / 1000
    assert spread.max() < 0.2  # 1 / 8 each, more than six standard deviations


def test_tests_look_for_earlier_targets_with_new_words(texts, searcher):
    someone = person(texts, seed=3, number=0, searches=40, preferences=True)
    tests = test_searches(texts, someone, searcher.idf, after=40, count=200)
    earlier = {query.text for query in searches_of(texts, someone, searcher.idf)}
    known = np.isin([query.target for query in tests], someone.targets)
    assert known.mean() > 0.4
    assert np.mean([query.text in earlier for query in tests]) < 0.5  # small titles have few words
    first = test_searches(texts, someone, searcher.idf, after=0, count=50)
    assert [query.text for query in first] != [query.text for query in tests[:50]]


# --- history and weights --------------------------------------------------------------------------------------------


def test_history_counts_as_the_node_does():
    keys = [f"/home/{folder}/{name}" for folder in "ab" for name in "xyz"]
    folder_of = np.array([0, 0, 0, 1, 1, 1])
    history = no_history(folder_of)
    for document, typed in ((0, "one"), (0, "two"), (4, "three")):
        opened(history, document, typed, body_word=False)
    next_day(history)
    opened(history, 1, "four", body_word=True)
    opened(history, 0, "one", body_word=False)
    day = memory.DAY
    uses = [("one", keys[0], 0), ("two", keys[0], 0), ("three", keys[4], 0), ("four", keys[1], day)]
    counted = habits.count_openings([*uses, ("one", keys[0], day)], day)
    weighed = habits.weighed(counted, {"/home/a": 3, "/home/b": 3}, 6)
    documents, folders = columns(history, np.arange(6), body_word=False)
    np.testing.assert_allclose(documents, np.log1p(habits.opened(weighed, keys)))
    np.testing.assert_allclose(folders, np.log1p(habits.folder_opened(weighed, keys)))
    assert documents[0] > documents[2]
    part = habits.weighed(habits.count_openings(uses[3:], day), {"/home/a": 3}, 6)
    documents, folders = columns(history, np.arange(6), body_word=True)
    np.testing.assert_allclose(documents, np.log1p(habits.opened(part, keys)), atol=1e-12)
    np.testing.assert_allclose(folders, np.log1p(habits.folder_opened(part, keys)), atol=1e-12)


def test_the_shipped_weights_are_a_linear_ranker_over_known_features():
    weights = shipped()
    assert set(weights.names) <= set(NAMES)
    assert set(HISTORY) <= set(weights.names)
    by_name = dict(zip(weights.names, weights.values.tolist(), strict=True))
    assert all(value >= 0 for name, value in by_name.items() if name != "length")
    assert by_name["idfcov_any"] > 0
    content = json.loads((start_weights.SHIPPED).read_text())
    assert content["fitted"]["seeds"] == list(start_weights.DEVELOPMENT_SEEDS)
    assert min(start_weights.DEVELOPMENT_SEEDS) > 99  # figures count from 1


@pytest.mark.parametrize("corpus", start_weights.CORPORA)
def test_figures_rank_a_corpus_with_weights_that_never_saw_it(corpus):
    assert weights_for(corpus).names == shipped().names
    assert not np.array_equal(weights_for(corpus).values, shipped().values)


def test_a_corpus_that_was_never_used_gets_the_shipped_weights():
    assert np.array_equal(weights_for("nfcorpus").values, shipped().values)


def test_more_of_the_query_is_never_worse_after_a_fit():
    """A fit in which coverage looks harmful gives it no weight."""
    features = np.zeros((2, len(NAMES)))
    features[0, NAMES.index("cov_body")] = 1.0  # the rival has it, the target has not
    features[1, NAMES.index("bm25")] = 1.0
    search = Prepared(np.arange(2), features, np.zeros(2), np.zeros(2), np.zeros(2), np.array([0, 1]), 1.0)
    fitted = dict(zip(start_weights.LEXICAL, start_weights.fit([search] * 50), strict=True))
    assert fitted["cov_body"] == 0.0
    assert fitted["bm25"] > 0


# --- measures -------------------------------------------------------------------------------------------------------


def test_measures_are_those_of_the_field():
    assert reciprocal_rank(np.array([0, 0, 1]), 1.0) == 1 / 3
    assert reciprocal_rank(np.array([0] * 10 + [1]), 1.0) == 0.0
    assert reciprocal_rank(np.zeros(0), 1.0) == 0.0
    ideal = 3 + 1 / np.log2(3)
    assert graded_gain(np.array([1, 2]), ideal) == pytest.approx((1 + 3 / np.log2(3)) / ideal)


def test_plain_words_do_not_divide_identifiers():
    assert plain_terms("The get_name of running shoes") == ["get_nam", "run", "shoe"]
    index = PlainBm25(["apple pie", "apple"], ["apple", "pear"])
    assert index.best("apple", 10).tolist() == [0, 1]
    assert index.best("nothing", 10).tolist() == []


# --- learners -------------------------------------------------------------------------------------------------------


def situation(searcher, weights, *, searches=60, clicks="navigational", tests=20):
    texts, places = searcher.texts, places_of(weights.names)
    someone = person(texts, seed=1, number=0, searches=searches, preferences=True)
    prepared = [with_features(searcher.known_item(q), places) for q in searches_of(texts, someone, searcher.idf)]
    tested = {
        after: [
            with_features(searcher.known_item(q), places)
            for q in test_searches(texts, someone, searcher.idf, after=after, count=tests)
        ]
        for after in (0, 20)
    }
    users = click_model(Users(clicks), grades=2)
    return Situation(prepared.__getitem__, searches, tested, texts.folders, users, reciprocal_rank, 1, 0)


@pytest.fixture(scope="module")
def weights(texts):
    return weights_for("machine")


def test_every_learner_repeats_and_starts_from_the_same_quality(searcher, weights):
    here = situation(searcher, weights)
    starts = set()
    for row, learner in learners(weights).items():
        first, again = trace(here, weights, learner), trace(here, weights, learner)
        assert first.offline == again.offline, row
        assert np.isfinite(first.parameters).all()
        starts.add(first.offline[0])
    assert len(starts) == 1


def test_counting_lifts_what_was_opened(searcher, weights):
    here = situation(searcher, weights, clicks="perfect")
    without = Weights(weights.names, np.where(np.isin(weights.names, HISTORY), 0.0, weights.values))
    assert trace(here, weights, NoLearning()).offline[20] > trace(here, without, NoLearning()).offline[20]


def all_opened(here):
    """The same person, who opens every document of a list."""
    always = here.click_model._replace(click=np.ones((10, 2)), stop=np.zeros(2))
    return here._replace(click_model=always)


def searched(here, weights, steps=6, **how):
    def first_documents(features, k, draws):
        return np.arange(min(k, len(features))), features @ weights.values

    course = Course(here, weights, **how)
    return course, [course.search(step, first_documents) for step in range(steps)]


def test_simulated_people_learn_by_the_rule_of_a_node(searcher, weights):
    """All of a list is opened: the lowest document is the choice. A text that comes again teaches nothing."""
    here = all_opened(situation(searcher, weights))
    displayed = [min(10, len(here.search(number).documents)) for number in range(3)]
    assert max(displayed) > 1
    course, lists = searched(here._replace(search=lambda step: here.search(step // 2)), weights)
    assert [int(one.clicks.sum()) for one in lists] == [1, 0] * 3
    assert [len(one.ranking) for one in lists[::2]] == [1, 1, 1]  # what was opened before is no rival, displayed ...
    assert len(lists[0].features) == len(here.search(0).documents) - displayed[0] + 1  # ... or not
    assert [len(one.ranking) for one in lists[1::2]] == displayed
    assert len(course.log) == 6
    assert len(course.lessons) == 3
    opened_documents = {number for place in range(3) for number in here.search(place).documents[: displayed[place]]}
    assert set(np.flatnonzero(course.history.all.documents)) == opened_documents  # counting uses every opening


def test_every_opening_teaches_where_a_row_says_so(searcher, weights):
    here = all_opened(situation(searcher, weights))
    course, lists = searched(here._replace(search=lambda step: here.search(0)), weights, every_opening=True)
    assert [int(one.clicks.sum()) for one in lists] == [min(10, len(here.search(0).documents))] * 6
    assert len(course.lessons) == len(course.log) == 6


def test_a_learner_without_clicks_stays_at_the_start(searcher, weights):
    """A click table that never clicks."""
    here = situation(searcher, weights)
    silent = here._replace(click_model=here.click_model._replace(click=np.zeros((10, 2))))
    found = trace(silent, weights, SoftmaxMap())
    assert np.array_equal(found.parameters, weights.values)
    assert found.log == []


# --- runs -----------------------------------------------------------------------------------------------------------


def test_known_items_give_a_number_for_every_row_and_checkpoint(searcher, weights):
    found = known_items(searcher, KnownItems(people=1, longest=10, tests=5), weights, seed=1)
    again = known_items(searcher, KnownItems(people=1, longest=10, tests=5), weights, seed=1)
    assert found == again
    assert next(iter(found)) == "MRR@10, BM25, 0 clicks"
    rows = {"BM25", "BM25, node's words", "BM25F, tuned", "start weights", *learners(weights)}
    assert {f"MRR@10, {row}, {clicks} clicks" for row in rows for clicks in (0, 10)} <= set(found)
    assert all(0 <= value <= 1 for name, value in found.items() if name.startswith("MRR@10"))


def test_separate_indexes_divide_the_documents_by_whole_folders(texts):
    parts = together.separate_indexes(texts, 4, seed=2)
    assert sorted(np.concatenate(parts).tolist()) == list(range(len(texts.titles)))
    owners = [set(texts.folders[part].tolist()) for part in parts]
    assert sum(map(len, owners)) == len(SUBJECTS)


def test_learning_together_runs_through_the_rounds_of_a_federation(searcher, weights):
    setup = Together(people=4, searches_with_click=10, releases=2, tests=5)
    found = together.measure(searcher, setup, weights, seed=1)
    assert found == together.measure(searcher, setup, weights, seed=1)
    assert {"MRR@10, local-only, 10 clicks", "MRR@10, together, 10 clicks", "MRR@10, BM25, 10 clicks"} <= set(found)


def test_a_difference_is_clipped_and_the_mean_is_multiplied_by_the_server_step(texts, weights):
    setup = Together(people=2, searches_with_click=10, releases=1, tests=5, clip=0.1, server_step=3.0)
    situations = [together.person_with_index(texts, setup, weights, 1, number) for number in range(2)]
    engine = together.PeopleEngine(
        [together.Course(one, weights) for one in situations], setup, SoftmaxMap(history=tuple(weights.places.tolist()))
    )
    updates, _ = engine.local_updates(weights.values, Members(np.arange(2), np.ones(2)), 1, None)
    norms = np.linalg.norm(updates.values, axis=1)
    assert (norms <= 0.1 + 1e-9).all()
    assert norms.max() == pytest.approx(0.1)
    assert [len(course.log) for course in engine.courses] == [10, 10]


@pytest.mark.parametrize(
    ("people", "name", "said"),
    [
        ({"kind": "known-items", "clicks": "angry"}, "docstrings", "people.clicks = 'angry' is unknown"),
        ({"kind": "topical"}, "machine", "has no judged queries"),
        ({"kind": "together", "people": 5000}, "docstrings", "separate indexes"),
    ],
)
def test_impossible_settings_are_refused_before_anything_runs(people, name, said, texts):
    one = setting({"data": {"name": name, "folds": 1}, "people": people})
    loaded = texts if name == "machine" else corpora.load_texts("docstrings")
    with pytest.raises(SpecError, match=said):
        check(one, loaded)


def test_topical_queries_of_docstrings_are_divided_into_searched_and_tested():
    searcher = Searcher(corpora.load_texts("docstrings"))
    found = topical(searcher, Topical(people=1, longest=10, tests=20), weights_for("docstrings"), seed=1)
    assert 0.3 < found["nDCG@10, BM25, 0 clicks"] < 1
    assert found["nDCG@10, MAP, 0 clicks"] == found["nDCG@10, counting, 0 clicks"]
    assert quality_of(graded_gain, searcher.judged(int(searcher.judged_queries[0])), np.zeros(100)[:100]) <= 1


# --- other habits ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", ["one-word", "question", "beginnings", "typos"])
def test_habits_change_the_words_and_not_the_target(texts, searcher, words):
    for target in range(20):
        draws = stream(3, round=target, purpose="data")
        usual, other = (known_item(texts, target, searcher.idf, draws, one) for one in ("mixed", words))
        assert other.target == usual.target
        assert other == known_item(texts, target, searcher.idf, draws, words)
        if words == "one-word":
            assert len(other.text.split()) == 1
            assert not other.wrong
        if words == "question":
            assert other.text.startswith("how does ")
        if words == "beginnings":
            assert all(full.startswith(cut) for full, cut in zip(usual.text.split(), other.text.split(), strict=True))
        if words == "typos":
            assert sorted(usual.text) == sorted(other.text)


def test_somebody_who_moves_looks_elsewhere_afterwards(texts):
    someone = person(texts, seed=1, number=0, searches=200, preferences=True, favourites=2, moves_at=100)
    assert not set(someone.favourites) & set(someone.later)
    before, after = (np.isin(texts.folders[part], someone.later) for part in np.split(someone.targets, 2))
    assert before.mean() + 0.2 < after.mean()  # 40 % look for earlier targets
    stays = person(texts, seed=1, number=0, searches=200, preferences=True, favourites=2)
    assert (stays.targets[:100] == someone.targets[:100]).all()


def test_senders_divide_mail_unevenly_and_small_indexes_hold_whole_folders(texts):
    mail = corpora.by_senders(texts)
    sizes = np.sort(np.bincount(mail.folders))
    assert sizes.sum() == len(texts.titles)
    assert sizes[-1] > 2 * sizes[0]
    some = corpora.shortened(texts, 45)
    assert len(some.titles) == 45
    assert np.bincount(some.folders).tolist() == [15, 15, 15]
    assert corpora.shortened(texts, 10_000) is texts


def test_people_who_click_the_first_result_click_nothing_else():
    model = clicks_by("first", grades=2)
    clicks = clicks_on(np.array([0, 1, 1, 0, 0, 0, 0, 0, 0, 0]), model, np.full(20, 0.5))
    assert clicks.tolist() == [True] + [False] * 9


def test_the_memory_of_a_simulated_person_puts_a_chosen_document_first():
    search = Prepared(
        np.array([7, 8, 9]), np.zeros((3, 1)), np.zeros(3), np.zeros(3), np.zeros(3), np.zeros(3), 1.0, "some words"
    )
    remembered, order, exact = Memory(), np.array([0, 1, 2]), np.zeros(3, dtype=bool)
    assert remembered.placed(search, order, exact, step=0).tolist() == [0, 1, 2]
    remembered.choose(search, [9], step=0)
    assert remembered.placed(search, order, exact, step=1).tolist() == [2, 0, 1]
    assert remembered.placed(search._replace(text="other words"), order, exact, step=1).tolist() == [0, 1, 2]


# --- spill ----------------------------------------------------------------------------------------------------------


def test_fifty_openings_of_one_folder_take_at_most_two_percent_of_unrelated_places():
    """One person of docstrings, 150 words; without the bound, weights fitted to the openings take more than that."""
    searcher = Searcher(corpora.load_texts("docstrings"))
    found = spill.measure(searcher, Spill(words=150), weights_for("docstrings"), seed=701)
    assert max(found["moved places, counting"], found["moved places, MAP"]) <= 0.02
    assert found["moved places, MAP, history not bounded"] > 0.02


def test_texts_without_titles_are_searched_by_words_of_bodies():
    texts = corpora.load_texts("docstrings")
    bodies = texts._replace(titles=("",) * len(texts.titles), names=("",) * len(texts.names))
    searcher = Searcher(bodies)
    assert searcher.prepare("iterator", {}).body_word
    assert not searcher.prepare("iterator object", {}).body_word
    assert not Searcher(texts).prepare("iterator", {}).body_word  # some title has it


@pytest.mark.parametrize("seed", [703, 705])
def test_openings_by_several_words_do_not_decide_searches_for_one_word_of_bodies(seed):
    """Docstrings without titles and names, 150 words: at most two percent, and more where history is not bounded."""
    texts = corpora.load_texts("docstrings")
    bodies = texts._replace(titles=("",) * len(texts.titles), names=("",) * len(texts.names))
    found = spill.measure(Searcher(bodies), Spill(words=150), weights_for("docstrings"), seed=seed)
    assert max(found["moved places, counting"], found["moved places, MAP"]) <= 0.02
    assert found["moved places, MAP, history not bounded"] > 0.02


def test_somebody_who_always_types_one_word_keeps_the_habits_of_such_searches():
    texts = corpora.load_texts("docstrings")
    bodies = texts._replace(titles=("",) * len(texts.titles), names=("",) * len(texts.names))
    habit = Spill(words=150, typed="one-word")
    found = spill.measure(Searcher(bodies), habit, weights_for("docstrings"), seed=703)
    assert found["moved places, MAP"] == found["moved places, MAP, history not bounded"] > 0
