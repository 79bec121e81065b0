"""Keys of single rounds: what was recorded opens no more, and a node seals for no key but those of its round."""

import msgspec
import pytest
from small_operators import DAY, NOW, Clock, opened_by, operators, run, secrets_of, sent_in, statements, window_of
from small_two_servers import federation, inboxes, plain_sum

from foltr.errors import SecureAggregationError
from foltr.federation import key_files
from foltr.secagg import crypto
from foltr.secagg.round_keys import AHEAD, RoundKey, Statement, checked_keys, round_of, sign_key

SEVEN = federation(7, noise_multiplier=3.0)


def keys_on_disk(operator):
    return sorted(int(path.stem) for path in (operator.storage.witness / "keys").glob("*.key"))


def test_who_recorded_twenty_rounds_and_then_steals_the_other_operator_reads_none_of_140_updates(tmp_path):
    """An operator has its own shares in the clear and recorded all sealed ones."""
    pair = operators(SEVEN, tmp_path)
    recorded = [run(SEVEN, pair, round)[:2] for round in range(1, 21)]
    assert sum(len(sent) for _, sent in recorded) == 140
    for place in (0, 1):
        stolen = secrets_of(pair[place])
        assert not any(opened_by(stolen, place, window, sent) for window, sent in recorded)


def test_a_thief_reads_the_open_round_and_no_more_than_seven_to_come(tmp_path):
    """What remains, and a control: the same search of the disk opens shares while their key exists."""
    pair = operators(SEVEN, tmp_path)
    run(SEVEN, pair, 1)
    window = window_of(SEVEN, pair, 2)
    sent = sent_in(SEVEN, window)
    assert opened_by(secrets_of(pair[1]), 1, window, sent) == set(SEVEN.identities)
    assert keys_on_disk(pair[1]) == list(range(2, 2 + AHEAD))


def test_the_folder_that_is_backed_up_opens_nothing_at_any_step(tmp_path):
    """Only sealed parts are stored, and secrets lie elsewhere."""
    pair = operators(SEVEN, tmp_path)
    window = window_of(SEVEN, pair)
    sent = sent_in(SEVEN, window)
    boxes = inboxes(SEVEN, sent)

    def readable(operator):
        backup = operator._replace(storage=operator.storage._replace(witness=tmp_path / "nowhere"))
        return opened_by(secrets_of(backup), operator.place, window, sent)

    lists = [operator.listing(window, box)[0] for operator, box in zip(pair, boxes, strict=True)]
    assert not any(map(readable, pair))
    agreements = [pair[place].agreement(window, lists[1 - place]) for place in (0, 1)]
    assert not any(map(readable, pair))
    for place in (0, 1):
        pair[place].half(window, agreements[1 - place])
    assert not any(map(readable, pair))


def test_secrets_are_private_files_and_erased_when_the_half_is_stored(tmp_path, monkeypatch):
    pair = operators(SEVEN, tmp_path)
    window = window_of(SEVEN, pair)
    keys = pair[0].storage.witness / "keys"
    assert {path.stat().st_mode & 0o777 for path in keys.iterdir()} == {0o600}
    assert keys.stat().st_mode & 0o777 == 0o700
    before, overwritten = (keys / "1.key").read_bytes(), []
    erase = key_files.erase_file

    def watched(path):
        with path.open("rb") as file:  # the inode, to be read after its name is gone
            erase(path)
            overwritten.append((path.name, file.read()))

    monkeypatch.setattr(key_files, "erase_file", watched)
    run(SEVEN, pair, 1)
    assert ("1.key", bytes(len(before))) in overwritten
    assert keys_on_disk(pair[0]) == list(range(2, AHEAD + 1))
    assert window.keys[0] not in [path.read_bytes() for path in keys.iterdir()]


def test_the_secret_of_a_round_without_a_sum_is_erased_seven_days_after_its_window(tmp_path):
    clock = Clock()
    pair = operators(SEVEN, tmp_path, clock)
    window = window_of(SEVEN, pair)
    pair[0].listing(window, inboxes(SEVEN, sent_in(SEVEN, window))[0])
    clock.now = NOW + 7 * DAY - 1
    pair[0].statements(2)
    assert 1 in keys_on_disk(pair[0])
    clock.now = NOW + 7 * DAY + 1
    pair[0].statements(2)
    assert 1 not in keys_on_disk(pair[0])
    assert not list(pair[0].storage.folder.glob("rounds/*.json"))  # what nobody can open is not kept either
    with pytest.raises(SecureAggregationError, match="key of round 1 is erased"):
        pair[0].listing(window, {})


def test_a_secret_that_nobody_asked_for_is_erased_seven_days_after_the_last_day_of_its_statement(tmp_path):
    clock = Clock()
    (operator, _) = operators(SEVEN, tmp_path, clock)
    operator.statements(1)
    last = msgspec.msgpack.decode(
        msgspec.msgpack.decode(operator.statements(1)[0], type=Statement).content, type=RoundKey
    ).last_day
    assert last * DAY - NOW < 3 * DAY
    clock.now = (last + 1 + 7) * DAY
    operator.erase_late()
    assert 1 in keys_on_disk(operator)
    clock.now += 1
    operators(SEVEN, tmp_path, clock)[0].erase_late()  # as after a restart
    assert 1 not in keys_on_disk(operator)


# what an operator signs


def test_an_operator_signs_seven_rounds_ahead_and_each_of_them_once(tmp_path):
    pair = operators(SEVEN, tmp_path)
    first = pair[0].statements(1)
    assert [round_of(one) for one in first] == list(range(1, AHEAD + 1))
    assert pair[0].statements(1) == first
    restarted = operators(SEVEN, tmp_path)[0]
    assert restarted.statements(1) == first
    later = restarted.statements(3)
    assert later[: AHEAD - 2] == first[2:]
    assert [round_of(one) for one in later[AHEAD - 2 :]] == [8, 9]


def test_a_round_never_gets_a_second_key(tmp_path):
    """Neither after its half, nor where the key was erased without a sum."""
    clock = Clock()
    pair = operators(SEVEN, tmp_path, clock)
    run(SEVEN, pair, 1)
    assert round_of(pair[0].statements(1)[0]) == 2
    clock.now += 60 * DAY
    assert pair[0].statements(2) == pair[0].statements(9)[:0]  # all seven are erased, and none is made anew
    assert [round_of(one) for one in pair[0].statements(9)] == list(range(9, 16))


def test_a_coordinator_that_skips_rounds_collects_no_pile_of_keys(tmp_path):
    operator = operators(SEVEN, tmp_path)[0]
    for first in (1, 8, 15, 22, 300):
        operator.statements(first)
        assert len(keys_on_disk(operator)) <= 2 * AHEAD
    for wrong in (2**62, 306 + key_files.MOST_AHEAD + 1):
        with pytest.raises(SecureAggregationError, match="rounds are consecutive"):
            operator.statements(wrong)


def test_a_key_file_that_a_crash_left_is_not_used(tmp_path, monkeypatch):
    operator = operators(SEVEN, tmp_path)[0]
    with monkeypatch.context() as failing:
        failing.setattr(key_files, "write_durably", lambda *_: (_ for _ in ()).throw(OSError("power")))
        with pytest.raises(OSError, match="power"):
            operator.statements(1)
    leftover = (operator.storage.witness / "keys" / "1.key").read_bytes()
    (operator.storage.witness / "keys" / "1.key").write_bytes(leftover[:20])  # or torn
    statement = operator.statements(1)[0]
    assert round_of(statement) == 1
    assert statement not in leftover


# what a node checks


def refused(changed, round=1, now=NOW, fed=SEVEN):
    with pytest.raises(SecureAggregationError) as problem:
        checked_keys(changed, setup=fed.setup, round=round, now=now)
    return str(problem.value)


def test_a_node_takes_no_key_that_its_operators_did_not_sign_for_this_round(tmp_path):
    pair = operators(SEVEN, tmp_path)
    first, second = statements(pair, 1)
    assert checked_keys((first, second), setup=SEVEN.setup, round=1, now=NOW)
    assert "another federation, round or aggregator" in refused(statements(pair, 2))
    assert "not that of the operator" in refused((second, first))
    other = federation(7)
    assert "not that of the operator" in refused(statements(operators(other, tmp_path / "other"), 1))
    key = crypto.public_of(crypto.agreement_key(crypto.new_secret()))
    by_the_coordinator = sign_key(crypto.new_identity(), RoundKey(SEVEN.setup.terms.federation, 1, 1, key, 10**6))
    assert "not that of the operator" in refused((first, by_the_coordinator))
    elsewhere = sign_key(SEVEN.operators[1], RoundKey("0" * 32, 1, 1, key, 10**6))
    assert "another federation" in refused((first, elsewhere))
    in_the_first_place = sign_key(SEVEN.operators[0], RoundKey(SEVEN.setup.terms.federation, 1, 1, key, 10**6))
    assert "round or aggregator" in refused((in_the_first_place, second))
    for short in ((), (first,), (first, second, second)):
        assert "both operators have to sign" in refused(short)
    for garbage in (b"", b"\xc1", first[:-1], first + bytes(1000)):
        assert "key of aggregator 0" in refused((garbage, second))


def test_a_node_takes_no_key_after_its_last_day(tmp_path):
    both = statements(operators(SEVEN, tmp_path), 1)
    assert checked_keys(both, setup=SEVEN.setup, round=1, now=NOW + DAY)
    assert "last day is over" in refused(both, now=NOW + 4 * DAY)


def test_both_keys_are_in_the_context_of_every_signature(tmp_path):
    """A coordinator that shows nodes different keys cannot have them summed."""
    pair = operators(SEVEN, tmp_path)
    window = window_of(SEVEN, pair)
    sent = sent_in(SEVEN, window)
    key = crypto.public_of(crypto.agreement_key(crypto.new_secret()))
    for place in (0, 1):
        keys = tuple(key if place == other else window.keys[other] for other in (0, 1))
        misled = sent_in(SEVEN, window._replace(keys=keys))
        boxes = inboxes(SEVEN, {**sent, 10: misled[10]})
        _, dropped = pair[1 - place].listing(window, boxes[1 - place])
        assert "signature" in dropped[10]


def test_the_sum_is_right_over_rounds_with_keys_of_their_own(tmp_path):
    fed = federation(7)
    pair = operators(fed, tmp_path)
    seen = set()
    for round in (1, 2, 3):
        window, _, sums = run(fed, pair, round)
        assert sums.totals[0].tolist() == plain_sum(fed, fed.identities).tolist()
        seen |= {*window.keys}
    assert len(seen) == 6
