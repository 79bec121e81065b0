"""Contract suites for plug-ins: each raises AssertionError that names the violated property and its input.

    from foltr.testing import check_aggregator

    def test_my_aggregator():
        check_aggregator(MyAggregator)

There is one for every slot of `foltr.registry`, and `check_transport`. Parameters of the kind follow the class:
`check_ranker(Mine, depth=3)`.
Every input follows from a fixed seed, so that a failure can be repeated. NumPy only; `check_partition` also needs
foltr[lab], as partitions do.
"""

from foltr.testing.aggregators import check_aggregator
from foltr.testing.attacks import check_attack
from foltr.testing.click_models import check_click_model
from foltr.testing.learners import check_learner
from foltr.testing.mechanisms import check_mechanism
from foltr.testing.partitions import check_partition
from foltr.testing.rankers import check_ranker
from foltr.testing.transports import check_transport

__all__ = [
    "check_aggregator", "check_attack", "check_click_model", "check_learner", "check_mechanism", "check_partition",
    "check_ranker", "check_transport",
]  # fmt: skip

CHECKS = {
    "ranker": check_ranker,
    "learner": check_learner,
    "mechanism": check_mechanism,
    "aggregator": check_aggregator,
    "attack": check_attack,
    "click_model": check_click_model,
    "partition": check_partition,
}
