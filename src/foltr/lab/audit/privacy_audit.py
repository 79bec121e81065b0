"""What the server can find out about the clients of a finished run: behind `foltr privacy audit RUN`.

For every setting, with the first of its rankers: click guessing on single messages of several searches (secure
aggregation off) and on sums of several clients (on), membership of a client in a sum, and a lower bound on epsilon
beside the accountant's epsilon; each with its random baseline.

The messages are those of the round after the last: validation queries, the setting's users, noise and clipping.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from foltr.errors import InputError
from foltr.lab import records
from foltr.lab.audit import membership
from foltr.lab.audit.click_guessing import GUESSES, guessed
from foltr.lab.audit.messages import Messages, contributors_of, full_lists, send
from foltr.lab.audit.neighbouring_datasets import epsilon_bounds
from foltr.lab.data.catalog import Fold
from foltr.lab.simulation.population import load
from foltr.lab.simulation.task import Federated
from foltr.lab.spec.setting import Setting, stored
from foltr.learners.pdgd import Pdgd
from foltr.rankers import Linear
from foltr.rng import stream
from foltr.types import Array

SEARCHES = (1, 2, 4, 8)  # of a message
SUMS = (10, 100, 1000)  # clients
TRIALS = 10_000  # for a bound on epsilon
MESSAGES = 1000  # of one search; longer ones are fewer
_SUMS_TRIED = 1000  # for membership, with and without the target


def audit_run(folder: Path, *, messages: int = MESSAGES, trials: int = TRIALS) -> dict[str, Any]:
    """Plain data: one entry a setting."""
    run = records.read(folder)
    settings = list(audit_settings(run, messages=messages, trials=trials))
    return {"run": str(run.dir), "messages": messages, "trials": trials, "settings": settings}


def audit_settings(run: records.Run, *, messages: int = MESSAGES, trials: int = TRIALS) -> Iterator[dict[str, Any]]:
    """One setting after the other, as they are done; each takes about a minute."""
    with np.load(run.dir / "ranker.npz") as rankers:
        arrays = {name: rankers[name] for name in rankers.files}
    for one in run.manifest.settings:
        if "silo" in one.resolved:
            raise InputError(f"{run.dir}: a silo has no clicks; what sketches leak is shown by foltr silo demo")
        setting = stored(one.resolved)
        assert isinstance(setting, Setting)
        fold, seed = (int(number) for number in arrays[f"setting_{one.index}_fold_seed"][0])
        parameters = arrays[f"setting_{one.index}"][0]
        data = msgspec.to_builtins(one.data)
        about = {"index": one.index, "label": one.label, "data": data, "fold": fold, "seed": seed}
        yield about | audit(setting, load(setting.data, fold), parameters, seed, messages=messages, trials=trials)


def audit(
    setting: Setting, fold: Fold, parameters: Array, seed: int, *, messages: int = MESSAGES, trials: int = TRIALS
) -> dict[str, Any]:
    """One trained ranker."""
    found: dict[str, Any] = {"guessing": [], "membership": [], "note": _cannot(setting, fold)}
    if not found["note"]:
        short = send(setting, fold, parameters, messages=messages, queries=1, seed=seed)
        sums = [n for n in SUMS if n <= min(messages, contributors_of(setting))]
        found["guessing"] = [
            *(_guesses(_longer(setting, fold, short, queries, seed), queries, 1) for queries in SEARCHES),
            *(_guesses(_whole_sums(short, n), 1, n) for n in sums),
        ]
        found["membership"] = [_membership(short, n, seed) for n in sums]
    bounds = epsilon_bounds(setting, len(parameters), trials=trials, seed=seed)
    return found | {"secure_aggregation": getattr(setting.privacy, "secure_aggregation", False), "epsilon": bounds}


def _cannot(setting: Setting, fold: Fold) -> str:
    """Why clicks are not guessed; empty where they are."""
    if not isinstance(setting.federation, Federated):
        return "no messages: training is centralised"
    if not isinstance(setting.learner, Pdgd) or not isinstance(setting.ranker, Linear):
        return "clicks are guessed from the messages of pdgd with a linear ranker only"
    if not full_lists(fold.validation, setting.users.k).size:
        return f"no validation query has the {setting.users.k} documents of a full list"
    return ""


def _longer(setting: Setting, fold: Fold, short: Messages, queries: int, seed: int) -> Messages:
    """Messages of more searches each, fewer messages, the same number of searches."""
    if queries == 1:
        return short
    return send(setting, fold, short.before, messages=max(1, len(short.sent) // queries), queries=queries, seed=seed)


def _whole_sums(messages: Messages, together: int) -> Messages:
    whole = len(messages.sent) // together * together
    return Messages(messages.before, *(array[:whole] for array in messages[1:]))


def _guesses(messages: Messages, queries: int, together: int) -> dict[str, Any]:
    """All attacks on what the server sees; in sums also with the client's own message left out."""
    attacks = {}
    for name in GUESSES:
        found = guessed(name, messages, together)
        attacks[name] = {"precision": found.precision, "recall": found.recall, "guessed": found.guessed}
        if together > 1:
            absent = guessed(name, messages, together, absent=True)
            attacks[name] |= {"absent_precision": absent.precision, "absent_recall": absent.recall}
    return {
        "searches": queries, "clients": together, "messages": found.messages, "random_precision": found.clicked,
        "attacks": attacks,
    }  # fmt: skip


def _membership(messages: Messages, together: int, seed: int) -> dict[str, Any]:
    draws = stream(seed, client=together, purpose="choice")
    sent, known = messages.sent - messages.before, messages.local - messages.before
    tried = membership.sums(sent, known, count=together, trials=_SUMS_TRIED, draws=draws)
    auc, advantage = membership.auc(tried), membership.advantage(tried)
    return {"clients": together, "trials": _SUMS_TRIED, "auc": auc._asdict(), "advantage": advantage._asdict()}
