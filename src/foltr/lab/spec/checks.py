"""Refuses impossible combinations and numbers out of range before anything is computed, and names valid choices.

Valid combinations follow from the declared traits of kinds: a learner's `message`, a mechanism's `acts_on` and
`secagg_modes`, an aggregator's `sees`, an attack's `needs`.
"""

import math
from collections.abc import Callable

from foltr import registry
from foltr.errors import SpecError, did_you_mean
from foltr.federation.aggregators import aggregator_kind, check_num_byzantine
from foltr.federation.personalization import Shared
from foltr.federation.releases import check_secagg_mode, release_event
from foltr.lab.attacks.attack import check_num_attackers
from foltr.lab.attacks.plain import NoAttack
from foltr.lab.audit import Audit
from foltr.lab.data.normalize import KINDS as SCALINGS
from foltr.lab.data.partition import NoPartition
from foltr.lab.simulation.task import Central, Federated, participants_of
from foltr.lab.spec.setting import (
    AnySetting,
    DataChoice,
    SecAgg,
    Setting,
    Sharing,
    TextSetting,
    Unlearning,
    chosen_folds,
    flat,
    num_byzantine,
    resolved,
)
from foltr.metrics import parse_metric
from foltr.privacy.mechanisms import ReleaseContext, noise_contributors
from foltr.secagg.guarantee import FEWEST

_LARGEST_COUNT = 10**9  # limit of every integer in a spec
_EPSILONS = (1e-6, 1e6)  # beyond them noise or its accounting leaves the range of floating-point numbers
_NORMS = (1e-9, 1e9)  # clips and sensitivities: noise in proportion must fit the rankers' 32 bits
_RANGES = {"epsilon": _EPSILONS, "statistics_epsilon": _EPSILONS, "clip": _NORMS, "sensitivity": _NORMS}
_ACTS_ON = {"delta": ("nothing", "delta"), "objective": ("nothing", "outcome")}  # message -> mechanisms that protect it


def check(setting: AnySetting, *, where: str = "spec") -> None:
    """Raises SpecError with the first complaint."""
    pairs = _check_texts(setting) if isinstance(setting, TextSetting) else _check_pairs(setting)
    complaint = pairs or _check_data(setting.data) or _check_metrics(setting) or _check_numbers(setting)
    if complaint:
        raise SpecError(f"{where}: {complaint}")


def _check_texts(setting: TextSetting) -> str:
    chosen, complaint = chosen_folds(setting.data.folds)
    if complaint or chosen not in ([], [1]):
        return complaint or "data.folds: a corpus has no folds, its queries are divided by the seed; use data.folds = 1"
    return "data.normalize: features of texts are scaled by query; leave it out" if setting.data.normalize else ""


def _check_pairs(setting: Setting) -> str:
    learner, federation, mechanism = setting.learner, setting.federation, setting.privacy
    if isinstance(federation, Central):
        return _check_central(setting)
    if mechanism.acts_on not in _ACTS_ON[learner.message]:
        return _wrong_mechanism(setting)
    if learner.message == "delta" and getattr(setting.ranker, "flat_start", False):
        return 'ranker.activation = "relu" starts at zero, where the gradient of pdgd vanishes; use "sigmoid"'
    return _first(setting, federation, (
        _check_cohort, _check_groups, _check_sharing, _check_defence, _check_secagg, _check_privacy, _check_unlearning,
        _check_audit, _check_personal, _check_objective,
    ))  # fmt: skip


def _first(setting: Setting, federation: Federated, checks: tuple[Callable[[Setting, Federated], str], ...]) -> str:
    return next(filter(None, (one(setting, federation) for one in checks)), "")


def _wrong_mechanism(setting: Setting) -> str:
    kind = registry.kind_name(type(setting.privacy))
    if setting.learner.message == "objective":
        return f'privacy.kind = "{kind}" protects deltas, which this learner does not send; use "randomized-response"'
    return f'privacy.kind = "{kind}" protects outcomes, which only learner.kind = "foltr-es" sends; use "gaussian"'


def _check_central(setting: Setting) -> str:
    if setting.learner.message == "objective":
        return 'learner.kind = "foltr-es" needs clients; use federation = { clients = ..., rounds = ... }'
    if registry.kind_name(type(setting.learner)) != "pdgd":
        return 'federation.kind = "central" trains pdgd; use learner = { kind = "pdgd" }, or a federation'
    if setting.privacy.acts_on != "nothing":
        return 'federation.kind = "central" sends no updates; use privacy = { kind = "none" }'
    if getattr(setting.ranker, "flat_start", False):
        return 'ranker.activation = "relu" starts at zero, where the gradient of pdgd vanishes; use "sigmoid"'
    if getattr(setting.learner, "prox_mu", 0):
        return "learner.prox_mu needs rounds of clients, which centralised training does not have; leave it out"
    plain = {"partition": NoPartition(), "sharing": Sharing(), "personal": Shared(), "attack": NoAttack(),
             "unlearning": Unlearning(), "audit": Audit(), "secagg": SecAgg()}  # fmt: skip
    for table, default in plain.items():
        if getattr(setting, table) != default:
            return f'{table} is about clients; use federation = {{ clients = ..., rounds = ... }} instead of "central"'
    return ""


def _check_data(data: DataChoice) -> str:
    if data.normalize is not None and data.normalize not in SCALINGS:
        close = did_you_mean(data.normalize, SCALINGS)
        return f"data.normalize: no scaling {data.normalize!r}; there are {', '.join(SCALINGS)}.{close}"
    return chosen_folds(data.folds)[1]


def _check_metrics(setting: AnySetting) -> str:
    if isinstance(setting, TextSetting):
        return ""
    try:
        metrics = [parse_metric(name) for name in setting.metrics.names]
    except SpecError as problem:
        return f"metrics.names: {problem}"
    twice = next((metric for place, metric in enumerate(metrics) if metric in metrics[:place]), None)
    return f"metrics.names: {twice} is named twice" if twice else ""


def _check_numbers(setting: AnySetting) -> str:
    for key, value in flat(resolved(setting)).items():
        if isinstance(value, float) and math.isinf(value):
            return f"{key} = {value}: expected a finite number"
        low, high = _RANGES.get(key.rpartition(".")[2], (-math.inf, math.inf))
        if isinstance(value, float) and not low <= value <= high:
            return f"{key} = {value:g}: use {low:g} to {high:g}; beyond it the noise or its accounting overflows"
        if key != "runs.first_seed" and isinstance(value, int) and value > _LARGEST_COUNT:
            return f"{key} = {value}: too large; use at most {_LARGEST_COUNT:,}"
    return ""


def _check_cohort(setting: Setting, federation: Federated) -> str:
    if federation.cohort is not None and federation.cohort > federation.clients:
        return (
            f"federation.cohort = {federation.cohort} of {federation.clients} clients; use at most {federation.clients}"
        )
    if federation.mode == "sync" and federation.buffer is not None:
        return 'federation.buffer: synchronous rounds wait for everybody; set federation.mode = "buffered"'
    if federation.mode == "buffered":
        return _check_buffered(setting, federation)
    if federation.round_robin and federation.cohort is None:
        return "federation.round_robin: everybody takes part in every round; set federation.cohort"
    return ""


def _check_groups(setting: Setting, federation: Federated) -> str:
    """Groups go with one ranker and deltas; every group must hide its members."""
    limit = (federation.cohort or federation.clients) // FEWEST
    if federation.groups == 1:
        return ""
    if federation.groups > limit:
        return (
            f"federation.groups = {federation.groups}: a group needs {FEWEST} clients or more; use 1 to {max(1, limit)}"
        )
    if federation.mode == "buffered" or federation.defend_on_detection or setting.learner.message != "delta":
        return "federation.groups: sums of deltas in synchronous rounds; no buffered mode, detection or foltr-es"
    if setting.unlearning.method != "none" or setting.personal != Shared() or setting.audit.messages:
        return "federation.groups: one ranker for all; leave out unlearning, personal and audit"
    if getattr(setting.privacy, "adaptive", 0):
        return "privacy.adaptive: the clip would follow the bits of all groups, each with its own noise; use 0"
    return ""


def _check_buffered(setting: Setting, federation: Federated) -> str:
    buffer = federation.buffer
    if buffer is None or buffer > federation.clients:
        return f"federation.buffer: set how many updates a release waits for, 1 to {federation.clients}"
    if federation.cohort is not None or federation.round_robin or federation.defend_on_detection:
        return "federation.mode = buffered takes updates as they arrive: no cohort, round_robin or defend_on_detection"
    if setting.learner.message != "delta" or setting.personal != Shared() or setting.unlearning.method != "none":
        return "federation.mode = buffered adds deltas to one ranker: use pdgd, no personal rankers and no unlearning"
    if _noise_is_of_sums(setting) and federation.staleness != "constant":
        return (
            "federation.staleness: unequal weights would change the noise share of each update; "
            'with user-level DP use "constant"'
        )
    if is_user_level(setting.privacy) and setting.privacy.releases is None:
        return "privacy.releases: people who search more often take part more often; set the maximum"
    return ""


def _check_objective(setting: Setting, federation: Federated) -> str:
    learner, interactions = setting.learner, federation.interactions
    fewest = min(interactions) if isinstance(interactions, tuple) else interactions
    if getattr(learner, "antithetic", False) and fewest < 2:
        return "federation.interactions: antithetic FOLtR-ES splits them in two halves; use at least 2 for each client"
    if getattr(learner, "objective", "") == "dcg" and setting.users.k < 2:
        return "users.k: the dcg objective needs a list of at least 2"
    return ""


def is_user_level(mechanism: object) -> bool:
    """Whether a mechanism has a budget that a user may not exceed."""
    return hasattr(mechanism, "releases")


def _noise_is_of_sums(setting: Setting) -> bool:
    """Whether noise is calibrated for sums with equal weights: that of user-level DP, and what two servers add."""
    return is_user_level(setting.privacy) or setting.secagg.mode == "two-servers"


def _check_secagg(setting: Setting, federation: Federated) -> str:
    """The mechanism must work in the mode, and says itself with which of its parameters it does."""
    if setting.secagg.mode == "two-servers" and setting.audit.messages:
        return 'secagg.mode = "two-servers": no single message is seen by anybody; leave out audit'
    try:
        check_secagg_mode(setting.privacy, setting.secagg.mode)
        if setting.secagg.mode == "two-servers":
            release_event(setting.privacy, _one_release(setting, federation))
    except SpecError as problem:
        return str(problem)
    return ""


def _one_release(setting: Setting, federation: Federated) -> ReleaseContext:
    each = participants_of(federation) // federation.groups
    return ReleaseContext(each, 1, 1, 0, federation.clients, setting.secagg.mode)


def _check_privacy(setting: Setting, federation: Federated) -> str:
    if not _noise_is_of_sums(setting):
        return ""
    secure, two = getattr(setting.privacy, "secure_aggregation", True), setting.secagg.mode == "two-servers"
    if federation.groups == 1 and (
        getattr(registry.kind("aggregator", federation.aggregator), "sees", "single") != "sum"
        or federation.defend_on_detection
    ):
        return (
            f'federation.aggregator = "{federation.aggregator}" needs single updates, which '
            f"{'secure aggregation hides' if secure else 'noise of one share each would not protect'}; use fedavg, "
            f'federation.groups, or privacy.kind = "none"'
        )
    if isinstance(federation.interactions, tuple) or getattr(setting.partition, "uneven", False):
        return "privacy: sums with equal weights need the same federation.interactions for every client; use one number"
    if setting.unlearning.method != "none":
        return 'unlearning needs single updates, which user-level DP hides; use privacy = { kind = "none" }'
    if hasattr(setting.privacy, "dropouts") and not two:
        try:
            noise_contributors(setting.privacy, _one_release(setting, federation))
        except SpecError as problem:
            return f"privacy: {problem}"
    if getattr(setting.privacy, "adaptive", 0) and setting.privacy.trust == "local":
        return 'privacy.adaptive: bits that each carry the whole noise move no clip; use 0, or trust = "sum"'
    if secure == "execute" and getattr(setting.privacy, "adaptive", 0):
        return "privacy.adaptive: the bits that move the clip do not go through the executed protocol; use 0, or true"
    if secure == "execute" and not two and (federation.cohort or federation.clients) > 200:
        return 'privacy.secure_aggregation = "execute" runs the protocol for at most 200 clients a round; use true'
    return ""


def _check_defence(setting: Setting, federation: Federated) -> str:
    participants = federation.groups if federation.groups > 1 else federation.cohort or federation.clients
    try:
        check_num_attackers(setting.attack, federation.clients)
        check_num_byzantine(aggregator_kind(federation.aggregator)(), participants, num_byzantine(setting, federation))
    except SpecError as problem:
        return f"federation.aggregator, attack: {problem}"
    if setting.learner.message == "objective" and setting.attack != NoAttack():
        return 'learner.kind = "foltr-es" sends objectives, which no attack here crafts; leave out the attack table'
    if federation.defend_on_detection and (federation.cohort is not None or federation.clients < 3):
        return "federation.defend_on_detection compares the same clients in every round: no cohort, 3 clients or more"
    return ""


def _check_sharing(setting: Setting, federation: Federated) -> str:  # noqa: ARG001
    sharing = setting.sharing
    if sharing.warm_up and not sharing.fraction:
        return "sharing.warm_up: the server has no queries to warm up on; say sharing.fraction"
    if sharing.fraction and setting.partition == NoPartition():
        return "sharing.fraction: everybody holds every query already; say how clients differ with partition"
    if sharing.warm_up and (registry.kind_name(type(setting.learner)) != "pdgd" or setting.personal != Shared()):
        return "sharing.warm_up is for pdgd and one ranker for all; leave it out"
    return ""


def _check_unlearning(setting: Setting, federation: Federated) -> str:  # noqa: ARG001
    if setting.unlearning.method != "none" and setting.attack != NoAttack():
        return "unlearning brings its own attack, by those who are forgotten; leave out the attack table"
    return ""


def _check_audit(setting: Setting, federation: Federated) -> str:  # noqa: ARG001
    if not setting.audit.messages:
        return ""
    kinds = (registry.kind_name(type(one)) for one in (setting.learner, setting.ranker))
    if tuple(kinds) != ("pdgd", "linear"):
        return "audit reads the messages of pdgd with a linear ranker; leave it out"
    if setting.unlearning.method != "none" or setting.attack != NoAttack() or setting.personal != Shared():
        return "audit is for one ranker and honest clients; leave out unlearning, attack and personal"
    return ""


def _check_personal(setting: Setting, federation: Federated) -> str:
    kind = setting.personal
    if kind == Shared():
        return ""
    if registry.kind_name(type(kind)) == "fedper" and not hasattr(setting.ranker, "hidden"):
        return 'personal.kind = "fedper" needs an output layer, which a linear ranker lacks; use ranker.kind = "mlp"'
    if setting.learner.message != "delta" or setting.privacy.acts_on != "nothing" or federation.cohort is not None:
        return (
            "personal rankers are trained by pdgd without privacy, with everybody in every round (no federation.cohort)"
        )
    if federation.aggregator != "fedavg" or setting.attack != NoAttack():
        return "personal rankers are averaged plainly: use federation.aggregator = fedavg, and no attack"
    count = getattr(kind, "count", 0)
    if count > federation.clients:
        return f"personal.count = {count} clusters of {federation.clients} clients; use at most {federation.clients}"
    return ""
