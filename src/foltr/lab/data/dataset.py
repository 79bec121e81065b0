"""A collection of queries and their judged documents: ragged arrays, never padded."""

from typing import NamedTuple

import numpy as np

from foltr.types import Array, Dataset


class Fold(NamedTuple):
    """One fold of a collection, ready to train and test on."""

    name: str  # catalog name, such as "mq2007"
    fold: int  # 1 ...
    grades: int  # number of relevance grades: labels are 0 .. grades - 1
    note: str  # said wherever a number is shown: "complete", "85 % sample", "synthetic", ...
    checksum: str  # of the content and of every option that changed it
    train: Dataset
    validation: Dataset
    test: Dataset
    intents: tuple[Array, Array] | None = None  # [documents, intents] what each finds relevant, of train and of test


def select(data: Dataset, queries: Array) -> Dataset:
    """The same collection with only these queries (by position), in this order."""
    starts, stops = data.offsets[queries], data.offsets[np.asarray(queries) + 1]
    rows = np.concatenate([np.arange(a, b) for a, b in zip(starts, stops, strict=True)] or [np.empty(0, int)])
    offsets = np.concatenate([[0], np.cumsum(stops - starts)]).astype(np.int64)
    return Dataset(np.ascontiguousarray(data.features[rows]), data.labels[rows], offsets, data.queries[queries])
