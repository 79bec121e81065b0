"""An operator on a disk: the same bytes after every restart, no second list or half, and kills that lose nothing."""

import itertools
import os
import shutil

import pytest
from small_operators import Clock, exchange, operators, run, sent_in, window_of
from small_two_servers import federation, inboxes, plain_sum

from foltr import files, witnessed
from foltr.errors import SecureAggregationError, SpecError, StateError
from foltr.federation import key_files, operator
from foltr.secagg.two_servers import combine

NOISY = federation(12, noise_multiplier=3.0)
PLAIN = federation(7)


def prepared(fed, folder, round=1):
    pair = operators(fed, folder)
    window = window_of(fed, pair, round)
    return pair, window, inboxes(fed, sent_in(fed, window))


class Killed(BaseException):
    """A process that ends here: nothing in the package catches it."""


class Kills:
    """Ends the process before or after the n-th change of the disk."""

    def __init__(self, monkeypatch, at, after):
        self.at, self.after, self.count = at, after, 0
        for module, name in itertools.product(
            (operator, key_files, witnessed), ("write_durably", "erase_file", "create_private")
        ):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, self.wrapped(getattr(files, name)))

    def wrapped(self, change):
        def changed(*given, **options):
            self.count += 1
            if self.count == self.at and not self.after:
                raise Killed
            change(*given, **options)
            if self.count == self.at:
                raise Killed

        return changed


def writes_of_a_round(tmp_path, monkeypatch):
    with monkeypatch.context() as watched:
        kills = Kills(watched, at=-1, after=False)
        pair, window, boxes = prepared(PLAIN, tmp_path / "counted")
        exchange(pair, window, boxes)
        return kills.count


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_kill_at_any_write_of_either_operator_loses_nothing(tmp_path, monkeypatch, after):
    """Whoever was killed is started again and asked for the same; what left before is what leaves now."""
    monkeypatch.setattr(os, "fsync", lambda _file: None)  # a kill loses nothing that was written, unlike a power cut
    writes = writes_of_a_round(tmp_path, monkeypatch)
    assert writes > 25  # keys, lists, agreements, halves and erasures of both
    for at in range(1, writes + 1):
        folder, left = tmp_path / str(at), {}
        with monkeypatch.context() as failing:
            Kills(failing, at, after)
            try:
                _round(folder, left)
                raise AssertionError(f"no kill at write {at}")
            except Killed:
                pass
        before = dict(left)
        _round(folder, left)
        assert {name: left[name] for name in before} == before
        total = combine(left["halves"], window=left["window"]).totals[0]
        assert total.tolist() == plain_sum(PLAIN, PLAIN.identities).tolist()
        for place in (0, 1):  # and the secrets of the round are gone
            assert not (folder / f"witness-{place}" / "keys" / "1.key").exists()
        shutil.rmtree(folder)


def _round(folder, left):
    """A round that notes every message when it leaves; nodes sent once and send the same bytes again."""
    pair = operators(PLAIN, folder)
    window = left.get("window") or window_of(PLAIN, pair)
    left["window"] = window
    sent = left.setdefault("sent", sent_in(PLAIN, window))
    boxes = inboxes(PLAIN, sent)
    lists = []
    for place in (0, 1):
        lists.append(pair[place].listing(window, boxes[place])[0])
        assert left.setdefault(("listing", place), lists[-1]) == lists[-1]
    agreements = []
    for place in (0, 1):
        agreements.append(pair[place].agreement(window, lists[1 - place]))
        assert left.setdefault(("agreement", place), agreements[-1]) == agreements[-1]
    halves = []
    for place in (0, 1):
        halves.append(pair[place].half(window, agreements[1 - place]))
        assert left.setdefault(("half", place), halves[-1]) == halves[-1]
    left["halves"] = tuple(halves)


def test_a_restarted_operator_signs_no_second_list_or_coin(tmp_path):
    """Asked after a restart with one client less, and with one more, it sends the list that it sent before."""
    pair, window, boxes = prepared(NOISY, tmp_path)
    first, _ = pair[0].listing(window, boxes[0])
    fewer = {client: part for client, part in boxes[0].items() if client != 10}
    restarted = operators(NOISY, tmp_path)[0]
    assert restarted.listing(window, fewer)[0] == first
    assert restarted.listing(window, {})[0] == first


def test_a_late_contribution_is_in_no_list(tmp_path):
    pair, window, boxes = prepared(NOISY, tmp_path)
    early = {client: part for client, part in boxes[1].items() if client != 10}
    first, _ = pair[1].listing(window, early)
    assert operators(NOISY, tmp_path)[1].listing(window, boxes[1])[0] == first


def test_the_first_list_of_the_other_operator_counts(tmp_path):
    """An operator that sends two lists gets one agreement, also across a restart in between."""
    pair, window, boxes = prepared(NOISY, tmp_path)
    honest, _ = pair[0].listing(window, boxes[0])
    liar = operators(NOISY, tmp_path / "liar")[1]
    shutil.copytree(tmp_path / "witness-1", tmp_path / "liar" / "witness-1")
    full, _ = pair[1].listing(window, boxes[1])
    short, _ = liar.listing(window, {client: part for client, part in boxes[1].items() if client != 10})
    assert honest
    assert short != full
    agreed = pair[0].agreement(window, full)
    assert operators(NOISY, tmp_path)[0].agreement(window, short) == agreed


def test_a_round_has_one_ranker_and_one_pair_of_keys(tmp_path):
    pair, window, boxes = prepared(NOISY, tmp_path)
    pair[0].listing(window, boxes[0])
    for other in (window._replace(ranker=bytes(32)), window._replace(keys=(window.keys[0], bytes([9]) * 32))):
        with pytest.raises(SecureAggregationError, match="another ranker or key"):
            pair[0].listing(other, boxes[0])
    with pytest.raises(SpecError, match="not the keys of aggregator 1"):
        pair[1].listing(window._replace(keys=window.keys[::-1]), boxes[1])
    elsewhere = federation(12, noise_multiplier=3.0)
    with pytest.raises(SecureAggregationError, match="another federation"):
        pair[0].listing(window._replace(setup=elsewhere.setup), boxes[0])


def test_the_difference_attack_gets_the_same_half_again(tmp_path):
    """Asked for a sum with one client less after the first, an operator has no other answer than the first."""
    pair, window, boxes = prepared(NOISY, tmp_path)
    lists, agreements, halves = exchange(pair, window, boxes)
    for _ in range(2):
        pair = operators(NOISY, tmp_path)
        assert pair[1].half(window, agreements[0]) == halves[1]  # no fresh noise
        assert pair[1].half(window._replace(ranker=bytes(32)), b"anything") == halves[1]
    assert pair[1].listing(window, {})[0] == lists[1]
    run(NOISY, pair, 2)
    for again in (lambda: pair[1].half(window, agreements[0]), lambda: pair[1].listing(window, boxes[1])):
        with pytest.raises(SecureAggregationError, match="half of round 2; a sum of round 1 is refused"):
            again()


def backup(folder, name):
    return shutil.copytree(folder / "operator-1", folder / name)


def restore(folder, name):
    shutil.rmtree(folder / "operator-1")
    shutil.copytree(folder / name, folder / "operator-1")


def test_a_folder_restored_from_a_backup_signs_and_opens_nothing_twice(tmp_path):
    pair, window, boxes = prepared(NOISY, tmp_path)
    backup(tmp_path, "empty")
    fewer = {client: part for client, part in boxes[1].items() if client != 10}
    lists = [pair[place].listing(window, boxes[place])[0] for place in (0, 1)]
    backup(tmp_path, "listed")
    restore(tmp_path, "empty")
    with pytest.raises(SecureAggregationError, match="round 1 is lost"):
        pair[1].listing(window, fewer)
    restore(tmp_path, "listed")
    agreements = [pair[place].agreement(window, lists[1 - place]) for place in (0, 1)]
    backup(tmp_path, "agreed")
    restore(tmp_path, "listed")
    with pytest.raises(SecureAggregationError, match="round 1 is lost"):
        pair[1].agreement(window, lists[0])
    restore(tmp_path, "agreed")
    pair[1].half(window, agreements[0])
    for name in ("empty", "listed", "agreed"):
        restore(tmp_path, name)
        with pytest.raises(StateError, match="an older one was restored"):
            operators(NOISY, tmp_path)[1].half(window, agreements[0])
        with pytest.raises(StateError, match="an older one was restored"):
            operators(NOISY, tmp_path)[1].listing(window, fewer)


def test_a_lost_witness_stops_everything(tmp_path):
    pair, *_ = prepared(NOISY, tmp_path)
    run(NOISY, pair, 1)
    (tmp_path / "witness-1" / "memory.json").unlink()
    with pytest.raises(StateError, match="has a witness, which is missing"):
        pair[1].statements(2)


def test_the_witness_is_in_no_backup_of_the_folder(tmp_path):
    pair = operators(NOISY, tmp_path)
    inside = pair[0].storage._replace(witness=pair[0].storage.folder / "deeper")
    with pytest.raises(SpecError, match="another folder"):
        pair[0]._replace(storage=inside).statements(1)
    run(NOISY, pair, 1)
    every = [path for place in (0, 1) for name in ("operator", "witness")
             for path in (tmp_path / f"{name}-{place}").rglob("*") if path.is_file()]  # fmt: skip
    assert {path.stat().st_mode & 0o777 for path in every} == {0o600}


def test_a_damaged_file_stops_the_operator(tmp_path):
    pair, window, boxes = prepared(NOISY, tmp_path)
    pair[0].listing(window, boxes[0])
    (tmp_path / "operator-0" / "rounds" / "1.json").write_bytes(b"\xff")
    with pytest.raises(SecureAggregationError, match="round 1 is lost"):
        pair[0].listing(window, boxes[0])


def test_halves_that_waited_come_in_the_order_of_rounds(tmp_path):
    """The second operator is away during two windows; both sums are there when it is back."""
    clock = Clock()
    pair = operators(PLAIN, tmp_path, clock)
    windows = [window_of(PLAIN, pair, round) for round in (1, 2)]
    sent = [sent_in(PLAIN, window) for window in windows]
    for window, messages in zip(windows, sent, strict=True):
        pair[0].listing(window, inboxes(PLAIN, messages)[0])
    clock.now += 3 * 86_400
    for window, messages in zip(windows, sent, strict=True):
        *_, halves = exchange(pair, window, inboxes(PLAIN, messages))
        assert combine(halves, window=window).totals[0].tolist() == plain_sum(PLAIN, PLAIN.identities).tolist()


def test_without_noise_a_ranker_has_one_sum(tmp_path):
    """The same ranker twice, a victim absent the second time: the difference of two sums would be its update."""
    fed = federation(7)
    pair = operators(fed, tmp_path)
    window = window_of(fed, pair, 1)
    exchange(pair, window, inboxes(fed, sent_in(fed, window)))
    again = window_of(fed, pair, 2, ranker=window.ranker)
    fewer = {client: message for client, message in sent_in(fed, again).items() if client != 10}
    for tried in (sent_in(fed, again), fewer):
        with pytest.raises(SecureAggregationError, match="has opened a sum for this ranker"):
            exchange(pair, again, inboxes(fed, tried))
    assert run(fed, pair, 3)  # another ranker


def test_with_noise_a_ranker_may_have_a_second_sum(tmp_path):
    """After a round that came to nothing the ranker is the same; each sum has noise of its own and is charged."""
    fed = federation(7, noise_multiplier=1.0)
    pair = operators(fed, tmp_path)
    for round in (1, 2):
        window = window_of(fed, pair, round, ranker=bytes(32))
        assert exchange(pair, window, inboxes(fed, sent_in(fed, window)))
