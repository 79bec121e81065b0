"""Contract suites for plug-ins: each raises AssertionError that names the violated property and its input.

    from foltr.testing import check_aggregator, check_attack

    def test_my_aggregator():
        check_aggregator(MyAggregator)

NumPy only; every input follows from a fixed seed, so that a failure can be repeated.
"""

from foltr.testing.aggregators import check_aggregator
from foltr.testing.attacks import check_attack

__all__ = ["check_aggregator", "check_attack"]
