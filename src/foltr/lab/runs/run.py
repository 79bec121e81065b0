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
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import polars as pl

import foltr
from foltr._kernels.metrics import highest_grades
from foltr.errors import DataMissing
from foltr.files import atomic_write, check_writable, write_arrays, write_json
from foltr.lab import records
from foltr.lab.audit.click_guessing import check_audit
from foltr.lab.data.catalog import Fold
from foltr.lab.data.overlap import overlap, reused_ids
from foltr.lab.reporting.counted import as_json as counted_as_json
from foltr.lab.reporting.counted import clients_as_json
from foltr.lab.reporting.labels import overlap_warnings
from foltr.lab.reporting.significance import tests_of
from foltr.lab.runs import on_texts, store
from foltr.lab.runs.card import card_of, ledgers_of
from foltr.lab.runs.pool import Job, JobProgress, run_jobs
from foltr.lab.runs.unlearning import check_unlearning
from foltr.lab.simulation.evaluation import RunResult
from foltr.lab.simulation.population import folds_of, interactions_in, load, metrics_of, task_of
from foltr.lab.spec.parse import labels
from foltr.lab.spec.setting import AnySetting, Plan, Setting, TextSetting, resolved
from foltr.types import Empty


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
    counted: dict[str, dict[str, int]] = {}
    for setting in plan.settings:
        shared = Counter[str]()
        for fold_number in folds_of(setting):
            known = checked(setting, fold_number, loaded)
            shared.update(_shared(setting, fold_number, loaded, counted))
            for seed in range(setting.runs.first_seed, setting.runs.first_seed + setting.runs.seeds):
                key = store.key_of(setting, checksum=known["checksum"], fold=fold_number, seed=seed)
                jobs.append(Job(len(jobs), setting, fold_number, seed, key))
        facts.append({**known, **shared, **_of_all_folds(setting, loaded)})
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
    metrics_of(setting, fold.grades)
    task, _ = task_of(setting, fold, 0)
    if setting.unlearning.method != "none":
        check_unlearning(setting, task)
    if setting.audit.messages:
        check_audit(setting, fold)
    return _facts(setting, fold)


def _shared(
    setting: AnySetting, fold_number: int, loaded: dict[tuple[str, str | None, int], Fold],
    counted: dict[str, dict[str, int]],
) -> dict[str, int]:  # fmt: skip
    """Test queries of a fold, and how many of them are in its other parts; counted once for each content."""
    fold = loaded.get((setting.data.name, setting.data.normalize, fold_number))
    if fold is None:  # texts
        return {}
    if fold.checksum not in counted:
        train, validation = overlap(fold.train, fold.test), overlap(fold.validation, fold.test)
        counted[fold.checksum] = {
            "tested": train.queries, "shared_with_train": train.shared, "shared_ids": train.ids,
            "shared_with_validation": validation.shared,
        }  # fmt: skip
    return counted[fold.checksum]


def _of_all_folds(setting: AnySetting, loaded: dict[tuple[str, str | None, int], Fold]) -> dict[str, Any]:
    """Validation queries by their highest grade, and ids that folds use for different queries.

    Values of queries with such an id must not be averaged over folds.
    """
    if isinstance(setting, TextSetting):
        return {}
    folds = [loaded[setting.data.name, setting.data.normalize, fold] for fold in folds_of(setting)]
    grades = [highest_grades(fold.validation.labels, fold.validation.offsets) for fold in folds]
    validated = tuple(np.bincount(np.concatenate(grades)).tolist())
    return {"validated": validated, "reused_ids": reused_ids([fold.test for fold in folds])}


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
    _write_frame(prepared.dir / "rows.parquet", rows)
    _write_frame(prepared.dir / "queries.parquet", _queries(by_setting), compression_level=19, statistics=False)
    write_arrays(prepared.dir / "ranker.npz", _rankers(by_setting), instead=store.ELSEWHERE)
    manifest = msgspec.structs.replace(_manifest(prepared, by_setting), **(extra or {}))
    privacy = [{"setting": s.index, "label": s.label, **s.privacy} for s in manifest.settings]
    write_json(prepared.dir / "privacy.json", privacy, instead=store.ELSEWHERE)
    write_json(prepared.dir / "ledger.json", _ledgers(prepared), instead=store.ELSEWHERE)
    records.write_manifest(prepared.dir, manifest)
    return records.read(prepared.dir)


def _write_frame(path: Path, frame: pl.DataFrame, **options: Any) -> None:
    with atomic_write(path, instead=store.ELSEWHERE) as temporary:
        packed = io.BytesIO()  # polars raises its own error for a full disk
        frame.write_parquet(packed, **options)
        temporary.write_bytes(packed.getbuffer())


def results(run: records.Run) -> dict[str, Any]:
    """The object that `foltr run --json` prints."""
    measured = records.statistics(run.rows)
    settings = [
        {
            "setting": s.label,
            "metrics": {
                name: {**one._asdict(), **counted_as_json(run, s, name)}
                for name, one in measured.get(s.index, {}).items()
                if not records.is_other(name)
            },
            "clients": clients_as_json(run, s),
            "interactions": s.interactions,
            "seconds": s.seconds,
        }
        for s in run.manifest.settings
    ]
    return {"run": run.manifest.run, "dir": str(run.dir), "results": settings, "significance": tests_of(run),
            "warnings": overlap_warnings(run.manifest.settings)}  # fmt: skip


def _rows(setting: int, job: Job, single: RunResult) -> pl.DataFrame:
    online = zip((*records.ONLINE, records.DISCOUNTED), single.online, strict=True)
    blocks = [(name, "", single.rounds, values) for name, values in online]
    last = single.evaluated[-1:]
    for metric, values, final in zip(single.query_metrics, single.offline, single.offline_other, strict=True):
        name = records.stored_name("offline", str(metric))
        blocks += [(name, "", single.evaluated, values)]
        blocks += [(records.other_name(name, _empty(job.setting)), "", last, final[None])]
    blocks += [(str(name), "", last, value[None]) for name, value in zip(single.names, single.more, strict=True)]
    ndcg = records.OFFLINE[0]
    for name, values in (
        (ndcg, single.client_ndcg),
        (records.other_name(ndcg, _empty(job.setting)), single.client_other),
    ):
        blocks += [(name, str(client), last, value[None]) for client, value in zip(single.clients, values, strict=True)]
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


def _empty(setting: AnySetting) -> Empty:
    return "skip" if isinstance(setting, TextSetting) else setting.metrics.empty


def _queries(by_setting: dict[int, list[tuple[Job, RunResult]]]) -> records.Queries:
    """Values of final rankers; all values of a query follow each other, which compresses best."""
    frames = [
        pl.DataFrame({"query": single.query_ids, "value": values}).select(
            pl.lit(setting, pl.Int32).alias("setting"),
            pl.lit(job.fold, pl.Int32).alias("fold"),
            pl.lit(job.seed, pl.Int64).alias("seed"),
            "query",
            pl.lit(records.stored_name("offline", str(metric))).alias("metric"),
            pl.col("value").cast(pl.Float32).fill_nan(None),
        )
        for setting, pairs in by_setting.items()
        for job, single in pairs
        for metric, values in zip(single.query_metrics, single.query_values, strict=True)
    ]
    if not frames:
        return pl.DataFrame(schema=records.QUERY_SCHEMA)
    return pl.concat(frames).sort("fold", "query", "setting", "seed", "metric")


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
        baseline=dict(prepared.plan.baseline),
        tune=prepared.plan.tune,
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
                metrics=_listed(setting, prepared.facts[i]["grades"]),
                clients=_client_queries(by_setting[i]),
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


def _listed(setting: AnySetting, grades: int) -> list[str]:
    """Stored names of the offline metrics that a setting lists."""
    if isinstance(setting, TextSetting):
        return []
    return [records.stored_name("offline", str(metric)) for metric in metrics_of(setting, grades)]


def _client_queries(pairs: list[tuple[Job, RunResult]]) -> dict[str, tuple[int, int]]:
    """Client -> its test queries with a relevant document and all of them, summed over folds (of the first seed)."""
    of_folds = {job.fold: single for job, single in reversed(pairs)}
    found: dict[str, tuple[int, int]] = {}
    for single in of_folds.values():
        for client, (relevant, tested) in zip(single.clients.tolist(), single.client_queries.tolist(), strict=True):
            before = found.get(client, (0, 0))
            found[client] = before[0] + relevant, before[1] + tested
    return found


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
