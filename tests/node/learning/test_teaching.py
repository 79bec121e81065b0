"""Choices that teach: a typed text once, and of a list its last opening."""

import numpy as np
import pytest
from logged_lists import NAMES, NOW, chosen, impression, keys, taught

from foltr.learners.softmax import compare
from foltr.node.learning import teaching, versions
from foltr.node.learning.log import Log
from foltr.node.learning.teaching import TaughtTexts, with_last_choice
from foltr.privacy.mechanisms import NoPrivacy
from foltr.rng import stream
from foltr.types import Interaction


@pytest.fixture
def log(tmp_path):
    with Log(tmp_path / "log.db") as opened:
        yield opened


# ---- the rule


def told_apart(*choices):
    texts = TaughtTexts()
    return [texts.teaches(typed, document) for typed, document in choices]


def test_a_typed_text_teaches_the_first_time_it_has_a_choice():
    assert told_apart(("tax 24", "a"), ("tax 24", "a"), ("tax 24", "b"), ("tax 23", "b")) == [True, False, False, True]


def test_a_beginning_of_an_earlier_text_with_the_same_choice_is_the_same_text():
    assert told_apart(("annual report", "a"), ("annual", "a"), ("annual", "b")) == [True, False, False]
    assert told_apart(("annual report", "a"), ("annual", "b")) == [True, True]  # looks for something else
    assert told_apart(("annual", "a"), ("annual report", "a")) == [True, True]  # more words tell more


def test_a_text_that_was_erased_teaches_nothing():
    assert told_apart((None, "a"), (None, "b")) == [False, False]


def list_of(clicks, candidates=8):
    """Document n has the feature n; five are displayed, the best last."""
    features = np.arange(float(candidates))[:, None]
    return Interaction(features, np.array([4, 3, 2, 1, 0]), np.array(clicks, dtype=bool), features[:, 0] / 10, 0)


def test_of_several_openings_the_last_is_the_choice_and_the_others_leave_the_list():
    lesson = with_last_choice(list_of([1, 0, 1, 0, 1]), [4, 0, 2])  # document 2 was opened last
    assert lesson.features[lesson.ranking, 0].tolist() == [3, 2, 1]
    assert lesson.clicks.tolist() == [False, True, False]
    assert lesson.features[:, 0].tolist() == [1, 2, 3, 5, 6, 7]
    assert lesson.scores.tolist() == pytest.approx([0.1, 0.2, 0.3, 0.5, 0.6, 0.7])


def test_what_was_opened_before_the_choice_is_no_rival_displayed_or_not():
    """With `unshown` as large as the list every candidate that is left is a rival."""
    (comparison,) = compare(with_last_choice(list_of([1, 0, 1, 0, 1]), [4, 0, 2]), stream(1, purpose="choice"), 20)
    assert sorted((comparison.differences[:, 0] + 2).tolist()) == [1, 3, 5, 6, 7]


def test_a_document_that_was_opened_twice_is_one_choice():
    lesson = with_last_choice(list_of([1, 0, 0, 1, 0]), [3, 0, 3])
    assert lesson.features[lesson.ranking, 0].tolist() == [3, 2, 1, 0]
    assert lesson.clicks.tolist() == [False, False, True, False]


# ---- over the log


def test_the_latest_opening_is_the_choice_of_a_logged_list(log):
    number = log.record(impression(1))
    for place in (3, 1, 4, 2):
        log.choose(number, keys(1)[place], NOW + place)
    log.take_back(number, keys(1)[2])
    (lesson,) = taught(log)
    stored = np.asarray(impression(1).features, dtype=np.float32)
    assert np.array_equal(lesson.features, stored[[0, 2, 4, *range(5, 12)]])  # 1 and 3 are gone, 2 was taken back
    assert lesson.clicks.tolist() == [False, False, True]


def test_repeated_searches_teach_once_and_count_every_time(log):
    for number in range(12):
        chosen(log, number, query="Tax  24" if number % 2 else "tax 24")
    assert len(taught(log)) == 1
    assert log.openings(NOW + 20).total == pytest.approx(12)
    assert not versions.refit_due(log)
    assert versions.refit(log, NOW, force=True).version is None  # ten choices that teach are needed
    for number in range(12, 21):
        chosen(log, number)
    assert len(taught(log)) == 10
    assert versions.refit_due(log)


def test_a_choice_that_was_taken_back_leaves_the_lesson_to_the_next_search(log):
    first = chosen(log, 1, query="tax")
    chosen(log, 2, query="tax")
    log.take_back(first, keys(1)[0])
    assert [lesson.impression for lesson in teaching.lessons(log)] == [2]


def test_the_weight_of_an_update_is_the_number_of_choices_that_taught(log):
    for number in range(30):
        chosen(log, number, query=f"query {number % 7}")
    update = versions.update(log, versions.start_weights(), mechanism=NoPrivacy(), noise=lambda purpose: None)
    assert update.weight == 7.0


def test_lists_that_are_erased_meanwhile_are_left_out(log):
    chosen(log, 1)
    lessons = teaching.lessons(log)
    assert len(teaching.interactions(log, NAMES, [*lessons, lessons[0]._replace(impression=99)])) == 1
