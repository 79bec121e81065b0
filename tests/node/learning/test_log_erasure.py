"""What is erased is gone from the bytes of the files, not only from the answers."""

import gzip
from pathlib import Path

import pytest
from logged_lists import NOW, bytes_of, chosen, impression, keys, taught

from foltr.node.learning import curations, erasure, versions
from foltr.node.learning.log import Log, Retention
from foltr.node.learning.memory import DAY, Use
from foltr.rng import stream


@pytest.fixture
def log(tmp_path):
    with Log(tmp_path / "log.db") as opened:
        yield opened


def test_a_deleted_list_leaves_no_byte(log, tmp_path):
    stays, goes = chosen(log, 1, query="harmless"), chosen(log, 2, query="xylophone")
    assert b"xylophone" in bytes_of(tmp_path)
    assert erasure.erase(log, erasure.Searches((goes,))).searches == 1
    content = bytes_of(tmp_path)
    assert b"xylophone" not in content
    assert keys(2)[4].encode() not in content  # paths that no other list shows
    assert keys(1)[4].encode() in content
    assert log.lookup("xylophone", NOW) == []
    assert [one.impression for one in log.history()] == [stays]


def test_documents_that_another_list_shows_stay(log, tmp_path):
    one, two = chosen(log, 1), chosen(log, 1)
    erasure.erase(log, erasure.Searches((one,)))
    assert log.displayed(two).documents == tuple(keys(1))


def test_a_stretch_of_time_is_deleted_with_its_memory(log, tmp_path):
    for day in range(5):
        chosen(log, day, query=f"wordof{day}day", time=NOW + day * DAY)
    with log.transaction() as connection:
        connection.execute("UPDATE impressions SET time = time + 86400 * (id - 1)")
    log.remember([Use("remembered", "/memory/only", NOW + 2 * DAY)])
    assert erasure.erase(log, erasure.Period(NOW + DAY, NOW + 3 * DAY)).searches == 2
    content = bytes_of(tmp_path)
    assert [f"wordof{day}day".encode() in content for day in range(5)] == [True, False, False, True, True]
    assert b"/memory/only" not in content


def test_everything_is_deleted(log, tmp_path):
    for number in range(50):
        chosen(log, number, query=f"wordof{number}")
    log.remember([Use("remembered", "/memory/only", NOW)])
    erasure.erase(log, erasure.ALL_SEARCHES)
    content = bytes_of(tmp_path)
    for trace in (b"wordof", b"/home/ann", b"remembered", b"/memory"):
        assert trace not in content
    assert log.clicks() == 0
    assert log.openings(NOW).total == 0
    assert chosen(log, 1) > 50  # numbers do not come again


def test_scrubbing_erases_documents_and_the_queries_that_showed_them(log, tmp_path):
    secret, other = "/home/ann/secret/diary.txt", "/home/ann/papers/paper.pdf"
    both = chosen(log, 1, query="xylophone diary", documents=[other, secret], propensities=[1, 1], place=1)
    same_text = chosen(log, 2, query="Xylophone  DIARY")
    harmless = chosen(log, 3, query="harmless")
    log.remember([Use("older text", secret, NOW)])
    assert len(taught(log)) == 2  # the third has the text of the first
    clicks = log.clicks()
    assert erasure.scrub(log, folders=["/home/ann/secret/"]) == 1
    content = bytes_of(tmp_path).lower()
    for trace in (b"xylophone", b"diary", b"secret", b"older text"):
        assert trace not in content
    assert log.clicks() == clicks  # features and clicks stay
    assert len(taught(log)) == 1  # but of texts that are gone nothing is learned
    assert log.displayed(both).documents == (other, None)
    assert [log.displayed(one).query for one in (both, same_text, harmless)] == [None, None, "harmless"]
    assert log.lookup("xylophone", NOW) == []
    assert secret not in log.openings(NOW).documents


def test_scrubbing_a_folder_spares_its_neighbours(log):
    first = chosen(log, 1, documents=["/a/secret/x", "/a/secrets/y", "/a/secret"], propensities=[1, 1, 1])
    erasure.scrub(log, folders=["/a/secret"])
    assert log.displayed(first).documents == (None, "/a/secrets/y", "/a/secret")
    erasure.scrub(log, documents=["/a/secret"])
    assert log.displayed(first).documents == (None, "/a/secrets/y", None)


def test_a_scrubbed_document_may_come_back(log):
    first = chosen(log, 1)
    erasure.scrub(log, documents=keys(1))
    second = chosen(log, 1)
    assert log.displayed(first).documents == (None,) * 5
    assert log.displayed(second).documents == tuple(keys(1))
    assert len(taught(log)) == 1  # of the list whose text is there


def test_retention_limits_hold(tmp_path):
    with Log(tmp_path / "log.db", Retention(days=30, impressions=10)) as log:
        chosen(log, 0, query="ancient", time=NOW - 40 * DAY)
        with log.transaction() as connection:
            connection.execute("UPDATE impressions SET time = ?", (NOW - 40 * DAY,))
        for number in range(15):
            chosen(log, number, query=f"wordof{number}x")
        assert erasure.prune(log, NOW + 20) == 6
        content = bytes_of(tmp_path)
        assert b"ancient" not in content
        assert [f"wordof{number}x".encode() in content for number in range(15)] == [False] * 5 + [True] * 10
        assert erasure.prune(log, NOW + 20) == 0


def logged(log, number, time):
    impression = chosen(log, number, query=f"wordof{number}x", time=time)
    with log.transaction() as connection:
        connection.execute("UPDATE impressions SET time = ? WHERE id = ?", (time, impression))


def test_a_clock_that_jumps_by_years_deletes_nothing_until_two_days_confirm_it(tmp_path):
    with Log(tmp_path / "log.db", Retention(days=30, impressions=1000)) as log:
        for number in range(5):
            logged(log, number, NOW - number * DAY)
        later = NOW + 20 * 365 * DAY
        for now in (later, NOW - 20 * 365 * DAY, later):  # forwards, back, and forwards again
            assert erasure.prune(log, now) == 0
        logged(log, 5, later)
        assert erasure.prune(log, later + 60) == 0
        assert len(log.uses()) == 6
        logged(log, 6, later + DAY)
        assert erasure.prune(log, later + DAY + 60) == 5
        assert len(log.uses()) == 2


def test_a_pause_of_months_is_no_jump(tmp_path):
    with Log(tmp_path / "log.db", Retention(days=30, impressions=1000)) as log:
        logged(log, 0, NOW)
        assert erasure.prune(log, NOW + 100 * DAY) == 1


@pytest.mark.parametrize("seed", range(5))
def test_no_order_of_writing_and_deleting_leaves_bytes_behind(tmp_path, seed):
    """Random lengths move rows between pages, into overflow pages and back."""
    draws = iter(stream(seed, purpose="choice").integers(10**6, 4000).tolist())
    with Log(tmp_path / "log.db") as log:
        live: dict[int, str] = {}
        for step in range(90):
            word = f"zq{seed}w{step}e"
            text = " ".join([word] * (1 + next(draws) % 60))
            number = log.record(impression(
                step, query=text, candidates=5 + next(draws) % 60,
                documents=[f"/f/{word}/{'n' * (next(draws) % 300)}{place}" for place in range(5)],
            ))  # fmt: skip
            log.choose_position(number, next(draws) % 5, NOW + step)
            live[number] = word
            if step % 3 == 2:
                gone = [one for one in live if next(draws) % 2]
                if next(draws) % 2:
                    erasure.erase(log, erasure.Searches(tuple(gone)))
                else:
                    erasure.scrub(log, folders=[f"/f/{live[one]}" for one in gone])
                content = bytes_of(tmp_path)
                assert not [one for one in gone if live[one].encode() in content]
                for one in gone:
                    del live[one]
        assert log.rows("PRAGMA integrity_check") == [("ok",)]


def test_the_journal_is_emptied_once_readers_are_gone(log, tmp_path):
    goes = chosen(log, 1, query="xylophone")
    reader = Log(log.path)
    reader._connection.execute("BEGIN")
    reader.history()  # holds the old state
    log.rows("PRAGMA busy_timeout = 0")
    erasure.erase(log, erasure.Searches((goes,)))
    assert not erasure.empty_journal(log)
    reader.close()
    assert erasure.empty_journal(log)
    assert b"xylophone" not in bytes_of(tmp_path)


# ---- curations


def test_a_text_goes_with_its_last_search_from_curations_and_imported_memory(log, tmp_path):
    first, second = chosen(log, 1, query="xylophone"), chosen(log, 2, query="Xylophone ")
    curations.put(log, "XYLOPHONE", keys(1)[0], "pinned", NOW)
    curations.put(log, "harmless", keys(1)[1], "hidden", NOW)
    log.remember([Use("xylophone", "/memory/only", NOW)])
    erasure.erase(log, erasure.Searches((first,)))
    assert [curation.query for curation in curations.every(log)] == [
        "harmless",
        "xylophone",
    ]  # the second search has the text
    erasure.erase(log, erasure.Searches((second,)))
    assert [curation.query for curation in curations.every(log)] == ["harmless"]
    content = bytes_of(tmp_path).lower()
    assert b"xylophone" not in content
    assert b"/memory/only" not in content


def test_scrubbing_erases_curations_about_the_documents_and_with_their_texts(log, tmp_path):
    secret, other = "/home/ann/secret/diary.txt", "/home/ann/papers/paper.pdf"
    chosen(log, 1, query="xylophone diary", documents=[other, secret], propensities=[1, 1])
    curations.put(
        log, "xylophone diary", other, "pinned", NOW
    )  # another document, but a text that may quote the secret
    curations.put(log, "unrelated", "/home/ann/secret/never-logged.txt", "hidden", NOW)
    curations.put(log, "harmless", other, "pinned", NOW)
    erasure.scrub(log, folders=["/home/ann/secret"])
    assert [curation.query for curation in curations.every(log)] == ["harmless"]
    content = bytes_of(tmp_path)
    for trace in (b"xylophone", b"diary", b"secret", b"unrelated"):
        assert trace not in content


@pytest.mark.parametrize("name", ["with_pins", "without_pins"])
def test_logs_of_earlier_versions_load_and_are_erased(tmp_path, name):
    """The two files were written by the code before pins were a table of the schema."""
    stored = Path(__file__).parent / "earlier_logs" / f"{name}.sqlite.gz"
    (tmp_path / "log.sqlite").write_bytes(gzip.decompress(stored.read_bytes()))
    with Log(tmp_path / "log.sqlite") as log:
        assert (log.impressions(), log.clicks(), len(log.uses())) == (12, 11, 12)
        assert versions.serving(log).current.version == 1
        assert [curation.kind for curation in curations.every(log)] == (
            ["hidden", "pinned"] if name == "with_pins" else []
        )
        curations.put(log, "a new pin", "/home/ann/papers/1-2.pdf", "pinned", NOW)
        assert curations.of(log, "A new  pin").pinned == ("/home/ann/papers/1-2.pdf",)
        assert erasure.erase(log, erasure.ALL_SEARCHES) == (12, "unchanged", True)
        content = bytes_of(tmp_path)
        for trace in (b"stored query", b"imported", b"/home/ann", b"a new pin"):
            assert trace not in content
        assert erasure.erase(log, erasure.ALL_SEARCHES, reset_weights=True) == (0, "reset", True)
        assert versions.serving(log).current.version == 0
