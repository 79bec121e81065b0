"""The log: what was shown and opened comes back as it was, and nothing that could not be read back is stored."""

import os
import sqlite3
import stat
import threading
from functools import partial

import numpy as np
import pytest
from logged_lists import NAMES, NOW, chosen, impression, keys, taught

from foltr.errors import InputError, StorageError
from foltr.node.learning.log import FORGOTTEN, QUICK_RETURN, Log
from foltr.node.learning.memory import DAY


@pytest.fixture
def log(tmp_path):
    with Log(tmp_path / "data" / "log.db") as opened:
        yield opened


def test_a_list_with_a_choice_is_an_interaction(log):
    one = impression(4)
    number = log.record(one)
    log.choose(number, one.documents[2], NOW)
    (found,) = taught(log, NAMES)
    assert np.array_equal(found.features, np.asarray(one.features, dtype=np.float32))
    assert np.array_equal(found.ranking, np.arange(5))
    assert found.clicks.tolist() == [False, False, True, False, False]
    assert np.array_equal(found.scores, np.asarray(one.scores, dtype=np.float32))
    assert found.model_version == 0


def test_interactions_come_in_the_order_of_the_log(log):
    first, second = log.record(impression(1)), log.record(impression(2, model_version=7))
    log.choose(second, keys(2)[0], NOW)
    log.choose(first, keys(1)[4], NOW + 2)
    log.record(impression(3))  # nothing was opened
    one, two = taught(log, NAMES)
    assert one.clicks.tolist() == [False, False, False, False, True]
    assert (two.clicks.tolist()[0], two.model_version) == (True, 7)


def test_columns_follow_the_names_and_unknown_features_are_zero(log):
    chosen(log, 1)
    (as_stored,) = taught(log, NAMES)
    (other,) = taught(log, ("new:none", "opened:saturating", "bm25:range", "bm25:none"))
    assert not other.features[:, [0, 3]].any()  # another scaling is another feature
    assert np.array_equal(other.features[:, 1], as_stored.features[:, 2])
    assert np.array_equal(other.features[:, 2], as_stored.features[:, 0])


def test_a_choice_that_was_taken_back_is_no_click_and_no_memory(log):
    stored = chosen(log, 1, place=3)
    before = log.lookup("query 1", NOW), log.openings(NOW)
    log.choose(stored, keys(1)[0], NOW + 5)
    assert log.take_back(stored, keys(1)[0])
    assert (log.lookup("query 1", NOW), log.openings(NOW)) == before
    assert taught(log, NAMES)[0].clicks.tolist() == [False, False, False, True, False]
    assert not log.take_back(stored, keys(1)[0])
    assert not log.take_back(stored, "/never/shown")
    assert [one.withdrawn for one in log.displayed(stored).choices] == [0, QUICK_RETURN]


def test_taking_back_reverts_the_count_exactly(log):
    stored = [chosen(log, 1, place=2, time=NOW + day * DAY) for day in (0, 3, 11)]
    counts = log.lookup("query 1", NOW + 20 * DAY)
    again = chosen(log, 1, place=2, time=NOW + 20 * DAY)
    assert log.lookup("query 1", NOW + 20 * DAY) != counts
    log.take_back(again, keys(1)[2])
    assert log.lookup("query 1", NOW + 20 * DAY) == counts
    log.take_back(stored[1], keys(1)[2])  # one in the midst of others
    (one,) = log.lookup("query 1", NOW + 20 * DAY)
    assert one.use_count == pytest.approx((0.975**11 * 0.9 + 1) * 0.975**9)


def test_forgetting_a_choice_is_not_deleting_history(log):
    stored = chosen(log, 1, place=3, query="annual report 2024")
    assert log.forget_choice("ANNUAL rep", keys(1)[3]) == 1
    assert log.lookup("annual report 2024", NOW) == []
    assert log.openings(NOW).total == 0
    assert taught(log, NAMES) == []
    shown = log.displayed(stored)
    assert shown.query == "annual report 2024"
    assert [(one.document, one.withdrawn) for one in shown.choices] == [(keys(1)[3], FORGOTTEN)]
    assert log.forget_choice("annual rep", keys(1)[3]) == 0


def test_forgetting_touches_one_document_and_texts_that_count(log):
    chosen(log, 1, place=3, query="annual report")
    chosen(log, 1, place=2, query="annual report")
    chosen(log, 1, place=3, query="budget")
    log.forget_choice("annual report", keys(1)[3])
    assert [one.document for one in log.lookup("annual report", NOW)] == [keys(1)[2]]
    assert [one.document for one in log.lookup("budget", NOW)] == [keys(1)[3]]


@pytest.mark.parametrize("query", ["", "re", "x' OR 1=1 --", "%", "_", "\0", "\ud800", "é" * 5000, "\U0010ffff"])
def test_any_text_can_be_logged_and_looked_up(log, query):
    chosen(log, 1, query=query)
    found = log.lookup(query, NOW)
    assert [one.document for one in found] == ([keys(1)[0]] if query.strip() else [])


@pytest.mark.parametrize("key", ["/a/\udcff\udcfe.txt", "/a/new\nline", "/a/\x1b[31m", "/mail\0part", "x" * 5000])
def test_any_name_can_be_logged(log, key):
    number = log.record(impression(1, documents=[key, "/other"], propensities=np.ones(2)))
    log.choose(number, key, NOW)
    assert log.displayed(number).documents == (key, "/other")
    assert log.lookup("query 1", NOW)[0].document == key


@pytest.mark.parametrize(
    "changed",
    [
        {"features": np.full((12, 3), np.nan)},
        {"features": np.full((12, 3), 1e300)},  # no single-precision number
        {"features": np.zeros((11, 3))},
        {"features": np.zeros((12, 4))},
        {"scores": np.full(12, np.inf)},
        {"documents": ["/a"] * 5},
        {"documents": []},
        {"documents": [f"/{i}" for i in range(13)], "propensities": np.ones(13)},
        {"propensities": np.ones(4)},
        {"teams": np.zeros(3)},
        {"time": float("nan")},
        {"time": -1.0},
    ],
    ids=str,
)
def test_a_list_that_could_not_be_read_back_is_refused(log, changed):
    with pytest.raises(InputError):
        log.record(impression(1, **changed))
    assert log.history() == []


def test_only_what_was_shown_can_be_chosen(log):
    number = log.record(impression(1))
    log.record(impression(2))
    for wrong in ("/never/shown", keys(2)[0]):
        with pytest.raises(InputError, match="did not show"):
            log.choose(number, wrong, NOW)
    with pytest.raises(InputError, match="no list 99"):
        log.choose(99, keys(1)[0], NOW)
    with pytest.raises(InputError, match="no place 6"):
        log.choose_position(number, 5, NOW)
    with pytest.raises(InputError, match="seconds since 1970"):
        log.choose(number, keys(1)[0], float("inf"))
    assert log.clicks() == 0


def test_the_history_is_listed_from_the_newest(log):
    numbers = [chosen(log, one) for one in range(5)]
    assert [one.impression for one in log.history(limit=2)] == numbers[:2:-1]
    assert [one.impression for one in log.history(limit=2, before=numbers[3])] == numbers[2:0:-1]


def test_counts_of_openings_are_kept_for_a_day_and_follow_the_log(log, tmp_path):
    stored = chosen(log, 1)
    assert log.openings(NOW) is log.openings(NOW + 5)
    assert log.openings(NOW + DAY).total == pytest.approx(0.975)
    assert log.openings(NOW).total == 1
    counted = log.openings(NOW)
    log.record(impression(2))
    assert log.openings(NOW) is counted  # lists alone change nothing
    with Log(log.path) as other:  # another process
        other.choose(stored, keys(1)[1], NOW)
    assert log.openings(NOW).total == 2


def test_files_belong_to_their_owner_only(log):
    chosen(log, 1)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in log.path.parent.iterdir()}
    assert modes.keys() >= {"log.db", "log.db-wal"}
    assert set(modes.values()) == {0o600}
    assert stat.S_IMODE(log.path.parent.stat().st_mode) == 0o700


def test_a_log_that_others_could_read_is_closed_to_them(tmp_path):
    path = tmp_path / "log.db"
    path.touch(mode=0o644)
    Log(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_every_commit_is_synchronised_and_deleted_content_overwritten(log):
    assert log.rows("PRAGMA journal_mode") == [("wal",)]
    assert log.rows("PRAGMA synchronous") == [(2,)]  # FULL
    assert log.rows("PRAGMA secure_delete") == [(1,)]


@pytest.mark.parametrize("content", [b"no database" * 500, b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_damaged_log_is_named(tmp_path, content):
    path = tmp_path / "log.db"
    path.write_bytes(content)
    with pytest.raises(StorageError, match=r"log\.db: .*damaged"):
        Log(path)


def test_a_log_of_a_newer_foltr_is_not_touched(tmp_path):
    path = tmp_path / "log.db"
    Log(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(StorageError, match=r"version 99.*update foltr"):
        Log(path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_named(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(StorageError, match="owner"):
        Log(tmp_path / "log.db")


def test_a_full_disk_loses_nothing_that_was_acknowledged(log):
    chosen(log, 1)
    pages = log.rows("PRAGMA page_count")[0][0]
    log.rows(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StorageError, match="full"):
        list(map(partial(chosen, log), range(2, 500)))
    log.rows("PRAGMA max_page_count = 1000000")
    assert log.rows("PRAGMA integrity_check") == [("ok",)]
    stored = log.clicks()
    assert stored >= 1
    chosen(log, 1000)
    assert log.clicks() == stored + 1


def test_threads_and_processes_may_write_at_once(log):
    def work(first):
        with Log(log.path) as own:
            for number in range(first, first + 20):
                chosen(own, number)
                chosen(log, number + 1000)

    threads = [threading.Thread(target=work, args=(100 * one,)) for one in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert log.clicks() == 160
    assert log.rows("PRAGMA integrity_check") == [("ok",)]
