"""From a setting and a fold to a task: clients, their data, their click models, attackers."""

from typing import NamedTuple

import msgspec
import numpy as np

from foltr.clicks import Users, click_model
from foltr.errors import SpecError
from foltr.federation.schedule import interactions_of
from foltr.lab.attacks.attack import transform_of
from foltr.lab.data import catalog, intents
from foltr.lab.data.catalog import Fold
from foltr.lab.data.intents import IntentData
from foltr.lab.data.partition import Clients, NoPartition, PartitionContext
from foltr.lab.data.sharing import share
from foltr.lab.simulation.task import Central, ClientPools, Federated, Task, everything, participants_of
from foltr.lab.spec.setting import AnySetting, DataChoice, Setting, TextSetting, chosen_folds, num_byzantine
from foltr.metrics import Metric, on_scale, parse_metric
from foltr.rankers.plackett_luce import DRAWS
from foltr.types import Array, Dataset


class Tested(NamedTuple):
    """The test data, and each client's own test queries; none if all clients share the test set."""

    data: Dataset
    pools: list[Array]  # queries of each client
    names: tuple[str, ...]  # of the clients


def load(data: DataChoice, fold: int) -> Fold:
    """A fold of a collection, with intents where it has them."""
    if data.name.partition("@")[0] in intents.NAMES:
        return intents.load_fold(data.name, fold=fold, normalize=data.normalize)
    return catalog.load(data.name, fold=fold, normalize=data.normalize)


def folds_of(setting: AnySetting) -> list[int]:
    """The folds that a setting runs on; texts have one."""
    chosen, complaint = chosen_folds(setting.data.folds)
    if complaint:
        raise SpecError(complaint)
    if chosen or isinstance(setting, TextSetting):
        return chosen or [1]
    name = setting.data.name
    return intents.folds(name) if name.partition("@")[0] in intents.NAMES else catalog.folds(name)


def metrics_of(setting: Setting, grades: int) -> list[Metric]:
    """The metrics that a setting names, on the scale of the data's grades."""
    try:
        return [on_scale(parse_metric(name), grades - 1) for name in setting.metrics.names]
    except SpecError as problem:
        raise SpecError(f"metrics.names: {problem}") from None


def task_of(setting: Setting, fold: Fold, seed: int) -> tuple[Task, Tested]:
    """The task of a single run, and what it is tested on."""
    longest = int(np.diff(fold.train.offsets).max())
    if setting.users.k > longest:
        raise SpecError(
            f"users.k = {setting.users.k}: the longest list of {fold.name} fold {fold.fold} has {longest} "
            f"documents; use at most {longest}"
        )
    if longest > DRAWS:
        raise SpecError(
            f"data.name: the longest list of {fold.name} fold {fold.fold} has {longest:,} documents; lists are drawn "
            f"from at most {DRAWS:,}, so reduce lists by a first-stage ranking"
        )
    federation = setting.federation
    plain = Task(
        fold.train, fold.grades, (click_model(setting.users, grades=fold.grades),),
        setting.ranker, setting.learner, federation, setting.privacy, seed, personal=setting.personal,
        secagg_mode=setting.secagg.mode,
    )  # fmt: skip
    if isinstance(federation, Central):
        return plain, Tested(fold.test, [], ())
    federation = msgspec.structs.replace(federation, num_byzantine=num_byzantine(setting, federation))
    task = plain._replace(
        federation=federation, transform=transform_of(setting.attack, aggregator=federation.aggregator, seed=seed)
    )
    if setting.partition == NoPartition():
        return _poisoned(setting, task), Tested(fold.test, [], ())
    task, tested = _skewed(setting, fold, task, federation)
    return _poisoned(setting, task), tested


def _skewed(setting: Setting, fold: Fold, task: Task, federation: Federated) -> tuple[Task, Tested]:
    if not isinstance(federation.interactions, int):
        raise SpecError("federation.interactions: one number where a partition is given; use partition.amounts")
    context = PartitionContext(fold.grades, setting.users, federation.interactions, task.seed)
    clients = setting.partition.split(*_parts(fold), context)
    if federation.clients != len(clients.names):
        raise SpecError(
            f"federation.clients = {federation.clients}: this partition makes {len(clients.names)} clients "
            f"({', '.join(clients.names)}); use federation.clients = {len(clients.names)}"
        )
    public = np.empty(0, np.int64)
    if setting.sharing.fraction:
        clients, public = share(clients, fold.train, fraction=setting.sharing.fraction, seed=task.seed)
    federation = msgspec.structs.replace(federation, interactions=tuple(int(b) for b in clients.interactions))
    task = task._replace(
        train=clients.train,
        click_models=tuple(click_model(one, grades=fold.grades) for one in clients.click_models),
        federation=federation,
        pools=_with_server(clients, public),
        warm_up=setting.sharing.warm_up,
    )
    pools = [clients.test_pools[a:b] for a, b in zip(clients.test_start, clients.test_stop, strict=True)]
    return task, Tested(clients.test, pools, clients.names)


def _parts(fold: Fold) -> tuple[Dataset | IntentData, Dataset | IntentData]:
    if fold.intents is None:
        return fold.train, fold.test
    seen, unseen = fold.intents
    return IntentData(fold.train, seen, fold.note), IntentData(fold.test, unseen, fold.note)


def _with_server(clients: Clients, public: Array) -> ClientPools:
    """The pools of the clients, and the server as one more client, with the shared queries."""
    pools = np.concatenate([clients.pools, public])
    start = np.append(clients.pool_start, len(clients.pools))
    return ClientPools(pools, start, np.append(clients.pool_stop, len(pools)), np.append(clients.users, 0))


def _poisoned(setting: Setting, task: Task) -> Task:
    """The first clients click by the poison table."""
    federation = task.federation
    if "clicks" not in setting.attack.needs or not isinstance(federation, Federated):
        return task
    queries, clients = len(task.train.queries), np.arange(federation.clients)
    held = task.pools or everything(clients, queries=queries, click_models=len(task.click_models))
    users = held.users.copy()
    users[: setting.attack.num_attackers] = len(task.click_models)
    poison = click_model(Users(setting.attack.click_table, k=setting.users.k), grades=task.grades)
    return task._replace(click_models=(*task.click_models, poison), pools=held._replace(users=users))


def interactions_in(setting: AnySetting) -> int:
    """Interactions of one single run. A partition's amounts have the mean that the federation says."""
    if isinstance(setting, TextSetting):
        return 1  # a run counts as one: nobody clicks, or each learner has clicks of its own
    federation = setting.federation
    if isinstance(federation, Central):
        return federation.batch * federation.rounds
    pattern = interactions_of(np.arange(federation.clients), federation.interactions)
    return int(pattern.mean() * participants_of(federation)) * federation.rounds
