"""Memory of choices by Firefox's rule."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from foltr.node.learning import memory
from foltr.node.learning.log import Log
from foltr.node.learning.memory import DAY, Use, entries, lookup, place, typed_text
from foltr.rng import stream

NOON = 20_000 * DAY + DAY / 2


def found(uses, query, now=NOON):
    return lookup(entries(uses).items(), query, now)


# ---- the rule


def test_one_choice_suffices():
    (one,) = found([Use("annual report", "/a", NOON)], "annual report")
    assert (one.document, one.strength, one.use_count, one.typed) == ("/a", 2.0, 1.0, "annual report")


def test_each_choice_makes_the_count_nine_tenths_plus_one():
    uses = [Use("report", "/a", NOON)] * 3
    assert found(uses, "report")[0].use_count == pytest.approx((1.0 * 0.9 + 1) * 0.9 + 1)
    assert found([Use("report", "/a", NOON)] * 500, "report")[0].use_count == pytest.approx(10.0)


def test_the_whole_text_counts_twice_and_a_beginning_once():
    uses = [Use("report", "/a", NOON)]
    assert found(uses, "report")[0].strength == 2.0
    assert found(uses, "rep")[0].strength == 1.0


@pytest.mark.parametrize(
    ("typed", "now_typed", "counts"),
    [
        ("report", "rep", True),
        ("report", "re", False),  # fewer than three letters
        ("report", "report 2024", False),  # more than was typed then
        ("report", "port", False),  # not the beginning
        ("re", "re", True),  # the whole text may be short
        ("report", "", False),
        ("Annual  Report ", "annual rep", True),
        ("ＲＥＰＯＲＴ", "report", True),
    ],
)
def test_which_texts_count(typed, now_typed, counts):
    assert bool(found([Use(typed_text(typed), "/a", NOON)], now_typed)) == counts


def test_counts_decay_by_the_day_of_the_calendar():
    uses = [Use("report", "/a", NOON)]
    assert found(uses, "report", NOON + DAY / 3)[0].use_count == 1.0  # the same day
    assert found(uses, "report", NOON + DAY)[0].use_count == pytest.approx(0.975)
    assert found(uses, "report", NOON + 10 * DAY)[0].use_count == pytest.approx(0.975**10)


def test_an_entry_is_gone_when_it_was_not_used_for_90_days():
    uses = [Use("report", "/a", NOON)] * 20
    assert found(uses, "report", NOON + 90 * DAY)
    assert not found(uses, "report", NOON + 91 * DAY)


def test_a_later_choice_counts_from_the_decayed_count():
    uses = [Use("report", "/a", NOON), Use("report", "/a", NOON + 2 * DAY)]
    assert found(uses, "report", NOON + 2 * DAY)[0].use_count == pytest.approx(0.975**2 * 0.9 + 1)


def test_the_strongest_of_several_texts_counts():
    uses = [Use("report", "/a", NOON), *[Use("report 2024", "/a", NOON)] * 3]
    (one,) = found(uses, "report")
    assert (one.typed, one.use_count) == ("report 2024", pytest.approx(2.71))


def test_equal_strength_goes_to_the_newest_choice():
    uses = [Use("report", "/old", NOON), Use("report", "/new", NOON + 60)]
    assert [one.document for one in found(uses, "report", NOON + 60)] == ["/new", "/old"]


def test_a_clock_that_went_back_does_not_strengthen():
    assert found([Use("report", "/a", NOON)], "report", NOON - 50 * DAY)[0].use_count == 1.0


@given(some.lists(some.tuples(some.sampled_from("abc"), some.integers(0, 80)), max_size=12), some.integers(0, 40))
def test_the_order_of_remembered_documents_does_not_change_by_waiting(choices, wait):
    uses = [Use("report", document, NOON + day * DAY) for document, day in sorted(choices, key=lambda one: one[1])]
    now = NOON + 80 * DAY
    before, after = (found(uses, "report", moment) for moment in (now, now + wait * DAY))
    remaining = [one.document for one in after]
    assert [one.document for one in before if one.document in remaining] == remaining


# ---- places


def test_remembered_documents_come_first_and_the_rest_keeps_its_order():
    assert place(list("abcdef"), ["e", "c"]) == (list("ecabdf"), ["e", "c"])


def test_at_most_two_documents_are_lifted():
    assert place(list("abcdef"), ["e", "c", "f"])[0] == list("ecabdf")


def test_what_does_not_match_the_query_is_not_shown():
    assert place(list("abc"), ["x", "c"]) == (list("cab"), ["c"])
    assert place([], ["x"]) == ([], [])


def test_an_exact_name_beats_memory():
    assert place(list("abcdef"), ["e", "c"], exact_name={"b"}) == (list("becadf"), ["e"])


def test_of_many_exact_names_one_stands_above_memory_and_a_remembered_one_is_first():
    assert place(list("abcdef"), ["e"], exact_name=set("bcd"))[0] == list("beacdf")
    assert place(list("abcdef"), ["e", "d"], exact_name=set("bcd"))[0] == list("deabcf")


def test_without_memory_nothing_moves():
    assert place(list("abc"), [], exact_name={"c"}) == (list("abc"), [])


def test_a_document_that_was_first_was_not_moved():
    assert place(list("abc"), ["a"]) == (list("abc"), [])


@given(some.permutations(range(8)), some.lists(some.integers(0, 12), max_size=5), some.sets(some.integers(0, 12)))
def test_places_are_a_permutation_and_the_others_keep_their_order(order, remembered, exact):
    placed, moved = place(order, remembered, exact)
    assert sorted(placed) == sorted(order)
    assert len(moved) <= 2
    lifted = set(placed[:3])
    assert [one for one in placed if one not in lifted] == [one for one in order if one not in lifted]


# ---- keys and counts


def test_a_key_survives_odd_names():
    for path, part in (("/a/b.txt", ""), ("/a/new\nline", "3"), ("/a/\udcff", ""), ("/mail/inbox", "<id@host>")):
        assert memory.split_key(memory.document_key(path, part)) == (path, part)


def test_the_folder_of_a_mail_is_its_mailbox():
    assert memory.folder_of("/home/ann/a.txt") == "/home/ann"
    assert memory.folder_of(memory.document_key("/home/ann/inbox", "7")) == "/home/ann/inbox"


# ---- over the log, as functions over plain data say


def test_the_log_remembers_as_the_functions_do(tmp_path):
    draws, uses = iter(stream(1, purpose="choice").integers(10**6, 1000).tolist()), []
    with Log(tmp_path / "log.db") as log:
        for _ in range(200):
            text = ["report", "report 2024", "rep", "re", "annual report"][next(draws) % 5]
            uses.append(Use(text, f"/d{next(draws) % 4}", NOON + (next(draws) % 100) * DAY))
        uses.sort(key=lambda one: one.time)
        log.remember(uses)
        for query in ("re", "rep", "repo", "report", "annual", "x", ""):
            for now in (NOON, NOON + 50 * DAY, NOON + 150 * DAY):
                assert log.lookup(query, now) == found(uses, query, now)
