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
    features: Array  # [messages, documents, d] shown, query after query
    clicks: Array  # [messages, documents] bool


def send(made: Setting, fold: Fold, before: Array, *, messages: int, queries: int, seed: int) -> Messages:
    """Messages of `queries` searches each, in the round after the last."""
    users, round = behaviour(made.users, grades=fold.grades), made.federation.rounds + 1
    chosen = _queries(fold.validation, made.users.k, messages, queries, seed)  # [messages, queries]
    local = np.tile(before, (messages, 1))
    features = np.empty((messages, queries * made.users.k, len(before)))
    clicks = np.empty(features.shape[:2], dtype=bool)
    for client, row in enumerate(local):
        draws = stream(seed, round=round, client=client, purpose="clicks").uniform(2 * clicks.shape[1])
        for step, query in enumerate(chosen[client]):
            part = slice(step * made.users.k, (step + 1) * made.users.k)
            uniforms = draws[2 * part.start : 2 * part.stop]
            session = _search(made, fold.validation, int(query), row, users, uniforms)
            features[client, part], clicks[client, part] = session.features[session.ranking], session.clicks
            _step(made, row, session)
    return Messages(before, local, protected(made, before, local, seed=seed, round=round), features, clicks)


def full_lists(data: Dataset, shown: int) -> Array:
    """Queries with at least as many documents as are shown."""
    return np.flatnonzero(np.diff(data.offsets) >= shown)


def holders_of(made: Setting) -> int:
    """How many clients add a share of the noise of a round."""
    assert isinstance(made.federation, Federated)
    return made.federation.cohort or made.federation.clients


def protected(made: Setting, before: Array, local: Array, *, seed: int, round: int) -> Array:
    """Messages [n, P], clipped where it is updates that are clipped, with one share each of the noise of a round."""
    privacy, sent, clients = made.privacy, local.copy(), np.arange(len(local))
    if isinstance(privacy, Fpdgd):
        scale, holders = privacy.sensitivity / privacy.epsilon, made.audit.holders or holders_of(made)
        add_gamma_shares(sent, clients, scale=scale, noise_contributors=holders, seed=seed, round=round)
    if isinstance(privacy, Gaussian | Laplace):
        event = releases_of(made, len(before), seed).event
        event = msgspec.structs.replace(event, noise_contributors=made.audit.holders or event.noise_contributors)
        protect(privacy, sent, before, clients, event, clip=privacy.clip, seed=seed, round=round)
    return sent


def releases_of(made: Setting, parameters: int, seed: int) -> Releases:
    """What an honest mechanism lets out in the whole run."""
    federation, privacy = made.federation, made.privacy
    assert isinstance(federation, Federated)
    assert isinstance(privacy, Gaussian | Laplace)
    return planned(
        privacy, clients=federation.clients, cohort=federation.cohort, turns=federation.round_robin,
        rounds=federation.rounds, parameters=parameters, seed=seed,
    )  # fmt: skip


def _queries(data: Dataset, shown: int, messages: int, queries: int, seed: int) -> Array:
    """[messages, queries]: all in random order, then again in another, so that no query comes much more often."""
    full = full_lists(data, shown)
    if not full.size:
        raise SpecError(f"audit: no validation query has {shown} documents; use a smaller users.k")
    passes = -(-messages * queries // len(full))
    orders = [stream(seed, round=one, purpose="choice").permutation(len(full)) for one in range(passes)]
    return full[np.concatenate(orders)[: messages * queries]].reshape(messages, queries)


def _search(made: Setting, data: Dataset, query: int, model: Array, users: ClickModel, uniforms: Array) -> Interaction:
    rows = slice(data.offsets[query], data.offsets[query + 1])
    features = np.asarray(data.features[rows], dtype=np.float64)
    scores = made.ranker.score(model, features)
    shown = order(scores)[: made.users.k]
    return Interaction(features, shown, clicks_on(data.labels[rows][shown], users, uniforms), scores, 0)


def _step(made: Setting, row: Array, session: Interaction) -> None:
    """One local step, in place."""
    assert isinstance(made.learner, Pdgd)
    row += made.learner.learning_rate * pdgd.gradient(session, made.ranker, row, made.learner.negatives)
    radius, norm = clip_radius(made.privacy), float(np.linalg.norm(row))
    if radius and norm > radius:
        row *= radius / norm
