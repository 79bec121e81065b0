"""Specs: what is meant when little is said, how a sweep spreads, what `--set` does, and what is refused how."""

import contextlib
import json
import re
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foltr import registry
from foltr.errors import InputError, SpecError
from foltr.lab.spec.parse import labels, plan, read, setting
from foltr.lab.spec.renamed import KEYS, VALUES
from foltr.lab.spec.setting import SLOTS, TABLES, DataChoice, folds_of, resolved, stored

DATA = {"name": "synthetic-mq2007@60"}


def small(**tables):
    return setting({"data": DATA, **tables})


# --- defaults -------------------------------------------------------------------------------------------------------


def test_a_spec_that_only_names_its_data_is_fpdgd_without_privacy_as_published():
    assert resolved(small()) == {
        "data": {"name": "synthetic-mq2007@60", "folds": "1-5", "normalize": None},
        "plugins": (),
        "ranker": {"kind": "linear"},
        "learner": {
            "kind": "pdgd",
            "learning_rate": 0.1,
            "negatives": "one-below-last-click",
            "prox_mu": 0.0,
            "pair_scores": "shown",
        },
        "users": {"clicks": "navigational", "model": "cascade", "eta": 1.0, "k": 10},
        "federation": {
            "kind": "federated",
            "clients": 1000,
            "interactions": 4,
            "rounds": 1000,
            "cohort": None,
            "round_robin": False,
            "aggregator": "fedavg",
            "num_byzantine": None,
            "defend_on_detection": False,
            "mode": "sync",
            "buffer": None,
            "staleness": "constant",
            "staleness_exponent": 0.5,
            "searches_per_day": 10.0,
            "rate_spread": 1.0,
            "day_rhythm": 0.8,
        },
        "privacy": {"kind": "none"},
        "runs": {"seeds": 1, "first_seed": 1, "evaluate_every": None},
        "partition": {"kind": "none"},
        "sharing": {"fraction": 0.0, "warm_up": 0},
        "personal": {"kind": "none"},
        "attack": {"kind": "none", "num_attackers": 0, "knowledge": "partial"},
        "unlearning": {
            "method": "none",
            "forget_clients": (0,),
            "z": 2.0,
            "keep_every": 10,
            "local_steps": 3,
            "shards": 5,
            "ridge": 10.0,
        },
        "audit": {"messages": 0, "queries": 1, "sum": 1, "noise_contributors": None, "trained_by": "perfect"},
        "part": "",
    }


@pytest.mark.parametrize(
    ("table", "kind", "values"),
    [
        ("learner", "foltr-es", {"sigma": 0.01, "learning_rate": 0.001, "antithetic": True, "objective": "max_rr"}),
        ("ranker", "mlp", {"hidden": 64, "activation": "sigmoid"}),
        ("federation", "central", {"batch": 1}),
        ("privacy", "fpdgd", {"epsilon": 1.2, "sensitivity": 3.0, "clip": "delta"}),
    ],
)
def test_other_kinds_have_the_papers_values_too(table, kind, values):
    assert resolved(small(**{table: {"kind": kind}}))[table].items() >= values.items()


def test_foltr_es_draws_its_streams_independently_by_default():
    assert small(learner={"kind": "foltr-es"}).learner.streams == "independent"


def test_the_example_of_the_design_is_a_spec():
    text = """
        name = "FPDGD with privacy on MQ2007"
        data = { name = "mq2007", folds = "1-5" }
        ranker = { kind = "linear" }
        learner = { kind = "pdgd", learning_rate = 0.1 }
        users = { clicks = "navigational", k = 10 }
        federation = { clients = 1000, interactions = 4, rounds = 1000, aggregator = "fedavg" }
        privacy = { kind = "fpdgd", epsilon = 1.2, sensitivity = 3.0 }
        runs = { seeds = 5 }
        sweep = { "users.clicks" = ["perfect", "navigational", "informational"], "privacy.epsilon" = [1.2, 2.3] }
    """
    planned = plan(tomllib.loads(text))
    assert planned.name == "FPDGD with privacy on MQ2007"
    assert [(one.users.clicks, one.privacy.epsilon) for one in planned.settings] == [
        (clicks, epsilon) for clicks in ("perfect", "navigational", "informational") for epsilon in (1.2, 2.3)
    ]


# --- sweeps ---------------------------------------------------------------------------------------------------------


def test_a_label_says_what_sets_a_setting_apart_and_nothing_else():
    planned = plan(
        {"data": DATA, "sweep": {"users.clicks": ["perfect", "poison"], "learner.learning_rate": [0.1, 0.2]}}
    )
    assert labels(planned.settings) == [
        {"learner.learning_rate": 0.1, "users.clicks": "perfect"},
        {"learner.learning_rate": 0.2, "users.clicks": "perfect"},
        {"learner.learning_rate": 0.1, "users.clicks": "poison"},
        {"learner.learning_rate": 0.2, "users.clicks": "poison"},
    ]


def test_a_single_setting_needs_no_label():
    assert labels(plan({"data": DATA}).settings) == [{}]


def test_whole_tables_can_be_swept_and_as_few_keys_as_do_set_them_apart():
    tables = [{"kind": "none"}, {"kind": "fpdgd"}, {"kind": "fpdgd", "epsilon": 4.5, "sensitivity": 5.0}]
    planned = plan({"data": DATA, "sweep": {"privacy": tables}})
    assert labels(planned.settings) == [
        {"privacy.kind": "none"},
        {"privacy.kind": "fpdgd", "privacy.epsilon": 1.2},
        {"privacy.kind": "fpdgd", "privacy.epsilon": 4.5},
    ]


SWEPT = {
    "users.clicks": ["perfect", "poison", {"click": [0, 0, 1], "stop": [0, 0, 1]}],
    "users.k": [5, 10],
    "ranker": [{"kind": "linear"}, {"kind": "mlp"}, {"kind": "mlp", "hidden": 10}],
    "federation": [{"clients": 5}, {"clients": 5, "interactions": [1, 2]}, {"kind": "central"}],
    "part": ["a", "b"],
}


@given(keys=st.sets(st.sampled_from(sorted(SWEPT))))
def test_no_two_settings_have_the_same_label(keys):
    settings = plan({"data": DATA, "sweep": {key: SWEPT[key] for key in keys}}).settings
    assert len({repr(label) for label in labels(settings)}) == len(settings)


def test_a_swept_value_replaces_the_one_in_the_table():
    planned = plan({"data": DATA, "federation": {"rounds": 7, "clients": 3}, "sweep": {"federation.rounds": [5, 6]}})
    assert [(one.federation.rounds, one.federation.clients) for one in planned.settings] == [(5, 3), (6, 3)]


def test_a_value_that_is_swept_twice_is_one_setting():
    assert len(plan({"data": DATA, "sweep": {"users.k": [5, 5, 6]}}).settings) == 2


def test_users_may_have_a_table_of_their_own_in_a_sweep():
    table = {"click": [0.1, 0.5, 0.9], "stop": [0.0, 0.5, 1.0]}
    planned = plan({"data": DATA, "sweep": {"users.clicks": ["perfect", table]}})
    assert planned.settings[1].users.clicks.stop == (0.0, 0.5, 1.0)


# --- --set ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("override", "path", "value"),
    [
        ("federation.rounds=7", "federation.rounds", 7),
        ("learner.learning_rate=0.25", "learner.learning_rate", 0.25),
        ("learner.learning_rate = 1e-3", "learner.learning_rate", 0.001),
        ("users.clicks=perfect", "users.clicks", "perfect"),
        ('users.clicks="perfect"', "users.clicks", "perfect"),
        ("data.folds=1-3", "data.folds", "1-3"),
        ("data.folds=[1, 4]", "data.folds", [1, 4]),
        ("data.name=synthetic-mslr@300", "data.name", "synthetic-mslr@300"),
        ("federation.interactions=[1, 3, 5]", "federation.interactions", (1, 3, 5)),
        ('ranker={kind="mlp", hidden=10}', "ranker.hidden", 10),
        ("users.clicks={click=[0, 1], stop=[0, 1]}", "users.clicks.click", (0.0, 1.0)),
        ("runs.evaluate_every=3", "runs.evaluate_every", 3),
    ],
)
def test_set_takes_numbers_words_lists_and_tables(override, path, value):
    found = plan({"data": DATA}, [override]).settings[0]
    for step in path.split("."):
        found = getattr(found, step)
    assert found == value
    assert type(found) is type(value)


def test_set_names_the_run_too():
    assert plan({"data": DATA}, ["name=night shift"]).name == "night shift"


def test_the_last_of_several_sets_wins():
    assert plan({"data": DATA}, ["users.k=5", "users.k=6"]).settings[0].users.k == 6


def test_set_wins_over_the_sweep_of_the_same_key():
    spec = {"data": DATA, "sweep": {"users.clicks": ["perfect", "poison"], "users.k": [5, 6]}}
    planned = plan(spec, ["users.clicks=informational"])
    assert [(one.users.clicks, one.users.k) for one in planned.settings] == [
        ("informational", 5),
        ("informational", 6),
    ]


def test_set_of_a_whole_table_wins_over_a_sweep_inside_it():
    planned = plan({"data": DATA, "sweep": {"users.k": [5, 6]}}, ['users={clicks="poison"}'])
    assert [(one.users.clicks, one.users.k) for one in planned.settings] == [("poison", 10)]


def test_set_of_one_key_holds_in_every_swept_table():
    collections = [{"name": "synthetic-mq2007@60"}, {"name": "synthetic-mslr@60", "folds": "2"}]
    planned = plan({"sweep": {"data": collections}}, ['data.folds="3"'])
    assert [(one.data.name, one.data.folds) for one in planned.settings] == [
        ("synthetic-mq2007@60", "3"),
        ("synthetic-mslr@60", "3"),
    ]


def test_set_can_bring_a_sweep():
    planned = plan({"data": DATA}, ['sweep={"users.k" = [3, 4]}'])
    assert [one.users.k for one in planned.settings] == [3, 4]


def test_a_given_spec_is_not_changed_by_reading_it():
    spec = {"data": dict(DATA), "name": "unchanged", "sweep": {"users.k": [5]}}
    plan(spec, ["data.folds=1", "users.k=7"])
    assert spec == {"data": DATA, "name": "unchanged", "sweep": {"users.k": [5]}}


@pytest.mark.parametrize("override", ["federation.rounds", "=3", " = 3", ""])
def test_a_set_without_key_or_value_is_refused_with_an_example(override):
    with pytest.raises(SpecError, match=r"--set .*: expected key=value, such as federation.rounds=100"):
        plan({"data": DATA}, [override])


def test_a_set_below_something_that_is_no_table_names_both():
    with pytest.raises(SpecError, match=r"^data.name.x: data.name is not a table$"):
        plan({"data": DATA}, ["data.name.x=3"])


# --- folds ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "folds"),
    [("1-5", [1, 2, 3, 4, 5]), ("2", [2]), ("1,3", [1, 3]), (" 4 - 5 , 1 ", [4, 5, 1]), (3, [3]), ([2, 5], [2, 5])],
)
def test_folds_can_be_said_in_several_ways(said, folds):
    assert folds_of(DataChoice("mq2007", folds=said)) == folds


@pytest.mark.parametrize("said", ["", "all", "1-", "1;2", "1-2-3", "-1", "1.5", "5-1", "1-99999999", 0, -2, [], [1, 1]])
def test_what_is_no_list_of_folds_is_refused_by_its_key(said):
    with pytest.raises(SpecError, match=r"^bad\.toml: data\.folds = "):
        setting({"data": {**DATA, "folds": said}}, where="bad.toml")


# --- refusals -------------------------------------------------------------------------------------------------------

GOOD = 'data = { name = "synthetic-mq2007@60" }\n'
ES = 'learner = { kind = "foltr-es" }\n'
NOTICED = 'privacy = { kind = "randomized-response" }\n'

LOADED = GOOD.replace("@60", "@40")  # what is refused once the data is known
REFUSALS = {
    "unknown table": (GOOD + "federaton = {}", ["federaton: no such key", "data, ranker, learner, users, federation"]),
    "unknown key": (
        GOOD + "federation = { clientz = 3 }",
        ["federation.clientz: no such key", "kind, clients, interactions, rounds, cohort, round_robin, aggregator"],
    ),
    "key of another kind": (
        GOOD + "learner = { sigma = 0.1 }",
        ["learner.sigma: no such key", 'with kind = "pdgd"', "learning_rate, negatives"],
    ),
    "unknown key in a click table": (
        GOOD + "users = { clicks = { click = [0, 1], halt = [0, 1] } }",
        ["users.clicks.halt: no such key", "click, stop"],
    ),
    "kind where there are none": (GOOD + 'users = { kind = "x" }', ["users.kind: no such key", "clicks, model, eta"]),
    "unknown swept key": (GOOD + 'sweep = { "users.click" = ["perfect"] }', ["users.click: no such key"]),
    "unknown ranker": (GOOD + 'ranker = { kind = "tree" }', ["ranker.kind: no ranker 'tree'", "linear, mlp"]),
    "unknown learner": (GOOD + 'learner = { kind = "dbgd" }', ["learner.kind: no learner 'dbgd'", "pdgd, foltr-es"]),
    "unknown federation": (
        GOOD + 'federation = { kind = "x" }',
        ["federation.kind: no federation 'x'", "federated, central"],
    ),
    "unknown privacy": (
        GOOD + 'privacy = { kind = "magic" }',
        ["privacy.kind: no mechanism 'magic'", "none, fpdgd, randomized-response"],
    ),
    "unknown activation": (
        GOOD + 'ranker = { kind = "mlp", activation = "tanh" }',
        ["ranker.activation: invalid", "'tanh'", "relu, sigmoid"],
    ),
    "unknown users": (
        GOOD + 'users = { clicks = "angry" }',
        ["users", "'angry'", "perfect, navigational, informational, poison"],
    ),
    "unknown click model": (GOOD + 'users = { model = "dbn" }', ["users", "'dbn'", "cascade, position"]),
    "unknown aggregator": (GOOD + 'federation = { aggregator = "mode" }', ["no aggregator 'mode'", "there are fedavg"]),
    "unknown attack": (GOOD + 'attack = { kind = "magic" }', ["attack.kind", "'magic'", "none, poison, lie, fang"]),
    "half of the clients attack": (
        GOOD + 'federation = { clients = 10 }\nattack = { kind = "lie", num_attackers = 5 }',
        ["5 attackers among 10 clients", "use 0 to 4"],
    ),
    "half of the clients poison": (
        GOOD + 'federation = { clients = 10 }\nattack = { kind = "poison", num_attackers = 5 }',
        ["5 attackers among 10 clients", "use 0 to 4"],
    ),
    "attackers without an attack": (GOOD + "attack = { num_attackers = 1 }", ["without an attack", "say attack.kind"]),
    "a trimmed mean that leaves nothing": (
        GOOD + 'federation = { clients = 6, aggregator = "trimmed_mean", num_byzantine = 3 }',
        ["'trimmed_mean' with 6 clients cannot assume 3", "use 0 to 2"],
    ),
    "bulyan with too few": (
        GOOD + 'federation = { clients = 10, aggregator = "bulyan", num_byzantine = 2 }',
        ["'bulyan' with 10 clients cannot assume 2", "n >= 4 m + 3", "use 0 to 1"],
    ),
    "an attack on objectives": (
        GOOD + ES + 'federation = { clients = 9 }\nattack = { kind = "lie", num_attackers = 1 }',
        ['learner.kind = "foltr-es" sends objectives', "leave out the attack table"],
    ),
    "a detector over cohorts": (
        GOOD + 'federation = { clients = 9, cohort = 5, aggregator = "median", defend_on_detection = true }',
        ["federation.defend_on_detection compares the same clients in every round", "no cohort, 3 clients or more"],
    ),
    "fedper without a layer": (
        GOOD + 'federation = { clients = 4 }\npersonal = { kind = "fedper" }',
        ['personal.kind = "fedper" needs an output layer', 'ranker.kind = "mlp"'],
    ),
    "more clusters than clients": (
        GOOD + 'federation = { clients = 4 }\npersonal = { kind = "clusters", count = 5 }',
        ["personal.count = 5 clusters of 4 clients", "use at most 4"],
    ),
    "a personal ranker under attack": (
        GOOD + 'federation = { clients = 4 }\npersonal = { kind = "local_only" }\n'
        'attack = { kind = "lie", num_attackers = 1 }',
        ["personal rankers are averaged plainly"],
    ),
    "a partition of the centre": (
        GOOD + 'federation = { kind = "central" }\npartition = { kind = "clicks" }',
        ["partition is about clients"],
    ),
    "a partition of other clients": (
        LOADED + 'federation = { clients = 7, interactions = 5 }\npartition = { kind = "labels" }',
        ["federation.clients = 7: this partition makes 3 clients (grade 0, grade 1, grade 2)", "clients = 3"],
    ),
    "intents where there are none": (
        LOADED + 'federation = { clients = 4 }\npartition = { kind = "intents" }',
        ["an intent finds a document relevant or not"],
    ),
    "two grades of two": (
        'data = { name = "synthetic-intents@20" }\nfederation = { clients = 1 }\n'
        'partition = { kind = "labels", per_client = 2 }',
        ["per_client=2 of 2 grades leaves no skew", "use 1 to 1"],
    ),
    "forgetting somebody else": (
        LOADED + 'federation = { clients = 10, interactions = 5 }\n'
        'unlearning = { method = "calibrated", forget_clients = [10] }',
        ["client 10 never took part", "0 .. 9"],
    ),
    "forgetting with rounds too far apart": (
        LOADED + 'federation = { clients = 10, interactions = 5, rounds = 20 }\n'
        'unlearning = { method = "calibrated", keep_every = 21 }',
        ["keep_every = 21: use 1 .. 20"],
    ),
    "forgetting with as many steps": (
        LOADED + 'federation = { clients = 10, interactions = 5 }\n'
        'unlearning = { method = "calibrated", local_steps = 5 }',
        ["local_steps = 5", "use 1 .. 4"],
    ),
    "forgetting everybody": (
        LOADED + 'federation = { clients = 2, interactions = 5 }\n'
        'unlearning = { method = "retrain", forget_clients = [0, 1] }',
        ["all 2 clients leave", "name at most 1"],
    ),
    "forgetting under another attack": (
        GOOD + 'federation = { clients = 9 }\nattack = { kind = "lie", num_attackers = 1 }\n'
        'unlearning = { method = "retrain" }',
        ["unlearning brings its own attack"],
    ),
    "a warm-up on nothing": (GOOD + "sharing = { warm_up = 10 }", ["sharing.warm_up", "say sharing.fraction"]),
    "sharing what all have": (GOOD + "sharing = { fraction = 0.1 }", ["everybody holds every query already"]),
    "a warm-up of personal rankers": (
        GOOD + 'federation = { clients = 3, interactions = 5 }\npartition = { kind = "labels" }\n'
        'personal = { kind = "local_only" }\nsharing = { fraction = 0.1, warm_up = 10 }',
        ["sharing.warm_up is for pdgd and one ranker for all"],
    ),
    "a proximal term without rounds": (
        GOOD + 'federation = { kind = "central" }\nlearner = { prox_mu = 0.1 }',
        ["learner.prox_mu needs rounds of clients"],
    ),
    "unknown scaling": (
        'data = { name = "mq2007", normalize = "log" }',
        ["data.normalize: no scaling 'log'", "none, query-minmax, zscore"],
    ),
    "text for a number": (
        GOOD + 'learner = { learning_rate = "fast" }',
        ["learner.learning_rate: expected `float`, got `str`"]),
    "fraction for a count": (GOOD + "federation = { rounds = 1.5 }", ["federation.rounds: expected `int`"]),
    "number for a table": (GOOD + "federation = 3", ["federation: expected a table such as federation ="]),
    "number for a name": ('data = { name = "mq2007" }\nname = 3', ["name: expected a text in quotes, got 3"]),
    "truth for a count": (GOOD + "federation = { clients = true }", ["federation.clients: expected `int`, got `bool`"]),
    "zero rounds": (GOOD + "federation = { rounds = 0 }", ["federation.rounds: expected `int` >= 1"]),
    "zero rounds, central": (
        GOOD + 'federation = { kind = "central", rounds = 0 }',
        ["federation.rounds: expected `int` >= 1"],
    ),
    "zero clients": (GOOD + "federation = { clients = 0 }", ["federation.clients: expected `int` >= 1"]),
    "no interactions": (GOOD + "federation = { interactions = [] }", ["federation.interactions: expected"]),
    "endless rounds": (
        GOOD + "federation = { rounds = 1180591620717411303424 }",
        ["federation.rounds = 1180591620717411303424", "at most 1,000,000,000"],
    ),
    "nothing shown": (GOOD + "users = { k = 0 }", ["users.k: expected `int` >= 1"]),
    "no seeds": (GOOD + "runs = { seeds = 0 }", ["runs.seeds: expected `int` >= 1"]),
    "seed too large": (GOOD + "runs = { first_seed = 9223372036854775807 }", ["runs.first_seed: expected `int` <= "]),
    "negative epsilon": (
        GOOD + 'privacy = { kind = "fpdgd", epsilon = -1 }',
        ["privacy.epsilon: expected `float` > 0"],
    ),
    "epsilon that is no number": (
        GOOD + 'privacy = { kind = "fpdgd", epsilon = nan }',
        ["privacy.epsilon: expected `float` > 0"],
    ),
    "infinite rate": (
        GOOD + "learner = { learning_rate = inf }",
        ["learner.learning_rate = inf: expected a finite number"]),
    "p of zero": (
        GOOD + ES + 'privacy = { kind = "randomized-response", p = 0 }',
        ["privacy.p: expected `float` > 0"],
    ),
    "p above one": (
        GOOD + ES + 'privacy = { kind = "randomized-response", p = 1.01 }',
        ["privacy.p: expected `float` <= 1"],
    ),
    "click probability above one": (
        GOOD + "users = { clicks = { click = [0, 1.5], stop = [0, 0] } }",
        ["users.clicks.click[1]: expected `float` <= 1"],
    ),
    "click table of two lengths": (
        GOOD + "users = { clicks = { click = [0, 1], stop = [0] } }",
        ["users.clicks: ", "got 2 click and 1 stop values"],
    ),
    "cohort above clients": (
        GOOD + "federation = { clients = 5, cohort = 6 }",
        ["federation.cohort = 6 of 5 clients; use at most 5"],
    ),
    "foltr-es without clients": (
        GOOD + ES + 'federation = { kind = "central" }',
        ['learner.kind = "foltr-es" needs clients', "use federation ="],
    ),
    "foltr-es with noise on deltas": (
        GOOD + ES + 'privacy = { kind = "fpdgd" }',
        ['privacy.kind = "fpdgd"', 'use "randomized-response"'],
    ),
    "a robust aggregator over secure sums": (
        GOOD + 'federation = { clients = 10, aggregator = "krum" }\n'
        'privacy = { kind = "gaussian" }\n',
        ['federation.aggregator = "krum" needs single updates', "secure aggregation hides", "use fedavg"],
    ),
    "round robin without a cohort": (
        GOOD + 'federation = { round_robin = true }\n',
        ["federation.round_robin", "federation.cohort"],
    ),
    "user-level noise on unequal weights": (
        GOOD + 'federation = { interactions = [1, 2] }\n'
        'privacy = { kind = "laplace" }\n',
        ["equal weights", "federation.interactions"],
    ),
    "user-level noise for foltr-es": (
        GOOD + 'learner = { kind = "foltr-es" }\n'
        'privacy = { kind = "gaussian" }\n',
        ['privacy.kind = "gaussian" protects deltas', 'use "randomized-response"'],
    ),
    "a delta of one": (
        GOOD + 'privacy = { kind = "gaussian", delta = 1.0 }\n',
        ["privacy.delta"],
    ),
    "pdgd with randomised response": (
        GOOD + NOTICED,
        ['privacy.kind = "randomized-response" protects outcomes', 'learner.kind = "foltr-es"', 'use "gaussian"'],
    ),
    "pdgd on units that are all zero": (
        GOOD + 'ranker = { kind = "mlp", activation = "relu" }',
        ['ranker.activation = "relu"', "pdgd", 'use "sigmoid"'],
    ),
    "privacy without a federation": (
        GOOD + 'federation = { kind = "central" }\nprivacy = { kind = "fpdgd" }',
        ['federation.kind = "central" sends no updates', 'use privacy = { kind = "none" }'],
    ),
    "antithetic with one interaction": (
        GOOD + ES + "federation = { interactions = 1 }",
        ["federation.interactions: antithetic FOLtR-ES", "use at least 2"],
    ),
    "antithetic with one interaction for some": (
        GOOD + ES + "federation = { interactions = [4, 1] }",
        ["federation.interactions: antithetic FOLtR-ES", "use at least 2"],
    ),
    "dcg of one document": (
        GOOD + 'learner = { kind = "foltr-es", objective = "dcg" }\nusers = { k = 1 }',
        ["users.k: the dcg objective needs a list of at least 2"],
    ),
    "unknown aggregator under noise": (
        GOOD + 'federation = { aggregator = "mode" }\nprivacy = { kind = "gaussian" }',
        ["federation.aggregator", "no aggregator 'mode'", "there are fedavg"],
    ),
    "unknown personalisation": (
        GOOD + 'personal = { kind = "magic" }',
        ["personal.kind: no personal 'magic'", "none, fedper, offset, clusters, local_only"],
    ),
    "unknown partition": (GOOD + 'partition = { kind = "magic" }', ["partition.kind: no partition 'magic'", "labels"]),
    "plug-ins that are no list": (GOOD + "plugins = 3", ["plugins: expected a list of paths"]),
    "a plug-in that is no text": (GOOD + "plugins = [3]", ["plugins: expected a list of paths"]),
    "folds that are none": ('data = { name = "synthetic-mq2007@60", folds = "first" }', ["data.folds = 'first'"]),
    "folds turned round": ('data = { name = "synthetic-mq2007@60", folds = "5-1" }', ["data.folds = '5-1'"]),
    "a fold that is not there": (
        'data = { name = "synthetic-mq2007@60", folds = 6 }',
        ["synthetic-mq2007@60 has no fold 6", "1, 2, 3, 4, 5"],
    ),
    "empty sweep": (GOOD + 'sweep = { "users.clicks" = [] }', ["sweep: expected", "at least one value"]),
    "sweep of one value": (GOOD + 'sweep = { "users.clicks" = "perfect" }', ["sweep: expected", '"table.key" =']),
    "sweep that is no table": (GOOD + "sweep = [1]", ["sweep: expected"]),
    "no data": ("name = 'nothing'", ["data: missing", 'data = { name = "mq2007" }']),
    "an empty file": ("", ["data: missing"]),
    "data without a name": ("data = {}", ["data: object missing required field `name`"]),
    "data as a word": ('data = "mq2007"', ["data: expected a table such as data = { ... }, got 'mq2007'"]),
    "data that nobody knows": ('data = { name = "mq2009" }', ["no data set 'mq2009'", "mq2007, mq2008"]),
    "data that is not here": ('data = { name = "yahoo" }', ["is not on this machine", "foltr data add yahoo PATH"]),
    "synthetic data of no size": ('data = { name = "synthetic-mq2007@x" }', ["'synthetic-mq2007@x'", "@QUERIES"]),
    "more shown than any list has": (
        GOOD.replace("@60", "@5") + "users = { k = 100 }",
        ["users.k = 100: the longest list of synthetic-mq2007@5 fold 1 has", "use at most"],
    ),
    "not TOML": ('data = { name = "mq2007" }\nfederation = {\n', ["not TOML", "line 2, column 15"]),
    "half a line": ('data = { name = "mq2007" }\n\nlearner rate\n', ["not TOML", "line 3, column 9"]),
    "the same table twice": ('data = { name = "a" }\n[data]\n', ["not TOML", "line 2, column 6"]),
}  # fmt: skip


@pytest.mark.parametrize(("text", "pieces"), REFUSALS.values(), ids=REFUSALS)
def test_a_bad_spec_is_refused_by_its_key_with_what_to_do(text, pieces, refused, tmp_path):
    path = tmp_path / "bad.toml"
    path.write_text(text)
    message = refused("run", path, "--out", tmp_path / "out")
    for piece in pieces:
        assert piece in message


@pytest.mark.parametrize("case", [name for name, (text, _) in REFUSALS.items() if text.startswith(GOOD)])
def test_a_refused_key_or_pair_names_the_file(case, refused, tmp_path):
    path = tmp_path / "bad.toml"
    path.write_text(REFUSALS[case][0])
    assert refused("run", path).startswith(f"{path}: ")


@pytest.mark.parametrize(
    ("override", "piece"),
    [
        ("federation.rounds=0", "federation.rounds: expected `int` >= 1"),
        ("nosuch=1", "nosuch: no such key"),
        ("federation.rounds", "--set federation.rounds: expected key=value"),
    ],
)
def test_a_bad_set_is_refused_on_the_command_line(override, piece, refused, tiny):
    assert piece in refused("run", tiny, "--set", override)


def test_a_spec_file_that_is_missing_is_named(refused):
    assert refused("run", "nowhere.toml") == "nowhere.toml: there is no such spec file"


def test_a_spec_file_that_is_binary_is_named(refused, tmp_path):
    (tmp_path / "spec.toml").write_bytes(b"\x89PNG\r\n\x1a\n\x00\xff\xfe")
    message = refused("run", "spec.toml")
    assert message.startswith("spec.toml: cannot be read as text")
    assert "a spec is a TOML file" in message


def test_a_folder_in_place_of_a_spec_file_is_named(refused, tmp_path):
    (tmp_path / "spec.toml").mkdir()
    assert refused("run", "spec.toml").startswith("spec.toml: cannot be read as text")


def test_a_spec_from_an_editor_that_marks_its_files_is_read(tmp_path):
    path = tmp_path / "spec.toml"
    path.write_bytes(b"\xef\xbb\xbf" + GOOD.encode())
    assert read(path).settings[0].data.name == "synthetic-mq2007@60"


# --- names of older versions ----------------------------------------------------------------------------------------

# the kind of a table that has the key, where it is not the default
KIND_OF = {
    "partition.clients_per_set": "labels",
    "partition.holders": "labels",
    "learner.streams": "foltr-es",
    "personal.keep": "offset",
    "personal.local_weight": "offset",
    "privacy.present": "gaussian",
    "privacy.min_participation": "gaussian",
    "privacy.trust": "gaussian",
    "attack.attackers": "lie",
    "silo.gone": "retrieval",
    "silo.deleted_fraction": "retrieval",
}
SILO_DATA = {"name": "docstrings", "folds": 1}


def old_spec(key, value):
    """A spec that says this key."""
    head, *path = key.split(".")
    kind = {"kind": KIND_OF[key]} if key in KIND_OF else {}
    for step in reversed(path):
        value = {step: value}
    return {"data": SILO_DATA if head == "silo" else DATA, head: kind | value if path else value}


@pytest.mark.parametrize(("old", "new"), KEYS.items())
def test_a_key_of_an_older_version_is_refused_with_its_new_name(old, new):
    value = {} if "." not in old else 1
    with pytest.raises(SpecError, match=rf"^spec: {re.escape(old)} is now called {re.escape(new)}; rename it$"):
        setting(old_spec(old, value))


@pytest.mark.parametrize(("place", "new"), VALUES.items(), ids=lambda one: ".".join(one) if len(one) == 3 else one)
def test_a_value_of_an_older_version_is_refused_with_its_new_name(place, new):
    table, key, old = place
    says = f'spec: {table}.{key}: "{old}" is now called "{new}"; rename it'
    with pytest.raises(SpecError, match=f"^{re.escape(says)}$"):
        setting(old_spec(f"{table}.{key}", old))


@pytest.mark.parametrize("new", [*KEYS.values()])
def test_the_new_name_of_a_key_is_one(new):
    """No refusal sends a reader to a name that does not exist."""
    with pytest.raises(SpecError) as refused:
        setting(old_spec(new, object()))
    assert "no such key" not in str(refused.value)
    assert "is now called" not in str(refused.value)


@pytest.mark.parametrize(("place", "new"), VALUES.items(), ids=lambda one: ".".join(one) if len(one) == 3 else one)
def test_the_new_name_of_a_value_is_one(place, new):
    table, key, _ = place
    assert resolved(setting(old_spec(f"{table}.{key}", new)))[table][key] == new


# --- stored settings ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "tables",
    [
        {},
        {"ranker": {"kind": "mlp"}, "personal": {"kind": "fedper"}, "federation": {"clients": 3}},
        {"learner": {"kind": "foltr-es"}, "privacy": {"kind": "randomized-response"}},
        {"attack": {"kind": "lie", "num_attackers": 1}, "federation": {"clients": 9, "aggregator": "median"}},
        {"federation": {"kind": "central"}, "users": {"clicks": {"click": [0, 1], "stop": [0, 1]}}},
        {"federation": {"interactions": [1, 3]}, "unlearning": {"method": "retrain", "forget_clients": [1, 2]}},
        {"partition": {"kind": "quantity"}, "audit": {"messages": 5}},
    ],
    ids=str,
)
def test_a_stored_setting_is_the_one_that_was_stored(tables):
    one = small(**tables)
    assert stored(json.loads(json.dumps(resolved(one)))) == one


# --- whatever comes -------------------------------------------------------------------------------------------------

KINDS = {
    **TABLES,
    **{table: {name: registry.kind(slot, name) for name in registry.names(slot)} for table, slot in SLOTS.items()},
}
WORDS = sorted({"name", "sweep", "part", "plugins", "kind", "x", *KINDS} | {
    field for kinds in KINDS.values() for struct in kinds.values() for field in struct.__struct_fields__
} | {kind for kinds in KINDS.values() for kind in kinds})  # fmt: skip
SCALARS = (
    st.none() | st.booleans() | st.integers(-2, 2**65) | st.floats() | st.sampled_from(WORDS) | st.text(max_size=3)
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=3)
)
SPECS = st.dictionaries(st.sampled_from(WORDS), VALUES, max_size=5)


@given(spec=SPECS)
def test_any_tables_are_a_plan_or_a_refusal(spec):
    with contextlib.suppress(SpecError):
        planned = plan({"data": DATA, **spec})
        assert planned.settings
        assert json.loads(json.dumps(resolved(planned.settings[0]), allow_nan=False))


@given(text=st.text(), override=st.text(max_size=8))
def test_any_text_is_a_plan_or_a_refusal(text, override, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "any.toml"
    path.write_text(text, encoding="utf-8")
    with contextlib.suppress(InputError):
        assert read(path, [override]).settings
