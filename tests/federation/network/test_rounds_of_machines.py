"""Rounds through the coordinator's desk: same code as behind HTTPS, with a clock that the test turns."""

import numpy as np
from machines import Machines


def test_three_rounds_give_the_parameters_of_plain_averaging(tmp_path):
    machines = Machines(tmp_path)
    machines.begin()
    expected = np.array([1.0, 0.5, 0.25])
    for round in range(1, 4):
        for k in range(5):
            assert machines.sync(k).round == round
        machines.finish()
        expected = expected + np.mean(list(machines.updates.values()), axis=0)
        np.testing.assert_allclose(machines.parameters(), expected, atol=2.0**-31)
    assert [machines.states()[round] for round in (1, 2, 3)] == ["published"] * 3
