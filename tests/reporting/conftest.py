"""Runs as the lab leaves them, made up: two users x three epsilons, five folds x two seeds, fifty rounds."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from foltr.files import dump_json
from foltr.rng import stream

CLICKS, EPSILONS = ("perfect", "informational"), (1.2, 2.3, 4.5)
DATA = {
    "name": "mq2007",
    "note": "85 % sample",
    "normalize": "none",
    "checksum": "sha256:0123abcd",
    "queries": 1692,
    "documents": 59135,
    "features": 46,
    "grades": 3,
}
ROWS = {"setting": pl.Int32, "fold": pl.Int32, "seed": pl.Int64, "round": pl.Int64, "metric": pl.Utf8}
SCHEMA = {**ROWS, "value": pl.Float64}


def setting(index: int, label: dict[str, Any], **more: Any) -> dict[str, Any]:
    epsilon = label.get("privacy.epsilon", 1.2)
    return {
        "index": index,
        "label": label,
        "resolved": {"users": {"clicks": label.get("users.clicks", "perfect")}, "data": {"name": "mq2007"}},
        "interactions": 200_000,
        "seconds": 12.3,
        "runs": 10,
        "rounds": 50,
        "data": DATA,
        "privacy": {
            "kind": "fpdgd",
            "nominal_epsilon": epsilon,
            "statement": f"The paper's formula gives ε = {epsilon} for one round; the figure is nominal.",
        },
        **more,
    }


def settings() -> list[dict[str, Any]]:
    labels = [{"users.clicks": clicks, "privacy.epsilon": e} for clicks in CLICKS for e in EPSILONS]
    return [setting(index, label) for index, label in enumerate(labels)]


def manifest(**more: Any) -> dict[str, Any]:
    return {
        "run": "3f2a9c",
        "name": "FPDGD with privacy on MQ2007",
        "quick": False,
        "spec": {"data": {"name": "mq2007"}, "federation": {"clients": 1000}},
        "spec_toml": 'name = "FPDGD with privacy on MQ2007"\ndata = { name = "mq2007" }\n',
        "settings": settings(),
        "versions": {"foltr": "0.1.0", "python": "3.11.7", "numpy": "2.3.1", "numba": "0.62.0"},
        "commit": "abc123",
        "machine": {"system": "Linux x86_64", "cores": 2, "memory_gb": 23.5},
        "started": "2026-11-15T21:42:00Z",
        "finished": "2026-11-15T21:44:00Z",
        "figure": None,
        "verdicts": [],
        "claims": [],
        "comparisons": [],
        "remarks": [],
        **more,
    }


def rows_of(
    settings: list[dict[str, Any]], *, folds: int = 5, seeds: int = 2, rounds: int = 50, offline: bool = True
) -> pl.DataFrame:
    """Curves that rise to a level of their own, with noise that is larger online."""
    table = []
    for entry in settings:
        level = 0.42 - 0.02 * (entry["index"] % 3) - 0.03 * (entry["index"] // 3)
        for fold in range(1, folds + 1):
            for seed in range(seeds):
                noise = stream(seed, round=fold, client=entry["index"], purpose="noise").normal(3 * rounds)
                shift, total = 0.01 * noise[0], 0.0
                for t in range(1, rounds + 1):
                    key = (entry["index"], fold, seed, t)
                    rising = level + shift - 0.2 * math.exp(-t / (rounds / 6))
                    online = rising - 0.03 + 0.02 * noise[t]
                    total += online * 0.9995 ** (t - 1)
                    table.append((*key, "online_ndcg@10", online))
                    table.append((*key, "online_max_rr", rising + 0.1 + 0.02 * noise[rounds + t - 1]))
                    table.append((*key, "discounted_online_ndcg", total))
                    if offline and t % max(rounds // 50, 1) == 0:
                        table.append((*key, "offline_ndcg@10", rising))
                        table.append((*key, "offline_mrr@10", rising + 0.08))
    return pl.DataFrame(table, schema=SCHEMA, orient="row").with_columns(client=pl.lit(""))


def write_run(folder: Path, about: dict[str, Any], rows: pl.DataFrame) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "manifest.json").write_text(dump_json(about))
    rows.write_parquet(folder / "rows.parquet")
    return folder


RunMaker = Callable[..., Path]


@pytest.fixture
def make_run(tmp_path: Path) -> RunMaker:
    """make_run("folder", rows=..., quick=True): a run; other keywords replace parts of the manifest."""

    def make(folder: str = "run", rows: pl.DataFrame | None = None, **changes: Any) -> Path:
        about = manifest(**changes)
        return write_run(tmp_path / folder, about, rows_of(about["settings"]) if rows is None else rows)

    return make


@pytest.fixture
def tiny_run(make_run: RunMaker) -> Path:
    """One setting, two runs, five rounds: where only the page around it matters."""
    alone = [setting(0, {}, runs=2, rounds=5)]
    return make_run("tiny", settings=alone, rows=rows_of(alone, folds=1, rounds=5))


@pytest.fixture
def parts() -> SimpleNamespace:
    """What runs are made of: parts.setting(index, label), .settings(), .rows_of(settings), .data."""
    return SimpleNamespace(setting=setting, settings=settings, rows_of=rows_of, data=DATA)


FIGURE = {
    "id": "fpdgd/table2",
    "question": "What does privacy cost in online performance?",
    "metric": "online_ndcg@10",
    "metrics": ["online_ndcg@10", "offline_ndcg@10"],
    "x": "rounds",
    "columns": "users.clicks",
    "lines": ["privacy.epsilon"],
    "published": [
        {
            "label": {"users.clicks": clicks, "privacy.epsilon": 1.2},
            "series": "published, ε 1.2",
            "round": t,
            "value": value,
        }
        for clicks, t, value in [("perfect", 10, 0.31), ("perfect", 50, 0.40), ("informational", 50, 0.35)]
    ],
}
VERDICTS = [
    {
        "what": f"{clicks}, ε {epsilon}: online performance",
        "published": 296.0,
        "ours": 304.1,
        "sd": 1.2,
        "runs": 25,
        "data": "mq2007 (85 % sample)",
        "tolerance": "4 %",
        "verdict": "reproduced",
    }
    for clicks in CLICKS
    for epsilon in EPSILONS
]
FULL: dict[str, Any] = {
    "figure": FIGURE,
    "verdicts": [*VERDICTS[:5], {**VERDICTS[5], "ours": 311.17, "verdict": "off by +5.1 %"}],
    "claims": [
        {"claim": "A larger ε costs less", "holds": True, "evidence": "0.412 against 0.398"},
        {"claim": "FOLtR-ES falls after a fifth of the run", "holds": False, "evidence": ".409 -> .425"},
        {"claim": "The order of users is stored", "holds": None, "evidence": "two of three users ran"},
    ],
    "comparisons": [
        {
            "title": "FPDGD against FOLtR-ES",
            "rows": [
                {
                    "setting": "perfect, ε 1.2",
                    "left": 304.1,
                    "right": 318.0,
                    "difference": -13.9,
                    "p": 0.0001,
                    "corrected_p": 0.0012,
                    "runs": 25,
                    "mark": "▼",
                    "published_mark": "▼",
                    "note": "",
                },
                {
                    "setting": "perfect, ε 2.3",
                    "left": 321.5,
                    "right": 318.0,
                    "difference": 3.5,
                    "p": 0.01,
                    "corrected_p": 0.12,
                    "runs": 25,
                    "mark": "",
                    "published_mark": "▲",
                    "note": "our FOLtR-ES ends higher than the published one",
                },
            ],
        }
    ],
    "remarks": ["The sample has fewer documents a query, so one common factor near 1.03 is expected."],
}


@pytest.fixture
def full() -> dict[str, Any]:
    """Every part of a manifest that a reproduced figure has."""
    return json.loads(json.dumps(FULL))
