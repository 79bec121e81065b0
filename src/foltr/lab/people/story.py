"""The story of `foltr demo`: simulated people learn together from plain BM25, told as records, one JSON line each.

Every person has a private part of Python's docstrings as an index of their own, lasting preferences (`people`), and a
node that starts from BM25 alone, so that learning can be seen. Each round every person makes some searches with the
shared weights until five more had a click; what is sent is the clipped difference of a local fit, and the server learns
the sum of all differences only, by the secure aggregation protocol, which is executed with all parties in this process.

All seeds advance together: a round's record has the mean over the seeds and its standard error. Quality is MRR@10 of
held-out searches of the same people, which nobody learns from. Prior, clip and server step are those that a node uses
in a federation; the weight of BM25 was chosen on the seeds 1001 to 1005, never on those that are shown.

    python -m foltr.lab.people.story '{"seeds": [1, 2, 3, 4, 5]}'       # ends when its standard input is closed
"""

import os
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import Annotated, NamedTuple, TypeAlias

import msgspec
import numpy as np

from foltr.federation.engine import EngineCollector
from foltr.federation.round import RoundResult, run_rounds
from foltr.federation.schedule import synchronous
from foltr.federation.server import add_scaled, init_state
from foltr.lab.people.corpora import Texts, load_texts, subset
from foltr.lab.people.experiment import Course, Situation, trace, without_clicks
from foltr.lab.people.settings import Together
from foltr.lab.people.together import PeopleEngine, held_out_quality, person_with_index, search_until, separate_indexes
from foltr.lab.people.weights import Weights, shipped, weights_for
from foltr.learners.softmax import SoftmaxMap
from foltr.secagg.guarantee import guarantee
from foltr.secagg.in_process import measured_sum
from foltr.types import Array, Updates

CORPUS = "docstrings"
SEEDS = (1, 2, 3, 4, 5)
BM25_WEIGHT = 5.0  # logits between the worst and the best candidate; of 3, 5 and 10 on the development seeds
_DROPOUTS, _CORRUPT = 0.1, 0.05  # shares of the people that `secagg.guarantee` reckons with
Count = Annotated[int, msgspec.Meta(ge=1)]


class StorySetting(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How large the story is."""

    people: Annotated[int, msgspec.Meta(ge=4, le=200)] = 20
    seeds: Annotated[tuple[int, ...], msgspec.Meta(min_length=2)] = SEEDS
    rounds: Count = 10
    clicks_a_round: Count = 5
    tests: Count = 50  # held-out searches of a person
    write_to: str = ""  # a folder that the documents are also written to, for the person who watches


class Estimate(msgspec.Struct, frozen=True):
    mean: float
    error: float  # standard error over the seeds


class Begun(msgspec.Struct, frozen=True, tag="begun"):
    corpus: str
    documents: int
    setting: StorySetting


class Indexed(msgspec.Struct, frozen=True, tag="indexed"):
    """The people of one more seed have their indexes."""

    seeds: int
    smallest: int  # documents of a person
    largest: int


class Measured(msgspec.Struct, frozen=True, tag="round"):
    """The state after a round; round 0 is the start."""

    round: int
    clicks: int  # searches with a click of each person so far
    bm25: Estimate
    start_weights: Estimate  # of the package, without a click
    counting: Estimate  # the start weights, and what was opened counts
    learned: Estimate  # the shared weights
    gain: Estimate  # learned minus BM25 of the same seed
    numbers: int  # that a person sent in this round
    sent: int  # bytes that a person sent in this round, at most
    received: int


class Ended(msgspec.Struct, frozen=True, tag="ended"):
    """What only the end can say."""

    local_only: Estimate  # the same people, each with their own clicks only
    plain_bm25: Estimate  # one field of plain words: file names and parts of identifiers are not searched
    left_out: Estimate  # start weights that were fitted without this corpus
    sum_of: int  # people in every sum, at least
    honest: int  # of them, when others work for the server


Record: TypeAlias = Begun | Indexed | Measured | Ended


class Group(NamedTuple):
    """The people of one seed, on their way."""

    situations: list[Situation]
    engine: PeopleEngine  # with the shared weights
    counters: list[Course]  # the same people with the start weights
    rounds: Iterator[RoundResult]
    traffic: list[tuple[int, int]]  # bytes up and down of the busiest person, by round


def run_story(setting: StorySetting, texts: Texts | None = None) -> Iterator[Record]:
    """The records of the story, in order."""
    texts = load_texts(CORPUS) if texts is None else texts
    weights = shipped()
    yield Begun(texts.note, len(texts.titles), setting)
    groups: list[Group] = []
    for seed in setting.seeds:
        parts = separate_indexes(texts, setting.people, seed)
        groups.append(_group(texts, parts, setting, weights, seed))
        yield Indexed(len(groups), min(map(len, parts)), max(map(len, parts)))
    last = setting.rounds * setting.clicks_a_round
    fixed = {row: np.array([_without_clicks(group, weights, row, last) for group in groups])
             for row in ("BM25", "BM25, node's words", "start weights")}  # fmt: skip
    yield _measured(setting, groups, weights, fixed, [_bm25_only(weights).values] * len(groups))
    for _ in range(setting.rounds):
        yield _measured(setting, groups, weights, fixed, [next(group.rounds).parameters for group in groups])
    yield _ended(setting, groups, fixed["BM25"], last)


def _group(texts: Texts, parts: Sequence[Array], setting: StorySetting, weights: Weights, seed: int) -> Group:
    together = Together(
        people=setting.people, preferences=True, searches_with_click=setting.rounds * setting.clicks_a_round,
        releases=setting.rounds, tests=setting.tests,
    )  # fmt: skip
    start = _bm25_only(weights)
    situations = [person_with_index(subset(texts, part), together, weights, seed, n) for n, part in enumerate(parts)]
    engine = PeopleEngine([Course(one, start) for one in situations], together, _learner(weights))
    traffic: list[tuple[int, int]] = []

    def secure_mean(updates: Updates, version: int) -> Array:
        summed = measured_sum(updates.values, round=version + 1)
        traffic.append((max(summed.up.values()), max(summed.down.values())))
        return summed.total / len(updates.values)

    rounds = run_rounds(
        init_state(start.values), synchronous(setting.people, 1, setting.rounds), EngineCollector(engine, secure_mean),
        server_optimizer=add_scaled(together.server_step),
    )  # fmt: skip
    return Group(situations, engine, [Course(one, weights) for one in situations], rounds, traffic)


def _bm25_only(weights: Weights) -> Weights:
    """BM25 as a linear ranker over the features of a node: every other weight is zero."""
    return Weights(weights.names, np.where(np.array(weights.names) == "bm25", BM25_WEIGHT, 0.0))


def _learner(weights: Weights) -> SoftmaxMap:
    return SoftmaxMap(history=tuple(weights.places.tolist()))


def _without_clicks(group: Group, weights: Weights, row: str, last: int) -> float:
    return float(np.mean([without_clicks(one, weights)[row][last] for one in group.situations]))


def _measured(
    setting: StorySetting, groups: list[Group], weights: Weights, fixed: dict[str, Array], parameters: list[Array]
) -> Measured:
    """Where everybody stands; the people with the start weights search as much as those who learn."""
    done = len(groups[0].traffic)
    clicks = done * setting.clicks_a_round
    learned, counting = np.empty(len(groups)), np.empty(len(groups))
    for place, group in enumerate(groups):
        together = group.engine.setting
        learned[place] = np.mean([held_out_quality(one, together, parameters[place]) for one in group.engine.courses])
        for one in group.counters:
            search_until(one, clicks, weights.values)
        counting[place] = np.mean([held_out_quality(one, together, weights.values) for one in group.counters])
    bm25 = fixed["BM25, node's words"]
    sent, received = np.max([group.traffic[-1] for group in groups], axis=0).tolist() if done else (0, 0)
    return Measured(
        round=done, clicks=clicks, bm25=_estimate(bm25), start_weights=_estimate(fixed["start weights"]),
        counting=_estimate(counting), learned=_estimate(learned), gain=_estimate(learned - bm25),
        numbers=len(weights.names) if done else 0, sent=sent, received=received,
    )  # fmt: skip


def _ended(setting: StorySetting, groups: list[Group], plain: Array, last: int) -> Ended:
    left_out = weights_for(CORPUS)
    start = _bm25_only(left_out)
    local_only = [
        np.nanmean([trace(one, start, _learner(start)).offline.get(last, np.nan) for one in group.situations])
        for group in groups
    ]
    unseen = np.array([_without_clicks(group, left_out, "start weights", last) for group in groups])
    promise = guarantee(setting.people, dropouts=_DROPOUTS, corrupt=_CORRUPT)
    return Ended(
        _estimate(np.array(local_only)), _estimate(plain), _estimate(unseen), promise.min_clients, promise.honest
    )


def _estimate(values: Array) -> Estimate:
    """Mean and standard error over the seeds."""
    return Estimate(float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values))))


def main(arguments: str) -> None:
    """Writes the records to standard output as they come."""
    from foltr.lab.data.docstring_files import write_docstrings

    threading.Thread(target=_end_with_the_parent, daemon=True).start()
    setting = msgspec.json.decode(arguments, type=StorySetting)
    if setting.write_to:
        write_docstrings(setting.write_to)
    for record in run_story(setting):
        sys.stdout.write(msgspec.json.encode(record).decode() + "\n")
        sys.stdout.flush()


def _end_with_the_parent() -> None:
    """A parent that was killed leaves no process behind: nothing here needs to be finished."""
    while sys.stdin.readline():
        pass
    os._exit(1)


if __name__ == "__main__":
    main(sys.argv[1])
