"""Where a run's numbers come from: its data, its spec, versions, machine and times."""

import contextlib
import datetime
import json
from typing import Any

from foltr.lab.records import Run
from foltr.lab.reporting.labels import data_name, data_sets, is_synthetic, setting_name
from foltr.lab.reporting.numbers import duration, number


def data_facts(run: Run) -> list[dict[str, Any]]:
    """Each data set once: name, whether it is synthetic, size, checksum."""
    return [_data(data) for data in data_sets(run.manifest.get("settings") or [])]


def _data(data: dict[str, Any]) -> dict[str, Any]:
    facts = [f"{number(data[key])} {key}" for key in SIZES if key in data]
    if data.get("normalize"):
        facts.append(f"normalize {data['normalize']}")
    return {
        "name": data_name(data),
        "synthetic": is_synthetic(data),
        "facts": ", ".join(facts),
        "checksum": data.get("checksum") or "none recorded",
    }


def details(run: Run) -> dict[str, Any]:
    """What stands in the folded sections."""
    manifest = run.manifest
    facts = [("run", manifest.get("run")), ("commit", manifest.get("commit") or "not recorded")]
    facts += (manifest.get("versions") or {}).items()
    facts += [(name.replace("_gb", " (GB)"), value) for name, value in (manifest.get("machine") or {}).items()]
    facts += [(name, manifest[name]) for name in ("started", "finished") if manifest.get(name)]
    settings = manifest.get("settings") or []
    return {
        "facts": facts + _took(manifest, settings),
        "times": [[setting_name(s), number(s.get("interactions")), duration(s.get("seconds"))] for s in settings],
        "toml": manifest.get("spec_toml") or "",
        "spec": json.dumps(manifest.get("spec") or {}, indent=2, ensure_ascii=False, default=str),
    }


def _took(manifest: dict[str, Any], settings: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """How long it all was; single runs that the call found finished count in their own sum only."""
    took = []
    with contextlib.suppress(KeyError, TypeError, ValueError):
        started, finished = (datetime.datetime.fromisoformat(manifest[name]) for name in ("started", "finished"))
        took.append(("this call took", duration((finished - started).total_seconds())))
    of_parts: dict[str, float] = {}
    for setting in settings:
        part = (setting.get("label") or {}).get("part", "all settings")
        of_parts[part] = of_parts.get(part, 0.0) + (setting.get("seconds") or 0.0)
    return took + [(f"time of single runs, {part}", duration(seconds)) for part, seconds in of_parts.items()]


SIZES = ("queries", "documents", "features", "grades")
