"""BM25 and BM25F.

BM25 is Lucene's ("lucene" in bm25s): with tf occurrences of a term in a text of |d| words, m words on average, N
documents and df of them with the term,

    sum over the query's terms  log(1 + (N - df + 1/2) / (df + 1/2))  tf / (tf + k1 (1 - b + b |d| / m))

with k1 = 1.2 and b = .75; repeated terms count as often. Over several fields as one, tf, |d| and m are sums over the
fields. BM25F (Robertson, Zaragoza and Taylor, 2004) is the same with one pseudo-frequency over the fields,

    tf = sum over fields  weight tf_f / (1 - b_f + b_f |d_f| / m_f)        and saturation tf / (tf + k1)

where m_f is the mean over the documents that have the field. Stop words count neither in lengths nor, unless a query
consists of them, as terms.

Differs from the paper: nothing; k1 + 1 in the numerator, which changes no order, is left out as in Lucene.
"""

from typing import NamedTuple

import numpy as np

from foltr.text.fields import FIELDS
from foltr.types import Array

K1, B = 1.2, 0.75


class FieldConstants(NamedTuple):
    weight: float
    b: float


BM25F = {
    "title": FieldConstants(3.0, 0.5),
    "body": FieldConstants(1.0, 0.75),
    "name": FieldConstants(2.0, 0.5),
    "path": FieldConstants(1.0, 0.5),
    "sender": FieldConstants(1.0, 0.5),
    "recipients": FieldConstants(0.5, 0.5),
}
_WEIGHTS = np.array([BM25F[field].weight for field in FIELDS])
_SLOPES = np.array([BM25F[field].b for field in FIELDS])


def idf(documents: int | Array, frequency: Array) -> Array:
    """[terms] of document frequencies; a term that no document has counts as one that a single document has."""
    df = np.maximum(frequency, 1)
    return np.log1p((np.maximum(documents, df) - df + 0.5) / (df + 0.5))


def bm25(counts: Array, lengths: Array, mean_length: float | Array, weights: Array) -> Array:
    """[...] from counts [..., terms], lengths [...] and weights [terms] (idf times repeats)."""
    damping = K1 * (1 - B + B * lengths / np.maximum(mean_length, 1e-9))
    return (counts / (counts + damping[..., None])) @ weights


def bm25f(counts: Array, lengths: Array, mean_lengths: Array, weights: Array) -> Array:
    """[documents] from counts [documents, fields, terms], lengths [documents, fields], mean_lengths [fields]."""
    share = _WEIGHTS / (1 - _SLOPES + _SLOPES * lengths / np.maximum(mean_lengths, 1e-9))  # [documents, fields]
    pseudo = np.einsum("nft,nf->nt", counts, share)
    return (pseudo / (pseudo + K1)) @ weights
