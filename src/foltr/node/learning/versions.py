"""Learned weights of a node: versions, refits from the log, and the way back. Versions stand in the log's database.

Version 0 are the start weights of the package. Every ten choices that teach (`teaching`) the weights are fitted to all
of them, with the prior at the start weights (`learners.softmax`), and become the next version unless the replay of the
guard refuses it. A new version ranks at once; until the guard trusts it, lists are interleaved with the last trusted
version, which returns by itself where the new one loses. After a return learning waits for more choices.

Weights of a federation arrive on trial like a refit (`adopt_shared`) and are the prior of the refits after them: the
next choice fits the log around them. A version that returns brings its own prior back. Without enough opened results
they stay on trial, and lists mix both orders as long as that lasts (`trial`).

A version and what it changes is one transaction: a process that is killed while it trains leaves the old version.
"""

import datetime
import sqlite3
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np

from foltr.client import Noise, local_update
from foltr.errors import DataError, InputError
from foltr.learners.softmax import SoftmaxMap, fit
from foltr.node.learning import guard, teaching
from foltr.node.learning.guard import Replay
from foltr.node.learning.log import Log
from foltr.node.learning.memory import typed_text
from foltr.rankers import Linear
from foltr.types import Array, Interaction, Model, Update

HISTORY = ("opened", "folder")  # features that count what was opened
LEARNER = SoftmaxMap(min_clicks=10)
# one fit to the whole log; the others of a federation average the noise out, so the prior is weaker than alone
FEDERATED = SoftmaxMap(prior=5.0, min_clicks=5, clip=0.5, server_learning_rate=2.0, refit_every=1 << 30)
WAIT = 50  # choices that teach after a return, until weights are fitted again
STORED_VERSIONS = 100
_LARGEST_WEIGHT = 1e3
_MOST_FEATURES, _LONGEST_NAME = 1_000, 200
SHARED = "federation"  # parent of weights that a federation shares
_START = Path(__file__).with_name("start_weights.json")


class WeightedFeature(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    scaling: str
    weight: float


class Weights(msgspec.Struct, frozen=True):
    """A version: score = sum of weight x scaled feature, in logits. Other keys of its JSON are not read."""

    version: int
    kind: Literal["linear"]
    features: tuple[WeightedFeature, ...]
    parent: int | str = msgspec.field(name="from")  # the version that ranked before it, "start" or "federation"
    date: str = ""
    prior: int = 0  # the shared version that a fit started from; 0: the start weights
    origin: str = ""  # of shared weights: federation and version there


class Version(NamedTuple):
    """A row of the history of versions."""

    weights: Weights
    state: str  # "trial", "trusted", "replaced" (by the next), "refused" (by replay), "returned" (it lost), "left"
    clicks: int  # choices that it was fitted to


class Serving(NamedTuple):
    """Weights that rank now."""

    current: Weights
    trusted: Weights | None  # to interleave with; None: the current version is trusted


class Trial(NamedTuple):
    """A version that ranks together with the trusted one, until the guard decides."""

    version: int
    trusted: int
    shared: bool  # a federation sent it
    won: int  # lists in which its order brought what was opened
    lost: int


class Opening(NamedTuple):
    """The best place that was opened from a list."""

    time: float
    rank: int  # from 1
    version: int  # of the weights that ranked


class Refit(NamedTuple):
    """Result of a refit."""

    version: int | None  # the new version, None where nothing changed
    reason: str
    replay: Replay | None = None


def parse_weights(text: bytes | str, *, where: str) -> Weights:
    """A version from its JSON; refuses what is no list of finite weights."""
    try:
        weights = msgspec.json.decode(text, type=Weights)
    except msgspec.MsgspecError as problem:
        raise DataError(f"{where}: {problem}; expected the weights of a ranker as foltr exports them") from None
    names = [one.name for one in weights.features]
    if not names or len(set(names)) < len(names):
        raise DataError(f"{where}: expected at least one feature, and each of them once")
    texts = [*names, weights.date, str(weights.parent), weights.origin]
    if len(names) > _MOST_FEATURES or max(map(len, texts)) > _LONGEST_NAME:
        raise DataError(f"{where}: expected at most {_MOST_FEATURES} features, and names of {_LONGEST_NAME} characters")
    for one in weights.features:
        if not abs(one.weight) <= _LARGEST_WEIGHT:
            raise DataError(f"{where}: {one.name} has weight {one.weight}; expected at most {_LARGEST_WEIGHT:g}")
    return weights


@cache
def start_weights() -> Weights:
    """Version 0: fitted on public corpora, without a click."""
    return parse_weights(_START.read_bytes(), where=str(_START))


def feature_names(weights: Weights) -> tuple[str, ...]:
    """Names of columns of the log: a feature is comparable under one scaling only."""
    return tuple(f"{one.name}:{one.scaling}" for one in weights.features)


def values_of(weights: Weights, names: tuple[str, ...]) -> Array:
    """[d] the weights of these columns; 0 where a version does not use one."""
    known = dict(zip(feature_names(weights), (one.weight for one in weights.features), strict=True))
    return np.array([known.get(name, 0.0) for name in names])


def aligned(weights: Weights) -> Weights:
    """A version with the features of this package: weights of features that it does not know are the start's."""
    known = dict(zip(feature_names(weights), (one.weight for one in weights.features), strict=True))
    features = tuple(
        WeightedFeature(one.name, one.scaling, known.get(f"{one.name}:{one.scaling}", one.weight))
        for one in start_weights().features
    )
    return msgspec.structs.replace(weights, features=features)


def history_indices(weights: Weights) -> tuple[int, ...]:
    return tuple(i for i, one in enumerate(weights.features) if one.name in HISTORY)


# ---- versions


def serving(log: Log) -> Serving:
    """The version that ranks, and the one to interleave with while it is on trial."""
    state = _state(log)
    current, trusted = state.get("current", 0), state.get("trusted", 0)
    return Serving(version(log, current), version(log, trusted) if trusted != current else None)


def version(log: Log, number: int) -> Weights:
    if number == 0:
        return start_weights()
    rows = log.rows("SELECT weights FROM versions WHERE version = ?", (number,))
    if not rows:
        raise InputError(f"there is no version {number} of the weights; `foltr node learn` lists them")
    return aligned(parse_weights(rows[0][0], where=f"{log.path}: version {number}"))


def openings(log: Log) -> list[Opening]:
    """Of every list the best place that was opened and not taken back, in the order of time."""
    rows = log.rows(
        "SELECT i.time, min(c.position), i.model_version FROM impressions i JOIN choices c ON c.impression = i.id "
        "WHERE c.withdrawn = 0 GROUP BY i.id ORDER BY i.id"
    )
    return [Opening(time, position + 1, version) for time, position, version in rows]


def versions(log: Log) -> list[Version]:
    """All versions, the newest first; version 0 is not listed."""
    rows = log.rows("SELECT version, weights, state, clicks FROM versions ORDER BY version DESC")
    return [
        Version(parse_weights(text, where=f"version {number}"), state, clicks) for number, text, state, clicks in rows
    ]


def go_back(log: Log, number: int) -> Weights:
    """An older version ranks again, trusted; learning waits for `WAIT` more clicks."""
    weights = version(log, number)
    _return_to(log, number, "left")
    return weights


def adopt(log: Log, weights: Weights) -> int:
    """Weights from another machine of the person become a new version, which ranks and is trusted; its number."""
    with log.transaction() as connection:
        own = msgspec.structs.replace(aligned(weights), prior=0, origin="")  # numbers of the other machine
        number = _insert(connection, own, "trusted", 0)
        _put(connection, current=number, trusted=number)
    return number


def adopt_shared(log: Log, weights: Weights) -> int | None:
    """Weights of a federation become a new version on trial, and the prior of later refits; None where this version of
    the federation (`origin`) was taken over before. Weights that rank the own log clearly worse than the start weights
    do are refused: they are listed and never rank."""
    parse_weights(msgspec.json.encode(weights), where="the ranker of the federation")  # as it is read again later
    if weights.origin in {version.weights.origin for version in versions(log)}:
        return None
    names, taught, shared = feature_names(start_weights()), teaching.lessons(log), aligned(weights)
    refused = (
        len(taught) >= LEARNER.min_clicks
        and guard.replay(
            teaching.interactions(log, names, taught), values_of(start_weights(), names), values_of(shared, names)
        ).clearly_worse
    )
    with log.transaction() as connection:
        known = connection.execute("SELECT weights FROM versions")
        if any(parse_weights(text, where=str(log.path)).origin == weights.origin for (text,) in known):
            return None
        number = _insert(connection, shared, "refused" if refused else "trial", 0)
        if not refused:
            _replace_trial(connection)
            _put(connection, current=number, fitted_choice=0)  # the next choice fits the log around these weights
        _drop_old(connection)
    return number


def trial(log: Log) -> Trial | None:
    """The version on trial; None where the version that ranks is trusted."""
    now = serving(log)
    if now.trusted is None:
        return None
    won, lost = guard.compared(trial_points(log))
    return Trial(now.current.version, now.trusted.version, bool(now.current.origin), won, lost)


def reset(log: Log) -> None:
    """Deletes every version; the start weights rank, and the log is learned from anew."""
    with log.transaction() as connection:
        connection.execute("DELETE FROM versions")
        connection.execute("DELETE FROM learning WHERE key != 'erasures'")
        count_erasure(connection)


def count_erasure(connection: sqlite3.Connection) -> None:
    """Changes the state of learning, so that a fit that began before an erasure is not stored."""
    _put(connection, erasures=_state_in(connection).get("erasures", 0) + 1)


# ---- learning


def refit_due(log: Log) -> bool:
    """Whether enough choices taught something since the last fit."""
    return _due(log, _state(log))


def refit(log: Log, now: float, *, learner: SoftmaxMap = LEARNER, force: bool = False) -> Refit:
    """Fits the weights to all choices that teach; a version that the replay does not refuse ranks from now on.

    The fit holds no lock. Where the log was erased, or learning changed, meanwhile, its result is not stored.
    """
    judge(log)
    state, taught = _state(log), teaching.lessons(log)
    if len(taught) < learner.min_clicks or not (force or _due(log, state)):
        return Refit(None, "nothing to learn from yet")
    before = version(log, state.get("current", 0))
    start = _prior(log, before)
    names = feature_names(start)
    interactions = teaching.interactions(log, names, taught)
    if len(interactions) < learner.min_clicks:
        return Refit(None, "the log was erased meanwhile")
    priors = msgspec.structs.replace(learner, history=history_indices(start)).priors(len(names))

    def fitted_to(some: Sequence[Interaction]) -> Array:
        return fit(some, values_of(start, names), priors, unshown=learner.unshown)

    fitted, was_fitted = fitted_to(interactions), _choices_behind(log, before)
    rival, found = _hardest_rival(interactions, fitted_to, before, was_fitted)
    usable, refused = bool((np.abs(fitted) <= _LARGEST_WEIGHT).all()), found.clearly_worse
    with log.transaction() as connection:
        if _state_in(connection) != state:
            return Refit(None, "the log was erased, or another fit or verdict came meanwhile")
        _put(connection, fitted_choice=_last(connection, "choices"), wait=0)
        if not usable:
            return Refit(None, f"refused: a weight is no number, or beyond {_LARGEST_WEIGHT:g}", found)
        number = _insert(
            connection, _named(fitted, start, now, before.version), "refused" if refused else "trial", len(taught)
        )
        if refused and rival == 0 and was_fitted:
            _return_to(log, 0, "returned")  # what ranks now was fitted to the same log
        if not refused:
            _replace_trial(connection)
            _put(connection, current=number)
        _drop_old(connection)
    if refused:
        worse = f"worse than version {rival}, {found.old:.3f} -> {found.new:.3f}"
        return Refit(None, f"refused: texts that it was not fitted to rank {worse}", found)
    return Refit(number, f"fitted to {len(taught)} choices", found)


def _hardest_rival(
    interactions: Sequence[Interaction], fit: Callable[[Sequence[Interaction]], Array], before: Weights, was_fitted: int
) -> tuple[int, Replay]:
    """The version that held-out fits lose to clearly, or else the one that ranks now, with the replay against it.

    Rivals are the start weights and what ranks now. A version that was fitted to the first choices of this log is
    replayed like the new one, by fits that do not know the fold.
    """
    names, held_out = feature_names(before), guard.held_out(interactions, fit)
    rivals = {0: values_of(start_weights(), names)}
    if before.version:
        known = guard.held_out(interactions, fit, first=was_fitted) if was_fitted else values_of(before, names)
        rivals[before.version] = known
    replays = {number: guard.replay(interactions, weights, held_out) for number, weights in rivals.items()}
    lost = [(number, replay) for number, replay in replays.items() if replay.clearly_worse]
    return lost[0] if lost else (before.version, replays[before.version])


def judge(log: Log) -> Literal["return", "trust", "open"]:
    """Reads the interleaved lists of versions on trial; returns to the trusted version, or trusts the current one."""
    state = _state(log)
    current, trusted = state.get("current", 0), state.get("trusted", 0)
    if current == trusted:
        return "open"
    verdict = guard.verdict(trial_points(log))
    with log.transaction() as connection:
        if _state_in(connection) != state:  # erased, fitted or judged meanwhile
            return "open"
        if verdict == "return":
            _return_to(log, trusted, "returned")
        if verdict == "trust":
            _put(connection, trusted=current, judged_impression=_last(connection, "impressions"))
            connection.execute("UPDATE versions SET state = 'trusted' WHERE version = ?", (current,))
    return verdict


def trial_points(log: Log) -> list[int]:
    """Points of interleaved lists since the last verdict, in their order; equal queries under a version count once."""
    rows = log.rows(
        "SELECT i.id, i.model_version, q.text, i.teams, c.position FROM impressions i JOIN choices c "
        "ON c.impression = i.id LEFT JOIN queries q ON q.impression = i.id "
        "WHERE i.teams IS NOT NULL AND c.withdrawn = 0 AND i.id > ? ORDER BY i.id",
        (_state(log).get("judged_impression", 0),),
    )
    lists: dict[int, tuple[Any, Array, Array]] = {}
    for number, shown_by, query, teams, position in rows:
        address = (shown_by, number if query is None else typed_text(query))
        found = lists.setdefault(number, (address, np.frombuffer(teams, dtype=np.uint8), np.zeros(len(teams), bool)))
        found[2][position] = True
    first: dict[Any, int] = {}
    for address, teams, clicks in lists.values():
        score = guard.points(teams, clicks)
        if score:
            first.setdefault(address, score)
    return list(first.values())


def update(
    log: Log, shared: Weights, *, mechanism: Any, noise: Noise, learner: SoftmaxMap = FEDERATED, client: int = 0,
    event: Any = None,
) -> Update:  # fmt: skip
    """Update for a federation: the difference that all choices that teach make to the shared weights, clipped. Its
    weight is the number of these choices."""
    names = feature_names(shared)
    interactions = teaching.interactions(log, names, teaching.lessons(log))
    model = Model(values_of(shared, names), shared.version, Linear())
    chosen = msgspec.structs.replace(learner, history=history_indices(shared))
    return local_update(
        model, interactions, learner=chosen, mechanism=mechanism, noise=noise, client=client, event=event
    )


# ---- rows


def _due(log: Log, state: dict[str, int]) -> bool:
    """Choices are counted from the last fit by their numbers, which deleting from the log does not change."""
    needed, fitted = max(LEARNER.refit_every, state.get("wait", 0)), state.get("fitted_choice", 0)
    newer = log.rows(
        "SELECT count(*) FROM choices WHERE id > ? AND withdrawn = 0 AND impression IS NOT NULL", (fitted,)
    )
    if newer[0][0] < needed:  # nearly always: the log need not be read
        return False
    return sum(lesson.choice > fitted for lesson in teaching.lessons(log)) >= needed


def _choices_behind(log: Log, weights: Weights) -> int:
    """How many choices of this log a version was fitted to; 0 where it came from elsewhere."""
    rows = log.rows("SELECT clicks FROM versions WHERE version = ?", (weights.version,))
    return int(rows[0][0]) if rows else 0


def _return_to(log: Log, number: int, why: str) -> None:
    with log.transaction() as connection:
        connection.execute("UPDATE versions SET state = ? WHERE version > ? AND state = 'trial'", (why, number))
        _put(connection, current=number, trusted=number, wait=WAIT, fitted_choice=_last(connection, "choices"),
             judged_impression=_last(connection, "impressions"))  # fmt: skip


def _last(connection: Any, table: Literal["choices", "impressions"]) -> int:
    return int(connection.execute(f"SELECT coalesce(max(id), 0) FROM {table}").fetchone()[0])  # noqa: S608


def _replace_trial(connection: Any) -> None:
    """The version that ranks makes room for the next one; a trusted one stays the one to return to."""
    replaced = (_state_in(connection).get("current", 0),)
    connection.execute("UPDATE versions SET state = 'replaced' WHERE version = ? AND state = 'trial'", replaced)


def _prior(log: Log, current: Weights) -> Weights:
    """The weights that a refit starts from: those of a federation that lead to what ranks, or the start weights."""
    return current if current.origin else version(log, current.prior)


def _named(values: Array, like: Weights, now: float, parent: int) -> Weights:
    features = tuple(
        WeightedFeature(one.name, one.scaling, float(value)) for one, value in zip(like.features, values, strict=True)
    )
    day = datetime.datetime.fromtimestamp(now, tz=datetime.UTC).date().isoformat()
    return Weights(0, "linear", features, parent or "start", day, prior=like.version)


def _insert(connection: Any, weights: Weights, state: str, clicks: int) -> int:
    found = connection.execute("INSERT INTO versions (weights, state, clicks) VALUES ('', ?, ?)", (state, clicks))
    number = int(found.lastrowid)
    text = msgspec.json.encode(msgspec.structs.replace(weights, version=number)).decode()
    connection.execute("UPDATE versions SET weights = ? WHERE version = ?", (text, number))
    return number


def _drop_old(connection: Any) -> None:
    used = {_state_in(connection).get(name, 0) for name in ("current", "trusted")}
    rows = connection.execute("SELECT version, weights FROM versions").fetchall()
    used |= {parse_weights(text, where=f"version {number}").prior for number, text in rows if number in used}
    newest = max((number for number, _ in rows), default=0)
    old = [(number,) for number, _ in rows if number <= newest - STORED_VERSIONS and number not in used]
    connection.executemany("DELETE FROM versions WHERE version = ?", old)


def _state(log: Log) -> dict[str, int]:
    return {key: int(value) for key, value in log.rows("SELECT key, value FROM learning")}


def _state_in(connection: Any) -> dict[str, int]:
    return {key: int(value) for key, value in connection.execute("SELECT key, value FROM learning")}


def _put(connection: Any, **values: int) -> None:
    rows = [(key, str(value)) for key, value in values.items()]
    connection.executemany("INSERT OR REPLACE INTO learning (key, value) VALUES (?, ?)", rows)
