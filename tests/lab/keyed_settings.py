"""Small settings of every kind, with the modules that their keys reach, and sources with something more in them."""

from pathlib import Path

import foltr
from foltr.lab.runs import keys
from foltr.lab.runs.closure import source_on_disk
from foltr.lab.spec.parse import setting

HOME = Path(foltr.__file__).parent
MODULES = sorted(
    ".".join(path.relative_to(HOME.parent).with_suffix("").parts).removesuffix(".__init__")
    for path in HOME.rglob("*.py")
)
FEDERATION = {"clients": 8, "interactions": 4, "rounds": 3}


def on_clicks(*, attack=None, federation=None, **tables):
    spec = {"data": {"name": "synthetic-mq2007@60"}, "federation": FEDERATION | (federation or {}), **tables}
    return spec | ({"attack": {"kind": attack, "num_attackers": 2}} if attack else {})


def on_texts(name, **silo):
    return {"data": {"name": name, "folds": 1}, "silo": silo}


ONE_PERSON = {"people": 1, "longest": 1, "tests": 2}
SPECS = {
    "fedavg": on_clicks(),
    "central": {**on_clicks(), "federation": {"kind": "central", "rounds": 3}},
    "krum, lie": on_clicks(federation={"aggregator": "krum"}, attack="lie"),
    "median, poison": on_clicks(federation={"aggregator": "median", "defend_on_detection": True}, attack="poison"),
    "geometric_median, fang": on_clicks(federation={"aggregator": "geometric_median"}, attack="fang"),
    "min_max": on_clicks(attack="min_max"),
    "sign_flip": on_clicks(attack="sign_flip"),
    "groups, unbounded": on_clicks(federation={"groups": 2, "num_byzantine": 0}, attack="unbounded"),
    "two servers, executed": on_clicks(
        privacy={"kind": "gaussian", "secure_aggregation": "execute"}, secagg={"mode": "two-servers"}
    ),
    "fpdgd": on_clicks(privacy={"kind": "fpdgd"}),
    "gaussian": on_clicks(privacy={"kind": "gaussian", "adaptive": 0.5}),
    "laplace": on_clicks(privacy={"kind": "laplace"}),
    "secure sums": on_clicks(privacy={"kind": "gaussian", "secure_aggregation": "execute"}),
    "buffered": on_clicks(federation={"mode": "buffered", "buffer": 3, "interactions": 2}),
    "randomized-response": on_clicks(learner={"kind": "foltr-es"}, privacy={"kind": "randomized-response"}),
    "foltr-es, mlp": on_clicks(learner={"kind": "foltr-es"}, ranker={"kind": "mlp"}),
    "labels, clusters": on_clicks(
        federation={"clients": 3},
        partition={"kind": "labels"},
        sharing={"fraction": 0.1},
        personal={"kind": "clusters", "count": 2},
    ),
    "unlearning by logs": on_clicks(unlearning={"method": "logs"}),
    "unlearning by calibration": on_clicks(unlearning={"method": "calibrated", "keep_every": 1}),
    "audit": on_clicks(audit={"messages": 4}),
    "silo train": on_texts("letters", kind="train", parties=2, queries=40, top_k=6),
    "silo retrieval": on_texts("made-up-60", kind="retrieval", top=5, asked=4),
    "silo disclosure": on_texts("letters", kind="disclosure", top=5, asked=2),
    "silo projection": on_texts("letters", kind="projection", points=20, columns=10),
    "people, known items": {"data": {"name": "letters", "folds": 1}, "people": {"kind": "known-items", **ONE_PERSON}},
    "people together": {
        "data": {"name": "letters", "folds": 1},
        "people": {"kind": "together", "people": 2, "searches_with_click": 2, "releases": 1, "tests": 2},
    },
}
ONE_PERSON = {"people": 1, "longest": 1, "tests": 2}
SPECS |= {
    "people, known items": {"data": {"name": "letters", "folds": 1}, "people": {"kind": "known-items", **ONE_PERSON}},
    "people together": {
        "data": {"name": "letters", "folds": 1},
        "people": {"kind": "together", "people": 2, "searches_with_click": 2, "releases": 1, "tests": 2},
    },
}
SETTINGS = {name: setting(content) for name, content in SPECS.items()}
SILO = {name for name in SETTINGS if name.startswith("silo")}
PEOPLE = {name for name in SETTINGS if name.startswith("people")}
REACHED = {name: set(keys.reached(keys.components_of(one))) for name, one in SETTINGS.items()}


def mutated(module, addition=b"\n_MUTATED = 1\n"):
    """Sources as they are on disk, but one with something more in it."""
    return lambda name: (source_on_disk(name) or b"") + addition if name == module else source_on_disk(name)


def changed_by(module, addition=b"\n_MUTATED = 1\n"):
    """Names of the settings whose keys change with a module."""
    sources = mutated(module, addition)
    return {name for name, one in SETTINGS.items() if keys.code_of(one, source_of=sources) != keys.code_of(one)}
