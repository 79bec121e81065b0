"""Single runs on disk: each in one file whose name is a hash of all its inputs, so that none is computed twice.

    <out>/singles/<key>.npz

Figures share single runs; a command that was stopped continues with those that are finished. Files are written
atomically (`atomic`). The key covers the setting, the data, the seed, the code that computes (`keys`) and the versions
of the libraries.
"""

import hashlib
import json
import lzma
import zipfile
import zlib
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from foltr.files import write_arrays
from foltr.lab.runs.keys import code_of
from foltr.lab.simulation.evaluation import RunResult
from foltr.lab.spec.setting import AnySetting, Metrics, resolved
from foltr.types import Array

_METRICS = msgspec.to_builtins(Metrics())
ELSEWHERE = "another folder with --out"


def key_of(setting: AnySetting, *, checksum: str, fold: int, seed: int) -> str:
    """The key of a single run."""
    plain = resolved(setting)
    for table in ("part", "plugins"):  # the code of plug-ins counts, not where they are
        plain.pop(table, None)
    if plain.get("metrics") == _METRICS:  # keys of runs before the table existed stay valid
        del plain["metrics"]
    plain["data"] = {"checksum": checksum, "fold": fold}
    plain["runs"] = {"evaluate_every": setting.runs.evaluate_every, "seed": seed}
    content = json.dumps([plain, code_of(setting)], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:32]


def path_of(out: Path, key: str) -> Path:
    return out / "singles" / f"{key}.npz"


def save(out: Path, key: str, single: RunResult) -> None:
    arrays = {name: np.asarray(value) for name, value in single._asdict().items()}
    ids, values = arrays.pop("query_ids"), arrays.pop("query_values")
    arrays |= {
        "packed_ids": _packed(json.dumps(ids.tolist(), allow_nan=False).encode()),
        "packed_values": _packed(values.tobytes()),
    }
    write_arrays(path_of(out, key), arrays, instead=ELSEWHERE)


def _packed(content: bytes) -> Array:
    """Compressed bytes: as arrays of numpy, values of queries would almost double a file."""
    return np.frombuffer(lzma.compress(content, preset=9), np.uint8)


def _unpacked(arrays: Any) -> dict[str, Array]:
    """Ids and values of queries."""
    ids, values = (lzma.decompress(arrays[name].tobytes()) for name in ("packed_ids", "packed_values"))
    named = np.array(json.loads(ids), dtype=str)
    return {
        "query_ids": named,
        "query_values": np.frombuffer(values, np.float32).reshape(len(arrays["query_metrics"]), len(named)),
    }


def load(out: Path, key: str) -> RunResult | None:
    """A finished single run, or None; a damaged file counts as none and is computed again."""
    path = path_of(out, key)
    try:
        with zipfile.ZipFile(path) as archive:
            if archive.testzip() is not None:  # numpy itself does not compare the checksum
                return None
        with np.load(path) as arrays:
            values: dict[str, Any] = _unpacked(arrays)
            values |= {name: arrays[name] for name in RunResult._fields if name not in values}
    except _DAMAGE:
        return None
    values |= {"interactions": int(values["interactions"]), "seconds": float(values["seconds"])}
    return RunResult(**values)


# errors of numpy and zipfile at an archive with a wrong byte
_DAMAGE = (OSError, KeyError, ValueError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error, lzma.LZMAError)
