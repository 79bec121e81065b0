"""One self-contained HTML page about one or several runs: nothing on it is loaded from anywhere.

The page depends on the runs alone (no clock, no machine of the reader), so the same runs give the same bytes. `section`
turns a run into plain data (words and numbers); the templates decide how it looks.
"""

import contextlib
import datetime
import json
from pathlib import Path
from typing import Any

from foltr.atomic import write_text
from foltr.errors import InputError
from foltr.lab.records import Run, read
from foltr.lab.reporting.labels import (
    KEY_NAMES,
    data_name,
    data_sets,
    difference,
    duration,
    is_synthetic,
    mean_sd,
    metric_name,
    number,
    p_value,
    setting_name,
)
from foltr.lab.reporting.pictures import caption, curve_svg, pictures, scatter_svg
from foltr.lab.reporting.privacy import COLUMNS, privacy_cards
from foltr.lab.reporting.series import clouds, scatter_caption
from foltr.lab.reporting.significance import mark, significance
from foltr.lab.reporting.tables import gains, main_metrics, matrices, metric_tables, metrics_of, settings_table


def write_page(runs: list[Path], out: Path, *, title: str | None = None) -> Path:
    """Read finished runs and write the page to `out`, whole or not at all; gives back `out`."""
    if not runs:
        raise InputError("a report needs at least one run folder")
    write_text(out, render([section(read(folder), place) for place, folder in enumerate(runs)], title))
    return out


def render(sections: list[dict[str, Any]], title: str | None = None) -> str:
    """The page as text; all that comes from a run is escaped, save the SVG that this package draws itself."""
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError as error:
        raise InputError("the report page needs the report extra: pip install 'foltr[report]'") from error
    loader = PackageLoader("foltr.lab.reporting", "templates")
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    headline = title or (sections[0]["name"] if len(sections) == 1 else f"{len(sections)} runs")
    return environment.get_template("page.html.j2").render(title=headline, sections=sections)


def section(run: Run, place: int) -> dict[str, Any]:
    """Everything the template needs for one run; `place` keeps anchors of several runs apart."""
    manifest = run.manifest
    figure = manifest.get("figure") or {}
    return {
        "anchor": f"run-{place}",
        "name": manifest.get("name") or figure.get("id") or f"run {manifest.get('run', '')}",
        "figure_id": figure.get("id"),
        "question": figure.get("question"),
        "quick": bool(manifest.get("quick")),
        "chosen": manifest.get("chosen"),
        "data": data_facts(run),
        "size": _size(run),
        "figures": [*([] if figure.get("matrix") else _figures(run, place)), *_scatters(run, place)],
        "metric_tables": metric_tables(run),
        "without_curves": figure.get("tables") == [] or bool(metric_tables(run)),
        "matrices": matrices(run),
        "gains": gains(run),
        "verdicts": [_verdict(verdict) for verdict in manifest.get("verdicts") or []],
        "verdict_summary": verdict_summary(manifest.get("verdicts") or []),
        "claims": [_claim(claim) for claim in manifest.get("claims") or []],
        "comparisons": [_comparison(table) for table in manifest.get("comparisons") or []],
        "table": _settings_table(run),
        "significance": [_significance(run, metric) for metric in main_metrics(run)],
        "remarks": manifest.get("remarks") or [],
        "privacy": {"columns": COLUMNS, "cards": privacy_cards(_settings(run))},
        "details": details(run),
    }


def verdict_summary(verdicts: list[dict[str, Any]]) -> str:
    """ "11 of 12 reproduced, 1 off"."""
    if not verdicts:
        return ""
    states = [_state(str(verdict.get("verdict"))) for verdict in verdicts]
    rest = [f"{states.count(state)} {words}" for state, words in REST.items() if state in states]
    return ", ".join([f"{states.count('good')} of {len(states)} reproduced", *rest])


def _state(verdict: str) -> str:
    return "good" if verdict == "reproduced" else "bad" if verdict.startswith("off") else "open"


def _settings(run: Run) -> list[dict[str, Any]]:
    return run.manifest.get("settings") or []


def _size(run: Run) -> str:
    """ "6 settings, 10 runs each, 50 rounds a run"."""
    settings = _settings(run)
    words = [_count(len(settings), "setting")]
    for key, noun, many in (("runs", "run", "each"), ("rounds", "round", "a run")):
        found = sorted({s[key] for s in settings if s.get(key)})
        if found:
            shown = _count(found[0], noun) if len(found) == 1 else f"{found[0]:,} to {found[-1]:,} {noun}s"
            words.append(shown if key == "runs" and len(settings) == 1 else f"{shown} {many}")
    return ", ".join(words)


def _count(many: int, noun: str) -> str:
    return f"{many:,} {noun}{'' if many == 1 else 's'}"


def _figures(run: Run, place: int) -> list[dict[str, str]]:
    return [
        {"svg": curve_svg(run, *metrics, ids=f"r{place}f{number}-"), "caption": caption(run, *metrics)}
        for number, metrics in enumerate(pictures(run))
    ]


def _scatters(run: Run, place: int) -> list[dict[str, str]]:
    return [{"svg": scatter_svg(run, ids=f"r{place}s-"), "caption": scatter_caption(run)}] if clouds(run) else []


def _verdict(verdict: dict[str, Any]) -> dict[str, Any]:
    return {
        **{key: verdict.get(key) or "" for key in ("what", "data", "source", "tolerance", "verdict")},
        "state": _state(str(verdict.get("verdict"))),
        "published": number(verdict.get("published")),
        "ours": mean_sd(verdict.get("ours"), verdict.get("sd"), verdict.get("runs") or 0),
        "runs": number(verdict.get("runs")),
    }


def _claim(claim: dict[str, Any]) -> dict[str, Any]:
    state, words = CLAIM_STATES.get(claim.get("holds"), CLAIM_STATES[None])
    return {"claim": claim.get("claim"), "evidence": claim.get("evidence"), "state": state, "words": words}


def _comparison(table: dict[str, Any]) -> dict[str, Any]:
    """Titles read "A against B", which names the two columns."""
    title = str(table.get("title") or "Comparison")
    left, _, right = title.partition(" against ")
    rows = [_compared(row) for row in table.get("rows") or []]
    names = {"title": title, "left": left if right else "left", "right": right or "right"}
    return {**names, "rows": rows, "differ": sum(row["differs"] for row in rows)}


def _compared(row: dict[str, Any]) -> dict[str, Any]:
    ours, published = row.get("mark"), row.get("published_mark")
    return {
        "setting": row.get("setting") or "",
        "note": row.get("note") or "",
        "numbers": _numbers(row.get("left"), row.get("right"), row.get("difference")),
        "p": [p_value(row.get("p")), p_value(row.get("corrected_p"))],
        "runs": number(row.get("runs")),
        "mark": ours or NO_MARK,
        "published_mark": "–" if published is None else published or NO_MARK,
        "differs": published is not None and (ours or "") != published,
    }


def _numbers(left: float | None, right: float | None, gap: float | None) -> list[str]:
    return [number(left), number(right), difference(gap, left)]


def _settings_table(run: Run) -> dict[str, Any]:
    table = settings_table(run, None if len(metrics_of(run)) <= _WIDEST else main_metrics(run))
    titled = any(setting.get("title") for setting in _settings(run)) or not table.keys
    keys, metrics = [KEY_NAMES.get(key, key) for key in table.keys], [metric_name(m) for m in table.metrics]
    return {"titled": titled, "keys": keys, "metrics": metrics, "rows": table.rows}


_WIDEST = 40  # metrics; beyond that the table shows the main ones, and rows.parquet has them all


def _significance(run: Run, metric: str) -> dict[str, Any]:
    names = {setting["index"]: setting_name(setting) for setting in _settings(run)}
    tests = [test for test in significance(run, metric) if test.pairs > 1]  # one run each: nothing to test
    rows = [
        {
            "setting": names[test.setting],
            "baseline": names[test.baseline],
            "numbers": _numbers(test.mean, test.baseline_mean, test.difference),
            "p": [p_value(test.p), p_value(test.corrected_p)],
            "pairs": test.pairs,
            "mark": mark(test) or NO_MARK,
        }
        for test in tests
    ]
    return {"metric": metric_name(metric), "rows": rows}


NO_MARK = "·"
CLAIM_STATES = {
    True: ("good", "✓ holds"),
    False: ("bad", "✗ does not hold"),
    None: ("open", "? not decided"),
}
REST = {"bad": "off", "open": "without verdict (data missing)"}


def data_facts(run: Run) -> list[dict[str, Any]]:
    """Each data set once: name, whether it is synthetic, size, checksum."""
    return [_data_set(data) for data in data_sets(run.manifest.get("settings") or [])]


def _data_set(data: dict[str, Any]) -> dict[str, Any]:
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
