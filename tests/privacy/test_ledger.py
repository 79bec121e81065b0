"""The ledger: it adds up per user, refuses what a budget forbids before it happens, and survives a file."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from releases_by_hand import gaussian, laplace

from foltr.errors import PrivacyError
from foltr.privacy import ledger
from foltr.privacy.accounting import epsilon
from foltr.privacy.events import RECIPIENTS

DELTA = 1e-5


def test_users_pay_for_the_rounds_they_took_part_in():
    event = gaussian(4.0)
    book = ledger.begin(3, delta=DELTA)
    book = ledger.record(book, event, np.array([0, 1]))
    book = ledger.record(book, event, np.array([0]), times=2)
    assert [ledger.spent_by(book, user) for user in range(3)] == [epsilon({event: n}, DELTA) for n in (3, 1, 0)]
    assert ledger.spent(book) == epsilon({event: 3}, DELTA)


def test_a_user_pays_for_different_releases_together():
    book = ledger.begin(2, delta=DELTA)
    book = ledger.record(book, gaussian(4.0), np.array([0, 1]))
    book = ledger.record(book, laplace(9.0), np.array([1]))
    assert ledger.spent(book) == epsilon({gaussian(4.0): 1, laplace(9.0): 1}, DELTA)


def test_an_empty_ledger_has_spent_nothing():
    assert ledger.spent(ledger.begin(3, delta=DELTA)).epsilon == 0


def test_the_round_beyond_the_budget_is_refused_and_nothing_changes():
    event = gaussian(4.0)  # five of them cost 2.26, six 2.50
    book = ledger.begin(2, delta=DELTA, budget=2.4)
    book = ledger.record(book, event, np.array([0]), times=5)
    assert not ledger.admits(book, event, np.array([0, 1]))
    with pytest.raises(PrivacyError, match=r"would exceed the budget of epsilon 2.4 .* nothing was released"):
        ledger.record(book, event, np.array([0, 1]))
    assert book.counts.tolist() == [[5], [0]]
    assert ledger.admits(book, event, np.array([1]), times=5)  # the other can still afford it
    assert not ledger.admits(book, event, np.array([1]), times=6)


def test_without_a_budget_everything_is_admitted():
    book = ledger.record(ledger.begin(1, delta=DELTA), gaussian(0.1), np.array([0]), times=1000)
    assert ledger.admits(book, gaussian(0.1), np.array([0]))


def test_a_server_that_the_events_do_not_name_sees_all():
    book = ledger.record(ledger.begin(1, delta=DELTA), gaussian(9.0, against=RECIPIENTS), np.array([0]))
    assert ledger.spent(book, "server").epsilon == float("inf")
    assert ledger.spent(book).epsilon < 1


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=20), st.none() | st.floats(1, 9))
def test_a_ledger_survives_a_file(rows, budget):
    events = (gaussian(4.0, against=RECIPIENTS, expected=9, present=8), laplace(3.0))
    book = ledger.Ledger(DELTA, budget, events, np.array(rows, np.int64))
    back = ledger.loads(ledger.dumps(book))
    assert back[:3] == book[:3]
    assert np.array_equal(back.counts, book.counts)


def test_users_who_are_alike_take_no_room():
    book = ledger.record(ledger.begin(10_000, delta=DELTA), gaussian(4.0), np.arange(10_000), times=20)
    assert json.loads(ledger.dumps(book))["counts"] == [[20]]


def damaged():
    whole = json.loads(ledger.dumps(ledger.record(ledger.begin(2, delta=DELTA), gaussian(4.0), np.array([0]))))
    yield "half of it", json.dumps(whole)[:50]
    yield "not a ledger", "[1, 2]"
    yield "another version", json.dumps(whole | {"version": 99})
    for key in whole:
        yield f"without {key}", json.dumps({name: value for name, value in whole.items() if name != key})
    yield "a user of no kind", json.dumps(whole | {"user_has": [0, 7]})
    yield "negative noise", json.dumps(whole | {"events": [whole["events"][0] | {"noise": -1.0}]})
    yield "unknown mechanism", json.dumps(whole | {"events": [whole["events"][0] | {"mechanism": "magic"}]})
    yield "unknown field", json.dumps(whole | {"events": [whole["events"][0] | {"colour": "red"}]})


@pytest.mark.parametrize("text", [text for _, text in damaged()], ids=[name for name, _ in damaged()])
def test_a_damaged_ledger_is_refused(text):
    with pytest.raises(PrivacyError):
        ledger.loads(text)
