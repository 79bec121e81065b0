"""Messages as the server gets them: whose documents, whose clicks, which steps, which noise."""

import numpy as np
import pytest

from foltr.errors import SpecError
from foltr.lab.audit.guess import squares_fit
from foltr.lab.audit.messages import full_lists, send
from foltr.rng import stream


@pytest.fixture
def ranker(fold):
    return 0.1 * stream(1, purpose="start").normal(fold.train.features.shape[1])


def test_a_message_is_the_ranker_moved_along_the_shown_documents(small, fold, ranker):
    sent = send(small(privacy={"kind": "none"}), fold, ranker, messages=20, queries=1, seed=1)
    assert np.array_equal(sent.sent, sent.local)
    for local, features, clicks in zip(sent.local, sent.features, sent.clicks, strict=True):
        weights = squares_fit(features, local - ranker)
        assert weights @ features == pytest.approx(local - ranker, abs=1e-9)
        if clicks.any() and not clicks.all():
            assert weights[clicks].min() > 0 > weights[~clicks].max()


def test_lists_are_the_rankers_own_and_full(small, fold, ranker):
    sent = send(small(), fold, ranker, messages=30, queries=1, seed=1)
    scores = sent.features @ ranker
    assert (np.diff(scores, axis=1) <= 1e-6).all()
    assert sent.features.shape == (30, 10, 46)


def test_every_query_with_a_full_list_comes_before_any_comes_again(small, fold, ranker):
    full = full_lists(fold.validation, 10)
    sent = send(small(), fold, ranker, messages=2 * len(full), queries=1, seed=1)
    firsts = {tuple(shown[0]) for shown in sent.features[: len(full)]}
    assert len(firsts) == len({tuple(shown[0]) for shown in sent.features})


def test_more_searches_are_more_documents_and_more_steps(small, fold, ranker):
    sent = send(small(), fold, ranker, messages=5, queries=3, seed=1)
    assert sent.features.shape == (5, 30, 46)
    assert sent.clicks.shape == (5, 30)


def test_parameters_are_clipped_and_a_share_of_noise_is_added(small, fold, ranker):
    tight = small(privacy={"kind": "fpdgd", "sensitivity": 0.01})
    sent = send(tight, fold, ranker, messages=50, queries=1, seed=1)
    moved = sent.clicks.any(axis=1)
    assert np.linalg.norm(sent.local[moved], axis=1).max() <= 0.01 * (1 + 1e-12)
    noise = sent.sent - sent.local
    # shares of 20 holders: variance 2 scale^2 / 20, of a heavy tail; a factor of two is far beyond chance
    assert 0.5 < noise.var() / (2 * (0.01 / 1.2) ** 2 / 20) < 2


def test_the_noise_can_be_sized_for_another_number_of_holders(small, fold, ranker):
    """Shares of one holder are all of the noise: its variance is twenty times that of shares of twenty."""
    few, many = (
        send(small(audit={"holders": holders}), fold, ranker, messages=50, queries=1, seed=1) for holders in (1, 20)
    )
    assert np.array_equal(few.local, many.local)
    # of 2,300 heavy-tailed numbers; a factor of two is far beyond chance
    assert 10 < (few.sent - few.local).var() / (many.sent - many.local).var() < 40


def test_user_level_dp_clips_the_change_and_adds_its_share(small, fold, ranker):
    private = small(privacy={"kind": "gaussian", "epsilon": 4.0, "clip": 0.01})
    sent = send(private, fold, ranker, messages=50, queries=1, seed=1)
    assert np.linalg.norm(sent.local - ranker, axis=1).max() > 0.01
    again = send(private, fold, ranker, messages=50, queries=1, seed=1)
    assert np.array_equal(sent.sent, again.sent)
    assert not np.array_equal(sent.sent, sent.local)


def test_lists_longer_than_every_query_are_refused(small, fold, ranker):
    with pytest.raises(SpecError, match="no validation query has 100 documents"):
        send(small(users={"k": 100}), fold, ranker, messages=5, queries=1, seed=1)
