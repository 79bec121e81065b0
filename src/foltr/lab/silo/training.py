"""Every regime of cross-silo learning on one corpus, as numbers: of each party, and of all on average.

Source: S3 section VI-A and Table I. All rankers are tested alike, on the test queries of all parties over the documents
of all, with exact features: the paper's "external test set". Beside it "gain" is what a party gains on its own queries
from Local to CS-F-LTR; it gains or loses where the 95 % interval of its change over queries leaves out 0.

Differs from the paper: its test documents are a sample; here every document of the corpus is ranked.
"""

import math
from typing import NamedTuple

import numpy as np

from foltr.lab.silo.clicks import from_clicks
from foltr.lab.silo.retrieval import key_of
from foltr.rng import stream
from foltr.silo.crossing import Prepared, prepare
from foltr.silo.noise import Uniforms
from foltr.silo.parties import Federation, Setup, found, spent
from foltr.silo.quality import MEASURES, Change, change, every_mark
from foltr.silo.train import REGIMES, augmented
from foltr.text.corpus import Corpus
from foltr.types import Array

TITLES = {
    "local": "Local",
    "local_plus": "Local+",
    "global": "Global",
    "cs_f_ltr": "CS-F-LTR",
    "fpdgd": "FPDGD",
    "pooled": "pooled",
}
MAIN = MEASURES.index("nDCG@10")


class Trained(NamedTuple):
    rankers: dict[str, Array]  # regime -> [parties, d]
    own: dict[str, Array]  # regime -> [parties, measures] on each party's own queries
    together: dict[str, Array]  # the same on the queries of all
    gains: list[Change]  # [parties] of nDCG@10 on own queries, from Local to CS-F-LTR


def trained(federation: Federation, prepared: Prepared) -> Trained:
    """Rankers of all regimes and what they are worth."""
    top_grade, setup = int(federation.corpus.judgments[:, 2].max()), federation.setup
    rankers = {name: regime(prepared.work, setup.sgd, seed=federation.seed) for name, regime in REGIMES.items()}
    rankers["fpdgd"] = from_clicks(federation.corpus, augmented(prepared.work), seed=federation.seed)
    marked = {name: every_mark(rankers[name], prepared.tests, top_grade=top_grade) for name in TITLES}
    own = {name: [row[party] for party, row in enumerate(rows)] for name, rows in marked.items()}
    return Trained(
        {name: rankers[name] for name in TITLES},
        {name: np.stack([part.mean(axis=0) for part in parts]) for name, parts in own.items()},
        {name: np.stack([np.concatenate(row).mean(axis=0) for row in rows]) for name, rows in marked.items()},
        [change(a[:, MAIN], b[:, MAIN]) for a, b in zip(own["local"], own["cs_f_ltr"], strict=True)],
    )


def simulated(corpus: Corpus, setup: Setup, *, seed: int) -> Federation:
    """Parties whose key, secrets and noise all come from the seed: repeatable, and nobody is protected."""
    secrets = [key_of(seed + party) for party in range(1, setup.parties + 1)]
    return found(corpus, setup, seed=seed, key=key_of(seed), uniforms=_repeatable(seed), secrets=secrets)


def measured(corpus: Corpus, setup: Setup, *, seed: int) -> tuple[dict[str, float], Array]:
    """The numbers, and the ranker of CS-F-LTR."""
    federation = simulated(corpus, setup, seed=seed)
    made = trained(federation, prepare(federation))
    numbers: dict[str, float] = {}
    for regime, title in TITLES.items():
        for place, measure in enumerate(MEASURES):
            each = made.together[regime][:, place]
            numbers[f"{measure}, average, {title}"] = float(each.mean())
            numbers |= {f"{measure}, party {party + 1}, {title}": float(value) for party, value in enumerate(each)}
    for party, gain in enumerate(made.gains, start=1):
        numbers |= {f"gain, mean, party {party}": gain.mean, f"gain, low, party {party}": gain.low,
                    f"gain, high, party {party}": gain.high}  # fmt: skip
    numbers |= {f"parties, {word}": sum(gain.verdict == word for gain in made.gains) for word in ("gains", "loses")}
    if math.isfinite(spent(federation)):
        numbers["epsilon of a word"] = spent(federation)
    return numbers, made.rankers["cs_f_ltr"][0]


def _repeatable(seed: int) -> Uniforms:
    """New numbers at every call, the same ones for the same seed."""
    called = [0]

    def uniforms(size: int) -> Array:
        called[0] += 1
        return stream(seed, round=called[0], purpose="noise").uniform(size)

    return uniforms


def best_known(numbers: dict[str, float]) -> float:
    """What a progress bar shows."""
    return float(np.nan_to_num(numbers[f"{MEASURES[MAIN]}, average, {TITLES['cs_f_ltr']}"]))
