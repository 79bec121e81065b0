"""Attacks of a server on the clients of a finished run: behind `foltr privacy audit RUN`.

For every setting, with the first of its rankers: click guessing on single messages of several searches (secure
aggregation off) and on sums of several clients (on), membership of a client in a sum, a lower bound on epsilon beside
the accountant's epsilon, each with its random baseline; and for Gaussian noise the audits of `release_audit`.
`audit_tables` shows it in a terminal of 80 columns.

The messages are those of the round after the last: validation queries, the setting's users, noise and clipping.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from rich import box
from rich.table import Table
from rich.text import Text

from foltr.errors import InputError
from foltr.lab import records
from foltr.lab.audit import membership
from foltr.lab.audit.click_guessing import GUESSES, guessed
from foltr.lab.audit.epsilon import epsilon_bounds
from foltr.lab.audit.messages import Messages, contributors_of, full_lists, send
from foltr.lab.audit.release_audit import audit_releases
from foltr.lab.data.catalog import Fold
from foltr.lab.records import Data
from foltr.lab.reporting.labels import data_name, label_name
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
    secure = getattr(setting.privacy, "secure_aggregation", False)
    releases = audit_releases(setting, len(parameters), seed=seed)
    return found | {"secure_aggregation": secure, "epsilon": bounds, "releases": releases}


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


# --- tables ---------------------------------------------------------------------------------------------------------


_COLUMNS = ("least squares", "least absolute")  # the best two; the others are in --json


def audit_tables(found: dict[str, Any]) -> list[Table]:
    """Tables for each setting: clicks, membership, epsilon, and one for each implementation of Gaussian noise."""
    return [table for one in found["settings"] for table in _of_setting(one)]


def _of_setting(one: dict[str, Any]) -> list[Table]:
    data = data_name(msgspec.convert(one["data"], Data))
    name = f"{label_name(one['label'])}: {data}, fold {one['fold']}, seed {one['seed']}"
    tables = [_clicks_table(one, name), _membership_table(one, name)] if one["guessing"] else []
    releases = [_release_table(found, name) for found in one.get("releases", [])]
    return [*tables, *([_epsilon_table(one, name)] if one["epsilon"] else []), *releases]


def _table(title: str, name: str, first: str, columns: list[str], caption: str) -> Table:
    table = Table(
        box=box.SIMPLE_HEAD, title=Text(f"{title}\n{name}"), title_justify="left",
        caption=Text(caption, style="dim"), caption_justify="left", width=80,
    )  # fmt: skip
    table.add_column(first, overflow="fold")
    for column in columns:
        table.add_column(Text(column), justify="right", no_wrap=True)
    return table


def _clicks_table(one: dict[str, Any], name: str) -> Table:
    caption = (
        "precision / recall of guessed clicks; random: as many guesses at random; without: least absolute when the "
        "client's own message is not in the sum. Only the excess over both is a leak"
    )
    columns = [*(attack.replace(" ", "\n") for attack in _COLUMNS), "without", "random"]
    table = _table("Clicks behind messages", name, "the server sees", columns, caption)
    for row in one["guessing"]:
        best = row["attacks"][_COLUMNS[-1]]
        cells = [_pair(row["attacks"][attack]) for attack in _COLUMNS]
        without = _pair(best, "absent_") if "absent_precision" in best else ""
        chance = _pair({"precision": row["random_precision"], "recall": best["guessed"]})
        table.add_row(_seen(row), *cells, without, chance)
    return table


def _membership_table(one: dict[str, Any], name: str) -> Table:
    caption = "0.5 is chance for AUC, 0 for advantage (hits less false alarms); 95 % intervals"
    table = _table("Was a client in the sum?", name, "the server sees", ["AUC", "advantage"], caption)
    for row in one["membership"]:
        table.add_row(f"sum of {row['clients']:,} clients", _interval(row["auc"]), _interval(row["advantage"]))
    return table


def _epsilon_table(one: dict[str, Any], name: str) -> Table:
    caption = (
        f"at least: 95 % confidence, {one['epsilon'][0]['trials']:,} trials of the two worst neighbouring datasets"
    )
    table = _table("Epsilon", name, "release", ["at least", "ledger", "δ", "nominal"], caption)
    for row in one["epsilon"]:
        ledger = "infinite" if row["ledger"] is None else f"{row['ledger']:.3g}"
        nominal = "" if row["nominal"] is None else f"{row['nominal']:.3g}"
        table.add_row(row["release"], f"{row['at_least']:.3g}", ledger, f"{row['delta']:g}", nominal)
    return table


def _release_table(found: dict[str, Any], name: str) -> Table:
    """Adversary, unit, adjacency, trials, odds and verdict in words."""
    caption = (
        f"Adversary: {found['adversary']}. Unit: {found['unit']}. Adjacency: {found['adjacency']}. Trials: "
        f"{found['trials']:,} of each dataset, {found['draws']:,} numbers of noise. Odds that an honest implementation "
        f"fails: {found['false_alarm']:.2g}. Verdict: {found['verdict']}."
    )
    table = _table(f"Noise of {found['path']}", name, "test", ["claimed", "measured", ""], caption)
    for check in found["checks"]:
        table.add_row(check["what"], check["claimed"], check["measured"], "" if check["passed"] else "REFUTED")
    return table


def _seen(row: dict[str, Any]) -> str:
    if row["clients"] > 1:
        return f"sum of {row['clients']:,} clients"
    return f"a message of {row['searches']} {'search' if row['searches'] == 1 else 'searches'}"


def _pair(found: dict[str, float], prefix: str = "") -> str:
    return f"{_share(found[prefix + 'precision'])} / {_share(found[prefix + 'recall'])}"


def _share(value: float) -> str:
    return f"{value:.2f}".removeprefix("0") if value < 1 else f"{value:.2f}"


def _interval(found: dict[str, float]) -> str:
    return f"{found['value']:.2f} [{found['low']:.2f}, {found['high']:.2f}]"
