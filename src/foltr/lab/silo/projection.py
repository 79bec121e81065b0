"""The effect of sketches on features: relevant and irrelevant pairs projected on one plane, and their separation.

Source: S3 figure 5: 400 pairs, features from exact counts, from count sketch and count-min of several sizes, and from
z1 of z rows. Two metrics:

    AUC            of a least-squares direction that was fitted to one half of the pairs, on the other half
    features off   mean absolute error of the features against the exact ones, in standard deviations of those

Differs from the paper: t-SNE finds new axes for every panel; here all settings share the two principal axes of the
exact features, so that differences between panels are due to the sketch.
"""

from typing import Annotated, Literal

import msgspec
import numpy as np

from foltr.lab.silo.retrieval import key_of
from foltr.rng import stream
from foltr.silo.pairs import judged
from foltr.silo.sketches import Family, estimate, family, hash_terms, sketch_documents
from foltr.text.analysis import ENGLISH, TextAnalysis
from foltr.text.corpus import Corpus, Pairs
from foltr.text.counts import Counts, count_corpus, known_terms, take
from foltr.text.features import Field, exact, label
from foltr.types import Array

Count = Annotated[int, msgspec.Meta(ge=1)]


class Projection(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="projection"):
    counts: Literal["exact", "count", "count-min"] = "count"
    rows: Count = 30  # z
    columns: Count = 200  # w
    real_rows: Count = 30  # z1: rows that are read
    points: Annotated[int, msgspec.Meta(ge=8)] = 400
    words: TextAnalysis = ENGLISH  # the text analysis of all parties


def project(corpus: Corpus, setting: Projection, *, seed: int) -> tuple[dict[str, float], dict[str, Array]]:
    """The two metrics, and x, y and grade of every point."""
    counted = count_corpus(corpus, setting.words)
    pairs = _sample(corpus, setting.points, seed=seed)
    terms = [known_terms(text, counted.vocabulary, setting.words) for text in corpus.query_texts]
    title, body = exact(counted.title), exact(counted.body)
    truth = label(pairs, title, body, terms).features.astype(np.float64)
    features = truth
    if setting.counts != "exact":
        functions = family(key_of(seed), rows=setting.rows, columns=setting.columns)
        words = list(counted.vocabulary)
        title = _sketched(title, counted.title, words, functions, pairs, setting)
        body = _sketched(body, counted.body, words, functions, pairs, setting)
        features = label(pairs, title, body, terms).features.astype(np.float64)
    centre, spread = truth.mean(axis=0), np.maximum(truth.std(axis=0), 1e-12)
    truth, features = (truth - centre) / spread, (features - centre) / spread
    axes = np.linalg.svd(truth, full_matrices=False)[2][:2]
    points = features @ axes.T
    numbers = {"AUC": separation(features, pairs.grades), "features off": float(np.abs(features - truth).mean())}
    return numbers, {"projection x": points[:, 0], "projection y": points[:, 1], "projection grade": pairs.grades}


def _sample(corpus: Corpus, points: int, *, seed: int) -> Pairs:
    """As many relevant as irrelevant pairs of the corpus's judged queries, in a random order of queries."""
    queries, everything = np.unique(corpus.judgments[:, 0]), np.arange(len(corpus.ids))
    pairs = judged(corpus, queries.astype(np.int64), everything, num_negatives=10, seed=seed)
    order = stream(seed, purpose="choice").permutation(len(pairs.queries))
    relevant = pairs.grades[order] > 0
    half = min(points // 2, int(relevant.sum()), int((~relevant).sum()))
    chosen = np.sort(np.concatenate([order[relevant][:half], order[~relevant][:half]]))
    return Pairs(*(column[chosen] for column in pairs))


def _sketched(
    field: Field, counts: Counts, words: list[str], functions: Family, pairs: Pairs, setting: Projection
) -> Field:
    """The field with counts estimated from sketches of the sampled documents."""
    documents = np.unique(pairs.documents)
    hashes = hash_terms(words, functions)
    sketches = sketch_documents(setting.counts, take(counts, documents), hashes)
    few = setting.real_rows < setting.rows
    read = hashes.shape._replace(rows=setting.real_rows) if few else hashes.shape

    def look_up(asked: Array, terms: Array) -> Array:
        places = np.searchsorted(documents, asked)
        part = slice(0, setting.real_rows)  # all rows have the same distribution: the first will do
        wanted = hashes._replace(shape=read, columns=np.ascontiguousarray(hashes.columns[terms][:, part]),
                                 signs=np.ascontiguousarray(hashes.signs[terms][:, part]))  # fmt: skip
        cells = np.ascontiguousarray(sketches.cells[places][:, part])
        return estimate(sketches._replace(shape=read, cells=cells), wanted)

    return field._replace(look_up=look_up)


def separation(features: Array, grades: Array) -> float:
    """AUC on every second point of a direction fitted to the others."""
    relevant = grades > 0
    design = np.column_stack([features, np.ones(len(features))])
    half = np.arange(len(features)) % 2 == 0
    direction = np.linalg.lstsq(design[half], relevant[half].astype(np.float64), rcond=None)[0]
    scores, truth = design[~half] @ direction, relevant[~half]
    distances = scores[truth][:, None] - scores[~truth][None, :]
    return float(((distances > 0) + 0.5 * (distances == 0)).mean())
