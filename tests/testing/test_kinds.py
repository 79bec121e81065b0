"""Every kind of this package, and every example of CONTRIBUTING, keeps the contract of its slot."""

import runpy
from pathlib import Path

import pytest

from foltr import registry, testing
from foltr.clicks import USERS, Users, click_model

EXAMPLES = Path(__file__).resolve().parents[1] / "plugins" / "example"
# other ways than the defaults, which are always tried
VARIANTS = {
    ("ranker", "mlp"): [{"hidden": 1}, {"hidden": 10, "activation": "relu"}],
    ("learner", "pdgd"): [{"prox_mu": 0.5, "negatives": "all-shown"}, {"pair_scores": "current"}],
    ("learner", "foltr-es"): [{"antithetic": False, "objective": "dcg"}, {"streams": "shared_rng"}],
    ("learner", "softmax"): [
        {"prior": 0.5, "history": (0, 2), "refit_every": 1},
        {"unshown": 0, "min_clicks": 3, "clip": 0.01},
    ],
    ("mechanism", "fpdgd"): [{"clip": "half-delta", "epsilon": 8.0}],
    ("mechanism", "randomized-response"): [{"p": 0.01}, {"p": 1.0}],
    ("mechanism", "gaussian"): [
        {"adaptive": 0.5},
        {"trust": "local"},
        {"dropouts": 0.5, "releases": 2},
    ],
    ("mechanism", "laplace"): [{"trust": "local"}, {"secure_aggregation": False}],
    ("partition", "intents"): [{"iid": True, "tested_on": "intents"}, {"shuffled": False, "amounts": (2, 4, 6, 8)}],
    ("partition", "labels"): [{"per_client": 2}, {"documents": "copied"}, {"iid": True}],
    ("partition", "clicks"): [{"model": "position"}, {"iid": True}],
    ("partition", "quantity"): [{"iid": True}, {"amounts": (4, 6)}],
}
ELSEWHERE = {"aggregator", "attack"}  # their suites run in tests/aggregators and tests/attacks, on every kind
NEEDS = {("partition", "intents"): {"intents": True}}
BUILT_IN = [
    pytest.param(slot, name, more, id=f"{slot}-{name}-{'-'.join(map(str, more.values()))}")
    for slot in registry.SLOTS
    for name in registry.names(slot)
    if slot not in ELSEWHERE and (slot, name) != ("partition", "none")  # which splits nothing
    for more in [{}, *VARIANTS.get((slot, name), [])]
]


def test_every_slot_has_a_suite():
    assert testing.CHECKS.keys() == registry.SLOTS.keys()
    assert {f"check_{slot}" for slot in registry.SLOTS} | {"check_transport"} == set(testing.__all__)


@pytest.mark.parametrize(("slot", "name", "more"), BUILT_IN)
def test_a_built_in_kind_keeps_its_contract(slot, name, more):
    testing.CHECKS[slot](registry.kind(slot, name), **more, **NEEDS.get((slot, name), {}))


@pytest.mark.parametrize("model", ["cascade", "position"])
@pytest.mark.parametrize("name", USERS)
def test_published_click_models_keep_the_contract(name, model):
    class Published:
        def click_model(self, k, grades):
            return click_model(Users(name, model=model, eta=0.5, k=k), grades=grades)

    testing.check_click_model(Published)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_an_example_keeps_its_contract(path, monkeypatch):
    slots = {slot: dict(kinds) for slot, kinds in registry.SLOTS.items()}
    monkeypatch.setattr(registry, "SLOTS", slots)  # nothing stays registered for other tests
    known = {slot: set(kinds) for slot, kinds in slots.items()}
    runpy.run_path(str(path))
    ((slot, added),) = [(slot, name) for slot in slots for name in slots[slot].keys() - known[slot]]
    testing.CHECKS[slot](slots[slot][added])
