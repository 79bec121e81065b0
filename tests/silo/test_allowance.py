"""What an asker may learn: counted in entries, stored before the answer, the same in all processes."""

import contextlib
import json
import multiprocessing
import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from silos import ASKS, FAMILY, OWNS, TARGET, THIRD, asker, index_of, lists, owner_of, question

from foltr.errors import DataError, PrivacyError, SpecError, StorageError
from foltr.silo.allowance import DAY, Limits, in_memory, open_allowance, spend
from foltr.silo.owners import NoiseChoice, answer, default_limits, make_owner
from foltr.silo.protocol import ask_top, relay
from foltr.silo.sketches import hash_words

LIMITS = Limits(entries=100, total=250)
WORD = {"columns": b"", "word": hash_words(["fever"], FAMILY).astype("<u8").tobytes()}
WHO, OTHER = bytes(32), bytes(range(32))


class Clock:
    def __init__(self):
        self.seconds = 1e9

    def __call__(self):
        return self.seconds


def test_entries_are_counted_by_asker_and_come_back_with_the_next_period():
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


def test_a_restart_forgets_neither_entries_nor_numbers(tmp_path):
    clock, file = Clock(), tmp_path / "allowances.json"
    spend(open_allowance(file, LIMITS, OWNS, clock), WHO, 8, 70)
    again = open_allowance(file, LIMITS, OWNS, clock)
    with pytest.raises(DataError, match="question 8 of this asker is not above its last one, 8"):
        spend(again, WHO, 8, 1)
    with pytest.raises(PrivacyError, match="has 30 left"):
        spend(again, WHO, 9, 31)
    with pytest.raises(DataError, match="not above its last one, 9"):  # what was refused cannot be sent later
        spend(open_allowance(file, LIMITS, OWNS, clock), WHO, 9, 1)


def test_an_owner_stores_the_charge_before_its_answer_leaves(tmp_path, monkeypatch):
    """The process dies while it answers: the cells are spent."""
    file, sketch = tmp_path / "allowances.json", index_of()
    limits = Limits(sketch.top, sketch.top)
    owner = make_owner(OWNS, lists=sketch, choice=NoiseChoice("none"), allowance=open_allowance(file, limits, OWNS))
    with monkeypatch.context() as patched:
        patched.setattr("foltr.silo.owners._lists", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            answer(owner, question(number=1, **WORD))
    restarted = make_owner(OWNS, lists=sketch, choice=NoiseChoice("none"), allowance=open_allowance(file, limits, OWNS))
    with pytest.raises(PrivacyError, match="has 0 left"):
        answer(restarted, question(number=2, **WORD))
    answer(restarted, question(THIRD, number=1, **WORD))  # another asker has its own


def test_the_allowance_of_another_group_is_not_taken(tmp_path):
    file = tmp_path / "allowances.json"
    open_allowance(file, LIMITS, OWNS)
    with pytest.raises(DataError, match="of another group"):
        open_allowance(file, LIMITS, replace(OWNS, name="banks", context=bytes(32)))
    with pytest.raises(DataError, match="in use for epoch 1 of the group 'clinics'"):
        open_allowance(file, LIMITS, replace(OWNS, context=bytes(32)))  # a second group of the same epoch
    file.write_text("{}")
    with pytest.raises(DataError, match="holds no allowances"):
        open_allowance(file, LIMITS, OWNS)


def test_a_file_of_an_earlier_version_is_refused_with_advice(tmp_path):
    file = tmp_path / "allowances.json"
    account = {"number": 1, "period": 2, "cells": 3, "total": 4}
    stored = {"version": 1, "context": OWNS.context.hex(), "accounts": {WHO.hex(): account}}
    file.write_text(json.dumps(stored))
    with pytest.raises(DataError, match=r"no allowances of this version .* forgets what members have read"):
        open_allowance(file, LIMITS, OWNS)


@pytest.mark.parametrize("wrong", [(0, 5), (5, 4), (5, 5, 4), (5, 5, 5, 0)])
def test_impossible_limits_are_refused(wrong):
    with pytest.raises(SpecError, match="use 1 or more"):
        Limits(*wrong)


def test_without_limits_given_an_asker_gets_twenty_words_a_day():
    limits = default_limits(150)
    assert (limits.entries, limits.total, limits.together) == (3_000, 15_000, 30_000)
    owner = make_owner(OWNS, lists=index_of(), choice=NoiseChoice("none"))
    one = asker(ASKS, real_rows=None)
    for _ in range(20):
        owner = relay(ask_top(one, TARGET, "fever", top=1), owner).owner
    with pytest.raises(PrivacyError, match="has 0 left"):
        relay(ask_top(one, TARGET, "fever", top=1), owner)


def test_members_that_collude_share_an_allowance():
    """Three members ask in turn: together they get what the limit for all says, and no more."""
    limits = Limits(entries=100, total=100, together=150)
    book = in_memory(limits, b"", Clock())
    got = 0
    for number, who in enumerate([WHO, OTHER, bytes(31) + b"a"] * 10, start=1):
        with contextlib.suppress(PrivacyError):
            spend(book, who, number, 10)
            got += 10
    assert got == 150
    with pytest.raises(PrivacyError, match="150 for all askers together"):
        spend(book, WHO, 99, 10)
    assert sum(account.total for account in book.accounts.values()) == 150


def test_a_question_costs_what_its_answer_can_make_known():
    """To an index K entries or one a document, but K at least; to a sketch every number, which may be of any word."""
    for lists_, cost, asked in ((index_of(), 3, WORD), (lists(), 30 * lists().entries.shape[2], {})):
        owner = owner_of("none", lists=lists_, limits=Limits(10**6, 10**6))
        answer(owner, question(number=1, **asked))
        assert owner.allowance.accounts[ASKS.members[ASKS.place].signing.hex()].total == cost
    for owner, cost, asked in (
        (owner_of("none", lists=index_of(top=2)), 4, WORD),
        (owner_of("none", lists=index_of(top=5)), 5, WORD),
        (owner_of("none"), 120, {}),
    ):
        answer(owner, question(what="count", number=1, documents=np.arange(4, dtype="<i4").tobytes(), **asked))
        assert owner.allowance.accounts[ASKS.members[ASKS.place].signing.hex()].total == cost


def test_a_new_epoch_goes_on_with_what_was_read(tmp_path):
    """Before, an epoch had a file of its own: the maker and an asker who collude read everything, epoch by epoch."""
    clock, file, got = Clock(), tmp_path / "allowances.json", 0
    epochs = [OWNS, *(replace(OWNS, epoch=epoch, context=bytes([epoch] * 32)) for epoch in (2, 3))]
    for owner in epochs:
        book = open_allowance(file, LIMITS, owner, clock)
        for day in range(4):
            clock.seconds += DAY
            with contextlib.suppress(PrivacyError):
                spend(book, WHO, 10 * owner.epoch + day, 50)
                got += 50
    assert got == LIMITS.total
    with pytest.raises(DataError, match=r"in use for epoch 3 .* opened epoch 2"):
        open_allowance(file, LIMITS, epochs[1])


def test_a_process_of_an_earlier_epoch_answers_nothing_beside_that_of_the_new_one(tmp_path):
    file = tmp_path / "allowances.json"
    old = open_allowance(file, LIMITS, OWNS, Clock())
    spend(open_allowance(file, LIMITS, replace(OWNS, epoch=2, context=bytes(32)), Clock()), WHO, 1, 100)
    with pytest.raises(DataError, match=r"in use for epoch 2 .* this process answers in epoch 1: nothing was answered"):
        spend(old, WHO, 2, 1)


def test_a_file_under_two_names_has_one_allowance(tmp_path):
    """A link would be replaced by a file when it is written, and each name had the whole allowance."""
    file, link = tmp_path / "allowances.json", tmp_path / "links" / "same.json"
    link.parent.mkdir()
    link.symlink_to(file)
    books = [open_allowance(name, LIMITS, OWNS, Clock()) for name in (link, file)]
    spend(books[0], WHO, 1, 100)
    with pytest.raises(PrivacyError, match="has 0 left"):
        spend(books[1], WHO, 2, 1)


@pytest.mark.parametrize("linked", ["before it is opened", "after it was opened"])
def test_a_hard_link_is_no_second_allowance(linked, tmp_path):
    """A file is replaced when it is written: before, two names of one file parted and each gave the whole limit."""
    file, link, got = tmp_path / "allowances.json", tmp_path / "same.json", 0
    book = open_allowance(file, LIMITS, OWNS, Clock())
    if linked == "after it was opened":
        spend(book, WHO, 1, 60)
        got += 60
    link.hardlink_to(file)
    for name in (file, link):
        with contextlib.suppress(StorageError, PrivacyError):
            spend(open_allowance(name, LIMITS, OWNS, Clock()), WHO, 2, 40)
            got += 40
    with pytest.raises(StorageError, match="second name"):
        spend(book, WHO, 3, 1)
    assert got <= LIMITS.entries
    link.unlink()
    spend(book, WHO, 4, 40)
    with pytest.raises(PrivacyError, match="left"):
        spend(book, WHO, 5, 61)


def test_threads_with_one_file_read_what_one_may(tmp_path):
    """Each thread has opened the file itself, as requests of a web server do."""
    file, got = tmp_path / "allowances.json", []

    def ask(thread):
        book = open_allowance(file, LIMITS, OWNS, Clock())
        for number in range(1, 30):
            with contextlib.suppress(PrivacyError, DataError):
                spend(book, WHO, 8 * number + thread, 7)
                got.append(7)

    threads = [threading.Thread(target=ask, args=(thread,)) for thread in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(got) == 98  # fourteen answers of seven entries fit into 100
    (account,) = open_allowance(file, LIMITS, OWNS, Clock()).accounts.values()
    assert account.total == 98


def test_members_who_are_invented_in_new_epochs_read_no_more_than_all_may_together(tmp_path):
    """The maker of a group adds askers that are its own, epoch by epoch; each has a new key and a new account."""
    limits, got, clock = Limits(entries=100, total=250, together=400), 0, Clock()
    for epoch in range(1, 6):
        member = replace(OWNS, epoch=epoch, context=bytes([epoch] * 32))
        book = open_allowance(tmp_path / "allowances.json", limits, member, clock)
        for invented in range(5):
            clock.seconds += DAY
            with contextlib.suppress(PrivacyError):
                spend(book, bytes([epoch, invented] * 16), 1, 50)
                got += 50
    assert got == 400


def test_threads_that_share_an_allowance_in_memory_take_turns():
    """The clock is read between look-up and charge: here every thread waits there until all have looked, or may not."""
    together = threading.Barrier(2)

    def wait():
        with contextlib.suppress(threading.BrokenBarrierError):
            together.wait(timeout=0.2)
        return 0.0

    book, got = in_memory(LIMITS, b"", wait), []

    def ask(number):
        with contextlib.suppress(PrivacyError, DataError):
            spend(book, WHO, number, 100)
            got.append(100)

    threads = [threading.Thread(target=ask, args=(number,)) for number in (1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(got) == book.accounts[WHO.hex()].total == 100


def spend_until_refused(file, member, queue):
    book, got = open_allowance(Path(file), LIMITS, OWNS, Clock()), 0
    for number in range(1, 200):
        try:
            spend(book, WHO, 2 * number + member, 1)
            got += 1
        except (PrivacyError, DataError):  # the other process may have used a higher number
            continue
    queue.put(got)


def test_two_processes_with_one_file_read_what_one_may(tmp_path):
    """Before, each process had the accounts of its start, and two read twice the limit."""
    file, context = tmp_path / "allowances.json", multiprocessing.get_context("fork")
    queue = context.Queue()
    processes = [context.Process(target=spend_until_refused, args=(str(file), member, queue)) for member in (0, 1)]
    for process in processes:
        process.start()
    got = sum(queue.get(timeout=120) for _ in processes)
    for process in processes:
        process.join()
    assert got == LIMITS.entries
    (account,) = open_allowance(file, LIMITS, OWNS, Clock()).accounts.values()
    assert account.total == LIMITS.entries


def test_two_allowances_of_one_file_share_it(tmp_path):
    """The same without a race: two owners that were opened before the first question."""
    file = tmp_path / "allowances.json"
    books = [open_allowance(file, LIMITS, OWNS, Clock()) for _ in range(2)]
    spend(books[0], WHO, 1, 100)
    with pytest.raises(PrivacyError, match="has 0 left"):
        spend(books[1], WHO, 2, 1)
    with pytest.raises(DataError, match="not above its last one"):
        spend(books[0], WHO, 2, 1)


def test_an_allowance_whose_file_is_gone_answers_nothing(tmp_path):
    file = tmp_path / "allowances.json"
    book = open_allowance(file, LIMITS, OWNS, Clock())
    file.unlink()
    with pytest.raises(StorageError, match="could not be read"):
        spend(book, WHO, 1, 1)
