"""From a setting and a fold to a task: who the clients are, what they hold, how they click, who attacks."""

from typing import NamedTuple

import msgspec
import numpy as np

from foltr._kernels.cohort import ClientPools, everything
from foltr._kernels.pdgd import DRAWS
from foltr.clicks import Users, behaviour
from foltr.errors import SpecError
from foltr.federation.round import Central, Federated, Task
from foltr.federation.schedule import interactions_of
from foltr.lab.attacks.plain import Poison
from foltr.lab.attacks.transform import transform_of
from foltr.lab.data import catalog, intents
from foltr.lab.data.dataset import Fold
from foltr.lab.data.intents import IntentData
from foltr.lab.data.partition import Clients, split
from foltr.lab.data.sharing import share
from foltr.lab.spec.setting import AnySetting, DataChoice, Even, Setting, SiloSetting, num_byzantine
from foltr.types import Array, Dataset


class Tested(NamedTuple):
    """What rankers are evaluated on, and which of it is each client's own; nobody's, if all are tested alike."""

    data: Dataset
    pools: list[Array]  # queries of each client
    names: tuple[str, ...]  # of the clients


def load(data: DataChoice, fold: int) -> Fold:
    """A fold of a collection, with intents where it has them."""
    if data.name.partition("@")[0] in intents.NAMES:
        return intents.load_fold(data.name, fold=fold, normalize=data.normalize)
    return catalog.load(data.name, fold=fold, normalize=data.normalize)


def task_of(made: Setting, fold: Fold, seed: int) -> tuple[Task, Tested]:
    """Everything that decides the numbers of a single run."""
    longest = int(np.diff(fold.train.offsets).max())
    if made.users.k > longest:
        raise SpecError(
            f"users.k = {made.users.k}: the longest list of {fold.name} fold {fold.fold} has {longest} "
            f"documents; use at most {longest}"
        )
    if longest > DRAWS:
        raise SpecError(
            f"data.name: the longest list of {fold.name} fold {fold.fold} has {longest:,} documents; lists are drawn "
            f"from at most {DRAWS:,}, so keep the best of a first search"
        )
    federation = made.federation
    plain = Task(
        fold.train, fold.grades, (behaviour(made.users, grades=fold.grades),),
        made.ranker, made.learner, federation, made.privacy, seed, personal=made.personal,
    )  # fmt: skip
    if isinstance(federation, Central):
        return plain, Tested(fold.test, [], ())
    federation = msgspec.structs.replace(federation, num_byzantine=num_byzantine(made, federation))
    task = plain._replace(
        federation=federation, transform=transform_of(made.attack, aggregator=federation.aggregator, seed=seed)
    )
    if isinstance(made.partition, Even):
        return _poisoned(made, task), Tested(fold.test, [], ())
    task, tested = _skewed(made, fold, task, federation)
    return _poisoned(made, task), tested


def _skewed(made: Setting, fold: Fold, task: Task, federation: Federated) -> tuple[Task, Tested]:
    assert not isinstance(made.partition, Even)
    if not isinstance(federation.interactions, int):
        raise SpecError("federation.interactions: one number where a partition is given; use partition.amounts")
    clients = split(
        made.partition, *_parts(fold), grades=fold.grades, users=made.users,
        interactions=federation.interactions, seed=task.seed,
    )  # fmt: skip
    if federation.clients != len(clients.names):
        raise SpecError(
            f"federation.clients = {federation.clients}: this partition makes {len(clients.names)} clients "
            f"({', '.join(clients.names)}); use federation.clients = {len(clients.names)}"
        )
    public = np.empty(0, np.int64)
    if made.sharing.fraction:
        clients, public = share(clients, fold.train, fraction=made.sharing.fraction, seed=task.seed)
    federation = msgspec.structs.replace(federation, interactions=tuple(int(b) for b in clients.interactions))
    task = task._replace(
        train=clients.train,
        behaviours=tuple(behaviour(one, grades=fold.grades) for one in clients.behaviours),
        federation=federation,
        pools=_with_server(clients, public),
        warm_up=made.sharing.warm_up,
    )
    pools = [clients.test_pools[a:b] for a, b in zip(clients.test_start, clients.test_stop, strict=True)]
    return task, Tested(clients.test, pools, clients.names)


def _parts(fold: Fold) -> tuple[Dataset | IntentData, Dataset | IntentData]:
    if fold.intents is None:
        return fold.train, fold.test
    seen, unseen = fold.intents
    return IntentData(fold.train, seen, fold.note), IntentData(fold.test, unseen, fold.note)


def _with_server(clients: Clients, public: Array) -> ClientPools:
    """What clients hold, and as one client more the server, which has the queries that are shared."""
    pools = np.concatenate([clients.pools, public])
    start = np.append(clients.pool_start, len(clients.pools))
    return ClientPools(pools, start, np.append(clients.pool_stop, len(pools)), np.append(clients.users, 0))


def _poisoned(made: Setting, task: Task) -> Task:
    """The first clients click by the poison table."""
    federation = task.federation
    if not isinstance(made.attack, Poison) or not isinstance(federation, Federated):
        return task
    queries, clients = len(task.train.queries), np.arange(federation.clients)
    held = task.pools or everything(clients, queries=queries, behaviours=len(task.behaviours))
    users = held.users.copy()
    users[: made.attack.num_attackers] = len(task.behaviours)
    poison = behaviour(Users(made.attack.click_table, k=made.users.k), grades=task.grades)
    return task._replace(behaviours=(*task.behaviours, poison), pools=held._replace(users=users))


def interactions_in(made: AnySetting) -> int:
    """Interactions of one single run. A partition's amounts have the mean that the federation says."""
    if isinstance(made, SiloSetting):
        return 1  # nobody clicks: a run counts as one
    federation = made.federation
    if isinstance(federation, Central):
        return federation.batch * federation.rounds
    pattern = interactions_of(np.arange(federation.clients), federation.interactions)
    return int(pattern.mean() * (federation.cohort or federation.clients)) * federation.rounds
