"""The client path is light: no compiler, no data frames, no command line; and it trains a client by itself."""

import subprocess
import sys

HEAVY = ("numba", "llvmlite", "scipy", "polars", "matplotlib", "dp_accounting", "typer", "rich", "jinja2", "foltr.lab")
MODULES = (
    "foltr.client", "foltr.learners.pdgd", "foltr.learners.foltr_es", "foltr.rankers", "foltr.rankers.trained",
    "foltr.privacy.mechanisms", "foltr.privacy.ledger", "foltr.privacy.ledger_file", "foltr.privacy.noise",
    "foltr.privacy.release",
    "foltr.secagg.client", "foltr.secagg.server", "foltr.text.analysis", "foltr.text.features", "foltr.registry",
)  # fmt: skip
TRAIN = """
import sys
import numpy as np
from foltr.client import local_update
from foltr.learners.pdgd import Pdgd
from foltr.privacy import ledger
from foltr.privacy.mechanisms import Gaussian, ReleaseContext
from foltr.privacy.noise import SystemStream
from foltr.rankers import Linear
from foltr.types import Interaction, Model

features = np.arange(12.0, dtype=np.float32).reshape(4, 3) / 12
clicks = np.array([False, True, False])
seen = [Interaction(features, np.array([2, 0, 1]), clicks, np.zeros(4), 0) for _ in range(3)]
mechanism = Gaussian(releases=5)
event = mechanism.event(ReleaseContext(participants=10, releases=5, parameters=3))
book = ledger.begin(1, delta=mechanism.delta, budget=mechanism.epsilon, events=(event,))
assert ledger.admits(book, event, np.array([0]))
model = Model(np.zeros(3), 0, Linear(), mechanism_state=mechanism.init_state())
update = local_update(
    model, seen, learner=Pdgd(), mechanism=mechanism, noise=lambda purpose: SystemStream(), event=event
)
assert update.values.shape == (3,) and np.isfinite(update.values).all() and update.weight == 1
print([name for name in HEAVY if name in sys.modules])
"""


def said(program):
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout


def test_importing_the_client_path_loads_nothing_heavy():
    program = f"import sys; import {', '.join(MODULES)}; print([m for m in {HEAVY!r} if m in sys.modules])"
    assert said(program).strip() == "[]"


def test_a_client_trains_from_a_list_of_interactions_with_numpy_alone():
    assert said(f"HEAVY = {HEAVY!r}\n{TRAIN}").strip() == "[]"
