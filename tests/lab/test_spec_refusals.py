"""Specs that are refused: by key, by value, by an impossible pair; the message says what to do."""

import pytest

from foltr.lab.spec.parse import read

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
    "gaussian epsilon too large": (
        GOOD + 'privacy = { kind = "gaussian", epsilon = 1e9 }',
        ["privacy.epsilon = 1e+09: use 1e-06 to 1e+06", "overflows"]),
    "fpdgd epsilon too large": (
        GOOD + 'privacy = { kind = "fpdgd", epsilon = 1e308 }',
        ["privacy.epsilon = 1e+308: use 1e-06 to 1e+06", "overflows"]),
    "laplace epsilon too small": (
        GOOD + 'privacy = { kind = "laplace", epsilon = 1e-308 }', ["privacy.epsilon = 1e-308: use 1e-06 to 1e+06"]),
    "clip too large": (
        GOOD + 'privacy = { kind = "gaussian", clip = 1e300 }', ["privacy.clip = 1e+300: use 1e-09 to 1e+09"]),
    "sensitivity too large": (
        GOOD + 'privacy = { kind = "fpdgd", sensitivity = 1e300 }',
        ["privacy.sensitivity = 1e+300: use 1e-09 to 1e+09"]),
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
