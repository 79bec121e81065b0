"""Non-IID partitions: queries, documents, labels, click models and numbers of interactions of each client.

Source: S2 chapter 4.

    intents   type 1: four clients see the same documents, each through another intent; relevant or not
    labels    type 2: a client holds documents of #R grades only, one client for every set of #R grades
    clicks    type 3: all hold everything, each has its own click model
    quantity  type 4: all hold everything, some search more often; `amounts` mixes it with types 1 and 2

`iid = true` is the IID baseline without skew: as many clients, as many interactions a round, everybody holds everything
(the union of the intents), and where clients differ in their click models, every interaction draws one.

Differs from the paper:
- Type 1 as published measures the IID baseline on the union and the clients on single intents, so part of the
  difference is the measure; `tested_on = "intents"` measures the baseline on what the clients are measured on.
- Type 1 shuffles intents in every query, so over many queries all clients have the same preferences; with
  `shuffled = false` client i has intent i in all queries.
- Type 2 is normalised before documents are removed (the authors' program removes them first). A client does not search
  for a query without documents; one with fewer than k documents gives a shorter list.
- Type 2 divides the documents of a grade among the clients that hold it, as the text says; the authors' program
  gives each of them all (`documents = "copied"`).
- Mixed with type 4, `amounts` must have the mean of the IID baseline, so that both interact as often. The authors'
  program gives four clients 1, 3, 5, 7 and the IID baseline 5 each.
"""

import itertools
from typing import Annotated, ClassVar, Literal, NamedTuple, TypeAlias

import msgspec
import numpy as np

from foltr.clicks import Users, click_model
from foltr.errors import SpecError
from foltr.lab.data.intents import INTENTS, IntentData
from foltr.rng import stream
from foltr.types import DRAWN, Array, Dataset

Count = Annotated[int, msgspec.Meta(ge=1)]
CASCADE = ("perfect", "navigational", "informational")
ETAS = (0.0, 0.5, 1.0, 1.5, 2.0)


Split: TypeAlias = Dataset | IntentData


class PartitionContext(NamedTuple):
    """Parameters of a partition besides the data."""

    grades: int
    users: Users
    interactions: int  # of a client in a round
    seed: int


def _uneven(kind: "Intents | Labels") -> bool:
    """Whether clients differ in how many interactions stand behind their updates."""
    return not kind.iid and len(set(kind.amounts)) > 1


class NoPartition(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="none"):
    """Everybody holds everything."""


class Intents(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="intents"):
    iid: bool = False  # the IID baseline: every client has all
    shuffled: bool = True  # over clients in every query; false: client i keeps intent i
    tested_on: Literal["own", "intents"] = "own"  # what the IID baseline is measured on
    amounts: tuple[Count, ...] = ()  # interactions of each client a round; (): the same for all

    uneven = property(_uneven)

    def split(self, train: "Split", test: "Split", context: PartitionContext) -> "Clients":
        return split(self, train, test, context)

    def client_names(self, grades: int) -> list[str]:
        if grades != 2:
            raise SpecError(f"grades={grades}: an intent finds a document relevant or not; use grades=2")
        return [f"intent {intent + 1}" for intent in range(INTENTS)]

    def hold(self, train: "Split", test: "Split", clients: int, context: PartitionContext) -> tuple["Held", "Held"]:
        if not isinstance(train, IntentData) or not isinstance(test, IntentData):
            raise SpecError("intents: the collection has no intents; load it with foltr.lab.data.intents.load_intents")
        own = _everything(train.data, clients) if self.iid else _through_intents(self, train, context.seed)
        as_one = self.iid and self.tested_on == "own"
        return own, _everything(test.data, clients) if as_one else _through_intents(self, test, context.seed)


class Labels(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="labels"):
    iid: bool = False
    per_client: Count = 1  # grades of a client (#R)
    clients_per_set: Count = 1  # clients that share the documents of a set of grades
    documents: Literal["divided", "copied"] = "divided"
    amounts: tuple[Count, ...] = ()

    uneven = property(_uneven)

    def split(self, train: "Split", test: "Split", context: PartitionContext) -> "Clients":
        return split(self, train, test, context)

    def client_names(self, grades: int) -> list[str]:
        if not self.per_client < grades:
            raise SpecError(
                f"per_client={self.per_client} of {grades} grades leaves no skew; use 1 to {grades - 1}, "
                "or iid = true for clients that hold everything"
            )
        sets = grade_sets(self, grades=grades)
        return [f"grade{'s' * (len(held) > 1)} {'+'.join(map(str, held))}" for held in sets]

    def hold(self, train: "Split", test: "Split", clients: int, context: PartitionContext) -> tuple["Held", "Held"]:
        own, tested = _all_to_all(train, test, clients)
        return own if self.iid else _by_grade(self, own.data, context.grades, context.seed), tested


class Clicks(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="clicks"):
    iid: bool = False
    model: Literal["cascade", "position"] = "cascade"

    amounts: ClassVar[tuple[int, ...]] = ()

    def split(self, train: "Split", test: "Split", context: PartitionContext) -> "Clients":
        return split(self, train, test, context)

    def client_names(self, grades: int) -> list[str]:  # noqa: ARG002
        return [f"eta = {eta:g}" for eta in ETAS] if self.model == "position" else list(CASCADE)

    def hold(self, train: "Split", test: "Split", clients: int, context: PartitionContext) -> tuple["Held", "Held"]:  # noqa: ARG002
        return _all_to_all(train, test, clients)

    def click_models(self, users: Users) -> tuple[Users, ...]:
        """One a client; of `users` only the length of the list is used."""
        if self.model == "cascade":
            return tuple(msgspec.structs.replace(users, clicks=clicks, model="cascade") for clicks in CASCADE)
        return tuple(msgspec.structs.replace(users, clicks="perfect", model="position", eta=eta) for eta in ETAS)


class Quantity(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="quantity"):
    iid: bool = False
    amounts: Annotated[tuple[Count, ...], msgspec.Meta(min_length=1)] = (1, 3, 5, 7, 9)

    @property
    def uneven(self) -> bool:
        return not self.iid

    def split(self, train: "Split", test: "Split", context: PartitionContext) -> "Clients":
        return split(self, train, test, context)

    def client_names(self, grades: int) -> list[str]:  # noqa: ARG002
        return [f"B = {amount}" for amount in self.amounts]

    def hold(self, train: "Split", test: "Split", clients: int, context: PartitionContext) -> tuple["Held", "Held"]:  # noqa: ARG002
        return _all_to_all(train, test, clients)


PartitionKind = Intents | Labels | Clicks | Quantity


class Held(NamedTuple):
    """A collection with the queries of each client; clients may share a slice of the pools."""

    data: Dataset
    pools: Array  # queries of data
    start: Array  # [clients]
    stop: Array  # [clients]


class Clients(NamedTuple):
    train: Dataset  # the data of all clients; a document occurs once for every labelling
    test: Dataset  # what rankers are evaluated on
    pools: Array  # queries of train; client c draws from pools[pool_start[c] : pool_stop[c]]
    pool_start: Array  # [clients]
    pool_stop: Array  # [clients]
    users: Array  # [clients] index into click_models; DRAWN: one is drawn for every interaction
    click_models: tuple[Users, ...]
    interactions: Array  # [clients] a round
    test_pools: Array  # queries of test; client c is evaluated on test_pools[test_start[c] : test_stop[c]]
    test_start: Array  # [clients]
    test_stop: Array  # [clients]
    grades: int
    names: tuple[str, ...]  # [clients] for pages


def grade_sets(kind: Labels, *, grades: int) -> list[tuple[int, ...]]:
    """The grades that each client holds."""
    sets = itertools.combinations(range(grades), kind.per_client)
    return [held for held in sets for _ in range(kind.clients_per_set)]


def split(kind: PartitionKind, train: Split, test: Split, context: PartitionContext) -> Clients:
    """Every client's queries, documents, labels, clicks and interactions."""
    names = client_names(kind, context.grades)
    models = kind.click_models(context.users) if isinstance(kind, Clicks) else (context.users,)
    check_partition(kind, len(names), models, context)
    own, tested = kind.hold(train, test, len(names), context)
    idle = [name for name, first, last in zip(names, own.start, own.stop, strict=True) if first == last]
    if idle:
        raise SpecError(f"{', '.join(idle)}: no query of the training set is theirs; use more data or fewer clients")
    return Clients(
        train=own.data,
        test=tested.data,
        pools=own.pools,
        pool_start=own.start,
        pool_stop=own.stop,
        users=_users(len(names), len(models), iid=kind.iid),
        click_models=models,
        interactions=np.resize((not kind.iid and kind.amounts) or (context.interactions,), len(names)),  # repeats them
        test_pools=tested.pools,
        test_start=tested.start,
        test_stop=tested.stop,
        grades=context.grades,
        names=names,
    )


def client_names(kind: PartitionKind, grades: int) -> tuple[str, ...]:
    """One a client; known before the data is read."""
    names = kind.client_names(grades)
    return tuple(f"client {place + 1}" for place in range(len(names))) if kind.iid else tuple(names)


def check_partition(kind: PartitionKind, clients: int, models: tuple[Users, ...], context: PartitionContext) -> None:
    """Refuses amounts and click tables that do not fit, whatever the data."""
    amounts, interactions = kind.amounts, context.interactions
    if amounts and clients % len(amounts):
        raise SpecError(f"amounts has {len(amounts)} values for {clients} clients; give {clients}, or a divisor of it")
    if amounts and sum(amounts) != interactions * len(amounts):
        raise SpecError(
            f"amounts {', '.join(map(str, amounts))} have the mean {sum(amounts) / len(amounts):g} and interactions is "
            f"{interactions}: the IID baseline would interact more or less often; make them equal"
        )
    for users in models:
        click_model(users, grades=context.grades)  # refuses a click table that does not fit


def _users(clients: int, models: int, *, iid: bool) -> Array:
    """[clients] the click model of each: the only one, one each, or one drawn for every interaction."""
    if models == 1:
        return np.zeros(clients, np.int64)
    return np.full(clients, DRAWN) if iid else np.arange(clients)


def _all_to_all(train: Split, test: Split, clients: int) -> tuple[Held, Held]:
    whole, unseen = (data.data if isinstance(data, IntentData) else data for data in (train, test))
    return _everything(whole, clients), _everything(unseen, clients)


def _everything(data: Dataset, clients: int) -> Held:
    """One pool that all clients share."""
    queries = len(data.queries)
    return Held(data, np.arange(queries), np.zeros(clients, np.int64), np.full(clients, queries))


def _own(data: Dataset, rows: list[Array], labels: list[Array]) -> Held:
    """Client after client, the documents that each holds (in rising order) and the labels that it gives them."""
    query_of = np.repeat(np.arange(len(data.queries)), np.diff(data.offsets))  # [documents]
    counted = [np.unique(query_of[held], return_counts=True) for held in rows]
    queries = np.concatenate([ids for ids, _ in counted])
    offsets = np.concatenate([[0], *(sizes for _, sizes in counted)]).cumsum()
    ends = np.cumsum([0, *(len(ids) for ids, _ in counted)])
    held = Dataset(data.features[np.concatenate(rows)], np.concatenate(labels), offsets, data.queries[queries])
    return Held(read_only(held), np.arange(len(queries)), ends[:-1], ends[1:])


def read_only(data: Dataset) -> Dataset:
    """Read-only like cached data, so that kernels are compiled for one array type."""
    for array in data:
        array.flags.writeable = False
    return data


def _through_intents(kind: Intents, whole: IntentData, seed: int) -> Held:
    order = np.stack([_intents_of(kind, int(query), seed) for query in whole.data.queries])  # [queries, clients]
    chosen = np.repeat(order, np.diff(whole.data.offsets), axis=0)  # [documents, clients]
    labels = np.take_along_axis(whole.intents, chosen, axis=1)
    rows = [np.arange(len(labels))] * INTENTS
    return _own(whole.data, rows, list(labels.T))


def _intents_of(kind: Intents, query: int, seed: int) -> Array:
    """[clients] the intent of each in this query; it depends on the query id only, not on the split."""
    if not kind.shuffled:
        return np.arange(INTENTS)
    return stream(seed, round=1, client=query, purpose="partition").permutation(INTENTS)


def _by_grade(kind: Labels, data: Dataset, grades: int, seed: int) -> Held:
    sets = grade_sets(kind, grades=grades)
    if kind.documents == "copied":
        rows = [np.flatnonzero(np.isin(data.labels, held)) for held in sets]
    else:
        client_of = _dealt(data.labels, sets, grades, seed)
        rows = [np.flatnonzero(client_of == client) for client in range(len(sets))]
    return _own(data, rows, [data.labels[held] for held in rows])


def _dealt(labels: Array, sets: list[tuple[int, ...]], grades: int, seed: int) -> Array:
    """[documents] the client of each: shuffled documents of a grade are dealt to the clients that hold the grade."""
    client_of = np.empty(len(labels), np.int64)
    for grade in range(grades):
        documents = np.flatnonzero(labels == grade)
        order = stream(seed, round=2, client=grade, purpose="partition").permutation(len(documents))
        holding = [client for client, held in enumerate(sets) if grade in held]
        client_of[documents[order]] = np.resize(holding, len(documents))
    return client_of
