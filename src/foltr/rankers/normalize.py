"""Query-level min-max scaling of features in NumPy, for clients that rank their own documents.

The lab scales whole collections with a compiled form of the same (`lab.data.normalize`).
"""

import numpy as np

from foltr.types import Array


def query_minmax(features: Array, offsets: Array) -> None:
    """Scales each feature to 0 .. 1 over the documents offsets[q] .. offsets[q + 1] of one query, in place.

    A feature that is constant within a query becomes 0.
    """
    sizes = np.diff(offsets)
    starts, sizes = offsets[:-1][sizes > 0], sizes[sizes > 0]
    if not len(starts):
        return
    low = np.minimum.reduceat(features, starts, axis=0).astype(np.float64)  # [queries, d]
    span = np.maximum.reduceat(features, starts, axis=0) - low
    scale = np.repeat(span, sizes, axis=0)  # [n, d]
    shifted = features - np.repeat(low, sizes, axis=0)
    features[...] = np.divide(shifted, scale, out=np.zeros_like(shifted), where=scale > 0)
