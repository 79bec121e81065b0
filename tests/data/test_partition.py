"""One contract for every partition: promised queries, documents, labels, clicks and interactions, nothing else."""

import itertools
from collections import Counter

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foltr.clicks import Users
from foltr.errors import SpecError
from foltr.lab.data import catalog, intents
from foltr.lab.data.intents import IntentData
from foltr.lab.data.partition import Clicks, Intents, Labels, PartitionContext, Quantity
from foltr.lab.data.sharing import share
from foltr.types import Dataset

GRADED = [
    Labels(),
    Labels(per_client=2),
    Labels(per_client=2, documents="copied"),
    Labels(clients_per_set=2),
    Clicks(),
    Clicks(model="position"),
    Quantity(),
    Quantity(amounts=(2, 8)),
]
BINARY = [Intents(), Intents(shuffled=False), Intents(amounts=(1, 3, 7, 9)), Labels(amounts=(1, 9))]
USERS = Users(k=7)


def split(kind, train, test, **context):
    return kind.split(train, test, PartitionContext(**context))


def built(lists):
    """A collection from the grades of each query's documents; the first feature names the document."""
    labels = np.array([grade for grades in lists for grade in grades], np.int8)
    offsets = np.cumsum([0, *map(len, lists)])
    features = np.column_stack([np.arange(len(labels)), labels]).astype(np.float32)
    return Dataset(features, labels, offsets, 100 + 7 * np.arange(len(lists)))


@st.composite
def graded(draw, grades):
    """Random queries and one that has twelve documents of every grade, so that no client stays idle."""
    lists = draw(st.lists(st.lists(st.integers(0, grades - 1), min_size=1, max_size=6), max_size=6))
    return built([*lists, [*range(grades)] * 12])


@st.composite
def judged(draw):
    sizes = draw(st.lists(st.integers(1, 5), min_size=1, max_size=5))
    row = st.tuples(*[st.integers(0, 1)] * 4)
    relevant = np.array(draw(st.lists(row, min_size=sum(sizes) + 2, max_size=sum(sizes) + 2)), np.int8)
    relevant[-2:] = [[0, 0, 0, 0], [1, 1, 1, 1]]  # so that both labels are there
    ends = np.cumsum([0, *sizes, 2])
    return IntentData(built([relevant.max(axis=1)[a:b] for a, b in itertools.pairwise(ends)]), relevant, "made")


@st.composite
def cases(draw):
    """A partition, its baseline, the data they are made from, and how they are called."""
    if draw(st.booleans()):
        kind, grades, data = draw(st.sampled_from(BINARY)), 2, draw(judged())
    else:
        kind, grades = draw(st.sampled_from(GRADED)), draw(st.sampled_from([3, 5]))
        data = draw(graded(grades))
    call = {"grades": grades, "users": USERS, "interactions": 5, "seed": draw(st.integers(0, 10**6))}
    return kind, msgspec.structs.replace(kind, iid=True), data, call


def plain(data):
    return data.data if isinstance(data, IntentData) else data


def pool(clients, client):
    return clients.pools[clients.pool_start[client] : clients.pool_stop[client]].tolist()


def documents(data, query):
    """(document, label) pairs of a query."""
    mine = slice(data.offsets[query], data.offsets[query + 1])
    return [(int(name), int(label)) for name, label in zip(data.features[mine, 0], data.labels[mine], strict=True)]


def held(clients, client):
    """Query id -> (document, label) pairs: all that a client trains on."""
    return {int(clients.train.queries[query]): documents(clients.train, query) for query in pool(clients, client)}


def original(data):
    return {int(name): documents(data, query) for query, name in enumerate(data.queries)}


@given(case=cases())
def test_every_client_has_queries_and_every_query_documents(case):
    kind, baseline, data, call = case
    for clients in (split(kind, data, data, **call), split(baseline, data, data, **call)):
        for client in range(len(clients.names)):
            mine = held(clients, client)
            assert mine
            assert len(mine) == len(pool(clients, client))  # no query twice
            assert all(mine.values())


@given(case=cases())
def test_documents_keep_their_features_and_their_query(case):
    kind, _, data, call = case
    clients, whole = split(kind, data, data, **call), plain(data)
    home = {name: query for query, docs in original(whole).items() for name, _ in docs}
    assert np.array_equal(clients.train.features, whole.features[clients.train.features[:, 0].astype(int)])
    for client in range(len(clients.names)):
        for query, docs in held(clients, client).items():
            assert [home[name] for name, _ in docs] == [query] * len(docs)
            assert docs == sorted(docs)  # in the order of the collection, each once
            assert len({name for name, _ in docs}) == len(docs)


@given(case=cases())
def test_the_baseline_has_as_many_clients_and_interactions_and_everybody_holds_everything(case):
    kind, baseline, data, call = case
    skewed, even = split(kind, data, data, **call), split(baseline, data, data, **call)
    assert len(even.names) == len(skewed.names) == len(even.users) == len(skewed.interactions)
    assert even.interactions.sum() == skewed.interactions.sum() == 5 * len(skewed.names)
    assert set(even.interactions.tolist()) == {5}
    assert even.train is plain(data)  # not a copy
    assert all(held(even, client) == original(plain(data)) for client in range(len(even.names)))
    assert len(even.pools) == len(plain(data).queries)  # one pool for all


@given(case=cases())
def test_a_seed_is_one_partition(case):
    kind, _, data, call = case
    once, again = split(kind, data, data, **call), split(kind, data, data, **call)
    for one, other in zip(once, again, strict=True):
        if isinstance(one, Dataset):
            assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
        else:
            assert np.array_equal(one, other)


@given(case=cases())
def test_arrays_are_as_kernels_take_them(case):
    kind, _, data, call = case
    clients = split(kind, data, data, **call)
    assert clients.train.features.dtype == np.float32
    assert clients.train.features.flags.c_contiguous
    assert (clients.train.labels.dtype, clients.train.offsets.dtype) == (np.int8, np.int64)
    for field in ("pools", "pool_start", "pool_stop", "users", "interactions", "test_pools", "test_start", "test_stop"):
        assert getattr(clients, field).dtype == np.int64


@given(
    data=graded(5),
    seed=st.integers(0, 99),
    per_client=st.sampled_from([1, 2, 3]),
    clients_per_set=st.sampled_from([1, 2]),
)
def test_divided_labels_give_every_document_to_one_client_that_holds_its_grade(data, seed, per_client, clients_per_set):
    kind = Labels(per_client=per_client, clients_per_set=clients_per_set)
    clients = split(kind, data, data, grades=5, users=USERS, interactions=5, seed=seed)
    sets = [set(one) for one in itertools.combinations(range(5), per_client) for _ in range(clients_per_set)]
    everything = Counter()
    for client, grades in enumerate(sets):
        mine = [pair for docs in held(clients, client).values() for pair in docs]
        assert {label for _, label in mine} <= grades
        everything.update(mine)
    assert everything == Counter(pair for docs in original(data).values() for pair in docs)
    for grade in range(5):  # equally, up to one
        shares = [
            sum(label == grade for docs in held(clients, client).values() for _, label in docs)
            for client, grades in enumerate(sets)
            if grade in grades
        ]
        assert max(shares) - min(shares) <= 1


def test_divided_documents_are_dealt_at_random():
    """The first of four documents goes to either client: 400 seeds, fewer than 167 or more than 233 once in 1,000."""
    data = built([[0, 0, 0, 0, 1, 1]])
    call = {"grades": 2, "users": USERS, "interactions": 5}
    first = [
        0 in dict(held(split(Labels(clients_per_set=2), data, data, seed=seed, **call), 0)[100]) for seed in range(400)
    ]
    assert 167 <= sum(first) <= 233


@given(data=graded(5), per_client=st.sampled_from([1, 2]), documents=st.sampled_from(["copied", "divided"]))
def test_labels_equal_a_filter_by_hand_where_nothing_is_divided(data, per_client, documents):
    """Slow and obvious: walk through every query for every client. With one grade each there is nothing to divide."""
    documents = "copied" if per_client == 2 else documents
    kind = Labels(per_client=per_client, documents=documents)
    clients = split(kind, data, data, grades=5, users=USERS, interactions=5, seed=1)
    for client, grades in enumerate(itertools.combinations(range(5), per_client)):
        expected = {}
        for query, docs in original(data).items():
            mine = [(name, label) for name, label in docs if label in grades]
            if mine:
                expected[query] = mine
        assert held(clients, client) == expected


@given(data=judged(), seed=st.integers(0, 10**6), shuffled=st.booleans())
def test_each_intent_of_a_query_goes_to_exactly_one_client(data, seed, shuffled):
    clients = split(Intents(shuffled=shuffled), data, data, grades=2, users=USERS, interactions=5, seed=seed)
    for query, docs in original(data.data).items():
        rows = [name for name, _ in docs]
        wanted = [tuple(data.intents[rows, intent].tolist()) for intent in range(4)]
        given_out = [tuple(label for _, label in held(clients, client)[query]) for client in range(4)]
        assert [name for name, _ in held(clients, 0)[query]] == rows
        assert Counter(given_out) == Counter(wanted)
        assert shuffled or given_out == wanted


def test_every_order_of_intents_occurs_equally_often():
    """24 orders in 2,400 queries: chi-square with 23 degrees of freedom exceeds 49.7 once in 1,000; seed fixed."""
    relevant = np.tile(np.eye(4, dtype=np.int8), (2400, 1))  # document i of a query is relevant to intent i alone
    data = IntentData(built([[1] * 4] * 2400), relevant, "made")
    clients = split(Intents(), data, data, grades=2, users=USERS, interactions=5, seed=8)
    labels = clients.train.labels.reshape(4, 2400, 4)  # clients, queries, documents
    orders = Counter(tuple(order) for order in labels.argmax(axis=2).T.tolist())
    assert len(orders) == 24
    assert sum((count - 100) ** 2 / 100 for count in orders.values()) < 49.7


@given(data=judged(), seed=st.integers(0, 10**6), iid=st.booleans())
def test_intents_are_tested_on_the_labels_that_clients_train_on(data, seed, iid):
    kind = Intents(iid=iid, tested_on="intents" if iid else "own")
    clients = split(kind, data, data, grades=2, users=USERS, interactions=5, seed=seed)
    skewed = split(Intents(), data, data, grades=2, users=USERS, interactions=5, seed=seed)
    for client in range(4):
        queries = clients.test_pools[clients.test_start[client] : clients.test_stop[client]]
        tested = {int(clients.test.queries[query]): documents(clients.test, query) for query in queries}
        assert tested == held(skewed, client)


@given(case=cases())
def test_other_kinds_are_tested_on_the_whole_test_set(case):
    kind, _, data, call = case
    if not isinstance(kind, Intents):
        clients = split(kind, data, data, **call)
        assert clients.test is plain(data)
        assert clients.test_pools.tolist() == list(range(len(plain(data).queries)))
        assert set(zip(clients.test_start, clients.test_stop, strict=True)) == {(0, len(clients.test_pools))}


def test_clicks_give_each_client_its_own_click_model_and_the_baseline_draws_one():
    data = built([[0, 1, 2]])
    call = {"grades": 3, "users": USERS, "interactions": 5, "seed": 1}
    cascade, position = (split(Clicks(model=name), data, data, **call) for name in ("cascade", "position"))
    models = [cascade.click_models[user] for user in cascade.users]
    assert [(model.clicks, model.model, model.k) for model in models] == [
        ("perfect", "cascade", 7),
        ("navigational", "cascade", 7),
        ("informational", "cascade", 7),
    ]
    models = [position.click_models[user] for user in position.users]
    assert [(model.clicks, model.model, model.eta) for model in models] == [
        ("perfect", "position", eta) for eta in (0, 0.5, 1, 1.5, 2)
    ]
    baseline = split(Clicks(iid=True), data, data, **call)
    assert baseline.users.tolist() == [-1] * 3  # drawn for every interaction
    assert baseline.click_models == cascade.click_models


def test_quantities_are_those_asked_for_and_repeat_over_the_clients():
    data = built([[0, 1, 2, 3, 4]])
    call = {"grades": 5, "users": USERS, "interactions": 5, "seed": 1}
    assert split(Quantity(), data, data, **call).interactions.tolist() == [1, 3, 5, 7, 9]
    assert split(Labels(amounts=(1, 3, 5, 7, 9)), data, data, **call).interactions.tolist() == [1, 3, 5, 7, 9]
    twice = split(Labels(per_client=2, documents="copied", amounts=(1, 3, 5, 7, 9)), data, data, **call)
    assert twice.interactions.tolist() == [1, 3, 5, 7, 9] * 2


def test_clients_have_names_for_pages():
    data, call = built([[0, 1, 2] * 2]), {"grades": 3, "users": USERS, "interactions": 5, "seed": 1}
    assert split(Labels(), data, data, **call).names == ("grade 0", "grade 1", "grade 2")
    assert split(Labels(per_client=2), data, data, **call).names == ("grades 0+1", "grades 0+2", "grades 1+2")
    assert split(Quantity(), data, data, **call).names[1] == "B = 3"
    assert split(Clicks(model="position"), data, data, **call).names[1] == "eta = 0.5"
    assert split(Clicks(iid=True), data, data, **call).names == ("client 1", "client 2", "client 3")


@given(case=cases(), fraction=st.sampled_from([0.01, 0.3, 1.0]))
def test_shared_queries_are_whole_for_everybody_and_private_for_nobody(case, fraction):
    kind, _, data, call = case
    before, whole = split(kind, data, data, **call), plain(data)
    after, public = share(before, whole, fraction=fraction, seed=call["seed"])
    shared = {int(after.train.queries[query]): documents(after.train, query) for query in public}
    assert len(shared) == len(public) == max(1, round(fraction * len(whole.queries)))
    assert shared == {query: docs for query, docs in original(whole).items() if query in shared}
    for client in range(len(after.names)):
        private = {query: docs for query, docs in held(before, client).items() if query not in shared}
        assert held(after, client) == private | shared
    assert (after.test, after.users.tolist()) == (before.test, before.users.tolist())


def test_sharing_keeps_one_pool_where_there_was_one():
    data = built([[0, 1, 2]] * 50)
    clients = split(Quantity(), data, data, grades=3, users=USERS, interactions=5, seed=1)
    after, public = share(clients, data, seed=2)
    assert (len(public), len(after.pools)) == (5, 50)


DATA = built([[0, 1], [2, 1]])
INTENT_DATA = IntentData(built([[0, 1]]), np.array([[0, 0, 0, 0], [0, 1, 0, 0]], np.int8), "made")


@pytest.mark.parametrize(
    ("kind", "data", "change", "says"),
    [
        (Intents(), DATA, {"grades": 2}, "has no intents"),
        (Intents(), INTENT_DATA, {}, "use grades=2"),
        (Labels(per_client=3), DATA, {}, "use 1 to 2"),
        (Labels(per_client=2), INTENT_DATA, {"grades": 2}, "use 1 to 1"),
        (Labels(), built([[0, 1]]), {}, "grade 2: no query of the training set is theirs"),
        (Labels(clients_per_set=5), DATA, {}, "no query of the training set is theirs"),
        (Labels(amounts=(1, 3, 5, 7, 9)), DATA, {}, "5 values for 3 clients"),
        (Quantity(), DATA, {"interactions": 4}, "mean 5 and interactions is 4"),
        (Clicks(), DATA, {"grades": 4}, "defined for 2, 3, 5 grades"),
        (Quantity(), built([]), {}, "no query of the training set"),
    ],
)
def test_what_makes_no_sense_is_refused(kind, data, change, says):
    call = {"grades": 3, "users": USERS, "interactions": 5, "seed": 1, **change}
    with pytest.raises(SpecError, match=says):
        split(kind, data, data, **call)


@pytest.mark.parametrize("fraction", [0, -0.1, 1.1, float("nan")])
def test_a_fraction_that_cannot_be_shared_is_refused(fraction):
    clients = split(Quantity(), DATA, DATA, grades=3, users=USERS, interactions=5, seed=1)
    with pytest.raises(SpecError, match="more than 0 and at most 1"):
        share(clients, DATA, fraction=fraction, seed=1)


@pytest.mark.parametrize("kind", [*GRADED, *BINARY])
def test_a_partition_is_written_as_it_is_read(kind):
    """In a spec: a table with a kind."""
    table = msgspec.to_builtins(kind)
    assert msgspec.convert(table, Intents | Labels | Clicks | Quantity, strict=False) == kind


@pytest.mark.data
@pytest.mark.usefixtures("real_data")
def test_real_grades_make_the_counted_clients():
    fold = catalog.load("mq2008")
    call = {"grades": 3, "users": Users(), "interactions": 5, "seed": 1}
    clients = split(Labels(), fold.train, fold.test, **call)
    for client, (first, last) in enumerate(zip(clients.pool_start, clients.pool_stop, strict=True)):
        labels = clients.train.labels[clients.train.offsets[first] : clients.train.offsets[last]]
        assert set(labels.tolist()) == {client}
        assert len(labels) == (fold.train.labels == client).sum()


@settings(max_examples=5)
@given(seed=st.integers(0, 10**6))
def test_the_synthetic_intents_can_be_split(seed):
    train, test = intents.split_fold(intents.load_intents("synthetic-intents@20"), 1, seed=seed)
    clients = split(Intents(), train, test, grades=2, users=Users(), interactions=5, seed=seed)
    assert len(clients.train.labels) == 4 * len(train.data.labels)
    assert clients.test_stop[-1] == 4 * len(test.data.queries)
