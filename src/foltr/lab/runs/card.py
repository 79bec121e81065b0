"""From a setting to its privacy card and its ledger: participation is known before the first round.

Where clients are sampled, the card uses the seed with the largest participation of one client. Equal settings share a
card. Every card says what a deployed run of its kind would be worth, and that a run of the lab is no release.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from foltr.errors import InputError, StorageError
from foltr.federation.personalization import LocalOnly
from foltr.federation.releases import planned
from foltr.lab import records
from foltr.lab.people import runs as people_runs
from foltr.lab.silo import card as silo_card
from foltr.lab.simulation.task import (
    Central,
    Federated,
    federated,
    federation_protection,
    federation_schedule,
    participants_of,
)
from foltr.lab.spec.setting import AnySetting, PeopleSetting, Setting, SiloSetting, TextSetting, stored
from foltr.learners.foltr_es import outcomes
from foltr.privacy import ledger
from foltr.privacy.adversaries import Circumstances
from foltr.privacy.card import DELTA, card
from foltr.privacy.events import Event, with_present
from foltr.privacy.mechanisms import (
    Fpdgd,
    Gaussian,
    Laplace,
    NoPrivacy,
    RandomizedResponse,
    ReleaseContext,
    SecAggMode,
    survivors_and_colluders,
)
from foltr.types import Array


class Facts(NamedTuple):
    """The parts of a setting that determine its privacy."""

    privacy: Any
    federation: Federated | Central
    parameters: int
    outcomes: int  # 0: messages are parameters
    without_noise: int  # attackers that replace their message, including its noise
    uneven: bool  # updates have different weights
    local_only: bool  # no updates are sent
    first_seed: int
    seeds: int
    shared_queries: float = 0.0  # fraction that data sharing gives to everybody
    secagg_mode: SecAggMode = "one-server"


def facts_of(setting: Setting, features: int) -> Facts:
    learner = setting.learner
    uneven = bool(getattr(setting.partition, "uneven", False))
    if isinstance(setting.federation, Federated):
        uneven |= isinstance(setting.federation.interactions, tuple) and len(set(setting.federation.interactions)) > 1
    return Facts(
        privacy=setting.privacy,
        federation=setting.federation,
        parameters=len(setting.ranker.init(features, 0)),
        outcomes=len(outcomes(learner.objective, setting.users.k)) if learner.message == "objective" else 0,
        without_noise=setting.attack.num_attackers if "updates" in setting.attack.needs else 0,
        uneven=uneven,
        local_only=isinstance(setting.personal, LocalOnly),
        first_seed=setting.runs.first_seed,
        seeds=setting.runs.seeds,
        shared_queries=setting.sharing.fraction,
        secagg_mode=setting.secagg.mode,
    )


def card_of(setting: AnySetting, features: int, *, delta: float | None = None) -> dict[str, Any]:
    """The card of a setting; read-only, because equal settings share one."""
    if isinstance(setting, SiloSetting):
        return silo_card.card_of(setting)
    if isinstance(setting, PeopleSetting):
        return people_runs.card_of(setting)
    return _card(facts_of(setting, features), delta)


@cache
def _card(facts: Facts, delta: float | None) -> dict[str, Any]:
    federation = facts.federation
    if isinstance(federation, Central):
        return card(facts.privacy, None, Circumstances(1, federation.rounds, 0, 1, facts.parameters, central=True))
    released = _released(facts)
    per_message = federation.interactions
    dropped, colluders = _dropped_and_colluders(facts.privacy, federation)
    about = Circumstances(
        taking_part=_in_a_sum(federation),
        rounds=federation.rounds,
        max_rounds=0 if released is None else int(released.counts.max()),
        interactions=max(per_message) if isinstance(per_message, tuple) else per_message,
        parameters=facts.parameters,
        seed=None if released is None else released.seed,
        sampled=_drawn(federation),
        values=facts.outcomes > 0,
        weighted=isinstance(facts.privacy, NoPrivacy | Fpdgd),
        local_only=facts.local_only,
        lab=True,
        dropped=dropped,
        colluders=colluders,
        shared_queries=facts.shared_queries,
    )
    return card(facts.privacy, released and released.event, about, delta=delta)


def _in_a_sum(federation: Federated) -> int:
    """Clients of the smallest group of a round, or of the whole: noise is that of one sum."""
    return participants_of(federation) // federation.groups


def _dropped_and_colluders(privacy: Any, federation: Federated) -> tuple[int, int]:
    """Clients of a sum that may drop out, and those that work for a malicious server: at least one."""
    if not isinstance(privacy, Gaussian | Laplace):
        return 0, 1
    participants = _in_a_sum(federation)
    context = ReleaseContext(participants, 1, 1, 0, federation.clients)
    survivors, colluders = survivors_and_colluders(privacy, context)
    return participants - survivors, max(1, colluders)


class Released(NamedTuple):
    event: Event
    counts: Array  # [users] releases of each
    seed: int | None  # None: the same for all seeds


@cache
def _released(facts: Facts) -> Released | None:
    """The releases of a setting; None without a mechanism, and for one whose event is not known."""
    federation, privacy = facts.federation, facts.privacy
    known = isinstance(privacy, Gaussian | Laplace | Fpdgd | RandomizedResponse)
    if not known or not isinstance(federation, Federated):
        return None
    seeds = range(facts.first_seed, facts.first_seed + (facts.seeds if _drawn(federation) else 1))
    event, counts = None, []
    for seed in seeds:
        event, count = _in_seed(privacy, federation, facts, seed)
        counts.append(count)
    worst = int(np.argmax([count.max() for count in counts]))
    assert event is not None
    return Released(_with_missing_shares(event, facts), counts[worst], seeds[worst] if _drawn(federation) else None)


def _drawn(federation: Federated) -> bool:
    """Whether participation depends on the seed."""
    return federation.cohort is not None or federation.mode == "buffered"


def _in_seed(privacy: Any, federation: Federated, facts: Facts, seed: int) -> tuple[Event, Array]:
    """The event of a round, and how often the ledger admits each client."""
    protection = federation_protection(
        federation, privacy, secagg_mode=facts.secagg_mode, parameters=facts.parameters, outcomes=facts.outcomes
    )
    schedule = federation_schedule(federation, seed, getattr(privacy, "releases", None))
    plan = planned(protection, schedule, federation.clients)
    return plan.event, plan.counts


def _with_missing_shares(event: Event, facts: Facts) -> Event:
    """The event with the noise shares that are present: attackers add none, and a selected update has only its own."""
    federation = federated(facts.federation)
    if event.noise_contributors == 1 or event.noise_by == "servers":  # no noise of other clients is needed
        return event
    sums = federation.aggregator == "fedavg" or federation.groups > 1  # of a group: all attackers may be in it
    summed = sums and not federation.defend_on_detection and not facts.uneven
    return with_present(event, max(0, event.present - facts.without_noise) if summed else 1)


def ledgers_of(settings: list[AnySetting], features: list[int]) -> list[dict[str, Any]]:
    """Each ledger once, with the settings it is of; equal users are stored as one."""
    stored: dict[Facts, dict[str, Any]] = {}
    for index, (setting, width) in enumerate(zip(settings, features, strict=True)):
        if isinstance(setting, TextSetting):  # owners have ledgers of documents; people of a node release nothing
            continue
        facts = facts_of(setting, width)
        released = _released(facts)
        if released is None:
            continue
        if facts not in stored:
            stored[facts] = {"settings": [], "seed": released.seed, **_ledger(facts.privacy, released)}
        stored[facts]["settings"].append(index)
    return list(stored.values())


def _ledger(privacy: Any, released: Released) -> dict[str, Any]:
    counts = released.counts[:, None]
    alike = bool((counts == counts[0]).all())
    delta, budget = (privacy.delta, privacy.epsilon) if isinstance(privacy, Gaussian) else (DELTA, None)
    whole = ledger.Ledger(delta, budget, (released.event,), counts[:1] if alike else counts)
    return {"users": len(counts), "alike": alike, "ledger": json.loads(ledger.dumps(whole))}


def finished(folder: Path) -> records.Run:
    """Reads a run that a command names; a missing one is an InputError."""
    try:
        return records.read(folder)
    except StorageError as problem:
        raise InputError(str(problem)) from None


def cards_of_run(folder: Path, *, delta: float | None = None) -> list[dict[str, Any]]:
    """The cards of a finished run, computed again from its manifest."""
    run = finished(folder)
    try:
        known = [(one, stored(one.resolved)) for one in run.manifest.settings]
    except (KeyError, msgspec.ValidationError) as problem:
        raise InputError(f"{folder}: written by a version with other settings ({problem})") from None
    return [
        {"setting": one.index, "label": one.label} | card_of(setting, _features(one), delta=delta)
        for one, setting in known
    ]


def _features(one: records.SettingRecord) -> int:
    if one.data is None or one.data.features is None:
        raise InputError("the manifest does not say how many features the data has; run it again")
    return one.data.features
