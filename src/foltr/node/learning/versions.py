"""Learned weights of a node: versions, refits from the log, and the way back. Versions stand in the log's database.

Version 0 are the start weights of the package. Every ten clicks the weights are fitted to the whole log, with the prior
at the start weights (`learners.softmax`), and become the next version unless the replay of the guard refuses it. A new
version ranks at once; until the guard trusts it, lists are interleaved with the last trusted version, which returns by
itself where the new one loses. After a return learning waits for more clicks.

A version and what it changes is one transaction: a process that is killed while it trains leaves the old version.
"""

import datetime
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np

from foltr.client import Noise, local_update
from foltr.errors import DataError, InputError
from foltr.learners.softmax import SoftmaxMap, fit
from foltr.node.learning import guard
from foltr.node.learning.guard import Replay
from foltr.node.learning.log import Log
from foltr.node.learning.memory import typed_text
from foltr.rankers import Linear
from foltr.types import Array, Model, Update

HISTORY = ("opened", "folder")  # features that count what was opened
LEARNER = SoftmaxMap(min_clicks=10)
# one fit to the whole log; the others of a federation average the noise out, so the prior is weaker than alone
FEDERATED = SoftmaxMap(prior=5.0, min_clicks=5, clip=0.5, server_learning_rate=2.0, refit_every=1 << 30)
WAIT = 50  # clicks after a return, until weights are fitted again
STORED_VERSIONS = 100
_LARGEST_WEIGHT = 1e3
_MOST_FEATURES, _LONGEST_NAME = 1_000, 200
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
    parent: int | str = msgspec.field(name="from")  # the version that ranked before it, or "start"
    date: str = ""


class Version(NamedTuple):
    """A row of the history of versions."""

    weights: Weights
    state: str  # "trial", "trusted", "replaced" (by the next), "refused" (by replay), "returned" (it lost), "left"
    clicks: int  # behind it


class Serving(NamedTuple):
    """What ranks now."""

    current: Weights
    trusted: Weights | None  # to interleave with; None: the current version is trusted


class Opening(NamedTuple):
    """The best place that was opened from a list."""

    time: float
    rank: int  # from 1
    version: int  # of the weights that ranked


class Refit(NamedTuple):
    """What a refit did."""

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
    if len(names) > _MOST_FEATURES or max(map(len, [*names, weights.date, str(weights.parent)])) > _LONGEST_NAME:
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
    """What columns of the log are called: a feature is comparable under one scaling only."""
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
        number = _insert(connection, aligned(weights), "trusted", 0)
        _put(connection, current=number, trusted=number)
    return number


def reset(log: Log) -> None:
    """Deletes every version; the start weights rank, and the log is learned from anew."""
    with log.transaction() as connection:
        connection.execute("DELETE FROM versions")
        connection.execute("DELETE FROM learning WHERE key != 'off'")


def switch(log: Log, *, on: bool) -> None:
    """Whether weights are refitted at all; the current version stays."""
    with log.transaction() as connection:
        _put(connection, off=0 if on else 1)


def is_on(log: Log) -> bool:
    return not _state(log).get("off", 0)


# ---- learning


def refit_due(log: Log) -> bool:
    """Whether enough was clicked since the last fit, and learning is on."""
    return _due(log, _state(log))


def refit(log: Log, now: float, *, learner: SoftmaxMap = LEARNER, force: bool = False) -> Refit:
    """Fits the weights to the whole log; a version that the replay does not refuse ranks from now on."""
    judge(log)
    state, clicks, start = _state(log), log.clicks(), start_weights()
    if state.get("off", 0) or clicks < learner.min_clicks or not (force or _due(log, state)):
        return Refit(None, "nothing to learn from yet, or learning is off")
    names, before = feature_names(start), version(log, state.get("current", 0))
    interactions = log.interactions(names)
    priors = msgspec.structs.replace(learner, history=history_indices(start)).priors(len(names))
    fitted = fit(interactions, values_of(start, names), priors, unshown=learner.unshown, evidence=learner.evidence)
    found = guard.replay(interactions, values_of(before, names), fitted)
    usable, refused = bool((np.abs(fitted) <= _LARGEST_WEIGHT).all()), found.clearly_worse
    with log.transaction() as connection:
        if _state_in(connection) != state:
            return Refit(None, "another process has fitted or judged meanwhile")
        _put(connection, fitted_choice=_last(connection, "choices"), wait=0)
        if not usable:
            return Refit(None, f"refused: a weight is no number, or beyond {_LARGEST_WEIGHT:g}", found)
        number = _insert(
            connection, _named(fitted, start, now, before.version), "refused" if refused else "trial", clicks
        )
        if not refused:
            replaced = (before.version,)
            connection.execute("UPDATE versions SET state = 'replaced' WHERE version = ? AND state = 'trial'", replaced)
            _put(connection, current=number)
        _drop_old(connection)
    if refused:
        return Refit(None, f"refused: the log ranks worse, {found.old:.3f} -> {found.new:.3f}", found)
    return Refit(number, f"fitted to {clicks} clicks", found)


def judge(log: Log) -> Literal["return", "trust", "open"]:
    """Reads the interleaved lists of versions on trial; returns to the trusted version, or trusts the current one."""
    state = _state(log)
    current, trusted = state.get("current", 0), state.get("trusted", 0)
    if current == trusted:
        return "open"
    said = guard.verdict(trial_points(log))
    if said == "return":
        _return_to(log, trusted, "returned")
    if said == "trust":
        with log.transaction() as connection:
            if _state_in(connection).get("current", 0) == current:
                _put(connection, trusted=current, judged_impression=_last(connection, "impressions"))
                connection.execute("UPDATE versions SET state = 'trusted' WHERE version = ?", (current,))
    return said


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
    """What a federation is sent: the difference of a fit to the whole log from the shared weights, clipped."""
    names = feature_names(shared)
    model = Model(values_of(shared, names), shared.version, Linear())
    chosen = msgspec.structs.replace(learner, history=history_indices(shared))
    return local_update(
        model, log.interactions(names), learner=chosen, mechanism=mechanism, noise=noise, client=client, event=event
    )


# ---- rows


def _due(log: Log, state: dict[str, int]) -> bool:
    """Clicks are counted from the last fit by their numbers, which deleting from the log does not change."""
    rows = log.rows(
        "SELECT count(*) FROM choices WHERE id > ? AND withdrawn = 0 AND impression IS NOT NULL",
        (state.get("fitted_choice", 0),),
    )
    return not state.get("off", 0) and rows[0][0] >= max(LEARNER.refit_every, state.get("wait", 0))


def _return_to(log: Log, number: int, why: str) -> None:
    with log.transaction() as connection:
        connection.execute("UPDATE versions SET state = ? WHERE version > ? AND state = 'trial'", (why, number))
        _put(connection, current=number, trusted=number, wait=WAIT, fitted_choice=_last(connection, "choices"),
             judged_impression=_last(connection, "impressions"))  # fmt: skip


def _last(connection: Any, table: Literal["choices", "impressions"]) -> int:
    return int(connection.execute(f"SELECT coalesce(max(id), 0) FROM {table}").fetchone()[0])  # noqa: S608


def _named(values: Array, like: Weights, now: float, parent: int) -> Weights:
    features = tuple(
        WeightedFeature(one.name, one.scaling, float(value)) for one, value in zip(like.features, values, strict=True)
    )
    day = datetime.datetime.fromtimestamp(now, tz=datetime.UTC).date().isoformat()
    return Weights(0, "linear", features, parent or "start", day)


def _insert(connection: Any, weights: Weights, state: str, clicks: int) -> int:
    found = connection.execute("INSERT INTO versions (weights, state, clicks) VALUES ('', ?, ?)", (state, clicks))
    number = int(found.lastrowid)
    text = msgspec.json.encode(msgspec.structs.replace(weights, version=number)).decode()
    connection.execute("UPDATE versions SET weights = ? WHERE version = ?", (text, number))
    return number


def _drop_old(connection: Any) -> None:
    used = _state_in(connection)
    connection.execute(
        "DELETE FROM versions WHERE version <= (SELECT max(version) FROM versions) - ? AND version NOT IN (?, ?)",
        (STORED_VERSIONS, used.get("current", 0), used.get("trusted", 0)),
    )


def _state(log: Log) -> dict[str, int]:
    return {key: int(value) for key, value in log.rows("SELECT key, value FROM learning")}


def _state_in(connection: Any) -> dict[str, int]:
    return {key: int(value) for key, value in connection.execute("SELECT key, value FROM learning")}


def _put(connection: Any, **values: int) -> None:
    rows = [(key, str(value)) for key, value in values.items()]
    connection.executemany("INSERT OR REPLACE INTO learning (key, value) VALUES (?, ?)", rows)
