"""`privacy.secure_aggregation = "execute"` runs the protocol for real in the rounds of a small federation."""

import numpy as np
import pytest

from foltr.errors import SpecError
from foltr.lab.runs.single import run_setting
from foltr.lab.simulation.population import load
from foltr.lab.spec.parse import setting
from foltr.secagg import in_process


def spec(secure, clients=6):
    return {
        "data": {"name": "synthetic-mq2007@60", "folds": 1},
        "federation": {"clients": clients, "interactions": 3, "rounds": 4},
        "privacy": {"kind": "gaussian", "epsilon": 4.0, "secure_aggregation": secure},
    }


def trained(secure):
    one = setting(spec(secure))
    *_, result = run_setting(one, load(one.data, 1), 1)
    return result.parameters


def test_the_protocol_gives_the_plain_sum_up_to_the_fixed_point_step():
    """Values are cut to 2^-32; six clients, four rounds, and lists that hardly depend on so little."""
    assert trained("execute") == pytest.approx(trained(True), abs=1e-7)
    assert not np.array_equal(trained("execute"), trained(True))  # it is not the plain sum itself


def test_every_round_runs_the_protocol(monkeypatch):
    calls, real = [], in_process.secure_sum
    monkeypatch.setattr(in_process, "secure_sum", lambda rows, **how: calls.append(len(rows)) or real(rows, **how))
    trained("execute")
    assert calls == [6, 6, 6, 6]


def test_large_federations_are_told_to_simulate():
    with pytest.raises(SpecError, match="at most 200 clients"):
        setting(spec("execute", clients=201))


def test_bits_of_an_adaptive_clip_would_bypass_the_protocol():
    adaptive = spec("execute")
    adaptive["privacy"]["adaptive"] = 0.5
    with pytest.raises(SpecError, match=r"privacy\.adaptive: the bits"):
        setting(adaptive)
