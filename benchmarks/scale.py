"""Memory of a round over a million registered clients with a cohort of ten thousand: it grows with the cohort.

python benchmarks/scale.py [--smoke]
"""

import json
import resource
import sys
import time

import numpy as np

from foltr.clicks import Users, click_model
from foltr.lab.data import synthetic
from foltr.lab.simulation import compiled
from foltr.lab.simulation.rounds import run
from foltr.lab.simulation.task import Federated, Task
from foltr.learners.pdgd import Pdgd
from foltr.privacy.mechanisms import Fpdgd
from foltr.rankers import Linear


def main(smoke: bool) -> None:
    registered, cohort = (10_000, 500) if smoke else (1_000_000, 10_000)
    data = synthetic.generate("synthetic-mslr", queries=100 if smoke else 1000, seed=1)
    users = (click_model(Users(), grades=5),)
    federation = Federated(registered, 4, 3, cohort=cohort)
    task = Task(data, 5, users, Linear(), Pdgd(), federation, Fpdgd(), 1)
    began = time.perf_counter()
    last = np.zeros(0)
    for progress in run(task, compiled.engine(task, 2)):
        last = progress.parameters
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    seconds = (time.perf_counter() - began) / federation.rounds
    said = {"clients": registered, "cohort": cohort, "peak_mb": peak, "seconds_a_round": seconds}
    sys.stdout.write(json.dumps({**said, "finite": bool(np.isfinite(last).all())}, allow_nan=False) + "\n")


if __name__ == "__main__":
    main("--smoke" in sys.argv)
