"""How often the wanted document was first, and what brought it there, from lists with known scores."""

import numpy as np
import pytest

from foltr.node.learning import curations, versions
from foltr.node.learning.impressions import Impression
from foltr.node.learning.log import Log
from foltr.node.learning.success import Success, sentence, success

NAMES = versions.feature_names(versions.start_weights())
DOCUMENTS = ["/home/a", "/home/b", "/home/c"]


@pytest.fixture
def log(tmp_path):
    with Log(tmp_path / "log.sqlite") as opened:
        yield opened


def displayed(log, scores, *, query="some words", opened=(0.0, 0.0, 0.0), time=1e9):
    """Records a list with these scores, of which the feature `opened` is a part."""
    features = np.zeros((3, len(NAMES)))
    features[:, NAMES.index("opened:log1p")] = opened
    return log.record(Impression(query, time, DOCUMENTS, np.ones(3), np.array(scores), features, NAMES, 0))


def searched(log, scores, position=0, **options):
    number = displayed(log, scores, **options)
    return log.choose_position(number, position, 1e9)


def test_a_document_is_first_by_its_score_memory_or_habits(log):
    searched(log, [3.0, 2.0, 1.0], query="by score")
    searched(log, [3.0, 2.0, 1.0], position=1, query="second")
    searched(log, [1.0, 2.0, 3.0], query="memory before")  # pinned or exact name: memory does not know it
    searched(log, [1.0, 2.0, 3.0], query="memory")  # a beginning of a text that it was opened for
    searched(log, [3.0, 2.9, 1.0], query="habits", opened=(1.0, 0.0, 0.0))  # .35 of it; 2.65 without
    searched(log, [3.0, 2.6, 1.0], query="little", opened=(1.0, 0.0, 0.0))
    assert success(log) == Success(searches=6, first=5, by_memory=1, by_habits=1)
    assert success(log, last=2) == Success(searches=2, first=2, by_memory=0, by_habits=1)


def test_lists_without_openings_and_withdrawn_openings_are_no_searches(log):
    displayed(log, [3.0, 2.0, 1.0])
    number = displayed(log, [3.0, 2.0, 1.0])
    log.choose_position(number, 0, 1e9)
    assert log.take_back(number, DOCUMENTS[0])
    assert success(log) == Success(0, 0, 0, 0)


def test_of_several_openings_the_last_is_the_document(log):
    number = displayed(log, [3.0, 2.0, 1.0])
    for position in (0, 2):
        log.choose_position(number, position, 1e9)
    assert success(log) == Success(1, 0, 0, 0)


def test_a_pinned_document_is_not_first_by_memory(log):
    searched(log, [1.0, 2.0, 3.0])
    searched(log, [1.0, 2.0, 3.0])
    assert success(log).by_memory == 1
    curations.put(log, "some words", DOCUMENTS[0], "pinned", 1e9)
    assert success(log).by_memory == 0


@pytest.mark.parametrize(
    ("counted", "words"),
    [
        (Success(0, 0, 0, 0), "Nothing was opened yet."),
        (Success(1, 0, 0, 0), "Your last search did not have the document first."),
        (Success(1, 1, 1, 0), "Your last search had the document first; by memory."),
        (Success(40, 31, 9, 3), "31 of your last 40 searches had the document first; 9 of them by memory, "
                                "3 by what you open often."),
        (Success(40, 31, 0, 3), "31 of your last 40 searches had the document first; 3 of them by what you open "
                                "often."),
        (Success(40, 12, 0, 0), "12 of your last 40 searches had the document first."),
    ],
)  # fmt: skip
def test_the_counts_in_words(counted, words):
    assert sentence(counted) == words
