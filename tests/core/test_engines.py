"""One contract for all engines: the plain and the compiled one go through the same rounds."""

import itertools
import math

import numpy as np
import pytest
from by_hand import ragged, updates_of
from scipy.stats import binomtest

from foltr import registry
from foltr.clicks import ClickTable, Users, click_model
from foltr.federation.personalization import Clusters, FedPer, LocalOnly, Offset, clusters
from foltr.lab.data import catalog
from foltr.lab.simulation import compiled, plain
from foltr.lab.simulation.rounds import SUM_BLOCK, run
from foltr.lab.simulation.task import Central, ClientPools, Federated, Task
from foltr.learners.foltr_es import FoltrEs
from foltr.learners.pdgd import Pdgd
from foltr.privacy.mechanisms import Fpdgd, NoPrivacy, RandomizedResponse
from foltr.rankers import Linear, Mlp
from foltr.rng import stream
from foltr.types import DRAWN, Dataset

AGGREGATORS = registry.names("aggregator")

SKEWED = ClientPools(  # four clients and the server; the second and third share a pool
    np.array([0, 1, 2, 4, 6, 3]), np.array([0, 2, 2, 4, 5]), np.array([2, 4, 4, 5, 6]), np.array([0, 2, DRAWN, 1, 0])
)
DATA = ragged([3, 12, 25, 9, 41, 1, 17], width=7, grades=3)
MIXED = (Users("informational"), Users("perfect"), Users("navigational", model="position", eta=0.5))

RANKERS = [Linear(), Mlp(5), Mlp(4, "relu")]
NEGATIVES = ["one-below-last-click", "all-shown"]
FEDERATIONS = {
    "equal": Federated(7, 2, 3),
    "patterned": Federated(7, (4, 2, 3), 3),
    "cohort": Federated(70, (4, 2, 3), 3, cohort=9),
}
DELTA_PRIVACY = {"open": NoPrivacy(), "delta": Fpdgd(1.2, 0.05), "half-delta": Fpdgd(2.0, 0.5, "half-delta")}
OUTCOME_PRIVACY = {"open": NoPrivacy(), "randomised": RandomizedResponse(0.5)}


def make_task(ranker, learner, federation, privacy=None, *, users=MIXED, data=DATA, seed=3):
    models = tuple(click_model(each, grades=3) for each in users)
    return Task(data, 3, models, ranker, learner, federation, privacy or NoPrivacy(), seed)


def all_tasks():
    """Every learner, ranker, privacy and federation that go together."""
    for ranker, negatives in itertools.product(RANKERS, NEGATIVES):
        for (where, federation), (how, privacy) in itertools.product(FEDERATIONS.items(), DELTA_PRIVACY.items()):
            yield pytest.param(make_task(ranker, Pdgd(negatives=negatives), federation, privacy),
                               id=f"{name(ranker)}-pdgd-{negatives}-{where}-{how}")  # fmt: skip
        for kind, federation in (("single", Central(1, 30)), ("batch", Central(SUM_BLOCK + 36, 3))):
            yield pytest.param(
                make_task(ranker, Pdgd(negatives=negatives), federation), id=f"{name(ranker)}-pdgd-{negatives}-{kind}"
            )
    for ranker, objective, streams, antithetic in itertools.product(
        RANKERS, ("max_rr", "dcg"), ("independent", "shared_rng"), (True, False)
    ):
        learner = FoltrEs(0.01, 0.001, antithetic, objective, streams)
        words = [name(ranker), "foltr-es", objective, streams, "antithetic" if antithetic else "one-sided"]
        for (where, federation), (how, privacy) in itertools.product(FEDERATIONS.items(), OUTCOME_PRIVACY.items()):
            if where == "patterned" or how == "open":
                yield pytest.param(make_task(ranker, learner, federation, privacy), id="-".join([*words, where, how]))


def skewed_tasks():
    """Every way to treat clients that are not alike, and every aggregator."""
    held = {"pools": SKEWED, "warm_up": 6}
    for ranker in (Linear(), Mlp(5)):
        skewed = make_task(ranker, Pdgd(prox_mu=0.5), Federated(4, (1, 3, 5, 7), 3))._replace(**held)
        yield pytest.param(skewed, id=f"{name(ranker)}-prox_mu")
        kinds = {"offset": Offset(0.3), "clusters": Clusters(2, 1), "local_only": LocalOnly()}
        for kind, personal in (kinds | ({"fedper": FedPer()} if isinstance(ranker, Mlp) else {})).items():
            task = make_task(ranker, Pdgd(), Federated(4, (1, 3, 5, 7), 3))
            yield pytest.param(task._replace(pools=SKEWED, personal=personal), id=f"{name(ranker)}-{kind}")
    yield pytest.param(
        make_task(Linear(), FoltrEs(), Federated(4, (2, 3, 5, 7), 3))._replace(pools=SKEWED), id="foltr-es-skewed"
    )
    for aggregator in AGGREGATORS:
        yield pytest.param(
            make_task(Linear(), Pdgd(), Federated(7, 3, 3, aggregator=aggregator, num_byzantine=1)), id=aggregator
        )
    yield pytest.param(
        make_task(Linear(), Pdgd(), Federated(7, 3, 3, aggregator="median", defend_on_detection=True)),
        id="defend_on_detection",
    )


def name(ranker):
    return "linear" if isinstance(ranker, Linear) else f"mlp-{ranker.activation}"


def trained(engine, start, clients, steps, **how):
    """Parameters after centralised steps, and the online metrics."""
    return engine.train(start, clients, steps, **how)


def without_slope(task):
    """ReLU units that are all zero have no gradient: only perturbations or noise can move them."""
    relu = isinstance(task.ranker, Mlp) and task.ranker.activation == "relu"
    return relu and isinstance(task.learner, Pdgd) and isinstance(task.privacy, NoPrivacy)


def history(task, engine):
    """Parameters after every round, and the online metrics of every round."""
    steps = list(run(task, engine))
    parameters = np.array([step.parameters if step.personal is None else step.personal.ravel() for step in steps])
    online = [np.concatenate([getattr(step, metric) for step in steps]) for metric in ("ndcg", "max_rr")]
    return parameters, np.array(online)


@pytest.mark.parametrize("task", [*all_tasks(), *skewed_tasks()])
def test_engines_agree_and_threads_change_no_bit(task):
    parameters, online = history(task, plain.engine(task))
    fast_parameters, fast_online = history(task, compiled.engine(task))
    assert np.abs(parameters - fast_parameters).max() < 1e-8
    assert np.abs(online - fast_online).max() < 1e-12
    if not without_slope(task):
        start = task.ranker.init(7, task.seed)
        assert np.ptp(parameters[-1].reshape(-1, len(start)) - start) > 0  # something was learnt
    for threads in (2, 3):
        again, again_online = history(task, compiled.engine(task, threads))
        assert np.array_equal(again, fast_parameters)
        assert np.array_equal(again_online, fast_online)


@pytest.mark.parametrize("ranker", RANKERS, ids=name)
@pytest.mark.parametrize("negatives", NEGATIVES)
@pytest.mark.parametrize(
    ("summed", "privacy"), [(False, NoPrivacy()), (True, NoPrivacy()), (False, Fpdgd(1.2, 3.0))],
    ids=["stepwise", "summed", "clipped"],
)  # fmt: skip
def test_engines_agree_from_any_start(ranker, negatives, summed, privacy):
    task = make_task(ranker, Pdgd(negatives=negatives), Federated(), privacy)
    start = 4 * stream(9, purpose="start").uniform(ranker.size(7)) - 2
    given = (start, np.array([5, 0, 12]), np.array([4, 1, 7]))
    slow, slow_online = trained(plain.engine(task), *given, round=2, first_step=3, summed=summed)
    fast, fast_online = trained(compiled.engine(task, 2), *given, round=2, first_step=3, summed=summed)
    assert np.abs(slow - fast).max() < 1e-8
    assert np.abs(np.array(slow_online) - np.array(fast_online)).max() < 1e-12
    assert (np.ptp(slow - start, axis=1) > 0).all()


@pytest.mark.parametrize("learner", [Pdgd(), FoltrEs(objective="max_rr"), FoltrEs(objective="dcg")], ids=str)
@pytest.mark.parametrize("k", [2, 5, 12])
def test_engines_agree_on_lists_that_are_not_of_ten(learner, k):
    task = make_task(Linear(), learner, FEDERATIONS["patterned"], users=[Users("informational", k=k)])
    (slow, slow_online), (fast, fast_online) = (
        history(task, engine(task)) for engine in (plain.engine, compiled.engine)
    )
    assert np.abs(slow - fast).max() < 1e-8
    assert np.abs(slow_online - fast_online).max() < 1e-12


@pytest.mark.parametrize("make_engine", [plain.engine, compiled.engine], ids=["plain", "compiled"])
def test_online_quality_is_that_of_the_shown_list_against_all_documents(make_engine):
    # no feature tells documents apart, so they are shown in their order: grades 0 1 2, and 2 1 are not shown
    data = Dataset(np.zeros((5, 2), np.float32), np.array([0, 1, 2, 2, 1], np.int8), np.array([0, 5]), np.arange(1))
    task = make_task(Linear(), FoltrEs(), Federated(2, 2, 1), users=[Users("perfect", k=3)], data=data)
    _, online = history(task, make_engine(task))
    shown = 1 / math.log2(3) + 3 / math.log2(4)
    best = 3 / math.log2(2) + 3 / math.log2(3) + 1 / math.log2(4) + 1 / math.log2(5)
    assert online[0] == pytest.approx([shown / best])


@pytest.mark.parametrize("make_engine", [plain.engine, compiled.engine], ids=["plain", "compiled"])
def test_a_query_without_a_relevant_document_counts_zero_online(make_engine):
    data = ragged([5, 9], width=3, grades=1)
    task = make_task(Linear(), Pdgd(), Federated(4, 3, 2), users=[Users("informational")], data=data)
    _, online = history(task, make_engine(task))
    assert online[0].tolist() == [0, 0]
    assert (online[1] > 0).all()  # they click all the same


@pytest.mark.parametrize(
    "task",
    [
        make_task(Linear(), Pdgd(), FEDERATIONS["equal"]),
        make_task(Linear(), Pdgd(), FEDERATIONS["equal"], Fpdgd(1.2, 0.05)),
        make_task(Mlp(5), Pdgd(), Central(1, 20)),
        make_task(Linear(), Pdgd(), Central(8, 3)),
        make_task(Linear(), FoltrEs(), FEDERATIONS["equal"]),
        make_task(Mlp(4, "relu"), FoltrEs(streams="shared_rng"), FEDERATIONS["cohort"], RandomizedResponse(0.5)),
    ],
    ids=["pdgd", "noise", "single", "batch", "foltr-es", "shared_rng"],
)
def test_two_seeds_differ_and_one_seed_repeats(task):
    one, again = (history(task, compiled.engine(task)) for _ in range(2))
    other_task = task._replace(seed=4)
    other, _ = history(other_task, compiled.engine(other_task))
    assert np.array_equal(one[0], again[0])
    assert np.array_equal(one[1], again[1])
    assert not np.isclose(one[0][-1], other[-1]).all()


def test_more_threads_than_clients():
    task = make_task(Linear(), Pdgd(), Federated(2, 3, 2))
    one, many = (history(task, compiled.engine(task, threads)) for threads in (1, 5))
    assert np.array_equal(one[0], many[0])
    assert np.array_equal(one[1], many[1])


def test_clients_do_not_touch_each_other():
    task = make_task(Mlp(5), Pdgd(), Federated())
    engine, start = compiled.engine(task), task.ranker.init(7, 3)
    together, online = updates_of(engine, start, [3, 8, 11], [2, 4, 1], round=5)
    for row, client, steps in zip(together.values, (3, 8, 11), (2, 4, 1), strict=True):
        alone, _ = updates_of(engine, start, [client], [steps], round=5)
        assert np.array_equal(alone.values[0], row)
    assert len(online.ndcg) == 7
    assert np.array_equal(start, task.ranker.init(7, 3))  # and what they start from stays


@pytest.mark.parametrize("make_engine", [plain.engine, compiled.engine], ids=["plain", "compiled"])
@pytest.mark.parametrize("ranker", RANKERS, ids=name)
def test_where_a_chain_stops_does_not_change_it(make_engine, ranker):
    task = make_task(ranker, Pdgd(), Central(1, 25))
    straight = list(run(task, make_engine(task)))
    halting = list(run(task, make_engine(task), stops=[1, 2, 10, 24]))
    assert [step.round for step in straight] == [25]
    assert [step.round for step in halting] == [1, 2, 10, 24, 25]
    assert np.array_equal(straight[-1].parameters, halting[-1].parameters)
    for measure in ("ndcg", "max_rr"):
        pieces = np.concatenate([getattr(step, measure) for step in halting])
        assert np.array_equal(getattr(straight[0], measure), pieces)
    assert sum(step.interactions for step in halting) == straight[0].interactions == 25


def test_a_batch_is_the_sum_of_its_gradients():
    """One step from zero: a batch of B moves as far as B single people together, each alone from zero."""
    task = make_task(Linear(), Pdgd(), Central(SUM_BLOCK + 5, 1))
    (only,) = run(task, compiled.engine(task))
    engine = plain.engine(task)
    total = np.zeros(7)
    for block, people in enumerate((SUM_BLOCK, 5)):
        for person in range(people):
            moved, _ = trained(engine, np.zeros(7), np.array([block]), np.ones(1, int), round=1, first_step=person)
            total += moved[0]
    assert only.parameters == pytest.approx(total, abs=1e-10)


def test_a_round_averages_its_clients_by_their_interactions():
    task = make_task(Linear(), Pdgd(), Federated(3, (4, 2, 3), 1))
    (only,) = run(task, compiled.engine(task))
    engine = plain.engine(task)
    alone = [updates_of(engine, np.zeros(7), [client], [n])[0].values[0] for client, n in enumerate((4, 2, 3))]
    assert only.parameters == pytest.approx((4 * alone[0] + 2 * alone[1] + 3 * alone[2]) / 9)
    assert only.interactions == 9


def test_clients_take_turns_in_click_models():
    """Of two click models the second never clicks: clients 1, 3, 5 learn nothing."""
    never = click_model(Users("perfect"), grades=3)
    never = never._replace(click=np.zeros_like(never.click, dtype=float), stop=np.zeros(3))
    often = click_model(Users("informational"), grades=3)
    task = make_task(Linear(), Pdgd(), Federated())._replace(click_models=(often, never))
    updates, online = updates_of(compiled.engine(task), np.zeros(7), np.arange(6), np.full(6, 9))
    assert (np.abs(updates.values).max(axis=1) > 0).tolist() == [True, False] * 3
    assert (online.max_rr.reshape(6, 9).max(axis=1) > 0).tolist() == [True, False] * 3


@pytest.mark.data
@pytest.mark.usefixtures("real_data")
def test_engines_agree_on_mq2007(tmp_path, monkeypatch):
    monkeypatch.setenv("FOLTR_CACHE", str(tmp_path))
    fold = catalog.load("mq2007", fold=1)
    task = make_task(Linear(), Pdgd(), Federated(20, 4, 2), Fpdgd(1.2, 3.0), data=fold.train)
    (slow, slow_online), (fast, fast_online) = (
        history(task, engine(task)) for engine in (plain.engine, compiled.engine)
    )
    assert np.abs(slow - fast).max() < 1e-8
    assert np.abs(slow_online - fast_online).max() < 1e-12


def test_a_client_draws_only_from_its_pool_and_clicks_in_its_way():
    task = make_task(Linear(), Pdgd(), Federated(4, 5, 1))._replace(pools=SKEWED)
    relabelled = DATA._replace(labels=np.zeros_like(DATA.labels))  # nobody but the informational one clicks on these
    perfect = task._replace(train=relabelled, pools=SKEWED._replace(users=np.ones(5, np.int64)))
    start, clients, steps = np.zeros(7), np.arange(4), np.full(4, 200)
    still, _ = updates_of(compiled.engine(perfect), start, clients, steps)
    assert not still.values.any()
    rows = slice(DATA.offsets[6], DATA.offsets[7])  # the only query of the fourth client
    only_theirs = DATA.labels.copy()
    only_theirs[:] = 0
    only_theirs[rows.start] = 2
    engine = compiled.engine(perfect._replace(train=DATA._replace(labels=only_theirs)))
    moved, _ = updates_of(engine, start, clients, steps)
    assert moved.values.any(axis=1).tolist() == [False, False, False, True]


def test_a_drawn_user_is_any_of_them_equally_often():
    # false alarm 1 in 1,000: one of two users clicks on everything, the other on nothing
    users = [Users(ClickTable(click=(p, p, p), stop=(0, 0, 0))) for p in (0.0, 1.0)]
    task = make_task(Linear(), Pdgd(), Federated(1, 5, 1), users=users)
    task = task._replace(pools=ClientPools(np.arange(7), np.array([0]), np.array([7]), np.array([DRAWN])))
    _, online = updates_of(compiled.engine(task), np.zeros(7), [0], [4000])
    clicking = int((online.max_rr == 1).sum())
    assert binomtest(clicking, 4000, 0.5).pvalue > 1e-3


def test_prox_mu_takes_each_step_back_towards_the_start():
    """With learning_rate * prox_mu = 1 a step forgets the way so far: what is left is the last gradient."""
    free, held = (make_task(Linear(), Pdgd(learning_rate=0.5, prox_mu=mu), Federated(1, 1, 1)) for mu in (0.0, 2.0))
    start, one = np.full(7, 0.1), np.zeros(1, np.int64)
    halfway = trained(compiled.engine(held), start, one, np.array([4]), round=1)[0]
    last = trained(compiled.engine(free), halfway[0], one, np.array([1]), round=1, first_step=4)[0] - halfway
    assert updates_of(compiled.engine(held), start, one, [5])[0].values == pytest.approx(last, abs=1e-12)


def test_a_local_weight_of_0_is_fedavg_and_of_1_is_local_only_training():
    task = make_task(Linear(), Pdgd(), Federated(4, (1, 3, 5, 7), 4))._replace(pools=SKEWED)
    average, alone = (
        history(task, compiled.engine(task))[0],
        history(task._replace(personal=LocalOnly()), compiled.engine(task))[0],
    )
    for local_weight, expected in ((0.0, np.tile(average, 4)), (1.0, alone)):
        offset, _ = history(task._replace(personal=Offset(local_weight)), compiled.engine(task))
        assert offset == pytest.approx(expected, abs=1e-9)


def test_an_output_layer_stays_with_its_client():
    """The hidden layer is the same for all after a round, and no two output layers share memory."""
    task = make_task(Mlp(5), Pdgd(), Federated(4, 3, 2))._replace(pools=SKEWED, personal=FedPer())
    *_, last = run(task, compiled.engine(task))
    hidden, output = last.personal[:, :-5], last.personal[:, -5:]
    assert (hidden == hidden[0]).all()
    assert len({row.tobytes() for row in output}) == 4


def test_clients_that_learn_the_same_are_grouped_together():
    learnt = np.array([[1.0, 0.1], [0.0, 1.0], [2.0, 0.0], [0.1, 3.0], [5.0, 0.3]])
    groups = clusters(learnt, 2)
    assert groups[0] == groups[2] == groups[4] != groups[1] == groups[3]
