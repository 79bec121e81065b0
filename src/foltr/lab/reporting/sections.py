"""What the page says about one run, as plain data for the template: words and numbers here, looks there."""

from typing import Any

from foltr.lab.records import Run
from foltr.lab.reporting.curves import caption, curve_svg, pictures, scatter_svg
from foltr.lab.reporting.labels import KEY_NAMES, metric_name, setting_name
from foltr.lab.reporting.matrix import gains, matrices
from foltr.lab.reporting.metric_tables import metric_tables
from foltr.lab.reporting.numbers import difference, mean_sd, number, p_value
from foltr.lab.reporting.privacy import COLUMNS, privacy_cards
from foltr.lab.reporting.provenance import data_facts, details
from foltr.lab.reporting.scatter import clouds, scatter_caption
from foltr.lab.reporting.tables import main_metrics, mark, metrics_of, settings_table, significance


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
        "table": _table(run),
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


def _table(run: Run) -> dict[str, Any]:
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
