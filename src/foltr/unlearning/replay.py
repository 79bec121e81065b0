"""Calibrated replay: the others take a few new steps from the start, each as long as the one they kept.

Source: S2 section 6.1.2, equation 6.2 (FedEraser): restart from the initial model; in each kept round every remaining
client makes n' < n local steps and sends ||kept update|| * new update / ||new update||; FedAvg.

Differs from the paper: nothing in the method. Where it is silent: a new update of length zero (nobody clicked) has no
direction and stays zero; clients weigh as many interactions as stand behind what they kept, as in equation 6.1; new
steps are new searches, so they read random numbers of rounds that the federation never had (T + kept round), the same
in every replay from one seed. Had they read the numbers of the kept round again, length and direction would come
from the same queries.

It does not erase: the lengths were made on models that contained the leaver (see `residual`).
"""

from collections.abc import Collection, Iterator

import numpy as np

from foltr.federation.aggregators import fedavg
from foltr.federation.round import Engine, Task
from foltr.types import Array
from foltr.unlearning.history import History, lengths
from foltr.unlearning.rounds import Round, begin, federated


def replay(
    task: Task, engine: Engine, history: History, *, leavers: Collection[int], local_steps: int
) -> Iterator[Round]:
    """The kept rounds again without the leavers; the last one's parameters have forgotten them."""
    stays = ~np.isin(history.clients, list(leavers))
    clients, weights = history.clients[stays].astype(np.int64), history.steps[stays].astype(np.int64)
    sizes = lengths(history)[stays]
    rounds, first = np.unique(history.rounds[stays], return_index=True)
    parameters = begin(task)
    for round, a, b in zip(rounds.tolist(), first, np.append(first, len(clients))[1:], strict=True):
        steps = np.full(b - a, local_steps)
        models, _ = engine.train(parameters, engine.prepare(clients[a:b], steps), round=federated(task).rounds + round)
        updates = calibrated(models - parameters, sizes[a:b])
        parameters = parameters + fedavg(updates, weights[a:b])
        yield Round(round, parameters, clients[a:b], steps, None)


def calibrated(updates: Array, sizes: Array) -> Array:
    """[n, P] updates stretched to these lengths [n]; what has no length has no direction and stays zero."""
    largest = np.abs(updates).max(axis=1, keepdims=True)  # squares of tiny numbers would be lost
    scaled = np.divide(updates, largest, out=np.zeros_like(updates), where=largest > 0)
    made = np.linalg.norm(scaled, axis=1, keepdims=True)
    return np.divide(scaled, made, out=scaled, where=made > 0) * sizes[:, None]
