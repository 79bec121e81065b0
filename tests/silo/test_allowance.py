"""What an asker may read: counted in cells, stored before the answer, the same after a restart."""

import pytest
from silos import ASKS, OWNS, TARGET, THIRD, asker, lists, owner_of, question

from foltr.errors import DataError, PrivacyError, SpecError
from foltr.silo.allowance import DAY, Limits, in_memory, open_allowance, spend
from foltr.silo.owners import NoiseChoice, answer, default_limits, make_owner
from foltr.silo.protocol import ask_top, relay

LIMITS = Limits(cells=100, total=250)
WHO, OTHER = bytes(32), bytes(range(32))


class Clock:
    def __init__(self):
        self.seconds = 1e9

    def __call__(self):
        return self.seconds


def test_cells_are_counted_by_asker_and_come_back_with_the_next_period():
    clock = Clock()
    book = in_memory(LIMITS, b"", clock)
    spend(book, WHO, 1, 60)
    with pytest.raises(PrivacyError, match="has 40 left"):
        spend(book, WHO, 2, 41)
    spend(book, WHO, 3, 40)
    spend(book, OTHER, 1, 100)
    with pytest.raises(PrivacyError, match="nothing was answered"):
        spend(book, WHO, 4, 1)
    clock.seconds += DAY
    spend(book, WHO, 5, 100)
    clock.seconds += DAY
    with pytest.raises(PrivacyError, match="has 50 left"):  # of 250 in all
        spend(book, WHO, 6, 51)


def test_a_clock_that_goes_back_gives_nothing_back():
    clock = Clock()
    book = in_memory(LIMITS, b"", clock)
    spend(book, WHO, 1, 100)
    clock.seconds -= 3 * DAY
    with pytest.raises(PrivacyError, match="has 0 left"):
        spend(book, WHO, 2, 1)


def test_a_restart_forgets_neither_cells_nor_numbers(tmp_path):
    clock, file = Clock(), tmp_path / "allowances.json"
    spend(open_allowance(file, LIMITS, OWNS.context, clock), WHO, 8, 70)
    again = open_allowance(file, LIMITS, OWNS.context, clock)
    with pytest.raises(DataError, match="question 8 of this asker is not above its last one, 8"):
        spend(again, WHO, 8, 1)
    with pytest.raises(PrivacyError, match="has 30 left"):
        spend(again, WHO, 9, 31)
    with pytest.raises(DataError, match="not above its last one, 9"):  # what was refused cannot be sent later
        spend(open_allowance(file, LIMITS, OWNS.context, clock), WHO, 9, 1)


def test_an_owner_stores_the_charge_before_its_answer_leaves(tmp_path, monkeypatch):
    """The process dies while it answers: the cells are spent."""
    file, sketch = tmp_path / "allowances.json", lists()
    cells = 30 * sketch.entries.shape[2]
    limits = Limits(cells, cells)
    owner = make_owner(
        OWNS, lists=sketch, choice=NoiseChoice("none"), allowance=open_allowance(file, limits, OWNS.context)
    )
    with monkeypatch.context() as patched:
        patched.setattr("foltr.silo.owners._lists", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            answer(owner, question(number=1))
    restarted = make_owner(
        OWNS, lists=sketch, choice=NoiseChoice("none"), allowance=open_allowance(file, limits, OWNS.context)
    )
    with pytest.raises(PrivacyError, match="has 0 left"):
        answer(restarted, question(number=2))
    answer(restarted, question(THIRD, number=1))  # another asker has its own


def test_the_allowance_of_another_group_is_not_taken(tmp_path):
    file = tmp_path / "allowances.json"
    open_allowance(file, LIMITS, OWNS.context)
    with pytest.raises(DataError, match="another group, epoch or version"):
        open_allowance(file, LIMITS, bytes(32))
    file.write_text("{}")
    with pytest.raises(DataError, match="holds no allowances"):
        open_allowance(file, LIMITS, OWNS.context)


@pytest.mark.parametrize("wrong", [(0, 5), (5, 4), (5, 5, 0)])
def test_impossible_limits_are_refused(wrong):
    with pytest.raises(SpecError, match="use 1 or more"):
        Limits(*wrong)


def test_without_limits_given_an_asker_never_gets_every_column():
    """200 columns: 20 questions a day and 100 in all."""
    limits = default_limits(30, 750)
    assert (limits.cells, limits.total) == (20 * 30 * 750, 100 * 30 * 750)
    owner = make_owner(OWNS, lists=lists(), choice=NoiseChoice("none"))
    one = asker(ASKS)
    for _ in range(20):
        owner = relay(ask_top(one, TARGET, "fever", top=1), owner).owner
    with pytest.raises(PrivacyError, match="has 0 left"):
        relay(ask_top(one, TARGET, "fever", top=1), owner)


def test_a_question_costs_what_its_answer_shows():
    owner = owner_of("none", limits=Limits(10**6, 10**6))
    answer(owner, question(what="count", number=1, documents=bytes(4)))  # document 0
    account = owner.allowance.accounts[ASKS.members[ASKS.place].signing.hex()]
    assert account.total == 30
    answer(owner, question(number=2))
    after = owner.allowance.accounts[ASKS.members[ASKS.place].signing.hex()]
    assert after.total == 30 + 30 * lists().entries.shape[2]
