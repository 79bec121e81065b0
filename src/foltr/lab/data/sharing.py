"""Data sharing: some queries, with all their documents and labels, are given to every client.

Source: S2 section 4.4.3, after Zhao et al. (2018).

Differs from the paper: shared queries leave the private pools, as in the authors' program (the text does not say).
They are drawn without replacement; the program draws with.
"""

import numpy as np

from foltr.errors import SpecError
from foltr.lab.data.catalog import joined, select
from foltr.lab.data.partition import Clients, read_only
from foltr.rng import stream
from foltr.types import Array, Dataset


def share(clients: Clients, whole: Dataset, *, fraction: float = 0.1, seed: int) -> tuple[Clients, Array]:
    """Give everybody some queries of the whole training set, with all documents and labels.

    Also returns these queries (of the new `train`), for the server to warm up on. They leave the private pools.
    """
    if not 0 < fraction <= 1:
        raise SpecError(f"fraction={fraction:g} of the queries cannot be shared; use more than 0 and at most 1")
    order = stream(seed, round=3, purpose="partition").permutation(len(whole.queries))
    chosen = np.sort(order[: max(1, round(fraction * len(order)))])
    public = len(clients.train.queries) + np.arange(len(chosen))
    private = ~np.isin(clients.train.queries, whole.queries[chosen])  # [queries of train]
    stretches: dict[tuple[int, int], Array] = {}  # clients that shared a pool still share one
    for stretch in _stretches(clients):
        own = clients.pools[slice(*stretch)]
        stretches[stretch] = np.concatenate([own[private[own]], public])
    ends = np.cumsum([0, *map(len, stretches.values())])
    place = [list(stretches).index(stretch) for stretch in _stretches(clients)]
    pools = np.concatenate(list(stretches.values()))
    train = read_only(joined([clients.train, select(whole, chosen)]))
    return clients._replace(train=train, pools=pools, pool_start=ends[place], pool_stop=ends[1:][place]), public


def _stretches(clients: Clients) -> list[tuple[int, int]]:
    return list(zip(clients.pool_start.tolist(), clients.pool_stop.tolist(), strict=True))
