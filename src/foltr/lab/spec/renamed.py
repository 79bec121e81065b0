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
    "privacy.servers": "secagg.mode",
    "silo.most": "silo.top_k",
    "silo.others": "silo.num_negatives",
    "silo.true_rows": "silo.real_rows",
    "silo.gone": "silo.deleted_fraction",
    "silo.sgd.rate": "silo.sgd.learning_rate",
}
_INVERTED = "and states who may be missing; use 1 minus its value"
# keys whose values changed too: how
OTHER_VALUES = {
    "privacy.present": _INVERTED,
    "privacy.min_participation": _INVERTED,
    "privacy.servers": 'and names a mode; use secagg.mode = "two-servers" for 2, and leave it out for 1',
}
VALUES = {
    ("learner", "kind", "evolution"): "foltr-es",
    ("learner", "streams", "coupled"): "shared_rng",
    ("personal", "kind", "alone"): "local_only",
    ("privacy", "trust", "nobody"): "local",
    ("silo", "kind", "find"): "retrieval",
    ("silo", "kind", "picture"): "projection",
    ("silo", "noise", "once"): "one_shot",
}
_FRESH = "is gone: fresh noise on the same cell is averaged away by asking again; use one_shot, whose noise is stored"
REMOVED = {("silo", "noise", "cells"): _FRESH, ("silo", "noise", "per_query"): _FRESH}


def renamed(key: str) -> str:
    """The message about an old key; empty for any other."""
    if key in OTHER_VALUES:
        return f"{key} is now called {KEYS[key]} {OTHER_VALUES[key]}"
    return f"{key} is now called {KEYS[key]}; rename it" if key in KEYS else ""


def renamed_value(table: str, key: str, value: object) -> str:
    """The message about an old value; empty for any other."""
    if gone := REMOVED.get((table, key, str(value))):
        return f'"{value}" {gone}'
    new = VALUES.get((table, key, str(value)))
    return f'"{value}" is now called "{new}"; rename it' if new else ""
