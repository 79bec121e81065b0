"""The two seams, and what else crosses module borders: plain data, shapes in comments.

`Interaction` is what one person was shown and clicked; a simulated user and a real search page make the same one.
`Update` is what leaves a client; an in-process client and a machine across the network make the same one.
"""

from typing import Any, NamedTuple, TypeAlias

from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
DRAWN = -1  # in place of a user's number: one is drawn for every interaction


class Interaction(NamedTuple):
    features: Array  # [docs, d]  every candidate, shown or not
    ranking: Array  # [k]        document at each position, as displayed
    clicks: Array  # [k] bool
    scores: Array  # [docs]     of the model that made the list
    model: int  # its version: the round it came from


class Update(NamedTuple):
    values: Array  # [P] parameters (PDGD), or [2] mean objective of the two halves (evolution)
    weight: float  # interactions behind it
    client: int
    round: int
    seed: int = 0  # of the public perturbation (evolution only)


class OnlineMetrics(NamedTuple):
    """What users lived through in some interactions, in the order of clients."""

    ndcg: Array  # [interactions] nDCG@10 of the shown list
    max_rr: Array  # [interactions] 1 / rank of the first click, 0 without one


class ServerState(NamedTuple):
    round: int
    parameters: Array  # [P]
    moments: Array  # [2, P] of Adam; zeros where the server does not use it


class Dataset(NamedTuple):
    """Queries and their judged documents: ragged arrays, never padded."""

    features: Array  # [documents, d] float32, C-contiguous, often a read-only memory map
    labels: Array  # [documents] int8 grades
    offsets: Array  # [queries + 1] int64: query q owns documents offsets[q] .. offsets[q + 1]
    queries: Array  # [queries] int64 ids as in the files
