"""One self-contained HTML page about one or several runs: it loads nothing from elsewhere.

The page depends on the runs alone (no clock, no machine of the reader), so the same runs give the same bytes. `section`
turns a run into plain data (words and numbers); the templates decide how it looks.
"""

import contextlib
import datetime
from collections import Counter
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from foltr.errors import InputError
from foltr.files import dump_json, write_text
from foltr.lab.records import (
    NOT_JUDGED,
    Claim,
    ComparisonRow,
    ComparisonTable,
    Data,
    Manifest,
    Run,
    SettingRecord,
    Verdict,
    read,
)
from foltr.lab.reporting.counted import counted_note, other_words
from foltr.lab.reporting.labels import (
    KEY_NAMES,
    data_name,
    data_sets,
    decimals,
    difference,
    duration,
    figure_of,
    is_synthetic,
    mean_sd,
    metric_name,
    number,
    overlap_warnings,
    p_value,
    setting_name,
)
from foltr.lab.reporting.layout import has_values
from foltr.lab.reporting.pictures import caption, curve_svg, pictures, scatter_svg
from foltr.lab.reporting.privacy import COLUMNS, privacy_cards
from foltr.lab.reporting.series import clouds, scatter_caption
from foltr.lab.reporting.significance import half_width, mark, method, over_words, significance, untested
from foltr.lab.reporting.tables import (
    best_settings,
    gains,
    main_metrics,
    matrices,
    metric_tables,
    metrics_of,
    settings_table,
)


def write_page(
    runs: list[Path], out: Path, *, title: str | None = None, baseline: dict[str, Any] | None = None
) -> Path:
    """Reads finished runs, writes the page to `out` atomically and returns `out`; `baseline` goes before the runs'."""
    if not runs:
        raise InputError("a report needs at least one run folder")
    finished = [_with_baseline(read(folder), baseline) for folder in runs]
    write_text(out, render([section(run, place) for place, run in enumerate(finished)], title))
    return out


def _with_baseline(run: Run, baseline: dict[str, Any] | None) -> Run:
    if not baseline:
        return run
    settings = run.manifest.settings
    matching = sum(has_values(setting, baseline) for setting in settings)
    if not matching or (len(settings) > 1 and matching == len(settings)):
        values = ", ".join(f"{key}={value}" for key, value in baseline.items())
        names = "; ".join(map(setting_name, settings))
        problem = "every setting of {} has that, which leaves none to test" if matching else "no setting of {} has that"
        raise InputError(f"--baseline {values}: {problem.format(run.dir)}; there are: {names}")
    return run._replace(manifest=replace(run.manifest, baseline=baseline))


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
    figure = figure_of(manifest)
    return {
        "anchor": f"run-{place}",
        "name": manifest.name or figure.id or f"run {manifest.run}",
        "figure_id": figure.id,
        "question": figure.question,
        "quick": manifest.quick,
        "chosen": manifest.chosen,
        "data": data_facts(run),
        "size": _size(run),
        "figures": [*([] if figure.matrix else _figures(run, place)), *_scatters(run, place)],
        "metric_tables": metric_tables(run),
        "without_curves": figure.tables == [] or bool(metric_tables(run)),
        "matrices": matrices(run),
        "gains": gains(run),
        "verdicts": [_verdict(verdict) for verdict in manifest.verdicts],
        "verdict_summary": verdict_summary(manifest.verdicts),
        "verdict_note": counted_note(run, [verdict.metric for verdict in manifest.verdicts]),
        "claims": [_claim(claim) for claim in manifest.claims],
        "claim_note": counted_note(run, [claim.metric for claim in manifest.claims]),
        "comparisons": [_comparison(run, table) for table in manifest.comparisons],
        "table": _settings_table(run),
        "best": best_settings(run),
        "warnings": overlap_warnings(manifest.settings),
        "significance": [_significance(run, metric) for metric in main_metrics(run)],
        "remarks": manifest.remarks,
        "privacy": {"columns": COLUMNS, "cards": privacy_cards(_settings(run))},
        "details": details(run),
    }


def verdict_summary(verdicts: list[Verdict]) -> str:
    """ "11 of 12 reproduced, 1 off"."""
    if not verdicts:
        return ""
    states = [_state(verdict.verdict) for verdict in verdicts]
    reasons = Counter(verdict.verdict for verdict in verdicts if _state(verdict.verdict) == "open")
    rest = [f"{states.count('off')} off"] if "off" in states else []
    rest += [f"{count} without verdict ({reason})" for reason, count in reasons.items()]
    judged = [] if NOT_JUDGED in reasons else [f"{states.count('good')} of {len(states)} reproduced"]
    return ", ".join([*judged, *rest])


def _state(verdict: str) -> str:
    return "good" if verdict == "reproduced" else "off" if verdict.startswith("off") else "open"


def _settings(run: Run) -> list[SettingRecord]:
    return run.manifest.settings


def _size(run: Run) -> str:
    """ "6 settings, 10 runs each, 50 rounds a run"."""
    settings = _settings(run)
    words = [_count(len(settings), "setting")]
    for key, noun, many in (("runs", "run", "each"), ("rounds", "round", "a run")):
        found = sorted({value for setting in settings if (value := getattr(setting, key))})
        if found:
            counted = _count(found[0], noun) if len(found) == 1 else f"{found[0]:,} to {found[-1]:,} {noun}s"
            words.append(counted if key == "runs" and len(settings) == 1 else f"{counted} {many}")
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


def _verdict(verdict: Verdict) -> dict[str, Any]:
    return {
        **{key: getattr(verdict, key) for key in ("what", "data", "source", "tolerance", "verdict")},
        "state": _state(verdict.verdict),
        "published": number(verdict.published),
        "ours": mean_sd(verdict.ours, verdict.sd, verdict.runs),
        "other": other_words(verdict.other, verdict.empty),
        "runs": number(verdict.runs),
    }


def _claim(claim: Claim) -> dict[str, Any]:
    state, words = CLAIM_STATES[claim.holds]
    return {"claim": claim.claim, "evidence": claim.evidence, "state": state, "words": words}


def _comparison(run: Run, table: ComparisonTable) -> dict[str, Any]:
    """Titles read "A against B", which names the two columns."""
    left, _, right = table.title.partition(" against ")
    rows = [_compared(row) for row in table.rows]
    names = {"title": table.title, "left": left if right else "left", "right": right or "right"}
    note = counted_note(run, [table.metric])
    return {**names, "rows": rows, "note": note, "differ": sum(row["differs"] for row in rows)}


def _compared(row: ComparisonRow) -> dict[str, Any]:
    published = row.published_mark
    return {
        "setting": row.setting,
        "note": row.note,
        "numbers": _numbers(row.left, row.right, row.difference),
        "p": [p_value(row.p), p_value(row.corrected_p)],
        "runs": number(row.runs),
        "pairs": f"{number(row.pairs)} {row.unit}" if row.unit else NO_MARK,
        "mark": row.mark or NO_MARK,
        "published_mark": "–" if published is None else published or NO_MARK,
        "differs": published is not None and row.mark != published,
    }


def _numbers(left: float | None, right: float | None, between: float | None) -> list[str]:
    return [number(left), number(right), difference(between, left)]


def _settings_table(run: Run) -> dict[str, Any]:
    table = settings_table(run, None if len(metrics_of(run)) <= _WIDEST else main_metrics(run))
    titled = any(setting.title for setting in _settings(run)) or not table.keys
    keys, metrics = [KEY_NAMES.get(key, key) for key in table.keys], [metric_name(m) for m in table.metrics]
    note = counted_note(run, table.metrics)
    return {"titled": titled, "keys": keys, "metrics": metrics, "rows": table.rows, "note": note}


_WIDEST = 40  # metrics; beyond that the table shows the main ones, and rows.parquet has them all


def _significance(run: Run, metric: str) -> dict[str, Any]:
    names = {setting.index: setting_name(setting) for setting in _settings(run)}
    tests = significance(run, metric)
    rows = [
        {
            "setting": names[test.setting],
            "baseline": names[test.baseline],
            "numbers": [*_numbers(test.paired.left, test.paired.right, test.paired.difference)],
            "half_width": number(half_width(test.paired), decimals(test.paired.left)),
            "p": [p_value(test.paired.p), p_value(test.corrected_p)],
            "pairs": over_words(test.paired),
            "mark": mark(test) or NO_MARK,
        }
        for test in tests
    ]
    left_out = {reason: [names[index] for index in settings] for reason, settings in untested(run, tests).items()}
    words = " ".join(filter(None, [method(tests), counted_note(run, [metric])]))
    return {"metric": metric_name(metric), "rows": rows, "method": words, "untested": left_out}


NO_MARK = "·"
CLAIM_STATES = {
    True: ("good", "✓ holds"),
    False: ("off", "✗ does not hold"),
    None: ("open", "? not decided"),
}


def data_facts(run: Run) -> list[dict[str, Any]]:
    """Each data set once: name, whether it is synthetic, size, checksum."""
    return [_data_set(data) for data in data_sets(run.manifest.settings)]


def _data_set(data: Data) -> dict[str, Any]:
    facts = [f"{number(size)} {key}" for key in SIZES if (size := getattr(data, key)) is not None]
    if data.normalize:
        facts.append(f"normalize {data.normalize}")
    return {
        "name": data_name(data),
        "synthetic": is_synthetic(data),
        "facts": ", ".join(facts),
        "checksum": data.checksum or "none recorded",
    }


def details(run: Run) -> dict[str, Any]:
    """The content of the folded sections."""
    manifest = run.manifest
    facts = [("run", manifest.run), ("commit", manifest.commit or "not recorded")]
    facts += manifest.versions.items()
    facts += [(name.replace("_gb", " (GB)"), value) for name, value in manifest.machine.items()]
    facts += [(name, at) for name in ("started", "finished") if (at := getattr(manifest, name))]
    settings = manifest.settings
    return {
        "facts": facts + _took(manifest, settings),
        "times": [[setting_name(s), number(s.interactions), duration(s.seconds)] for s in settings],
        "toml": manifest.spec_toml,
        "spec": dump_json(manifest.spec),
    }


def _took(manifest: Manifest, settings: list[SettingRecord]) -> list[tuple[str, str]]:
    """Durations; reused single runs count only in the sum of single runs."""
    took = []
    with contextlib.suppress(ValueError):
        started, finished = map(datetime.datetime.fromisoformat, (manifest.started, manifest.finished))
        took.append(("this call took", duration((finished - started).total_seconds())))
    of_parts: dict[str, float] = {}
    for setting in settings:
        part = setting.label.get("part", "all settings")
        of_parts[part] = of_parts.get(part, 0.0) + setting.seconds
    return took + [(f"time of single runs, {part}", duration(seconds)) for part, seconds in of_parts.items()]


SIZES = ("queries", "documents", "features", "grades")
