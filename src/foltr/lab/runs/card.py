"""From a setting to its privacy card and its ledger: who takes part how often is known before the first round.

Where clients are sampled, the seed counts in which somebody takes part most. Equal settings are reckoned once; without
a mechanism nothing is reckoned at all.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from foltr.lab import records
from foltr.lab.attacks.choice import POISON
from foltr.lab.data.partition import Quantity
from foltr.errors import InputError, StorageError
from foltr.lab.silo import card as silo_card
from foltr.lab.spec.setting import AnySetting, Setting, SiloSetting, kept
from foltr.federation.personalization import LocalOnly
from foltr.federation.releases import planned, taking_part
from foltr.federation.round import Central, Federated
from foltr.learners.foltr_es import FoltrEs, outcomes
from foltr.privacy import ledger
from foltr.privacy.card import DELTA, Circumstances, card
from foltr.privacy.events import Event, with_present
from foltr.privacy.mechanisms import Fpdgd, Gaussian, Laplace, NoPrivacy, PrivacyKind, RandomizedResponse
from foltr.privacy.papers import fpdgd_event, response_event
from foltr.types import Array


class Facts(NamedTuple):
    """All of a setting that its privacy depends on."""

    privacy: PrivacyKind
    federation: Federated | Central
    parameters: int
    outcomes: int  # 0: messages are parameters
    liars: int  # clients that replace what they send, noise and all
    uneven: bool  # messages count differently
    alone: bool
    first_seed: int
    seeds: int


def facts_of(made: Setting, features: int) -> Facts:
    learner = made.learner
    uneven = isinstance(made.partition, Quantity) and not made.partition.iid
    if isinstance(made.federation, Federated):
        uneven |= isinstance(made.federation.interactions, tuple) and len(set(made.federation.interactions)) > 1
    return Facts(
        privacy=made.privacy,
        federation=made.federation,
        parameters=len(made.ranker.start(features, 0)),
        outcomes=len(outcomes(learner.objective, made.users.k)) if isinstance(learner, FoltrEs) else 0,
        liars=0 if made.attack.kind in ("none", POISON) else made.attack.num_attackers,
        uneven=uneven,
        alone=isinstance(made.personal, LocalOnly),
        first_seed=made.runs.first_seed,
        seeds=made.runs.seeds,
    )


def card_of(made: AnySetting, features: int, *, delta: float | None = None) -> dict[str, Any]:
    """To be read only: equal settings share one."""
    if isinstance(made, SiloSetting):
        return silo_card.card_of(made)
    return _card(facts_of(made, features), delta)


@cache
def _card(facts: Facts, delta: float | None) -> dict[str, Any]:
    federation = facts.federation
    if isinstance(federation, Central):
        return card(facts.privacy, None, Circumstances(1, federation.rounds, 0, 1, facts.parameters, central=True))
    released = _released(facts)
    per_message = federation.interactions
    about = Circumstances(
        taking_part=federation.cohort or federation.clients,
        rounds=federation.rounds,
        most=0 if released is None else int(released.counts.max()),
        interactions=max(per_message) if isinstance(per_message, tuple) else per_message,
        parameters=facts.parameters,
        seed=None if released is None else released.seed,
        sampled=federation.cohort is not None,
        values=facts.outcomes > 0,
        weighted=isinstance(facts.privacy, NoPrivacy | Fpdgd),
        alone=facts.alone,
    )
    return card(facts.privacy, released and released.event, about, delta=delta)


class Released(NamedTuple):
    event: Event
    counts: Array  # [users] rounds in which something of each was released
    seed: int | None  # None: the same for all seeds


@cache
def _released(facts: Facts) -> Released | None:
    """What happens to whom; None without a mechanism."""
    federation, privacy = facts.federation, facts.privacy
    if isinstance(privacy, NoPrivacy) or not isinstance(federation, Federated):
        return None
    seeds = range(facts.first_seed, facts.first_seed + (facts.seeds if federation.cohort else 1))
    event, counts = None, []
    for seed in seeds:
        event, count = _in_seed(privacy, federation, facts, seed)
        counts.append(count)
    worst = int(np.argmax([count.max() for count in counts]))
    assert event is not None
    return Released(_really(event, facts), counts[worst], seeds[worst] if federation.cohort else None)


def _in_seed(privacy: PrivacyKind, federation: Federated, facts: Facts, seed: int) -> tuple[Event, Array]:
    clients, cohort, turns = federation.clients, federation.cohort, federation.round_robin
    if isinstance(privacy, Gaussian | Laplace):
        plan = planned(
            privacy, clients=clients, cohort=cohort, turns=turns, rounds=federation.rounds,
            parameters=facts.parameters, seed=seed,
        )  # fmt: skip
        return plan.event, plan.counts
    if isinstance(privacy, Fpdgd):
        event = fpdgd_event(privacy, holders=cohort or clients, parameters=facts.parameters)
    else:
        assert isinstance(privacy, RandomizedResponse)
        event = response_event(privacy, outcomes=facts.outcomes)
    if cohort is None:
        return event, np.full(clients, federation.rounds)
    counts = np.zeros(clients, np.int64)
    for round in range(1, federation.rounds + 1):
        counts[taking_part(clients, cohort, turns=turns, seed=seed, round=round)] += 1
    return event, counts


def _really(event: Event, facts: Facts) -> Event:
    """The noise that is there: not that of clients who replace their message, nor all of it if a rule chooses."""
    federation = facts.federation
    assert isinstance(federation, Federated)
    if event.expected == 1:
        return event
    summed = federation.aggregator == "fedavg" and not federation.defend_on_detection and not facts.uneven
    return with_present(event, max(0, event.present - facts.liars) if summed else 1)


def ledgers_of(settings: list[AnySetting], features: list[int]) -> list[dict[str, Any]]:
    """Each ledger once, with the settings it is of; where all users are alike, one of them stands for all."""
    kept: dict[Facts, dict[str, Any]] = {}
    for index, (made, width) in enumerate(zip(settings, features, strict=True)):
        if isinstance(made, SiloSetting):  # owners keep their own, of documents
            continue
        facts = facts_of(made, width)
        released = _released(facts)
        if released is None:
            continue
        if facts not in kept:
            kept[facts] = {"settings": [], "seed": released.seed, **_ledger(facts.privacy, released)}
        kept[facts]["settings"].append(index)
    return list(kept.values())


def _ledger(privacy: PrivacyKind, released: Released) -> dict[str, Any]:
    counts = released.counts[:, None]
    alike = bool((counts == counts[0]).all())
    delta, budget = (privacy.delta, privacy.epsilon) if isinstance(privacy, Gaussian) else (DELTA, None)
    whole = ledger.Ledger(delta, budget, (released.event,), counts[:1] if alike else counts)
    return {"users": len(counts), "alike": alike, "ledger": json.loads(ledger.dumps(whole))}


def finished(folder: Path) -> records.Run:
    """A run that a command was told to look at: if there is none, the call is wrong."""
    try:
        return records.read(folder)
    except StorageError as problem:
        raise InputError(str(problem)) from None


def cards_of_run(folder: Path, *, delta: float | None = None) -> list[dict[str, Any]]:
    """The cards of a finished run, reckoned anew from its manifest: also for runs of older versions."""
    run = finished(folder)
    try:
        known = [(one, kept(one.resolved)) for one in run.manifest.settings]
    except (KeyError, msgspec.ValidationError) as problem:
        raise InputError(f"{folder}: made by a version whose settings this one does not know ({problem})") from None
    return [
        {"setting": one.index, "label": one.label} | card_of(made, _features(one), delta=delta) for one, made in known
    ]


def _features(one: records.SettingRecord) -> int:
    if one.data is None or one.data.features is None:
        raise InputError("the manifest does not say how many features the data has; run it again")
    return one.data.features
