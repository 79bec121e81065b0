"""The story of `foltr demo`: simulated people learn together from plain BM25, told as records, one JSON line each.

Every person has a private part of Python's docstrings as an index of their own, lasting preferences (`people`), and a
node that starts from BM25 alone, so that learning can be seen. Each round every person makes some searches with the
shared weights until five more had a click; what is sent is the clipped difference of a local fit, and the coordinator
learns the sum of all differences only, from two operators. The first seed runs as a deployed federation does, with
state on the disk (`deployed`); the other seeds run the same protocol without it. All parties are in this process.

All seeds advance together: a round's record has the mean over the seeds and its standard error. Quality is MRR@10 of
held-out searches of the same people, which nobody learns from. Prior, clip and server step are those that a node uses
in a federation; the weight of BM25 was chosen on the seeds 1001 to 1005, never on those that are shown.

    python -m foltr.lab.people.story '{"seeds": [1, 2, 3, 4, 5]}'       # ends when its standard input is closed
"""

import contextlib
import os
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple, TypeAlias

import msgspec
import numpy as np

from foltr.federation.announcement import Ranker
from foltr.federation.engine import EngineCollector
from foltr.federation.round import RoundResult, run_rounds
from foltr.federation.schedule import synchronous
from foltr.federation.server import add_scaled, init_state
from foltr.lab.people.corpora import Texts, load_texts, subset
from foltr.lab.people.deployed import Deployed, deployed, with_traffic
from foltr.lab.people.experiment import Course, Situation, trace, without_clicks
from foltr.lab.people.settings import Together
from foltr.lab.people.together import PeopleEngine, held_out_quality, person_with_index, search_until, separate_indexes
from foltr.lab.people.weights import Weights, shipped, weights_for
from foltr.learners.softmax import SoftmaxMap
from foltr.secagg.two_in_process import two_server_sum
from foltr.secagg.two_servers import min_clients
from foltr.types import Array, Updates

CORPUS = "docstrings"
SEEDS = (1, 2, 3, 4, 5)
BM25_WEIGHT = 5.0  # logits between the worst and the best candidate; of 3, 5 and 10 on the development seeds
Count = Annotated[int, msgspec.Meta(ge=1)]


class StorySetting(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Size of the story."""

    people: Annotated[int, msgspec.Meta(ge=4, le=200)] = 20
    seeds: Annotated[tuple[int, ...], msgspec.Meta(min_length=2)] = SEEDS
    rounds: Count = 10
    clicks_a_round: Count = 5
    tests: Count = 50  # held-out searches of a person
    write_to: str = ""  # a folder that the documents are also written to, for the person who watches
    state: str = ""  # a folder for the state of the deployed federation; none: a temporary one


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
    """Results at the end of the story."""

    local_only: Estimate  # the same people, each with their own clicks only
    plain_bm25: Estimate  # one field of plain words: file names and parts of identifiers are not searched
    left_out: Estimate  # start weights that were fitted without this corpus
    sum_of: int  # people in every sum, at least


Record: TypeAlias = Begun | Indexed | Measured | Ended


class Group(NamedTuple):
    """The people of one seed, on their way."""

    situations: list[Situation]
    engine: PeopleEngine  # with the shared weights
    counters: list[Course]  # the same people with the start weights
    rounds: Iterator[RoundResult]
    federation: Deployed | None  # of the first seed
    traffic: list[tuple[int, int]]  # bytes up and down of the busiest person of the deployed federation, by round


def run_story(setting: StorySetting, texts: Texts | None = None) -> Iterator[Record]:
    """The records of the story, in order."""
    with contextlib.ExitStack() as stack:
        state = setting.state or stack.enter_context(tempfile.TemporaryDirectory(prefix="foltr-federation-"))
        yield from _story(setting, load_texts(CORPUS) if texts is None else texts, Path(state))


def _story(setting: StorySetting, texts: Texts, state: Path) -> Iterator[Record]:
    weights = shipped()
    yield Begun(texts.note, len(texts.titles), setting)
    groups: list[Group] = []
    for seed in setting.seeds:
        parts = separate_indexes(texts, setting.people, seed)
        groups.append(_group(texts, parts, setting, weights, seed, state=None if groups else state))
        yield Indexed(len(groups), min(map(len, parts)), max(map(len, parts)))
    last = setting.rounds * setting.clicks_a_round
    fixed = {row: np.array([_without_clicks(group, weights, row, last) for group in groups])
             for row in ("BM25", "BM25, node's words", "start weights")}  # fmt: skip
    yield _measured(setting, groups, weights, fixed, [_bm25_only(weights).values] * len(groups))
    for _ in range(setting.rounds):
        yield _measured(setting, groups, weights, fixed, [next(group.rounds).parameters for group in groups])
    yield _ended(groups, fixed["BM25"], last)


def _group(
    texts: Texts, parts: Sequence[Array], setting: StorySetting, weights: Weights, seed: int, *, state: Path | None
) -> Group:
    """The people of a seed; with a folder for its state as a deployed federation."""
    together = Together(
        people=setting.people, preferences=True, searches_with_click=setting.rounds * setting.clicks_a_round,
        releases=setting.rounds, tests=setting.tests,
    )  # fmt: skip
    start = _bm25_only(weights)
    situations = [person_with_index(subset(texts, part), together, weights, seed, n) for n, part in enumerate(parts)]
    engine = PeopleEngine([Course(one, start) for one in situations], together, _learner(weights))
    federation, collector, traffic = None, EngineCollector(engine, _secure_mean), list[tuple[int, int]]()
    if state is not None:
        federation = deployed(
            engine.learn, setting.people, Ranker(0, start.names, start.values.astype("<f8").tobytes()),
            clip=together.clip, server_learning_rate=together.server_step, folder=state,
        )  # fmt: skip
    rounds = run_rounds(
        init_state(start.values), synchronous(setting.people, 1, setting.rounds),
        federation.collector if federation else collector, server_optimizer=add_scaled(together.server_step),
    )  # fmt: skip
    if federation is not None:
        rounds = with_traffic(rounds, federation.transport, traffic)
    counters = [Course(one, weights) for one in situations]
    return Group(situations, engine, counters, rounds, federation, traffic)


def _secure_mean(updates: Updates, version: int) -> Array:  # noqa: ARG001
    return two_server_sum(updates.values) / len(updates.values)


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
    sent, received = groups[0].traffic[-1] if done else (0, 0)
    return Measured(
        round=done, clicks=clicks, bm25=_estimate(bm25), start_weights=_estimate(fixed["start weights"]),
        counting=_estimate(counting), learned=_estimate(learned), gain=_estimate(learned - bm25),
        numbers=len(weights.names) if done else 0, sent=sent, received=received,
    )  # fmt: skip


def _ended(groups: list[Group], plain: Array, last: int) -> Ended:
    left_out = weights_for(CORPUS)
    start = _bm25_only(left_out)
    local_only = [
        np.nanmean([trace(one, start, _learner(start)).offline.get(last, np.nan) for one in group.situations])
        for group in groups
    ]
    unseen = np.array([_without_clicks(group, left_out, "start weights", last) for group in groups])
    assert groups[0].federation is not None
    fewest = min_clients(groups[0].federation.collector.setup)
    return Ended(_estimate(np.array(local_only)), _estimate(plain), _estimate(unseen), fewest)


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
