"""The data types that modules exchange: plain data, shapes in comments. NumPy and msgspec only.

`Interaction` is one displayed list with its clicks, of a simulated user or of a real search page. `Update` is the
message of a client, in the same process or across a network.
"""

from typing import Any, Literal, NamedTuple, TypeAlias

from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
Empty: TypeAlias = Literal["skip", "zero"]  # queries without a relevant document: left out of a mean, or counted as 0
OTHER: dict[Empty, Empty] = {"skip": "zero", "zero": "skip"}
DRAWN = -1  # in place of a user's number: one is drawn for every interaction


class Interaction(NamedTuple):
    """One search: the displayed list and its clicks."""

    features: Array  # [n, d] every candidate, displayed or not
    ranking: Array  # [k] document at each position, as displayed
    clicks: Array  # [k] bool
    scores: Array  # [n] of the model that ranked
    model_version: int


class Model(NamedTuple):
    """The server's message to a client: the model and the parameters of the round."""

    parameters: Array  # [P]
    version: int  # rounds so far
    ranker: Any  # a ranker kind: how parameters score documents
    k: int = 10  # documents that are displayed
    seed: int = 0  # of the public randomness (perturbations of FOLtR-ES)
    mechanism_state: Any = None  # such as the clip of the round, where it adapts


class Update(NamedTuple):
    """The message of a client, always relative to the model that it was sent."""

    values: Array  # [P] delta, or [2] objectives of the two halves (FOLtR-ES)
    weight: float  # interactions behind it; 1 where the weight would leak information
    client: int
    base_version: int
    event: Any = None  # the privacy event of the release (`privacy.events.Event`); None: no protection


class Updates(NamedTuple):
    """The updates of a cohort as arrays."""

    values: Array  # [n, V]
    weights: Array  # [n]
    clients: Array  # [n]
    base_versions: Array  # [n]


class OnlineMetrics(NamedTuple):
    """Quality of the displayed lists, per interaction, in the order of clients."""

    ndcg: Array  # [interactions] nDCG@10 of the displayed list
    max_rr: Array  # [interactions] 1 / rank of the first click, 0 without one


class Dataset(NamedTuple):
    """Queries and their judged documents: ragged arrays, never padded."""

    features: Array  # [documents, d] float32, C-contiguous, often a read-only memory map
    labels: Array  # [documents] int8 grades
    offsets: Array  # [queries + 1] int64: query q owns documents offsets[q] .. offsets[q + 1]
    queries: Array  # [queries] int64 ids as in the files
