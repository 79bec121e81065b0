"""The contract of partitions (see `lab.data.partition`), run on a class.

The data are made up: 60 queries to train on and 20 to test, with five grades, or with two and four intents that judge
the same documents. Clients interact five times a round.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from foltr.clicks import Users, click_model
from foltr.rng import stream
from foltr.testing.laws import array_of, attempt, copies, demand, demand_unchanged
from foltr.types import DRAWN, Array, Dataset

_QUERIES, _TESTED, _WIDTH = 60, 20, 4
_INTERACTIONS = 5
_SEEDS = (1, 2)
_COLUMNS = ("pool_start", "pool_stop", "users", "interactions", "test_start", "test_stop", "names")  # [clients] each


class Case(NamedTuple):
    train: Any  # Dataset or IntentData
    test: Any
    context: Any  # PartitionContext


def check_partition(kind: type, *, intents: bool = False, **parameters: Any) -> None:
    """Raises AssertionError if `kind(**parameters)` breaks a law of partitions; says which, and with what.

    `intents`: the partition is for collections in which several intents judge the same documents (`IntentData`).
    """
    partition = kind(**parameters)
    for seed in _SEEDS:
        case = _case(seed, intents)
        clients = _inputs_stay(partition, case)
        _counts_agree(partition, clients)
        _holds_well_formed_data(partition, clients, case)
        _everybody_has_queries(partition, clients)
        _people_click(partition, clients, case)
        _is_repeatable(partition, clients, case)


def _case(seed: int, intents: bool) -> Case:
    from foltr.lab.data.intents import INTENTS, IntentData  # needs the lab's dependencies, as a partition does
    from foltr.lab.data.partition import PartitionContext

    grades = 2 if intents else 5
    train, test = _dataset(_QUERIES, grades, first=0), _dataset(_TESTED, grades, first=_QUERIES)
    context = PartitionContext(grades, Users("informational", k=3), _INTERACTIONS, seed)
    if not intents:
        return Case(train, test, context)
    found = [stream(3, client=len(data.labels), purpose="data").uniform(4 * len(data.labels)) for data in (train, test)]
    judged = [(draws < 0.3).astype(np.int8).reshape(-1, INTENTS) for draws in found]  # [documents, intents]
    both = [
        IntentData(data._replace(labels=by.max(axis=1)), by, "made up")
        for data, by in zip((train, test), judged, strict=True)
    ]
    return Case(both[0], both[1], context)


def _dataset(queries: int, grades: int, first: int) -> Dataset:
    """Lists of 6 to 25 documents; every grade is there."""
    draws = stream(2, client=first, purpose="data")
    offsets = np.concatenate([[0], np.cumsum(6 + draws.integers(20, queries))])
    documents = int(offsets[-1])
    features = draws.skip(100).uniform(documents * _WIDTH).reshape(documents, _WIDTH).astype(np.float32)
    labels = draws.skip(10**6).permutation(documents) % grades
    return Dataset(features, labels.astype(np.int8), offsets, first + 1 + np.arange(queries))


def _split(partition: Any, case: Case) -> Any:
    from foltr.lab.data.partition import Clients

    clients = partition.split(case.train, case.test, case.context)
    demand(isinstance(clients, Clients), partition, f"split returns {type(clients).__name__}, not Clients")
    return clients


def _inputs_stay(partition: Any, case: Case) -> Any:
    """The clients of a first split, which leaves the data as they were."""
    given = _arrays(case.train, "train") | _arrays(case.test, "test")
    before = copies(given)
    clients = _split(partition, case)
    demand_unchanged(before, given, partition, "split")
    return clients


def _counts_agree(partition: Any, clients: Any) -> None:
    counts = {column: len(getattr(clients, column)) for column in _COLUMNS}
    law = f"there are as many entries as clients in {', '.join(_COLUMNS)}"
    demand(len(set(counts.values())) == 1 and counts["names"] > 0, partition, law, counts=counts)


def _holds_well_formed_data(partition: Any, clients: Any, case: Case) -> None:
    demand(clients.grades == case.context.grades, partition, "the number of grades changes", grades=clients.grades)
    for what, data in (("train", clients.train), ("test", clients.test)):
        array_of(data.features, (len(data.labels), _WIDTH), f"{what}.features", partition)
        graded = bool(((data.labels >= 0) & (data.labels < clients.grades)).all())
        demand(graded, partition, f"{what}.labels are not below the number of grades", labels=data.labels)
        bounded = data.offsets[0] == 0 and data.offsets[-1] == len(data.labels)
        whole = bounded and bool((np.diff(data.offsets) > 0).all()) and len(data.offsets) == len(data.queries) + 1
        demand(whole, partition, f"{what}.offsets do not give every query its documents", offsets=data.offsets)


def _everybody_has_queries(partition: Any, clients: Any) -> None:
    pools = (
        ("pools", clients.pools, clients.pool_start, clients.pool_stop, clients.train),
        ("test_pools", clients.test_pools, clients.test_start, clients.test_stop, clients.test),
    )
    for what, pool, start, stop, data in pools:
        known = _integers(pool) and bool(((pool >= 0) & (pool < len(data.queries))).all())
        demand(known, partition, f"{what} holds other numbers than those of queries", pool=pool)
        for name, first, last in zip(clients.names, start, stop, strict=True):
            demand(first >= 0 and last <= len(pool), partition, f"{name}: {first} to {last} lies outside of {what}")
            demand(first < last, partition, f"{name} has no query in {what}")


def _people_click(partition: Any, clients: Any, case: Case) -> None:
    counted = _integers(clients.interactions) and bool((clients.interactions > 0).all())
    demand(counted, partition, "interactions are not positive integers", interactions=clients.interactions)
    users, models = clients.users, clients.click_models
    known = _integers(users) and bool(((users == DRAWN) | (users >= 0) & (users < len(models))).all())
    demand(known, partition, f"users are neither DRAWN nor one of the {len(models)} click_models", users=users)
    for model in models:
        law = "every click model must fit the grades of the collection"
        attempt(partition, law, partial(click_model, model, grades=clients.grades))
        demand(model.k == case.context.users.k, partition, f"users are shown {model.k} documents, not as many as asked")


def _is_repeatable(partition: Any, clients: Any, case: Case) -> None:
    again = _split(partition, case)
    same = clients.names == again.names and clients.click_models == again.click_models
    one, other = (_arrays(found, "clients") for found in (clients, again))
    same = same and all(np.array_equal(array, other[name]) for name, array in one.items())
    demand(same, partition, "the same seed gives two partitions", seed=case.context.seed)


def _arrays(record: Any, path: str) -> dict[str, Array]:
    """Every array in nested records, by its path."""
    if isinstance(record, np.ndarray):
        return {path: record}
    fields = record._asdict().items() if hasattr(record, "_asdict") else ()
    return {name: array for field, value in fields for name, array in _arrays(value, f"{path}.{field}").items()}


def _integers(array: Any) -> bool:
    return bool(np.issubdtype(np.asarray(array).dtype, np.integer))
