"""Messages of clients as the server gets them, with the truth about the clicks behind them.

Source: S4 section 4.1. Each client starts from the trained ranker, searches a few times with queries that nobody has
trained on (the validation part), is shown the ranker's list as it is (not a drawn one), clicks, steps, clips, adds its
share of the noise and sends. Only queries with a full list take part.

Differs from the paper: features are scaled by the training set's moments (the author's program takes those of the
validation set); each query may be searched several times, by different people.
"""

from typing import NamedTuple

import msgspec
import numpy as np

from foltr._kernels.noise import add_gamma_shares
from foltr.clicks import ClickModel, behaviour, clicks_on
from foltr.errors import SpecError
from foltr.federation.releases import Releases, planned
from foltr.federation.round import Federated
from foltr.lab.data.dataset import Fold
from foltr.lab.spec.setting import Setting
from foltr.learners import pdgd
from foltr.learners.pdgd import Pdgd
from foltr.metrics import order
from foltr.privacy.mechanisms import Fpdgd, Gaussian, Laplace, clip_radius, protect
from foltr.rng import stream
from foltr.types import Array, Dataset, Interaction


class Messages(NamedTuple):
    before: Array  # [P] the ranker that everybody starts from
    local: Array  # [messages, P] after local training, clipped, without noise
    sent: Array  # [messages, P]
    features: Array  # [messages, documents, d] displayed, query after query
    clicks: Array  # [messages, documents] bool


def send(setting: Setting, fold: Fold, before: Array, *, messages: int, queries: int, seed: int) -> Messages:
    """Messages of `queries` searches each, in the round after the last."""
    users, round = behaviour(setting.users, grades=fold.grades), setting.federation.rounds + 1
    chosen = _queries(fold.validation, setting.users.k, messages, queries, seed)  # [messages, queries]
    local = np.tile(before, (messages, 1))
    features = np.empty((messages, queries * setting.users.k, len(before)))
    clicks = np.empty(features.shape[:2], dtype=bool)
    for client, row in enumerate(local):
        draws = stream(seed, round=round, client=client, purpose="clicks").uniform(2 * clicks.shape[1])
        for step, query in enumerate(chosen[client]):
            part = slice(step * setting.users.k, (step + 1) * setting.users.k)
            uniforms = draws[2 * part.start : 2 * part.stop]
            interaction = _search(setting, fold.validation, int(query), row, users, uniforms)
            features[client, part], clicks[client, part] = interaction.features[interaction.ranking], interaction.clicks
            _step(setting, row, interaction)
    return Messages(before, local, protected(setting, before, local, seed=seed, round=round), features, clicks)


def full_lists(data: Dataset, k: int) -> Array:
    """Queries with at least k documents."""
    return np.flatnonzero(np.diff(data.offsets) >= k)


def contributors_of(setting: Setting) -> int:
    """How many clients add a share of the noise of a round."""
    assert isinstance(setting.federation, Federated)
    return setting.federation.cohort or setting.federation.clients


def protected(setting: Setting, before: Array, local: Array, *, seed: int, round: int) -> Array:
    """Messages [n, P], clipped where it is updates that are clipped, with one share each of the noise of a round."""
    privacy, sent, clients = setting.privacy, local.copy(), np.arange(len(local))
    if isinstance(privacy, Fpdgd):
        scale = privacy.sensitivity / privacy.epsilon
        contributors = setting.audit.noise_contributors or contributors_of(setting)
        add_gamma_shares(sent, clients, scale=scale, noise_contributors=contributors, seed=seed, round=round)
    if isinstance(privacy, Gaussian | Laplace):
        event = releases_of(setting, len(before), seed).event
        event = msgspec.structs.replace(
            event, noise_contributors=setting.audit.noise_contributors or event.noise_contributors
        )
        protect(privacy, sent, before, clients, event, clip=privacy.clip, seed=seed, round=round)
    return sent


def releases_of(setting: Setting, parameters: int, seed: int) -> Releases:
    """What a mechanism of user-level DP releases in the whole run."""
    federation, privacy = setting.federation, setting.privacy
    assert isinstance(federation, Federated)
    assert isinstance(privacy, Gaussian | Laplace)
    return planned(
        privacy, clients=federation.clients, cohort=federation.cohort, turns=federation.round_robin,
        rounds=federation.rounds, parameters=parameters, seed=seed,
    )  # fmt: skip


def _queries(data: Dataset, k: int, messages: int, queries: int, seed: int) -> Array:
    """[messages, queries]: all in random order, then again in another, so that no query comes much more often."""
    full = full_lists(data, k)
    if not full.size:
        raise SpecError(f"audit: no validation query has {k} documents; use a smaller users.k")
    passes = -(-messages * queries // len(full))
    orders = [stream(seed, round=one, purpose="choice").permutation(len(full)) for one in range(passes)]
    return full[np.concatenate(orders)[: messages * queries]].reshape(messages, queries)


def _search(
    setting: Setting, data: Dataset, query: int, model: Array, users: ClickModel, uniforms: Array
) -> Interaction:
    rows = slice(data.offsets[query], data.offsets[query + 1])
    features = np.asarray(data.features[rows], dtype=np.float64)
    scores = setting.ranker.score(model, features)
    ranking = order(scores)[: setting.users.k]
    return Interaction(features, ranking, clicks_on(data.labels[rows][ranking], users, uniforms), scores, 0)


def _step(setting: Setting, row: Array, interaction: Interaction) -> None:
    """One local step, in place."""
    assert isinstance(setting.learner, Pdgd)
    row += setting.learner.learning_rate * pdgd.gradient(interaction, setting.ranker, row, setting.learner.negatives)
    radius, norm = clip_radius(setting.privacy), float(np.linalg.norm(row))
    if radius and norm > radius:
        row *= radius / norm
