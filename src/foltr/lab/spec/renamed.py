"""Keys and values of older versions; a spec that uses one is refused with its current name."""

KEYS = {
    "learner.rate": "learner.learning_rate",
    "learner.losers": "learner.negatives",
    "learner.pull": "learner.prox_mu",
    "users.shown": "users.k",
    "federation.rule": "federation.aggregator",
    "federation.bad": "federation.num_byzantine",
    "federation.assumed": "federation.num_byzantine",
    "federation.turns": "federation.round_robin",
    "federation.on_alarm": "federation.defend_on_detection",
    "attack.by": "attack.kind",
    "attack.attackers": "attack.num_attackers",
    "personal.keep": "personal.local_weight",
    "forget": "unlearning",
    "unlearning.way": "unlearning.method",
    "unlearning.leavers": "unlearning.forget_clients",
    "unlearning.parts": "unlearning.shards",
    "partition.holders": "partition.clients_per_set",
    "audit.holders": "audit.noise_contributors",
    "privacy.present": "privacy.dropouts",
    "privacy.min_participation": "privacy.dropouts",
    "silo.most": "silo.top_k",
    "silo.others": "silo.num_negatives",
    "silo.true_rows": "silo.real_rows",
    "silo.gone": "silo.deleted_fraction",
    "silo.sgd.rate": "silo.sgd.learning_rate",
}
INVERTED = {"privacy.present", "privacy.min_participation"}
VALUES = {
    ("learner", "kind", "evolution"): "foltr-es",
    ("learner", "streams", "coupled"): "shared_rng",
    ("personal", "kind", "alone"): "local_only",
    ("privacy", "trust", "nobody"): "local",
    ("silo", "kind", "find"): "retrieval",
    ("silo", "kind", "picture"): "projection",
    ("silo", "noise", "cells"): "per_query",
    ("silo", "noise", "once"): "one_shot",
}


def renamed(key: str) -> str:
    """The message about an old key; empty for any other."""
    if key in INVERTED:
        return f"{key} is now called {KEYS[key]} and states who may be missing; use 1 minus its value"
    return f"{key} is now called {KEYS[key]}; rename it" if key in KEYS else ""


def renamed_value(table: str, key: str, value: object) -> str:
    """The message about an old value; empty for any other."""
    new = VALUES.get((table, key, str(value)))
    return f'"{value}" is now called "{new}"; rename it' if new else ""
