"""Each party is stopped before and after every durable write and every send: nothing is applied twice, nothing is lost.

A round of four nodes and its successor, in memory, with operators whose noise is zero so that sums can be compared.
The points are enumerated by a run without a fault; each of them is then a run of its own.
"""

import msgspec
import numpy as np
import pytest
from faults import FaultyMachines, Injector

from foltr.errors import FoltrError
from foltr.federation.network import rounds
from foltr.federation.network.charter import Settings
from foltr.federation.steps import Step
from foltr.privacy.ledger_file import open_ledger
from foltr.rng import stream

NODES = 4
TERMS = {"noise_multiplier": 1.0, "quorum": 0.7}
ROUNDS = 2
SETTINGS = Settings("test", "https://127.0.0.1:1", first_members=NODES)


def run(folder, faults, monkeypatch):
    """Rounds with one fault each at most; parties come again until the window ends, as laptops do. `faults`: of each
    round, the point at which a party dies, counted from the round's beginning; None: nobody dies."""
    injector = Injector()
    machines = FaultyMachines(folder, injector, monkeypatch, nodes=NODES, settings=SETTINGS, **TERMS)
    machines.begin()
    for at in faults:
        injector.points.clear()
        injector.at = at
        for _ in range(2):
            for k in range(NODES):
                try_visit(machines, k)
        machines.clock.now += machines.charter.terms.stage_seconds + rounds.GRACE
        for _ in range(4):
            machines.tick()
            machines.try_second()
    injector.at, injector.ended = None, len(injector.points)
    machines.tick()
    for k in range(NODES):
        machines.sync(k, "version")
    return machines, injector


def try_visit(machines, k):
    try:
        machines.try_node(k)
    except FoltrError as problem:  # a node that died after its charge refuses the round; nothing else does
        machines.injector.refusals = [*getattr(machines.injector, "refusals", []), (k, str(problem))]


def check(machines, injector, rounds_run=ROUNDS):
    """Ledgers, versions, receipts and parameters agree."""
    store, start = machines.desk.store, np.array([1.0, 0.5, 0.25])
    numbers = {client: k for k, client in machines.clients.items()}
    published = store.rows("SELECT round, included FROM rounds WHERE state = 'published' ORDER BY round")
    included = {round: msgspec.msgpack.decode(members, type=list[int]) for round, members in published}
    expected = start.copy()
    for members in included.values():
        expected += np.mean([machines.updates[numbers[client]] for client in members], axis=0)
    np.testing.assert_allclose(machines.parameters(), expected, atol=1e-8)
    steps = [msgspec.msgpack.decode(step, type=Step) for (step,) in store.rows("SELECT step FROM steps")]
    summed = [total.round for step in steps for total in step.sums]
    assert sorted(summed) == sorted(included)  # each published sum is in exactly one step
    assert len(included) == rounds_run  # one fault costs no round
    for k in range(NODES):
        ledger = open_ledger(machines.home(k) / "data" / "ledger", delta=1e-5, budget=1e6,
                             witness=machines.home(k) / "config" / "ledger")  # fmt: skip
        charged = ledger.charges_after(machines.charter.terms.federation, 0)
        counted = sum(machines.clients[k] in members for members in included.values())
        died = injector.victims.count(f"node {k}")
        assert counted <= charged <= counted + died, (k, charged, counted, injector.victims)
        np.testing.assert_allclose(np.frombuffer(machines.adopted[k].values), expected, atol=1e-8)
        receipts = store.value("SELECT COUNT(*) FROM receipts WHERE client = ?", machines.clients[k])
        assert receipts == counted


def points_of(folder, monkeypatch):
    """All points of one round and its sum."""
    machines, injector = run(folder, [None], monkeypatch)
    check(machines, injector, 1)
    machines.desk.store.close()
    # of four nodes, which run the same code, one is killed at each point
    points = enumerate(injector.points[: injector.ended])
    return [k for k, (party, _) in points if party in ("coordinator", "second operator", "node 0")]


@pytest.fixture
def quick(silent_operators, tmp_path):
    """Operators without noise."""
    return tmp_path


def test_a_run_without_a_fault_passes_every_kind_of_point(quick, monkeypatch):
    machines, injector = run(quick, [None] * ROUNDS, monkeypatch)
    check(machines, injector)
    parties = {party for party, _ in injector.points}
    assert parties - {"nobody"} == {"coordinator", "second operator", *(f"node {k}" for k in range(NODES))}
    assert {what for _, what in injector.points} >= {"before a commit", "after a request to contribute"}


def _enumerate(quick, monkeypatch, stride):
    for at in points_of(quick / "counted", monkeypatch)[::stride]:
        with monkeypatch.context() as patch:
            machines, injector = run(quick / str(at), [at, *[None] * (ROUNDS - 1)], patch)
            try:
                assert injector.victims, at
                check(machines, injector)
            except AssertionError as problem:
                raise AssertionError(f"point {at}, of {injector.victims}: {problem}") from problem
            finally:
                machines.desk.store.close()


def test_a_sample_of_all_points_of_failure_loses_and_doubles_nothing(quick, monkeypatch):
    _enumerate(quick, monkeypatch, stride=23)


@pytest.mark.slow
def test_no_point_of_failure_loses_or_doubles_anything(quick, monkeypatch):
    _enumerate(quick, monkeypatch, stride=1)


@pytest.mark.slow
def test_two_hundred_rounds_with_random_kills_end_like_an_uninterrupted_run(quick, monkeypatch):
    points = points_of(quick / "counted", monkeypatch)
    draws = stream(27, purpose="attack").uniform(200).tolist()
    faults = [points[int(draw * len(points))] for draw in draws]
    machines, injector = run(quick / "killed", faults, monkeypatch)
    assert len(injector.victims) > 190
    check(machines, injector, len(faults))
    machines.desk.store.close()
