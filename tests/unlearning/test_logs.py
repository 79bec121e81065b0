"""What is recorded is what happened, and learning from it is PDGD on it, whoever is forgotten."""

import numpy as np
import pytest
from forgetting import collection, federation, interaction_of, learnt, learnt_slowly, recorded, small
from hypothesis import given
from hypothesis import strategies as st

from foltr._kernels.lists import weigh_list
from foltr._kernels.pdgd import pair_weights
from foltr._kernels.workspace import workspace_for
from foltr.clicks import Users
from foltr.errors import SpecError
from foltr.lab.simulation import compiled
from foltr.lab.simulation.click_logs import log_engine, log_of, recorder
from foltr.lab.simulation.rounds import run
from foltr.lab.simulation.task import Central, ClientPools, Federated, init_parameters
from foltr.learners import pdgd
from foltr.learners.foltr_es import FoltrEs
from foltr.rankers import Linear, Mlp
from foltr.rankers.plackett_luce import log_mass
from foltr.types import DRAWN
from foltr.unlearning.logs import Log, learn, only, size, without
from foltr.unlearning.replay import federate

# clients 0 and 1 hold the first four queries, 2 .. 4 the others; whoever searches with client 4 is drawn each time
SKEWED = ClientPools(np.arange(7), np.array([0, 0, 4, 4, 4]), np.array([4, 4, 7, 7, 7]), np.array([0, 1, 0, 1, DRAWN]))
TASKS = {
    "linear": small(),
    "patterned": small(Federated(5, (4, 2, 3), 6)),
    "cohort": small(Federated(20, 3, 8, cohort=4)),
    "all-shown": small(negatives="all-shown"),
    "long lists": small(users=[Users("navigational", k=12)]),
    "sigmoid": small(ranker=Mlp(4)),
    "skewed": small()._replace(pools=SKEWED),
}


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_recording_changes_nothing_of_the_training_but_last_digits(task):
    usual, recording = compiled.engine(task), recorder(task)
    for one, other in zip(run(task, usual), run(task, recording), strict=True):
        assert one.parameters == pytest.approx(other.parameters, abs=1e-11)
        assert np.array_equal(one.ndcg, other.ndcg)
        assert np.array_equal(one.max_rr, other.max_rr)


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_learning_from_the_whole_log_is_the_training_itself(task):
    parameters, log = recorded(task)
    assert np.array_equal(learnt(task, log), parameters)
    assert np.abs(learnt_slowly(task, log) - parameters).max() < 1e-9


def test_learning_repeats_a_long_training_to_the_bit():
    """Programs that differ in last digits end with other rankers after some thousand rounds; these do not differ."""
    task = small(Federated(3, 5, 4000))
    parameters, log = recorded(task)
    assert np.array_equal(learnt(task, log), parameters)


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_forgetting_is_training_from_scratch_on_the_others_logs(task):
    _, log = recorded(task)
    client = int(log.clients[0])
    forgotten = learnt(task, without(log, [client]))
    assert np.abs(forgotten - learnt_slowly(task, log, [client])).max() < 1e-9
    assert np.abs(forgotten - learnt(task, log)).max() > 1e-4  # the client had taught something


def test_whatever_the_forgotten_client_logged_is_gone_to_the_last_bit():
    task = TASKS["linear"]
    _, log = recorded(task)
    theirs = log.clients == 2
    lied = log._replace(clicks=np.where(theirs[:, None], ~log.clicks, log.clicks) & (log.rankings >= 0))
    assert np.array_equal(learnt(task, without(log, [2])), learnt(task, without(lied, [2])))
    assert not np.array_equal(learnt(task, log), learnt(task, lied))


def test_several_are_forgotten_as_one_after_the_other():
    _, log = recorded(TASKS["linear"])
    both, in_turn = without(log, [1, 3]), without(without(log, [3]), [1])
    rest = only(log, [0, 2, 4])
    for column in range(5):
        assert np.array_equal(both[column], in_turn[column])
        assert np.array_equal(both[column], rest[column])


def test_a_row_is_a_search():
    task = TASKS["patterned"]
    _, log = recorded(task)
    counts = np.diff(task.train.offsets)[log.queries]
    assert log.clients[:15].tolist() == [0] * 4 + [1] * 2 + [2] * 3 + [3] * 4 + [4] * 2
    assert log.rounds.tolist() == np.repeat(np.arange(1, 7), 15).tolist()
    assert ((log.rankings >= 0).sum(axis=1) == np.minimum(counts, 10)).all()
    assert (log.rankings.max(axis=1) < counts).all()
    assert all(len(set(ranking[ranking >= 0])) == (ranking >= 0).sum() for ranking in log.rankings)
    assert not log.clicks[log.rankings < 0].any()


def test_clients_log_only_queries_that_they_hold():
    _, log = recorded(TASKS["skewed"])
    assert set(only(log, [0, 1]).queries.tolist()) <= {0, 1, 2, 3}
    assert set(only(log, [2, 3, 4]).queries.tolist()) <= {4, 5, 6}


def test_a_search_with_ten_results_takes_42_bytes():
    _, log = recorded(TASKS["linear"])
    assert size(log) == 9 * 5 * 4 * (4 + 4 + 4 + 10 * 2 + 10)


def test_runs_recorded_one_after_the_other_are_sorted_by_round():
    task = small()
    engine = recorder(task)
    for absent in ([0, 1, 2], [3, 4]):
        list(federate(federation(task, engine), without=absent))
    _, log = recorded(task)
    mixed = log_of(engine)
    assert np.array_equal(mixed.rounds, log.rounds)
    assert np.array_equal(mixed.clients, log.clients)


def weighed(scores, ranking):
    workspace = workspace_for(len(scores), len(ranking), 0, 1)
    workspace.scores[:], workspace.ranking[:] = scores, ranking
    weigh_list(len(scores), len(ranking), workspace)
    assert not workspace.listed.any()
    return workspace


lists = st.integers(1, 12).flatmap(
    lambda count: st.tuples(
        st.lists(st.floats(-1, 1), min_size=count, max_size=count), st.permutations(range(count)), st.integers(1, count)
    )
)


@pytest.mark.parametrize("spread", [1.0, 30.0, 400.0, 1e4])
@given(drawn=lists)
def test_normalizers_of_a_given_list_are_right_whatever_the_scores(spread, drawn):
    scores, ranking = spread * np.array(drawn[0]), np.array(drawn[1][: drawn[2]])
    workspace = weighed(scores, ranking)
    for rank in range(len(ranking)):
        exact = log_mass(np.delete(scores, ranking[:rank]))
        assert np.log(workspace.normalizers[rank]) + workspace.shifts[rank] == pytest.approx(
            exact, abs=1e-9 * (1 + spread)
        )
        assert workspace.normalizers[rank] >= workspace.chosen[rank] > 0


@pytest.mark.parametrize("spread", [1.0, 30.0, 400.0, 1e4])
@given(drawn=lists, pattern=st.integers(0, 2**12 - 1))
def test_weights_of_a_given_list_are_those_of_pdgd(spread, drawn, pattern):
    scores, ranking = spread * np.array(drawn[0]), np.array(drawn[1][: drawn[2]])
    clicks = np.array([bool(pattern >> rank & 1) for rank in range(len(ranking))])
    workspace = weighed(scores, ranking)
    workspace.clicks[:] = clicks
    found = pair_weights(len(ranking), False, workspace)
    slow = pdgd.list_weights(pdgd.Interaction(np.empty((0, 0)), ranking, clicks, scores, 0))
    assert bool(found) == bool(pdgd.preferences(clicks))
    assert workspace.weights[: len(ranking)] == pytest.approx(slow, rel=1e-7, abs=1e-12)


def test_a_logged_list_is_one_that_the_model_of_then_could_show():
    """All parameters are zero in round one, so the first search of a client has a uniform list: rho = 1/2."""
    task = TASKS["linear"]
    _, log = recorded(task)
    interaction = interaction_of(task, log, 0, np.zeros(6))
    for one, other in pdgd.preferences(interaction.clicks):
        assert pdgd.swap_weight(interaction.scores, interaction.ranking, one, other) == pytest.approx(0.5)


def test_a_recorder_refuses_what_it_cannot_write_down():
    task = small()
    with pytest.raises(SpecError, match="train with the recorder first"):
        log_of(recorder(task))
    with pytest.raises(SpecError, match="pdgd"):
        recorder(task._replace(learner=FoltrEs()))
    with pytest.raises(SpecError, match="use prox_mu = 0"):
        recorder(task._replace(learner=pdgd.Pdgd(prox_mu=0.1)))
    batch = task._replace(federation=Central(8, 2))
    with pytest.raises(SpecError, match="needs clients"):
        list(run(batch, recorder(batch)))


def test_a_list_too_long_to_number_is_refused():
    task = small()._replace(train=collection([40_000], width=2), ranker=Linear())
    with pytest.raises(SpecError, match="at most 32767"):
        recorder(task)


def test_an_empty_log_teaches_nothing():
    task = small()
    empty = Log(*(column[:0] for column in recorded(task)[1]))
    assert list(learn(init_parameters(task), empty, log_engine(task, empty))) == []
