"""Sufficient statistics: a ranker that is solved from sums of pairs, so that a client's share can be subtracted.

For every search a clicked document w should score one more than each document l that was passed over:
minimise sum weight * (theta . (x_w - x_l) - 1)^2 + ridge * ||theta||^2, which is

    theta = (A + ridge I)^-1 b,   A = sum weight * (x_w - x_l)(x_w - x_l)^T,   b = sum weight * (x_w - x_l).

Pairs are PDGD's. The pairs of a search weigh 1 together: no weight depends on a model, so a client's sums are its own
whatever the others did. Tried on the validation queries of one fold of MQ2007, one seed: on logs of an honest
federation pairs of weight 1 each were worse, and pairs whose winner stands below its loser ranked upside down.

Differs from the paper: not in S2.
"""

from collections.abc import Collection, Iterable
from typing import NamedTuple

import numpy as np

from foltr.errors import SpecError
from foltr.types import Array, Dataset
from foltr.unlearning.logs import Log, only

_BLOCK = 4096  # searches whose documents are multiplied at once


class Sums(NamedTuple):
    matrix: Array  # [d, d] A
    vector: Array  # [d] b


def collect(log: Log, data: Dataset, clients: Collection[int]) -> dict[int, Sums]:
    """Each client's own sums."""
    return {client: _sums(only(log, [client]), data) for client in clients}


def add(parts: Iterable[Sums]) -> Sums:
    matrices, vectors = zip(*parts, strict=True)
    return Sums(np.sum(matrices, axis=0), np.sum(vectors, axis=0))


def subtract(whole: Sums, leaving: Sums) -> Sums:
    """The sums without a client's; rounding leaves about 1e-16 of the whole. Adding the others anew leaves nothing."""
    return Sums(whole.matrix - leaving.matrix, whole.vector - leaving.vector)


def solve(sums: Sums, *, ridge: float) -> Array:
    """[d] the linear ranker."""
    if not ridge > 0:
        raise SpecError(f"ridge = {ridge:g}: use a number above 0, else features that never vary have no solution")
    return np.linalg.solve(sums.matrix + ridge * np.eye(len(sums.vector)), sums.vector)


def pair_graph(clicks: Array, shown: Array) -> Array:
    """[rows, k, k] weight of the pair at two ranks, winner first; clicks [rows, k], list lengths [rows]."""
    ranks = np.arange(clicks.shape[1])
    last = np.where(clicks, ranks, -1).max(axis=1)
    reach = np.where(last < 0, 0, np.minimum(last + 2, shown))  # losers end one below the last click
    negative = ~clicks & (ranks < reach[:, None])
    pairs = clicks[:, :, None] & negative[:, None, :]
    return pairs / np.maximum(pairs.sum(axis=(1, 2), keepdims=True), 1)


def _sums(log: Log, data: Dataset) -> Sums:
    width = data.features.shape[1]
    matrix, vector = np.zeros((width, width)), np.zeros(width)
    for first in range(0, len(log.rounds), _BLOCK):
        block = Log(*(column[first : first + _BLOCK] for column in log))
        graph = pair_graph(block.clicks, (block.rankings >= 0).sum(axis=1))
        wins, losses = graph.sum(axis=2), graph.sum(axis=1)  # [rows, k]
        documents = data.offsets[block.queries][:, None] + np.maximum(block.rankings, 0)
        features = data.features[documents].astype(np.float64)  # [rows, k, d]
        # sum of weight * (x_w - x_l)(x_w - x_l)^T over the pairs = X^T (D - W - W^T) X, the Laplacian of the pairs
        other = (wins + losses)[:, :, None] * features - (graph + graph.swapaxes(1, 2)) @ features
        matrix += features.reshape(-1, width).T @ other.reshape(-1, width)
        vector += (wins - losses).reshape(-1) @ features.reshape(-1, width)
    return Sums((matrix + matrix.T) / 2, vector)  # symmetric to the last bit
