"""What is erased is gone from the bytes of the files, not only from the answers."""

import pytest
from logged_lists import NAMES, NOW, bytes_of, chosen, impression, keys

from foltr.node.learning import erasure
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
    assert erasure.delete(log, [goes]) == 1
    content = bytes_of(tmp_path)
    assert b"xylophone" not in content
    assert keys(2)[4].encode() not in content  # paths that no other list shows
    assert keys(1)[4].encode() in content
    assert log.lookup("xylophone", NOW) == []
    assert [one.impression for one in log.history()] == [stays]


def test_documents_that_another_list_shows_stay(log, tmp_path):
    one, two = chosen(log, 1), chosen(log, 1)
    erasure.delete(log, [one])
    assert log.displayed(two).documents == tuple(keys(1))


def test_a_stretch_of_time_is_deleted_with_its_memory(log, tmp_path):
    for day in range(5):
        chosen(log, day, query=f"wordof{day}day", time=NOW + day * DAY)
    with log.transaction() as connection:
        connection.execute("UPDATE impressions SET time = time + 86400 * (id - 1)")
    log.remember([Use("remembered", "/memory/only", NOW + 2 * DAY)])
    assert erasure.delete_between(log, NOW + DAY, NOW + 3 * DAY) == 2
    content = bytes_of(tmp_path)
    assert [f"wordof{day}day".encode() in content for day in range(5)] == [True, False, False, True, True]
    assert b"/memory/only" not in content


def test_everything_is_deleted(log, tmp_path):
    for number in range(50):
        chosen(log, number, query=f"wordof{number}")
    log.remember([Use("remembered", "/memory/only", NOW)])
    erasure.delete_all(log)
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
    before = len(log.interactions(NAMES))
    assert erasure.scrub(log, folders=["/home/ann/secret/"]) == 1
    content = bytes_of(tmp_path).lower()
    for trace in (b"xylophone", b"diary", b"secret", b"older text"):
        assert trace not in content
    assert len(log.interactions(NAMES)) == before  # features and clicks stay
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


def test_mails_of_a_mailbox_are_scrubbed_with_it(log):
    first = chosen(log, 1, documents=["/mail/inbox\0" + "7", "/mail/inbox2"], propensities=[1, 1])
    erasure.scrub(log, files=["/mail/inbox"])
    assert log.displayed(first).documents == (None, "/mail/inbox2")


def test_a_scrubbed_document_may_come_back(log):
    first = chosen(log, 1)
    erasure.scrub(log, documents=keys(1))
    second = chosen(log, 1)
    assert log.displayed(first).documents == (None,) * 5
    assert log.displayed(second).documents == tuple(keys(1))
    assert len(log.interactions(NAMES)) == 2


def test_texts_with_words_that_no_document_has_are_erased(log, tmp_path):
    numbers = [
        chosen(log, number, query=text) for number, text in enumerate(["xylophone report", "report", "Xylophone"])
    ]
    log.remember([Use("xylophone too", "/old", NOW)])
    before = len(log.interactions(NAMES))
    assert erasure.scrub_texts(log, lambda text: "xylophone" in text.casefold()) == 4  # as typed and as compared
    assert b"xylophone" not in bytes_of(tmp_path).lower()
    assert [log.displayed(one).query for one in numbers] == [None, "report", None]
    assert len(log.interactions(NAMES)) == before
    assert log.lookup("report", NOW)
    assert erasure.scrub_texts(log, lambda text: False) == 0


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
                    erasure.delete(log, gone)
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
    erasure.delete(log, [goes])
    assert not erasure.empty_journal(log)
    reader.close()
    assert erasure.empty_journal(log)
    assert b"xylophone" not in bytes_of(tmp_path)
