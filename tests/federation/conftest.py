"""Operators whose noise is zero, for tests that compare sums with plain ones."""

import numpy as np
import pytest


@pytest.fixture
def silent_operators(monkeypatch):
    """Operators of federations with noise add zeros: everything else is what runs."""
    monkeypatch.setattr("foltr.federation.operator.noise_of", lambda _setup: lambda size: np.zeros(size, np.int64))
