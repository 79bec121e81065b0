"""The contract of learners (see `client.local_update`), run on a class.

Made-up people search on the plain engine, which is the map of `client.local_update`, with a linear ranker and with a
small network. Some of their queries have fewer documents than are displayed.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from foltr.clicks import Users, click_model
from foltr.client import local_update
from foltr.federation.round import Release
from foltr.federation.schedule import Members
from foltr.lab.simulation import plain
from foltr.lab.simulation.task import Federated, Task
from foltr.privacy.mechanisms import NoPrivacy
from foltr.rankers import Linear, Mlp
from foltr.rng import stream
from foltr.testing.laws import array_of, attempt, copies, demand, demand_unchanged
from foltr.types import Array, Dataset, Interaction, Model, Updates

_GRADES, _WIDTH, _K, _SEED = 3, 5, 4, 7
_PEOPLE, _SEARCHES, _ROUND = 5, 6, 3
_MESSAGES, _OPTIMIZERS, _OBJECTIVES = ("delta", "objective"), ("add", "adam"), ("max_rr", "dcg")
_RADIUS, _PLAIN = 1e-4, NoPrivacy()


class Case(NamedTuple):
    ranker: Any
    start: Array  # [P] the model that clients are sent


def check_learner(kind: type, **parameters: Any) -> None:
    """Raises AssertionError if `kind(**parameters)` breaks a law of learners; says which, and with what."""
    learner = kind(**parameters)
    _check_traits(learner)
    for case in _cases():
        for n in (1, 2, _K, 9):
            _shows_a_list(learner, case, n)
        _inputs_stay(learner, case)
        updates = _sends(learner, case)
        _is_repeatable(learner, case, updates)
        _learns_the_same_from_a_log(learner, case, updates)
        _sends_nothing_without_interactions(learner, case)
        _decodes_client_by_client(learner, case, updates)
        _projects_after_every_step(learner, case)
        _hides_outcomes_behind_the_mechanism(learner, case)


def _cases() -> Iterator[Case]:
    for ranker in (Linear(), Mlp(3)):
        yield Case(ranker, 0.3 * stream(1, purpose="start").normal(ranker.size(_WIDTH)))


def _check_traits(learner: Any) -> None:
    message, optimizer = (getattr(learner, trait, None) for trait in ("message", "server_optimizer"))
    demand(message in _MESSAGES, learner, f"message = {message!r}; use one of {', '.join(_MESSAGES)}")
    demand(optimizer in _OPTIMIZERS, learner, f"server_optimizer = {optimizer!r}; use one of {', '.join(_OPTIMIZERS)}")
    if optimizer == "adam":
        rate = getattr(learner, "learning_rate", None)
        demand(isinstance(rate, float | int), learner, 'server_optimizer = "adam" needs a learning_rate')
    if message == "objective":
        objective = getattr(learner, "objective", None)
        law = f'message = "objective" needs an objective: one of {", ".join(_OBJECTIVES)}'
        demand(objective in _OBJECTIVES, learner, law)


def _shows_a_list(learner: Any, case: Case, n: int) -> None:
    """The first documents of a ranking, and the scores of all of them."""
    features = stream(n, purpose="data").uniform(n * _WIDTH).reshape(n, _WIDTH).astype(np.float32)
    state = learner.client_init(_model(case), client=2, interactions=_SEARCHES)
    given, draws = {"features": features, "start": case.start}, stream(n, purpose="ranking")
    before = copies(given)
    (ranking, scores), (again, _) = (learner.rank(state, features, _K, draws, ranker=case.ranker) for _ in range(2))
    demand_unchanged(before, given, learner, "rank")
    array_of(scores, (n,), "the scores of a list", learner, documents=n)
    shown = np.asarray(ranking)
    distinct = np.issubdtype(shown.dtype, np.integer) and len(np.unique(shown)) == shown.size
    within = distinct and shown.shape == (min(_K, n),) and bool(((shown >= 0) & (shown < n)).all())
    law = f"a list of {n} documents, {_K} of them displayed, must be {min(_K, n)} different documents of it"
    demand(within, learner, law, ranking=shown)
    demand(np.array_equal(shown, again), learner, "the same draws give two lists", first=shown, second=again)


def _sends(learner: Any, case: Case) -> Updates:
    """Values of one length from everybody: a number for every parameter, where they are deltas."""
    single = [_updates(learner, case, np.array([client])).values[0] for client in range(_PEOPLE)]
    delta = learner.message == "delta"
    shape = case.start.shape if delta else np.shape(single[0])[:1]
    for client, values in enumerate(single):
        array_of(values, shape, f"the {learner.message} of a client", learner, client=client, ranker=case.ranker)
    return _updates(learner, case, np.arange(_PEOPLE))


def _inputs_stay(learner: Any, case: Case) -> None:
    """A client changes neither the model it was sent nor its log."""
    features = stream(1, purpose="data").uniform(9 * _WIDTH).reshape(9, _WIDTH).astype(np.float32)
    clicks, scores = np.array([False, True, False, True]), case.ranker.score(case.start, features)
    arrays = {"features": features, "ranking": np.arange(8, 0, -2), "clicks": clicks, "scores": scores}
    given = arrays | {"start": case.start.copy()}
    before, log = copies(given), [Interaction(**arrays, model_version=_ROUND - 1)] * 2
    values = _from_log(learner, case._replace(start=given["start"]), log, client=1)
    demand_unchanged(before, given, learner, "a client's update")
    shared = np.shares_memory(values, given["start"])
    demand(not shared, learner, "the values of an update are a view of the model that was sent")


def _is_repeatable(learner: Any, case: Case, updates: Updates) -> None:
    again = _updates(learner, case, np.arange(_PEOPLE)).values
    law = "the same random streams give two updates"
    demand(np.array_equal(updates.values, again), learner, law, first=updates.values, second=again)


def _learns_the_same_from_a_log(learner: Any, case: Case, updates: Updates) -> None:
    """A deployed client learns from a click log, a simulated one as people search."""
    for client in range(_PEOPLE):
        logged = _from_log(learner, case, _log(learner, case, client), client)
        law = "a log of the same interactions gives another update than the searches themselves"
        live = updates.values[client]
        demand(np.array_equal(logged, live), learner, law, client=client, logged=logged, live=live)


def _sends_nothing_without_interactions(learner: Any, case: Case) -> None:
    law = "a client without interactions must send zeros"
    values = attempt(learner, law, lambda: _from_log(learner, case, [], client=1))
    demand(not np.any(values), learner, law, values=np.asarray(values))


def _decodes_client_by_client(learner: Any, case: Case, updates: Updates) -> None:
    """[n, P], each row from the update of one client."""
    size, before = len(case.start), copies(updates._asdict())
    rows = learner.decode(updates, seed=_SEED, parameters=size)
    demand_unchanged(before, updates._asdict(), learner, "decode")
    array_of(rows, (_PEOPLE, size), "decode", learner)
    for client in range(_PEOPLE):
        single = learner.decode(Updates(*(column[[client]] for column in updates)), seed=_SEED, parameters=size)
        law = "decode gives a client another row alone than among others"
        demand(np.allclose(single, rows[[client]], rtol=1e-12), learner, law, client=client)


def _projects_after_every_step(learner: Any, case: Case) -> None:
    """FPDGD's promise rests on this law. From zero, a delta is the local model, which lies in the mechanism's ball."""
    if learner.message != "delta":
        return
    start = np.zeros_like(case.start)
    values = _updates(learner, case._replace(start=start), np.arange(_PEOPLE), mechanism=_Ball()).values
    norms = np.linalg.norm(values, axis=1)
    law = f"the local model leaves the ball of radius {_RADIUS:g}: apply mechanism.project after every step"
    demand(bool((norms <= _RADIUS * (1 + 1e-9)).all()), learner, law, norms=norms)


def _hides_outcomes_behind_the_mechanism(learner: Any, case: Case) -> None:
    """Where every outcome is replaced by the first, it makes no difference what people click."""
    if learner.message != "objective":
        return
    one, other = (
        _updates(learner, case, np.arange(_PEOPLE), mechanism=_FirstOutcome(), clicks=clicks).values
        for clicks in ("perfect", "poison")
    )
    law = "clicks change the message although the mechanism replaces every outcome: call mechanism.protect on outcomes"
    demand(np.array_equal(one, other), learner, law, perfect=one, poison=other)


class _Ball(NamedTuple):
    """A mechanism that bounds the local model and adds nothing."""

    acts_on: str = "nothing"

    def project(self, parameters: Array) -> Array:
        return parameters * min(1.0, _RADIUS / max(float(np.linalg.norm(parameters)), _RADIUS))


class _FirstOutcome(NamedTuple):
    """A mechanism that hides everything."""

    acts_on: str = "outcome"

    def project(self, parameters: Array) -> Array:
        return parameters

    def protect(self, values: int, state: int, event: Any, draws: Any) -> int:  # noqa: ARG002
        return 0


class _Recorder:
    """The learner, with a note of every interaction."""

    def __init__(self, learner: Any) -> None:
        self._learner, self.log = learner, list[Interaction]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._learner, name)

    def client_step(self, state: Any, interaction: Interaction, **more: Any) -> Any:
        self.log.append(interaction)
        return self._learner.client_step(state, interaction, **more)


def _log(learner: Any, case: Case, client: int) -> list[Interaction]:
    """Interactions of a client while it trained."""
    recorder = _Recorder(learner)
    _updates(recorder, case, np.array([client]))
    return recorder.log


def _from_log(learner: Any, case: Case, log: list[Interaction], client: int) -> Array:
    return local_update(
        _model(case), log, learner=learner, mechanism=_PLAIN, client=client,
        noise=lambda purpose: stream(_SEED, round=_ROUND, client=client, purpose=purpose),
    ).values  # fmt: skip


def _model(case: Case) -> Model:
    return Model(case.start, _ROUND - 1, case.ranker, _K, _SEED)


def _updates(
    learner: Any, case: Case, clients: Array, *, mechanism: Any = _PLAIN, clicks: str = "informational"
) -> Updates:  # fmt: skip
    """Result of the plain engine."""
    users = (click_model(Users(clicks, k=_K), grades=_GRADES),)
    federation = Federated(_PEOPLE, _SEARCHES, 1)
    task = Task(_dataset(), _GRADES, users, case.ranker, learner, federation, mechanism, _SEED)
    members = Members(clients, np.full(len(clients), _SEARCHES))
    return plain.engine(task).local_updates(case.start, members, _ROUND, Release(None, None))[0]


def _dataset() -> Dataset:
    offsets, draws = np.concatenate([[0], np.cumsum([2, 7, 12, 3, 20])]), stream(4, purpose="data")
    documents = int(offsets[-1])
    features = draws.uniform(documents * _WIDTH).reshape(documents, _WIDTH).astype(np.float32)
    labels = draws.skip(10**4).integers(_GRADES, documents).astype(np.int8)
    return Dataset(features, labels, offsets, np.arange(len(offsets) - 1))
