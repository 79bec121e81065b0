"""Pairs that make no sense and numbers out of range are refused before anything is computed, with the right choices."""

import math

import msgspec

from foltr.errors import SpecError
from foltr.federation.aggregators import aggregator_kind, check_aggregator
from foltr.federation.personalization import Clusters, FedPer, Together
from foltr.federation.round import Central, Federated
from foltr.lab.attacks.plain import NoAttack
from foltr.lab.attacks.transform import check_attack
from foltr.lab.data.normalize import KINDS as SCALINGS
from foltr.lab.data.partition import Clicks, Intents, Labels
from foltr.lab.spec.setting import (
    AnySetting,
    DataChoice,
    Even,
    Setting,
    SiloSetting,
    chosen_folds,
    flat,
    num_byzantine,
    resolved,
)
from foltr.learners.foltr_es import FoltrEs
from foltr.learners.pdgd import Pdgd
from foltr.privacy.mechanisms import Fpdgd, Gaussian, Laplace, NoPrivacy, RandomizedResponse, UserLevelDP
from foltr.rankers import Linear, Mlp


def check(made: AnySetting, *, where: str = "spec") -> None:
    """Raises SpecError with the first complaint."""
    pairs = _check_silo(made) if isinstance(made, SiloSetting) else _check_pairs(made)
    complaint = pairs or _check_data(made.data) or _check_numbers(made)
    if complaint:
        raise SpecError(f"{where}: {complaint}")


def _check_silo(made: SiloSetting) -> str:
    chosen, complaint = chosen_folds(made.data.folds)
    if complaint or chosen != [1]:
        return complaint or "data.folds: a corpus has no folds, its queries are divided by the seed; use data.folds = 1"
    return "data.normalize: features of texts are scaled by query; leave it out" if made.data.normalize else ""


def _check_pairs(made: Setting) -> str:
    learner, federation, privacy = made.learner, made.federation, made.privacy
    evolution = isinstance(learner, FoltrEs)
    if evolution and isinstance(federation, Central):
        return 'learner.kind = "foltr-es" needs clients; use federation = { clients = ..., rounds = ... }'
    if isinstance(federation, Central) and not isinstance(privacy, NoPrivacy):
        return 'federation.kind = "central" sends no updates; use privacy = { kind = "none" }'
    if evolution and isinstance(privacy, Fpdgd | Gaussian | Laplace):
        return (
            f'privacy.kind = "{_kind(privacy)}" noises parameters, which evolution does not send; '
            f'use "randomized-response"'
        )
    if not evolution and isinstance(privacy, RandomizedResponse):
        return 'privacy.kind = "randomized-response" belongs to learner.kind = "foltr-es"; for pdgd use "gaussian"'
    if not evolution and isinstance(made.ranker, Mlp) and made.ranker.activation == "relu":
        return 'ranker.activation = "relu" starts at zero, where pdgd finds no direction; use "sigmoid"'
    if isinstance(federation, Federated):
        return _check_federated(made, federation)
    return _check_central(made)


def _check_central(made: Setting) -> str:
    if isinstance(made.learner, Pdgd) and made.learner.prox_mu:
        return "learner.prox_mu goes back to the start of a round, which a centre has not; leave it out"
    plain = Setting(made.data, made.ranker, made.learner, made.users, made.federation, made.privacy, made.runs)
    for table in ("partition", "sharing", "personal", "attack", "unlearning", "audit"):
        if getattr(made, table) != getattr(plain, table):
            return f'{table} is about clients; use federation = {{ clients = ..., rounds = ... }} instead of "central"'
    return ""


def _check_data(data: DataChoice) -> str:
    if data.normalize is not None and data.normalize not in SCALINGS:
        return f"data.normalize: no scaling {data.normalize!r}; there are {', '.join(SCALINGS)}"
    return chosen_folds(data.folds)[1]


_MOST = 10**9  # of anything that is counted


def _check_numbers(made: AnySetting) -> str:
    for key, value in flat(resolved(made)).items():
        if isinstance(value, float) and math.isinf(value):
            return f"{key} = {value}: expected a finite number"
        if key != "runs.first_seed" and isinstance(value, int) and value > _MOST:
            return f"{key} = {value}: that is out of reach; use at most {_MOST:,}"
    return ""


def _check_federated(made: Setting, federation: Federated) -> str:
    interactions = federation.interactions
    fewest = min(interactions) if isinstance(interactions, tuple) else interactions
    if federation.cohort is not None and federation.cohort > federation.clients:
        return (
            f"federation.cohort = {federation.cohort} of {federation.clients} clients; use at most {federation.clients}"
        )
    complaint = (
        _check_sharing(made)
        or _check_privacy(made, federation)
        or _check_defence(made, federation)
        or _check_forgetting(made)
        or _check_audit(made)
        or _check_personal(made, federation)
    )
    if complaint:
        return complaint
    if isinstance(made.learner, FoltrEs) and made.learner.antithetic and fewest < 2:
        return "federation.interactions: antithetic evolution splits them in two halves; use at least 2 for each client"
    if isinstance(made.learner, FoltrEs) and made.learner.objective == "dcg" and made.users.k < 2:
        return "users.k: the dcg objective needs a list of at least 2"
    return ""


def _check_privacy(made: Setting, federation: Federated) -> str:
    if federation.round_robin and federation.cohort is None:
        return "federation.round_robin: everybody takes part in every round; say federation.cohort"
    if not isinstance(made.privacy, Gaussian | Laplace):
        return ""
    secure = made.privacy.secure_aggregation
    if federation.aggregator != "fedavg" or federation.defend_on_detection:
        return (
            f'federation.aggregator = "{federation.aggregator}" looks at single updates, which '
            f"{'secure aggregation hides' if secure else 'noise of one share each would not protect'}; use fedavg, or "
            f'privacy.kind = "none"'
        )
    if isinstance(federation.interactions, tuple) or not isinstance(made.partition, Even | Intents | Labels | Clicks):
        return "privacy: sums with equal weights need the same federation.interactions for every client; use one number"
    if made.unlearning.method != "none":
        return 'forget needs single updates, which an honest mechanism does not show; use privacy = { kind = "none" }'
    return ""


def _kind(privacy: Fpdgd | UserLevelDP) -> str:
    return str(msgspec.to_builtins(privacy)["kind"])


def _check_defence(made: Setting, federation: Federated) -> str:
    taking_part = federation.cohort or federation.clients
    try:
        check_attack(made.attack, federation.clients)
        check_aggregator(aggregator_kind(federation.aggregator)(), taking_part, num_byzantine(made, federation))
    except SpecError as problem:
        return f"federation.aggregator, attack: {problem}"
    plain = made.attack == NoAttack() and federation.aggregator == "fedavg" and not federation.defend_on_detection
    if isinstance(made.learner, FoltrEs) and not plain:
        return 'learner.kind = "foltr-es" sends values, not models: no attack and no aggregator but fedavg'
    if federation.defend_on_detection and (federation.cohort is not None or federation.clients < 3):
        return (
            "federation.defend_on_detection watches the same clients in every round: no cohort, and at least 3 clients"
        )
    return ""


def _check_sharing(made: Setting) -> str:
    sharing = made.sharing
    if sharing.warm_up and not sharing.fraction:
        return "sharing.warm_up: the server has no queries to warm up on; say sharing.fraction"
    if sharing.fraction and isinstance(made.partition, Even):
        return "sharing.fraction: everybody holds every query already; say how clients differ with partition"
    if sharing.warm_up and (isinstance(made.learner, FoltrEs) or not isinstance(made.personal, Together)):
        return "sharing.warm_up is for pdgd and one ranker for all; leave it out"
    return ""


def _check_forgetting(made: Setting) -> str:
    if made.unlearning.method != "none" and made.attack != NoAttack():
        return "forget brings its own attack, by those who leave; leave out the attack table"
    return ""


def _check_audit(made: Setting) -> str:
    if not made.audit.messages:
        return ""
    if not isinstance(made.learner, Pdgd) or not isinstance(made.ranker, Linear):
        return "audit reads the messages of pdgd with a linear ranker; leave it out"
    if made.unlearning.method != "none" or made.attack != NoAttack() or not isinstance(made.personal, Together):
        return "audit is for one ranker and honest clients who stay; leave out forget, attack and personal"
    return ""


def _check_personal(made: Setting, federation: Federated) -> str:
    kind = made.personal
    if isinstance(kind, Together):
        return ""
    if isinstance(kind, FedPer) and not isinstance(made.ranker, Mlp):
        return 'personal.kind = "fedper" keeps an output layer, which a linear ranker has not; use ranker.kind = "mlp"'
    if isinstance(made.learner, FoltrEs) or not isinstance(made.privacy, NoPrivacy) or federation.cohort is not None:
        return "personal rankers are made by pdgd without privacy, with everybody in every round (no federation.cohort)"
    if federation.aggregator != "fedavg" or made.attack != NoAttack():
        return "personal rankers are averaged plainly: use federation.aggregator = fedavg, and no attack"
    if isinstance(kind, Clusters) and kind.count > federation.clients:
        return f"personal.count = {kind.count} groups of {federation.clients} clients; use at most {federation.clients}"
    return ""
