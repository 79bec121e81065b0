"""What sketches do to features: relevant and irrelevant pairs of query and document in one plane, and how far apart.

Source: S3 figure 5: 400 pairs, features from exact counts, from count sketch and count-min of several sizes, and from
z1 of z rows. Two numbers go with the picture:

    AUC       of a least-squares direction that was fitted to one half of the pairs, on the other half
    features off   mean absolute deviation of the features from the exact ones, in standard deviations of those

Differs from the paper: t-SNE finds axes of its own for every panel; here all settings share the two principal axes of
the exact features, so that what moves from panel to panel was moved by the sketch.
"""

from typing import Annotated, Literal

import msgspec
import numpy as np

from foltr.lab.silo.retrieval import key_of
from foltr.rng import stream
from foltr.silo.hashing import Family, family, hash_terms
from foltr.silo.pairs import Pairs, judged
from foltr.silo.sketch import estimate, sketch_documents
from foltr.text.corpus import Corpus
from foltr.text.counts import Counts, count_corpus, known_terms, take
from foltr.text.features import Field, exact, label
from foltr.types import Array

Count = Annotated[int, msgspec.Meta(ge=1)]


class Picture(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="picture"):
    counts: Literal["exact", "count", "count-min"] = "count"
    rows: Count = 30  # z
    columns: Count = 200  # w
    true_rows: Count = 30  # z1: so many of the rows are read
    points: Annotated[int, msgspec.Meta(ge=8)] = 400


def drawn(corpus: Corpus, made: Picture, *, seed: int) -> tuple[dict[str, float], dict[str, Array]]:
    """The two numbers, and x, y and grade of every point."""
    counted = count_corpus(corpus)
    pairs = _sample(corpus, made.points, seed=seed)
    terms = [known_terms(text, counted.vocabulary) for text in corpus.query_texts]
    title, body = exact(counted.title), exact(counted.body)
    truth = label(pairs, title, body, terms).features.astype(np.float64)
    shown = truth
    if made.counts != "exact":
        functions = family(key_of(seed), rows=made.rows, columns=made.columns)
        words = list(counted.vocabulary)
        title = _sketched(title, counted.title, words, functions, pairs, made)
        body = _sketched(body, counted.body, words, functions, pairs, made)
        shown = label(pairs, title, body, terms).features.astype(np.float64)
    centre, spread = truth.mean(axis=0), np.maximum(truth.std(axis=0), 1e-12)
    truth, shown = (truth - centre) / spread, (shown - centre) / spread
    axes = np.linalg.svd(truth, full_matrices=False)[2][:2]
    points = shown @ axes.T
    numbers = {"AUC": separation(shown, pairs.grades), "features off": float(np.abs(shown - truth).mean())}
    return numbers, {"picture x": points[:, 0], "picture y": points[:, 1], "picture grade": pairs.grades}


def _sample(corpus: Corpus, points: int, *, seed: int) -> Pairs:
    """As many relevant as irrelevant pairs of the corpus's judged queries, in a random order of queries."""
    queries, everything = np.unique(corpus.judgments[:, 0]), np.arange(len(corpus.ids))
    pairs = judged(corpus, queries.astype(np.int64), everything, others=10, seed=seed)
    order = stream(seed, purpose="choice").permutation(len(pairs.queries))
    relevant = pairs.grades[order] > 0
    half = min(points // 2, int(relevant.sum()), int((~relevant).sum()))
    chosen = np.sort(np.concatenate([order[relevant][:half], order[~relevant][:half]]))
    return Pairs(*(column[chosen] for column in pairs))


def _sketched(field: Field, counts: Counts, words: list[str], functions: Family, pairs: Pairs, made: Picture) -> Field:
    """The field as sketches of the sampled documents tell it."""
    documents = np.unique(pairs.documents)
    hashes = hash_terms(words, functions)
    sketches = sketch_documents(made.counts, take(counts, documents), hashes)
    few = made.true_rows < made.rows
    read = hashes.shape._replace(rows=made.true_rows) if few else hashes.shape

    def look_up(asked: Array, terms: Array) -> Array:
        places = np.searchsorted(documents, asked)
        part = slice(0, made.true_rows)  # hashes of all rows are alike, so the first are as good as any
        told = hashes._replace(shape=read, columns=np.ascontiguousarray(hashes.columns[terms][:, part]),
                               signs=np.ascontiguousarray(hashes.signs[terms][:, part]))  # fmt: skip
        cells = np.ascontiguousarray(sketches.cells[places][:, part])
        return estimate(sketches._replace(shape=read, cells=cells), told)

    return field._replace(look_up=look_up)


def separation(features: Array, grades: Array) -> float:
    """AUC on every second point of a direction fitted to the others."""
    relevant = grades > 0
    design = np.column_stack([features, np.ones(len(features))])
    half = np.arange(len(features)) % 2 == 0
    direction = np.linalg.lstsq(design[half], relevant[half].astype(np.float64), rcond=None)[0]
    scores, truth = design[~half] @ direction, relevant[~half]
    gaps = scores[truth][:, None] - scores[~truth][None, :]
    return float(((gaps > 0) + 0.5 * (gaps == 0)).mean())
