"""Messages of clients as the server gets them, with the true clicks.

Source: S4 section 4.1. Each client starts from the trained ranker, searches a few times with queries that nobody has
trained on (the validation part), sees the list sorted by score (not a sampled one), clicks, steps, clips, adds its
share of the noise and sends. Only queries with a full list take part.

Differs from the paper: features are scaled by the training set's moments (the author's program takes those of the
validation set); each query may be searched several times, by different people.
"""

from functools import partial
from typing import Any, NamedTuple

import msgspec
import numpy as np

from foltr.clicks import ClickModel, click_model, clicks_on
from foltr.client import Rank, Searches, local_update
from foltr.errors import SpecError
from foltr.federation.round import Protection, Release
from foltr.lab.data.catalog import Fold
from foltr.lab.simulation.protection import protect_rows
from foltr.lab.simulation.task import federated, federation_protection
from foltr.lab.spec.setting import Setting
from foltr.metrics import order
from foltr.rng import stream
from foltr.types import Array, Dataset, Interaction, Model


class Messages(NamedTuple):
    before: Array  # [P] the ranker that everybody starts from
    local: Array  # [messages, P] after local training, clipped, without noise
    sent: Array  # [messages, P]
    features: Array  # [messages, documents, d] shown, query after query
    clicks: Array  # [messages, documents] bool


class _Projected(NamedTuple):
    """The local steps of a mechanism without its noise, which is added to all messages together."""

    mechanism: Any
    acts_on: str = "nothing"

    def project(self, parameters: Array) -> Array:
        projected: Array = self.mechanism.project(parameters)
        return projected


def send(setting: Setting, fold: Fold, before: Array, *, messages: int, queries: int, seed: int) -> Messages:
    """Messages of `queries` searches each, in the round after the last."""
    round, k = setting.federation.rounds + 1, setting.users.k
    chosen = _queries(fold.validation, k, messages, queries, seed)  # [messages, queries]
    model = Model(before, round - 1, setting.ranker, k, seed)
    users, deltas = click_model(setting.users, grades=fold.grades), []
    seen: list[Interaction] = []
    for client in range(messages):
        draws = stream(seed, round=round, client=client, purpose="clicks").uniform(2 * queries * k)
        search = partial(_search, fold.validation, chosen[client], k, users, draws, seen)
        update = local_update(
            model, Searches(queries, search), learner=setting.learner, mechanism=_Projected(setting.privacy),
            noise=_no_noise, client=client,
        )  # fmt: skip
        deltas.append(update.values)
    features = np.concatenate([one.features[one.ranking] for one in seen]).reshape(messages, queries * k, -1)
    clicks = np.concatenate([one.clicks for one in seen]).reshape(messages, -1)
    local = np.stack(deltas)
    sent = protected(setting, local, seed=seed, round=round)
    return Messages(before, before + local, before + sent, features, clicks)


def _no_noise(purpose: str) -> Any:
    raise AssertionError(f"no stream for {purpose!r}: noise is added to all messages together")


def _search(
    data: Dataset, chosen: Array, k: int, users: ClickModel, draws: Array, seen: list[Interaction], step: int,
    rank: Rank,
) -> Interaction:  # fmt: skip
    """One search in the list sorted by score; the displayed list is appended to `seen`."""
    rows = slice(data.offsets[chosen[step]], data.offsets[chosen[step] + 1])
    features = np.asarray(data.features[rows], dtype=np.float64)
    _, scores = rank(features, k, stream(0, purpose="choice"))
    ranking = order(scores)[:k]
    clicks = clicks_on(data.labels[rows][ranking], users, draws[2 * step * k : 2 * (step + 1) * k])
    seen.append(Interaction(features, ranking, clicks, scores, 0))
    return seen[-1]


def full_lists(data: Dataset, k: int) -> Array:
    """Queries with at least as many documents as are displayed."""
    return np.flatnonzero(np.diff(data.offsets) >= k)


def contributors_of(setting: Setting) -> int:
    """Number of clients that add a share of the noise of a round."""
    federation = federated(setting.federation)
    return federation.cohort or federation.clients


def protected(setting: Setting, local: Array, *, seed: int, round: int) -> Array:
    """Deltas [n, P] as they leave: clipped where deltas are clipped, with one share each of the noise of a round."""
    protection = setting_protection(setting, local.shape[1])
    if protection.event is None:
        return local.copy()
    wanted = setting.audit.noise_contributors or protection.event.noise_contributors
    event = msgspec.structs.replace(protection.event, noise_contributors=wanted)
    release = Release(setting.privacy.init_state(), event)
    return protect_rows(setting.privacy, local.copy(), np.arange(len(local)), release, seed=seed, round=round)


def setting_protection(setting: Setting, parameters: int) -> Protection:
    """The setting's mechanism with the event of a release."""
    federation, mode = federated(setting.federation), setting.secagg.mode
    return federation_protection(federation, setting.privacy, secagg_mode=mode, parameters=parameters)


def _queries(data: Dataset, k: int, messages: int, queries: int, seed: int) -> Array:
    """[messages, queries]: all in random order, then again in another, so that no query comes much more often."""
    full = full_lists(data, k)
    if not full.size:
        raise SpecError(f"audit: no validation query has {k} documents; use a smaller users.k")
    passes = -(-messages * queries // len(full))
    orders = [stream(seed, round=one, purpose="choice").permutation(len(full)) for one in range(passes)]
    return full[np.concatenate(orders)[: messages * queries]].reshape(messages, queries)
