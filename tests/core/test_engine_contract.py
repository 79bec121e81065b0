"""The contract of an engine: its batch is the map of `client.local_update`, for every learner, ranker and mechanism."""

import itertools

import msgspec
import numpy as np
import pytest
from by_hand import ragged, updates_of

from foltr.clicks import Users, click_model
from foltr.federation.round import Release
from foltr.lab.simulation import compiled, plain
from foltr.lab.simulation.engines import engine_for
from foltr.lab.simulation.rounds import run
from foltr.lab.simulation.task import Federated, Task, protection_in
from foltr.learners.foltr_es import FoltrEs
from foltr.learners.pdgd import Pdgd
from foltr.privacy.mechanisms import Fpdgd, Gaussian, Laplace, NoPrivacy, RandomizedResponse
from foltr.rankers import Linear, Mlp
from foltr.rng import stream

DATA = ragged([3, 12, 25, 9, 41, 1, 17], width=7, grades=3)
USERS = (Users("informational"), Users("navigational", model="position", eta=0.5))
RANKERS = {"linear": Linear(), "sigmoid": Mlp(5), "relu": Mlp(4, "relu")}
DELTAS = {
    "none": NoPrivacy(),
    "fpdgd": Fpdgd(1.2, 2.0),
    "gaussian": Gaussian(clip=0.1),
    "gaussian-local": Gaussian(clip=0.1, trust="local"),
    "gaussian-adaptive": Gaussian(clip=0.1, adaptive=0.5),
    "laplace": Laplace(clip=0.1),
}
OUTCOMES = {"none": NoPrivacy(), "randomized-response": RandomizedResponse(0.4)}
LEARNERS = {
    "pdgd": (Pdgd(), DELTAS),
    "fedprox": (Pdgd(prox_mu=0.5, negatives="all-shown"), DELTAS),
    "foltr-es": (FoltrEs(sigma=0.3), OUTCOMES),
    "foltr-es-dcg": (FoltrEs(sigma=0.3, antithetic=False, objective="dcg"), OUTCOMES),
}


def cases():
    found = []
    for (what, (learner, mechanisms)), (by, ranker) in itertools.product(LEARNERS.items(), RANKERS.items()):
        for how, mechanism in mechanisms.items():
            models = tuple(click_model(each, grades=3) for each in USERS)
            task = Task(DATA, 3, models, ranker, learner, Federated(6, 4, 3), mechanism, seed=3)
            found.append(pytest.param(task, id=f"{what}-{by}-{how}"))
    return found


def start_of(task, rows=None):
    """Some parameters [P], or [rows, P]; far from zero, where ReLU units would have no slope."""
    size = task.ranker.size(7)
    normal = stream(9, purpose="start").normal(size * (rows or 1))
    return normal if rows is None else normal.reshape(rows, size)


def release_of(task):
    return Release(task.privacy.init_state(), protection_in(task).event)


CLIENTS, INTERACTIONS = np.array([0, 2, 3, 5]), np.array([4, 2, 3, 5])


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("task", cases())
def test_a_compiled_batch_is_the_map_of_the_client(task, threads):
    start, release = start_of(task), release_of(task)
    (one, seen), (batch, batch_seen) = (
        updates_of(engine, start, CLIENTS, INTERACTIONS, round=2, release=release)
        for engine in (plain.engine(task), compiled.engine(task, threads))
    )
    assert batch.values == pytest.approx(one.values, abs=1e-9, rel=0)
    for column, batch_column in zip(one[1:], batch[1:], strict=True):
        assert np.array_equal(column, batch_column)
    assert np.array(batch_seen) == pytest.approx(np.array(seen), abs=1e-12)
    assert len(np.unique(one.values, axis=0)) > 1  # clients do not all send the same


@pytest.mark.parametrize("task", [case for case in cases() if case.values[0].learner.message == "delta"])
def test_a_compiled_batch_is_the_map_where_every_client_has_a_model_of_its_own(task):
    starts, release = start_of(task, rows=4), release_of(task)
    one, batch = (
        updates_of(engine, starts, CLIENTS, INTERACTIONS, round=2, release=release)[0].values
        for engine in (plain.engine(task), compiled.engine(task))
    )
    assert batch == pytest.approx(one, abs=1e-9, rel=0)
    for start, client, interactions, row in zip(starts, CLIENTS, INTERACTIONS, batch, strict=True):
        alone, _ = updates_of(compiled.engine(task), start, [client], [interactions], round=2, release=release)
        assert np.array_equal(alone.values[0], row)


@pytest.mark.parametrize("task", cases())
def test_three_rounds_end_with_the_same_parameters(task):
    one, other = ([step.parameters for step in run(task, make(task))] for make in (plain.engine, compiled.engine))
    assert np.array(other) == pytest.approx(np.array(one), abs=1e-9, rel=0)
    assert not np.array_equal(one[-1], one[0]) or isinstance(task.privacy, NoPrivacy)


@pytest.mark.parametrize("kind", ["gaussian", "gaussian-adaptive", "laplace"])
@pytest.mark.parametrize("make_engine", [plain.engine, compiled.engine], ids=["plain", "compiled"])
def test_without_a_release_nothing_is_protected(make_engine, kind):
    """People go on searching after the ledger has refused a round; what they learn stays with them, without noise."""
    task = Task(DATA, 3, (click_model(USERS[0], grades=3),), Linear(), Pdgd(), Federated(6, 4, 3), DELTAS[kind], seed=3)
    held, _ = updates_of(make_engine(task), start_of(task), CLIENTS, INTERACTIONS, round=2)
    free, _ = updates_of(
        make_engine(task._replace(privacy=NoPrivacy())), start_of(task), CLIENTS, INTERACTIONS, round=2
    )
    assert np.array_equal(held.values, free.values)


class Doubled(msgspec.Struct, frozen=True, tag_field="kind", tag="doubled"):
    """A mechanism from outside the package: every step ends in a box, and every message is doubled."""

    acts_on = "delta"

    def init_state(self):
        return None

    def project(self, parameters):
        return np.clip(parameters, -0.01, 0.01)

    def event(self, context):
        return None

    def protect(self, values, state, event, draws):
        return 2 * values

    def next_state(self, state, extra, context):
        return state


def test_a_mechanism_from_outside_runs_as_it_is_written():
    """Kernels know nothing of its projection, so it runs on the plain engine."""
    task = Task(DATA, 3, (click_model(USERS[0], grades=3),), Linear(), Pdgd(), Federated(6, 4, 1), Doubled(), seed=3)
    engine = engine_for(task)
    assert isinstance(engine, plain.Plain)
    updates, _ = updates_of(engine, np.zeros(7), np.arange(6), np.full(6, 4), release=Release(None, None))
    assert np.abs(updates.values).max() == pytest.approx(0.02)


@pytest.mark.parametrize("task", cases())
def test_foltrs_own_kinds_run_compiled(task):
    assert isinstance(engine_for(task), compiled.Compiled)
