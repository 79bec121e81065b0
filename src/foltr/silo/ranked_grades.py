"""Grades as S3 made them: not a person's judgment, but the places of a list that a search engine returned.

Source: S3 section VI-A, "top100 ranking as the ground-truth": of MS MARCO's 100 documents a query the first 10 count as
highly relevant (2), the others as relevant (1). Those lists come from a lexical search engine (Indri's query
likelihood). Here they are made in the same way, by the Dirichlet-smoothed language model of bodies over the whole
corpus; documents without any word of the query are never in them.

What this does to the comparison: pairs across parties are guessed from counts of words, and these grades are a function
of counts of words. Agreement between the two is built in.

Differs from the paper: the engine is ours, since the paper's lists are not to be had.
"""

import numpy as np

from foltr.silo.pairs import guessed_grades
from foltr.text.corpus import Corpus
from foltr.text.counts import TextCounts
from foltr.text.features import exact, of_query
from foltr.text.lexical import NAMES
from foltr.types import Array

LISTED = 100
_ENGINE, _HAS_A_WORD = NAMES.index("LMIR.DIR"), NAMES.index("IDF")


def ranked(corpus: Corpus, counted: TextCounts, terms: list[Array], queries: Array) -> Corpus:
    """The corpus with grades of these queries only, by the place of each document in a list of 100."""
    body, everything = exact(counted.body), np.arange(len(corpus.ids))
    rows = []
    for query in np.unique(queries).tolist():
        features = of_query(body, everything, terms[query])
        scores = np.where(features[:, _HAS_A_WORD] > 0, features[:, _ENGINE], -np.inf)
        best = np.argsort(-scores, kind="stable")[:LISTED]
        best = best[scores[best] > -np.inf]
        grades = guessed_grades(len(best))
        order = np.argsort(best)
        rows.append(np.column_stack([np.full(len(best), query), best, grades])[order])
    return corpus._replace(judgments=np.concatenate(rows).astype(np.int32))
