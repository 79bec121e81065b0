"""Settings and folds to audit, small and synthetic."""

import pytest

from foltr.lab.simulation.population import load
from foltr.lab.spec.parse import plan

SMALL = {
    "data": {"name": "synthetic-mq2007@60", "normalize": "zscore"},
    "learner": {"negatives": "all-shown"},
    "users": {"clicks": "informational"},
    "federation": {"clients": 20, "interactions": 2, "rounds": 3},
    "privacy": {"kind": "fpdgd"},
}


def setting(**tables):
    return plan({**SMALL, **tables}).settings[0]


@pytest.fixture
def small():
    """A function: a small setting with some tables of its own."""
    return setting


@pytest.fixture
def fold():
    return load(setting().data, 1)
