"""Rounds of small nodes with two operators: one is away, keys run out, a restart comes in between."""

import numpy as np
import pytest
from small_members import NODES, RATE, START, mean_of, rounds_of, small

from foltr.federation.journal import read_journal
from foltr.federation.round import RoundModel

pytestmark = pytest.mark.usefixtures("silent_operators")

DAY = 86_400


def test_while_the_second_operator_is_away_windows_go_on_and_their_sums_come_later(tmp_path):
    fed = small(tmp_path)
    operators = fed.operators()
    transport = fed.transport()
    rounds = rounds_of(fed.collector(transport, operators), 4)
    first = next(rounds)
    assert first.released
    operators[1].away = True
    waiting = next(rounds)
    assert not waiting.released
    assert all("waits for an operator" in reason for reason in waiting.collected.dropped.values())
    assert [one.round for one in read_journal(tmp_path / "coordinator" / "journal", fed.terms.federation).waiting] == [
        2
    ]
    operators[1].away = False
    both = next(rounds)
    assert both.released
    expected = START.parameters + 3 * RATE * mean_of(range(NODES))
    np.testing.assert_array_equal(both.parameters, expected)  # of rounds 2 and 3
    assert both.collected.included.tolist() == list(range(NODES))
    assert [fed.charged(client) for client in range(NODES)] == [3] * NODES


def test_a_coordinator_that_is_started_again_finds_the_rounds_that_wait(tmp_path):
    fed = small(tmp_path)
    operators = fed.operators()
    rounds = rounds_of(fed.collector(fed.transport(), operators), 2)
    operators[0].statements(1)
    operators[1].statements(1)
    next(rounds)
    operators[1].away = True
    next(rounds)
    collector = fed.collector(fed.transport())  # everything anew, from the disk
    journal = read_journal(tmp_path / "coordinator" / "journal", fed.terms.federation)
    collected = collector._sum_of_waiting(
        journal, RoundModel(2, START.parameters, START.parameters), list(range(NODES)), {}
    )
    np.testing.assert_array_equal(collected.delta, mean_of(range(NODES)))
    assert not read_journal(tmp_path / "coordinator" / "journal", fed.terms.federation).waiting


def test_without_keys_of_both_operators_no_round_is_announced_and_nobody_is_charged(tmp_path):
    """Seven statements last for seven rounds; the eighth is not announced until the operator is back."""
    fed = small(tmp_path)
    operators, transport = fed.operators(), fed.transport()
    rounds = rounds_of(fed.collector(transport, operators), 10)
    next(rounds)
    operators[1].away = True
    for _ in range(2, 8):
        next(rounds)
    heard = dict(transport.down)
    silent = next(rounds)
    assert transport.down == heard
    assert all("not announced" in reason for reason in silent.collected.dropped.values())
    operators[1].away = False
    assert next(rounds).released  # the rounds that waited, and this one


def test_keys_whose_last_day_is_over_are_not_announced(tmp_path):
    fed = small(tmp_path)
    operators, transport = fed.operators(), fed.transport()
    rounds = rounds_of(fed.collector(transport, operators), 20)
    next(rounds)
    fed.clock.now += 5 * DAY
    heard = dict(transport.down)
    expired = next(rounds)
    assert "last day is over" in expired.collected.dropped[0]
    assert transport.down == heard
    released = [result.released for result in rounds]
    assert any(released)  # numbers go on until a key of a later day is reached


def test_a_round_that_fails_uses_its_number_and_its_keys(tmp_path):
    fed = small(tmp_path)
    operators, transport = fed.operators(), fed.transport()
    everybody = dict(transport.nodes)
    rounds = rounds_of(fed.collector(transport, operators), 2)
    del transport.nodes[3], transport.nodes[4]
    assert not next(rounds).released
    transport.nodes.update(everybody)
    assert next(rounds).released
    assert not [path for place in (0, 1) for path in (tmp_path / f"witness-{place}" / "keys").glob("[12].key")]
