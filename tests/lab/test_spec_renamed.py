"""Keys and values of older versions are refused with their current names."""

import re

import pytest

from foltr.errors import SpecError
from foltr.lab.spec.parse import setting
from foltr.lab.spec.renamed import KEYS, OTHER_VALUES, VALUES
from foltr.lab.spec.setting import resolved

DATA = {"name": "synthetic-mq2007@60"}

# the kind of a table that has the key, where it is not the default
KIND_OF = {
    "partition.clients_per_set": "labels",
    "partition.holders": "labels",
    "learner.streams": "foltr-es",
    "personal.keep": "offset",
    "personal.local_weight": "offset",
    "privacy.present": "gaussian",
    "privacy.min_participation": "gaussian",
    "privacy.dropouts": "gaussian",
    "privacy.servers": "gaussian",
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
    what = f" {OTHER_VALUES[old]}" if old in OTHER_VALUES else "; rename it"
    says = f"spec: {old} is now called {new}{what}"
    with pytest.raises(SpecError, match=f"^{re.escape(says)}$"):
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
