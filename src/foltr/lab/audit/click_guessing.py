"""A single run in which the server guesses the clicks behind messages (S4), and the numbers that say how well.

With `audit.sum` = n the server sees sums of n messages only, as secure aggregation leaves them. It then guesses for
each of the n clients from the same sum and the documents that this client was shown. "absent": the same guess from the
sum without the client's own message. What the server finds there it knows about anybody, from what the others' clicks
have in common; only what exceeds it is a leak about the client.
"""

import msgspec
import numpy as np

from foltr.clicks import Users
from foltr.errors import SpecError
from foltr.lab.audit.choice import Audit
from foltr.lab.audit.guess import GUESSES, PUBLISHED, Found, guess_each, score
from foltr.lab.audit.messages import Messages, contributors_of, full_lists, send
from foltr.lab.data.dataset import Fold
from foltr.lab.spec.setting import Setting
from foltr.types import Array


def check_audit(setting: Setting, fold: Fold) -> None:
    """Refuses what cannot be, before anything is computed."""
    if not full_lists(fold.validation, setting.users.k).size:
        raise SpecError(
            f"audit: no validation query of {fold.name} fold {fold.fold} has {setting.users.k} documents; "
            f"use a smaller users.k"
        )
    if setting.audit.sum > contributors_of(setting):
        raise SpecError(f"audit.sum = {setting.audit.sum}: at most {contributors_of(setting)} clients take part in a round")


def training(setting: Setting) -> Setting:
    """The same setting with the users who train the ranker, and no audit."""
    teachers = Users(setting.audit.trained_by, k=setting.users.k)
    return msgspec.structs.replace(setting, users=teachers, audit=Audit())


def guessing(setting: Setting, fold: Fold, parameters: Array, seed: int) -> dict[str, float]:
    """The numbers of all attacks on messages from a trained ranker."""
    audit = setting.audit
    sent = send(setting, fold, parameters, messages=audit.messages, queries=audit.queries, seed=seed)
    numbers = _random(sent.clicks)
    for name in [*GUESSES, *(PUBLISHED if audit.queries == audit.sum == 1 else [])]:
        numbers |= _numbers(name, guessed(name, sent, audit.sum))
        if audit.sum > 1:
            numbers |= _numbers(f"{name}, absent", guessed(name, sent, audit.sum, absent=True))
    return numbers


def guessed(name: str, messages: Messages, together: int, *, absent: bool = False) -> Found:
    """One attack on sums of so many messages."""
    changes = messages.sent - messages.before
    sums = changes.reshape(-1, together, changes.shape[1]).sum(axis=1)
    seen = np.repeat(sums, together, axis=0) - (changes if absent else 0.0)
    return score(messages.clicks, guess_each(name, messages.features, messages.before, messages.before + seen))


def _numbers(name: str, found: Found) -> dict[str, float]:
    return {
        f"precision, {name}": found.precision, f"recall, {name}": found.recall, f"accuracy, {name}": found.accuracy,
        f"guessed, {name}": found.guessed,
    }  # fmt: skip


def _random(clicks: Array) -> dict[str, float]:
    """Guessing k documents at random has this precision for every k; its recall is the share guessed."""
    nothing = score(clicks, np.zeros_like(clicks))
    return {"precision, random": nothing.clicked, "messages with a click": nothing.messages}
