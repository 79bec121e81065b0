"""Start weights: fitted once on simulated known-item queries, and shipped with the node.

    python -m foltr.lab.people.start_weights    writes node/learning/start_weights.json and
                                                    lab/people/leave_one_out.json

Softmax of the target against the other candidates (the learner's own loss) with a Gaussian prior at plain BM25. The
corpora are the machine's documents and Python's docstrings, whose licences allow it; nfcorpus, vaswani and
msmarco-sample are for research only and never used, so that they test the shipped weights. For the two corpora that are
used, `leave_one_out.json` has weights fitted without each. A weight that should not be negative (more of the query
found is never worse) and would be, is 0. Weights of what was opened are set by hand: there is nothing to fit them on
before somebody clicks; they were chosen on the development seeds.
"""

import argparse
import datetime
import json
from collections.abc import Iterable

import numpy as np

from foltr.files import write_text
from foltr.lab.people.corpora import load_texts
from foltr.lab.people.people import person, searches_of
from foltr.lab.people.searching import Prepared, Searcher
from foltr.lab.people.weights import HISTORY, LEFT_OUT, SHIPPED, Weights, listed, shipped
from foltr.learners.softmax import Comparison, minimise
from foltr.text.matching import columns
from foltr.types import Array

DEVELOPMENT_SEEDS = (100, 101, 102, 103, 104)  # figures use seeds from 1 on
CORPORA = ("machine", "docstrings")
QUERIES = 600  # of a corpus and seed
PRIOR = 0.0025  # lambda for each query: half of it raised known items by .005 and cost judged queries as much
BM25_START = 3.0  # weight of BM25 in the prior's mean; all others 0
LEXICAL = tuple(name for name in shipped().names if name not in HISTORY)  # a feature joins by an entry in that file
MAY_BE_NEGATIVE = ("length",)
BY_HAND = {"opened": 0.35, "folder": 0.35}


def development_searches(name: str, queries: int = QUERIES) -> list[Prepared]:
    """Known-item searches of the development seeds."""
    searcher = Searcher(load_texts(name))
    searches = []
    for seed in DEVELOPMENT_SEEDS:
        searching = person(searcher.texts, seed=seed, number=0, searches=queries, preferences=False)
        searches += [searcher.known_item(query) for query in searches_of(searcher.texts, searching, searcher.idf)]
    return searches


def fit(searches: Iterable[Prepared], names: tuple[str, ...] = LEXICAL, prior: float = PRIOR) -> Array:
    """[names] weights; those that must not be negative and would be are 0. `prior`: lambda for each search."""
    comparisons = list(_comparisons(searches, columns(names)))
    start = np.array([BM25_START if name == "bm25" else 0.0 for name in names])
    free = np.ones(len(names), dtype=bool)
    bound = ~np.isin(names, MAY_BE_NEGATIVE)
    while True:
        reduced = [Comparison(pair.differences[:, free], pair.offsets) for pair in comparisons]
        weights = np.zeros(len(names))
        weights[free] = minimise(reduced, start[free], prior * len(comparisons))
        if not (wrong := free & bound & (weights < 0)).any():
            return weights
        free &= ~wrong


def _comparisons(searches: Iterable[Prepared], places: Array) -> Iterable[Comparison]:
    for search in searches:
        target = np.flatnonzero(search.grades)
        if len(target) == 1 and len(search.grades) > 1:
            features = search.features[:, places]
            rivals = np.delete(features, target, axis=0)
            yield Comparison(rivals - features[target], np.zeros(len(rivals)))


def with_hand_weights(lexical: Array) -> Weights:
    return Weights((*LEXICAL, *HISTORY), np.array([*lexical, *(BY_HAND[name] for name in HISTORY)]))


def main() -> None:
    parser = argparse.ArgumentParser(description="Fits the start weights of the node and writes them.")
    parser.add_argument("--queries", type=int, default=QUERIES, help="known-item queries of each corpus and seed")
    queries = parser.parse_args().queries
    searches = {name: development_searches(name, queries) for name in CORPORA}
    notes = {name: f"{load_texts(name).note}, {len(prepared):,} queries" for name, prepared in searches.items()}
    every = [search for prepared in searches.values() for search in prepared]
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    origin = {"corpora": notes, "seeds": list(DEVELOPMENT_SEEDS), "prior": PRIOR}
    content = {
        "version": 0, "kind": "linear", "features": listed(with_hand_weights(fit(every))), "date": today,
        "from": "start", "fitted": origin,
    }  # fmt: skip
    write_text(SHIPPED, json.dumps(content, indent=1, allow_nan=False) + "\n")
    without = {
        left_out: listed(
            with_hand_weights(fit([search for name in CORPORA if name != left_out for search in searches[name]]))
        )
        for left_out in CORPORA
    }
    write_text(LEFT_OUT, json.dumps({"fitted": origin, "without": without}, indent=1, allow_nan=False) + "\n")


if __name__ == "__main__":
    main()
