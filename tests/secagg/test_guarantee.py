"""The numbers that every client derives from its registry."""

import pytest

from foltr.errors import SpecError
from foltr.secagg.guarantee import guarantee


@pytest.mark.parametrize(
    ("registered", "expected"),
    [
        (3, (3, 3, 1, 2)),  # nobody may drop out
        (5, (5, 4, 1, 3)),
        (20, (20, 18, 2, 16)),
        (100, (100, 90, 10, 80)),
        (1000, (1000, 900, 100, 800)),
        (2000, (1000, 900, 200, 700)),  # a half, with the colluders of both
        (10_000, (5000, 4500, 1000, 3500)),
    ],
)
def test_a_tenth_drops_out_and_a_tenth_colludes(registered: int, expected: tuple[int, ...]):
    assert guarantee(registered, dropouts=0.1, corrupt=0.1) == expected


def test_at_least_one_client_works_for_the_server():
    assert guarantee(50, dropouts=0.0, corrupt=0.0).honest == 49


@pytest.mark.parametrize(("registered", "corrupt"), [(2, 0.1), (10, 0.8), (5000, 0.5), (10, 1.0), (10, -0.1)])
def test_too_few_honest_clients_are_refused(registered: int, corrupt: float):
    with pytest.raises(SpecError):
        guarantee(registered, dropouts=0.1, corrupt=corrupt)
