"""A run: all settings, folds and seeds of a plan; missing single runs are computed, the others read from disk.

Leaves runs/<hash>/ as `records` describes it. Finished single runs survive Ctrl-C; the same command resumes.
"""

import datetime
import hashlib
import io
import json
import os
import platform
import subprocess
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import polars as pl

import foltr
from foltr.atomic import atomic_write, check_writable, write_arrays, write_json
from foltr.errors import DataMissing
from foltr.lab import records
from foltr.lab.audit.click_guessing import check_audit
from foltr.lab.data.catalog import Fold
from foltr.lab.runs import on_texts, store
from foltr.lab.runs.card import card_of, ledgers_of
from foltr.lab.runs.pool import Job, JobProgress, run_jobs
from foltr.lab.runs.unlearning import check_unlearning
from foltr.lab.simulation.evaluation import RunResult
from foltr.lab.simulation.population import folds_of, interactions_in, load, task_of
from foltr.lab.spec.parse import labels
from foltr.lab.spec.setting import AnySetting, Plan, Setting, TextSetting, resolved


class PreparedRun(NamedTuple):
    """A plan on this machine's data: what there is to do, and what is done."""

    plan: Plan
    jobs: list[Job]  # all single runs, finished or not
    facts: list[dict[str, Any]]  # of the data, one a setting
    run: str  # hash
    out: Path

    @property
    def dir(self) -> Path:
        return self.out / self.run


def prepare(plan: Plan, out: Path) -> PreparedRun:
    """Loads the data and names every single run; a setting that cannot run and an unwritable folder are refused."""
    loaded: dict[tuple[str, str | None, int], Fold] = {}
    jobs: list[Job] = []
    facts = []
    for setting in plan.settings:
        for fold_number in folds_of(setting):
            known = checked(setting, fold_number, loaded)
            for seed in range(setting.runs.first_seed, setting.runs.first_seed + setting.runs.seeds):
                key = store.key_of(setting, checksum=known["checksum"], fold=fold_number, seed=seed)
                jobs.append(Job(len(jobs), setting, fold_number, seed, key))
        facts.append(known)
    check_writable(out, instead=store.ELSEWHERE)
    content = json.dumps([plan.name, [(j.setting.part, j.key) for j in jobs]])
    name = hashlib.sha256(content.encode()).hexdigest()[:12]
    return PreparedRun(plan, jobs, facts, name, out)


def checked(setting: AnySetting, fold_number: int, loaded: dict[tuple[str, str | None, int], Fold]) -> dict[str, Any]:
    """Checks a setting against its data and returns the facts of the data."""
    if isinstance(setting, TextSetting):
        return on_texts.checked(setting)
    where = (setting.data.name, setting.data.normalize, fold_number)
    if where not in loaded:
        loaded[where] = load(setting.data, fold_number)
    fold = loaded[where]
    task, _ = task_of(setting, fold, 0)
    if setting.unlearning.method != "none":
        check_unlearning(setting, task)
    if setting.audit.messages:
        check_audit(setting, fold)
    return _facts(setting, fold)


def available(plan: Plan) -> tuple[Plan, list[str]]:
    """The settings whose data is on this machine, and the names of the collections that are not."""
    missing: list[str] = []
    for name in dict.fromkeys(setting.data.name for setting in plan.settings):
        try:
            setting = next(setting for setting in plan.settings if setting.data.name == name)
            if isinstance(setting, TextSetting):
                on_texts.load(setting)
            else:
                load(setting.data, folds_of(setting)[0])
        except DataMissing:
            missing.append(name)
    return plan._replace(settings=[s for s in plan.settings if s.data.name not in missing]), missing


def to_do(prepared: PreparedRun) -> list[Job]:
    """Single runs that are not on disk yet, each once."""
    wanted = {job.key: job for job in reversed(prepared.jobs) if store.load(prepared.out, job.key) is None}
    return sorted(wanted.values(), key=lambda job: job.number)


def run_missing(prepared: PreparedRun, *, jobs: int | None = None) -> Iterator[JobProgress]:
    """Runs the jobs whose results are not on disk yet."""
    missing = to_do(prepared)
    cores = os.cpu_count() or 1
    processes = max(1, min(jobs or cores, len(missing)))
    yield from run_jobs(missing, prepared.out, processes=processes, threads=max(1, cores // processes))


def finish(prepared: PreparedRun, extra: dict[str, Any] | None = None) -> records.Run:
    """Writes the run's folder from its single runs."""
    singles = {job.number: store.load(prepared.out, job.key) for job in prepared.jobs}
    done = [(job, single) for job in prepared.jobs if (single := singles[job.number]) is not None]
    number = {id(setting): i for i, setting in enumerate(prepared.plan.settings)}
    by_setting: dict[int, list[tuple[Job, RunResult]]] = {i: [] for i in number.values()}
    for job, single in done:
        by_setting[number[id(job.setting)]].append((job, single))
    rows = pl.concat([_rows(i, job, single) for i, pairs in by_setting.items() for job, single in pairs])
    with atomic_write(prepared.dir / "rows.parquet", instead=store.ELSEWHERE) as temporary:
        packed = io.BytesIO()  # polars raises its own error for a full disk
        rows.write_parquet(packed)
        temporary.write_bytes(packed.getbuffer())
    write_arrays(prepared.dir / "ranker.npz", _rankers(by_setting), instead=store.ELSEWHERE)
    manifest = msgspec.structs.replace(_manifest(prepared, by_setting), **(extra or {}))
    privacy = [{"setting": s.index, "label": s.label, **s.privacy} for s in manifest.settings]
    write_json(prepared.dir / "privacy.json", privacy, instead=store.ELSEWHERE)
    write_json(prepared.dir / "ledger.json", _ledgers(prepared), instead=store.ELSEWHERE)
    records.write_manifest(prepared.dir, manifest)
    return records.read(prepared.dir)


def results(run: records.Run) -> dict[str, Any]:
    """What `foltr run --json` prints."""
    measured, of_clients = records.statistics(run.rows), records.client_statistics(run.rows)
    settings = [
        {
            "setting": s.label,
            "metrics": {name: one._asdict() for name, one in measured.get(s.index, {}).items()},
            "clients": {name: one._asdict() for name, one in of_clients.get(s.index, {}).items()},
            "interactions": s.interactions,
            "seconds": s.seconds,
        }
        for s in run.manifest.settings
    ]
    return {"run": run.manifest.run, "dir": str(run.dir), "results": settings}


def _rows(setting: int, job: Job, single: RunResult) -> pl.DataFrame:
    names = [*records.ONLINE, records.DISCOUNTED, *records.OFFLINE]
    blocks = [(name, "", single.rounds, values) for name, values in zip(names[:3], single.online, strict=True)]
    blocks += [(name, "", single.evaluated, values) for name, values in zip(names[3:], single.offline, strict=True)]
    last = single.evaluated[-1:]
    blocks += [(str(name), "", last, value[None]) for name, value in zip(single.names, single.more, strict=True)]
    of_clients = zip(single.clients, single.client_ndcg, strict=True)
    blocks += [(records.OFFLINE[0], str(client), last, value[None]) for client, value in of_clients]
    each = np.arange(1, single.points.shape[1] + 1)
    blocks += [(str(name), "", each, values) for name, values in zip(single.point_names, single.points, strict=True)]
    frames = [
        pl.DataFrame(
            {"round": rounds.astype(np.int64), "value": values}, schema={"round": pl.Int64, "value": pl.Float64}
        ).with_columns(
            setting=pl.lit(setting, pl.Int32),
            fold=pl.lit(job.fold, pl.Int32),
            seed=pl.lit(job.seed, pl.Int64),
            metric=pl.lit(name),
            client=pl.lit(client),
        )
        for name, client, rounds, values in blocks
        if values.size
    ]
    return pl.concat(frames).select("setting", "fold", "seed", "round", "metric", "client", "value")


def _rankers(by_setting: dict[int, list[tuple[Job, RunResult]]]) -> dict[str, Any]:
    arrays: dict[str, Any] = {}
    for index, pairs in by_setting.items():
        arrays[f"setting_{index}"] = np.stack([single.parameters for _, single in pairs])
        arrays[f"setting_{index}_fold_seed"] = np.array([(job.fold, job.seed) for job, _ in pairs])
        ranker = resolved(pairs[0][0].setting).get("ranker", _LINEAR)
        arrays[f"setting_{index}_ranker"] = np.array(json.dumps(ranker, allow_nan=False))
    return arrays


_LINEAR = {"kind": "linear"}  # the ranker of runs on texts


def _manifest(prepared: PreparedRun, by_setting: dict[int, list[tuple[Job, RunResult]]]) -> records.Manifest:
    settings = prepared.plan.settings
    return records.Manifest(
        run=prepared.run,
        name=prepared.plan.name,
        spec_toml=prepared.plan.text,
        spec=resolved(settings[0]),
        settings=[
            records.SettingRecord(
                index=i,
                label=label,
                resolved=resolved(setting),
                interactions=interactions_in(setting),
                seconds=sum(single.seconds for _, single in by_setting[i]),
                runs=len(by_setting[i]),
                rounds=0 if isinstance(setting, TextSetting) else setting.federation.rounds,
                data=msgspec.convert(prepared.facts[i], records.Data),
                privacy=card_of(setting, prepared.facts[i]["features"]),
            )
            for i, (setting, label) in enumerate(zip(settings, labels(settings), strict=True))
        ],
        versions={
            "foltr": foltr.__version__,
            "python": platform.python_version(),
            **{name: version(name) for name in ("numpy", "numba", "scipy", "polars")},
        },
        commit=_commit(),
        machine=_machine(),
        finished=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
    )


def _ledgers(prepared: PreparedRun) -> dict[str, Any]:
    """The ledgers of all settings with a privacy mechanism."""
    features = [facts["features"] for facts in prepared.facts]
    return {"ledgers": ledgers_of(prepared.plan.settings, features)}


def _facts(setting: Setting, fold: Fold) -> dict[str, Any]:
    splits = (fold.train, fold.validation, fold.test)
    short = int(sum((np.diff(split.offsets) < setting.users.k).sum() for split in splits))
    return {
        "name": fold.name,
        "note": fold.note,
        "normalize": setting.data.normalize or "as usual for the collection",
        "checksum": fold.checksum,
        "queries": sum(len(split.queries) for split in splits),
        "documents": sum(len(split.labels) for split in splits),
        "features": int(fold.train.features.shape[1]),
        "grades": fold.grades,
        "shorter_than_k": short,
    }


def _machine() -> dict[str, Any]:
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    except (ValueError, OSError, AttributeError):
        memory = 0.0
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "memory_gb": round(memory, 1),
    }


def _commit() -> str | None:
    """The commit of a working copy; None for an installed package."""
    home = Path(foltr.__file__).parent
    try:
        said = subprocess.run(
            ["git", "-C", str(home), "describe", "--always", "--dirty", "--abbrev=12"],
            capture_output=True, text=True, timeout=5, check=True,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    return said.stdout.strip() or None
