"""Specs: what is meant when little is said, how a sweep spreads, what `--set` does, and how settings are stored."""

import contextlib
import json
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foltr import registry
from foltr.errors import InputError, SpecError
from foltr.lab.spec.parse import labels, plan, read, setting
from foltr.lab.spec.setting import SLOTS, TABLES, DataChoice, chosen_folds, resolved, stored

DATA = {"name": "synthetic-mq2007@60"}


def small(**tables):
    return setting({"data": DATA, **tables})


# --- defaults -------------------------------------------------------------------------------------------------------


def test_a_spec_that_only_names_its_data_is_fpdgd_without_privacy_as_published():
    assert resolved(small()) == {
        "data": {"name": "synthetic-mq2007@60", "folds": None, "normalize": None},
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
            "groups": 1,
        },
        "privacy": {"kind": "none"},
        "runs": {"seeds": 1, "first_seed": 1, "evaluate_every": None},
        "secagg": {"mode": "one-server"},
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
        "metrics": {"names": ("nDCG@10", "RR@10"), "empty": "skip"},
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
    assert chosen_folds(DataChoice("mq2007", folds=said).folds) == (folds, "")


@pytest.mark.parametrize("said", ["", "all", "1-", "1;2", "1-2-3", "-1", "1.5", "5-1", "1-99999999", 0, -2, [], [1, 1]])
def test_what_is_no_list_of_folds_is_refused_by_its_key(said):
    with pytest.raises(SpecError, match=r"^bad\.toml: data\.folds = "):
        setting({"data": {**DATA, "folds": said}}, where="bad.toml")


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
