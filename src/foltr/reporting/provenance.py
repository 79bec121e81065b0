"""Where a run's numbers come from: its data, its privacy figures, its spec, versions, machine and times."""

import json
import math
from typing import Any

from foltr.records import Run
from foltr.reporting.labels import data_name, data_sets, is_synthetic, setting_name
from foltr.reporting.numbers import duration, number


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


def privacy_statements(run: Run) -> list[dict[str, str]]:
    """Each statement once, with the settings it speaks of; a figure from a paper is called nominal."""
    found: dict[tuple[str, str], list[str]] = {}
    for setting in run.manifest.get("settings") or []:
        if privacy := setting.get("privacy"):
            figure = f"{privacy.get('kind')}: nominal ε = {_epsilon(privacy.get('nominal_epsilon'))}"
            found.setdefault((figure, str(privacy.get("statement") or "")), []).append(setting_name(setting))
    return [
        {"figure": figure, "statement": statement, "settings": "; ".join(names)}
        for (figure, statement), names in found.items()
    ]


def _epsilon(value: float | None) -> str:
    return "not stated" if value is None else "∞" if math.isinf(value) else f"{value:g}"


def details(run: Run) -> dict[str, Any]:
    """What stands in the folded sections."""
    manifest = run.manifest
    facts = [("run", manifest.get("run")), ("commit", manifest.get("commit") or "not recorded")]
    facts += (manifest.get("versions") or {}).items()
    facts += [(name.replace("_gb", " (GB)"), value) for name, value in (manifest.get("machine") or {}).items()]
    facts += [(name, manifest[name]) for name in ("started", "finished") if manifest.get(name)]
    settings = manifest.get("settings") or []
    return {
        "facts": facts,
        "times": [[setting_name(s), number(s.get("interactions")), duration(s.get("seconds"))] for s in settings],
        "toml": manifest.get("spec_toml") or "",
        "spec": json.dumps(manifest.get("spec") or {}, indent=2, ensure_ascii=False, default=str),
    }


SIZES = ("queries", "documents", "features", "grades")
