"""Every regime of cross-silo learning on one corpus, as metrics: of each party, and of all on average.

Source: S3 section VI-A and Table I. All rankers are tested alike, on the test queries of all parties over the documents
of all, with exact features: the paper's "external test set". In addition, "gain" is the change on a party's own queries
from Local to CS-F-LTR; a party gains or loses where the 95 % interval of its change over queries excludes 0.

Beside S3's regimes stand BM25, which needs no label (`evaluation`), and FPDGD (S0 Algorithm 2) among organisations:
each is a client whose users search with their own queries and click. A list of candidates is what `parties.prepare`
makes for training: own documents with exact features, and documents of others that reverse top-K found, with features
from sketches. Users click by the true grades, which no party learns. Without noise: among a handful of parties no noise
with a meaningful epsilon leaves a usable ranker.

Differs from the papers: S3's test documents are a sample; here every document of the corpus is ranked. Neither paper
has FPDGD on these features.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from foltr.clicks import Users, click_model
from foltr.lab.silo.evaluation import METRICS, Change, bm25_metrics, change, ranker_metrics, relevant_queries
from foltr.lab.silo.retrieval import key_of
from foltr.lab.simulation.compiled import engine
from foltr.lab.simulation.rounds import run
from foltr.lab.simulation.task import ClientPools, Federated, Task
from foltr.learners.pdgd import Pdgd
from foltr.privacy.mechanisms import NoPrivacy
from foltr.rankers import Linear
from foltr.rng import stream
from foltr.silo.noise import Uniforms
from foltr.silo.owners import default_limits
from foltr.silo.parties import Setup, SiloFederation, TrainTest, build_federation, entries_read, prepare, spent
from foltr.silo.training import REGIMES, augmented
from foltr.text.corpus import Corpus, grade_of
from foltr.text.features import Labelled, dataset, join
from foltr.types import Array

TITLES = {
    "bm25": "BM25 (one field, no labels)",
    "local": "Local",
    "local_plus": "Local+",
    "global": "Global",
    "cs_f_ltr": "CS-F-LTR",
    "fpdgd": "FPDGD",
    "pooled": "pooled",
}
MAIN = METRICS.index("nDCG@10")
ROUNDS, INTERACTIONS = 200, 10  # of FPDGD; interactions of each party in a round
_GRADES = (2, 3, 5)  # for which there are click tables


class RegimeComparison(NamedTuple):
    rankers: dict[str, Array]  # trained regime -> [parties, d]
    own: dict[str, Array]  # regime -> [parties, metrics] on each party's own queries
    together: dict[str, Array]  # the same on the queries of all
    gains: list[Change]  # [parties] of nDCG@10 on own queries, from Local to CS-F-LTR


def compare(federation: SiloFederation, data: TrainTest) -> RegimeComparison:
    """Rankers of all regimes and their metrics."""
    top_grade, setup = int(federation.corpus.judgments[:, 2].max()), federation.setup
    measured = {"bm25": [bm25_metrics(federation, data.tests, top_grade=top_grade)] * setup.parties}
    rankers = {name: regime(data.pairs, setup.sgd, seed=federation.seed) for name, regime in REGIMES.items()}
    rankers["fpdgd"] = train_on_clicks(federation.corpus, augmented(data.pairs), seed=federation.seed)
    measured |= {name: ranker_metrics(found, data.tests, top_grade=top_grade) for name, found in rankers.items()}
    measured = {name: measured[name] for name in TITLES}
    own = {name: [row[party] for party, row in enumerate(rows)] for name, rows in measured.items()}
    return RegimeComparison(
        rankers,
        {name: np.stack([part.mean(axis=0) for part in parts]) for name, parts in own.items()},
        {name: np.stack([np.concatenate(row).mean(axis=0) for row in rows]) for name, rows in measured.items()},
        [change(a[:, MAIN], b[:, MAIN]) for a, b in zip(own["local"], own["cs_f_ltr"], strict=True)],
    )


def train_on_clicks(corpus: Corpus, lists: Sequence[Labelled], *, seed: int, users: str = "navigational") -> Array:
    """[parties, d] one ranker trained by FPDGD on clicks on the parties' lists, repeated for every party."""
    known = [_with_true_grades(corpus, one) for one in lists]
    data = dataset(join(*known))
    pools = [np.searchsorted(data.queries, np.unique(one.pairs.queries)) for one in known]
    stop = np.cumsum([len(pool) for pool in pools])
    held = ClientPools(np.concatenate(pools), stop - [len(pool) for pool in pools], stop, np.zeros(len(lists), int))
    top = int(corpus.judgments[:, 2].max())
    grades = next((count for count in _GRADES if count > top), _GRADES[-1])
    federation = Federated(len(lists), INTERACTIONS, ROUNDS)
    click_models = (click_model(Users(users), grades=grades),)
    task = Task(data, grades, click_models, Linear(), Pdgd(), federation, NoPrivacy(), seed, held)
    *_, last = run(task, engine(task))
    return np.tile(last.parameters, (len(lists), 1))


def _with_true_grades(corpus: Corpus, lists: Labelled) -> Labelled:
    """Lists with the grades by which users click."""
    pairs = lists.pairs
    grades = grade_of(corpus, pairs.queries, pairs.documents)
    return lists._replace(pairs=pairs._replace(grades=np.minimum(grades, _GRADES[-1] - 1).astype(np.int8)))


def simulate(corpus: Corpus, setup: Setup, *, seed: int) -> SiloFederation:
    """Parties whose hash key, secrets and noise all follow from the seed: repeatable, and no protection."""
    secrets = [key_of(seed + party) for party in range(1, setup.parties + 1)]
    return build_federation(corpus, setup, seed=seed, key=key_of(seed), uniforms=repeatable(seed), secrets=secrets)


def measure(corpus: Corpus, setup: Setup, *, seed: int) -> tuple[dict[str, float], Array]:
    """The metrics, and the ranker of CS-F-LTR."""
    federation = simulate(corpus, setup, seed=seed)
    data = prepare(federation)
    result = compare(federation, data)
    numbers: dict[str, float] = {
        "test queries": len(data.test),
        "test queries with a relevant document": sum(map(relevant_queries, data.tests)),
    }
    for regime, title in TITLES.items():
        for place, metric in enumerate(METRICS):
            each = result.together[regime][:, place]
            numbers[f"{metric}, average, {title}"] = float(each.mean())
            numbers |= {f"{metric}, party {party + 1}, {title}": float(value) for party, value in enumerate(each)}
    for party, gain in enumerate(result.gains, start=1):
        numbers |= {f"gain, mean, party {party}": gain.mean, f"gain, low, party {party}": gain.low,
                    f"gain, high, party {party}": gain.high}  # fmt: skip
    numbers |= {f"parties, {word}": sum(gain.verdict == word for gain in result.gains) for word in ("gains", "loses")}
    for name, figure in zip(("answers", "statistics", "in total"), spent(federation), strict=True):
        if math.isfinite(figure):
            numbers[f"epsilon of a word, {name}"] = figure
    numbers["MB sent"] = federation.sent.total() / 1e6
    numbers["entries read / allowance"] = entries_read(federation) / default_limits(setup.top).total
    return numbers, result.rankers["cs_f_ltr"][0]


def repeatable(seed: int) -> Uniforms:
    """New numbers at every call, the same ones for the same seed."""
    called = [0]

    def uniforms(size: int) -> Array:
        called[0] += 1
        return stream(seed, round=called[0], purpose="noise").uniform(size)

    return uniforms


def progress_value(numbers: dict[str, float]) -> float:
    """The metric of the progress bar."""
    return float(np.nan_to_num(numbers[f"{METRICS[MAIN]}, average, {TITLES['cs_f_ltr']}"]))
