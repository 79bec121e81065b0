"""The page says what it should, escapes what it is given, loads nothing, and stands on partial runs."""

import math
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import polars as pl
import pytest

from foltr.errors import InputError, StorageError
from foltr.lab.records import Verdict
from foltr.lab.reporting.page import verdict_summary, write_page

VOID = {"meta", "link", "br", "img", "hr", "input"}


class Outline(HTMLParser):
    """Text, identifiers, references; and that every element is closed where it should be."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.text, self.ids, self.references, self.open = [], [], [], []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        if tag not in VOID:
            self.open.append(tag)
        self.handle_startendtag(tag, attributes)

    def handle_startendtag(self, tag, attributes):
        assert tag not in {"script", "iframe", "img", "object", "embed"}
        for name, value in attributes:
            if name == "id":
                self.ids.append(value)
            if name in {"src", "href", "xlink:href", "srcset", "data", "action", "poster"}:
                self.references.append(value)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def page_of(tmp_path: Path, *runs: Path, title: str | None = None) -> str:
    return write_page(list(runs), tmp_path / "page.html", title=title).read_text(encoding="utf-8")


def words(page: str) -> str:
    return " ".join(" ".join(Outline(page).text).split())


def test_every_number_of_a_reproduced_figure_is_there(make_run, full, tmp_path):
    text = words(page_of(tmp_path, make_run(**full)))
    for part in (
        "FPDGD with privacy on MQ2007",
        "mq2007 (85 % sample)",
        "6 settings, 10 runs each, 50 rounds a run, full form of fpdgd/table2",
        "What does privacy cost in online performance?",
        "5 of 6 reproduced, 1 off",
        "296.0",
        "304.1 ± 1.2",
        "311.2 ± 1.2",
        "✗ off by +5.1 %",
        "✓ reproduced",
        "✓ holds",
        "✗ does not hold",
        "? not decided",
        "0.412 against 0.398",
        "FPDGD against FOLtR-ES",
        "−13.9",
        "< .001",
        ".120",
        "1 of 2 signs differ",
        "sign differs : our FOLtR-ES ends higher",
        "Holm's correction for 4 comparisons",
        "one common factor near 1.03",
        "Nominal ε: the value of the paper's formula",
        "The paper's formula gives ε = 4.5 for one round",
        "foltr reproduce fpdgd/table2",
        'name = "FPDGD with privacy on MQ2007"',
        '"clients": 1000',
        "sha256:0123abcd",
        "1,692 queries, 59,135 documents, 46 features, 3 grades, normalize none",
        "3.11.7",
        "abc123",
        "Linux x86_64",
        "2026-11-15T21:42:00Z",
        "200,000",
    ):
        assert part in text, part
    assert "quick" not in text
    assert "synthetic" not in text


def test_means_of_the_rows_are_on_the_page(make_run, tmp_path):
    folder = make_run()
    rows = pl.read_parquet(folder / "rows.parquet")
    last = rows.filter((pl.col("metric") == "offline_ndcg@10") & (pl.col("round") == 50))
    text = words(page_of(tmp_path, folder))
    for setting in range(6):
        values = last.filter(pl.col("setting") == setting)["value"]
        assert f"{values.mean():.4f} ± {values.std():.4f}" in text


def test_nothing_is_loaded_and_no_identifier_repeats(make_run, full, tiny_run, tmp_path):
    page = page_of(tmp_path, make_run(**full), tiny_run)
    outline = Outline(page)
    assert all(reference.startswith(("#", "data:")) for reference in outline.references)
    assert all(target.startswith("#") for target in re.findall(r"url\(([^)]*)\)", page))
    assert "@import" not in page
    assert "http" not in page
    assert len(outline.ids) == len(set(outline.ids))
    assert {r[1:] for r in outline.references if r.startswith("#")} <= set(outline.ids)


def test_same_runs_give_the_same_bytes(make_run, full, tmp_path):
    folder = make_run(**full)
    assert page_of(tmp_path, folder) == page_of(tmp_path, folder)


def test_everything_is_escaped(make_run, full, tmp_path):
    evil = "<script>alert('x')</script>\"&"
    full["verdicts"][0]["what"] = full["claims"][0]["claim"] = full["remarks"][0] = evil
    full["figure"]["question"] = full["figure"]["published"][0]["series"] = evil
    full["comparisons"][0]["title"] = full["comparisons"][0]["rows"][0]["note"] = evil
    folder = make_run(**full, name=evil, spec_toml=evil, commit=evil, spec={evil: evil})
    page = page_of(tmp_path, folder)
    assert "<script" not in page  # and Outline refuses script elements
    assert words(page).count("alert('x')") >= 10


def test_the_page_says_how_long_it_took(make_run, parts, tmp_path):
    text = words(page_of(tmp_path, make_run()))
    assert "this call took 2 min 00 s" in text
    assert "time of single runs, all settings 1 min 14 s" in text  # six settings of 12.3 s
    named = [{**one, "label": {**one["label"], "part": "AB"[one["index"] % 2]}} for one in parts.settings()]
    text = words(page_of(tmp_path, make_run("other", settings=named, started="at noon")))
    assert "this call took" not in text
    assert "time of single runs, A 36.9 s time of single runs, B 36.9 s" in text


def test_synthetic_and_quick_are_badges(make_run, parts, tmp_path):
    made_up = parts.setting(0, {}, data={**parts.data, "name": "synthetic-mq2007", "note": "embedded"})
    page = page_of(tmp_path, make_run(settings=[made_up], quick=True))
    assert '<span class="badge">synthetic data</span>' in page
    assert re.search(r'<span class="badge">quick form: [^<]*not comparable with the papers</span>', page)
    assert "1 setting, 10 runs, 50 rounds a run" in words(page)


def test_verdict_summary_counts():
    def verdicts(*found: str) -> list[Verdict]:
        return [Verdict("", 1.0, verdict) for verdict in found]

    assert verdict_summary(verdicts(*["reproduced"] * 11, "off by +5.1 %")) == "11 of 12 reproduced, 1 off"
    assert verdict_summary(verdicts("reproduced", "reproduced")) == "2 of 2 reproduced"
    assert verdict_summary(verdicts("data missing")) == "0 of 1 reproduced, 1 without verdict (data missing)"
    assert verdict_summary([]) == ""


FORMS = {
    "metric": "offline_ndcg@10",
    "metrics": ["offline_ndcg@10"],
    "columns": "users.clicks",
    "lines": ["privacy.epsilon"],
    "trend": {"x": "privacy.epsilon", "metrics": ["offline_ndcg@10", "offline_mrr@10"], "y": "quality & <b>"},
    "tables": [
        {
            "title": "Ends & <b>",
            "corner": "nDCG@10",
            "rows": ["offline", "online"],
            "columns": ["ndcg", "mrr"],
            "cell": "{row}_{column}@10",
            "bold": "row",
        }
    ],
    "scatter": {"x": "online_max_rr", "y": "discounted_online_ndcg", "grade": "offline_mrr@10", "name": "axes & <b>"},
}


def test_trends_tables_and_scatters_stand_on_one_page(make_run, tmp_path):
    folder = make_run(figure=FORMS)
    page = page_of(tmp_path, folder)
    outline, text = Outline(page), words(page)
    for part in (
        "Quality & <b> on mq2007 (85 % sample). Point: mean over 10 runs",
        "Ends & <b> (10 runs)",
        "On mq2007 (85 % sample): mean ± standard deviation over runs. Bold: the highest mean of its row.",
        "Axes & <b> on mq2007 (85 % sample). Filled circles: relevant",
        "The first of 10 runs in each panel.",
    ):
        assert part in text, part
    assert page.count("<figure>") == 2
    assert page.count("<caption>") == 6  # a table a setting
    assert re.search(r"<strong>0\.\d{4} ± 0\.\d{4}</strong>", page)
    assert "online performance" not in text  # places of points are no results
    assert len(outline.ids) == len(set(outline.ids))
    assert page == page_of(tmp_path, folder)


def test_forms_of_what_was_not_measured_do_no_harm(make_run, parts, tmp_path):
    trend = {"x": {"nowhere": "privacy.epsilon"}, "name": {"nowhere": "epsilon"}}
    nothing = {**FORMS, "trend": trend, "scatter": dict.fromkeys(("x", "y", "grade"), "never")}
    rows = parts.rows_of(parts.settings()).filter(~pl.col("metric").is_in(["offline_ndcg@10", "offline_mrr@10"]))
    nothing["tables"] = [{**FORMS["tables"][0], "cell": "never, {row}, {column}"}]
    text = words(page_of(tmp_path, make_run(rows=rows, figure=nothing)))
    assert "Ends" not in text
    assert "No learning curve" in text


def test_a_page_of_tables_alone_misses_no_curve(make_run, parts, tmp_path):
    last = pl.col("round") == 50
    asked = {key: FORMS[key] for key in ("metric", "metrics", "tables")}
    text = words(page_of(tmp_path, make_run(rows=parts.rows_of(parts.settings()).filter(last), figure=asked)))
    assert "Ends & <b> (10 runs)" in text
    assert "curve" not in text


def test_two_runs_on_one_page(make_run, tiny_run, tmp_path):
    first, second = tiny_run, make_run("second")
    page = page_of(tmp_path, first, second)
    assert page.count("<section") == 2
    assert 'href="#run-1"' in page
    assert "<h1>2 runs</h1>" in page
    assert "<h1>Both</h1>" in page_of(tmp_path, first, first, title="Both")


def test_one_setting_with_one_run(make_run, parts, tmp_path):
    alone = [parts.setting(0, {}, privacy={}, runs=1)]
    text = words(page_of(tmp_path, make_run(settings=alone, rows=parts.rows_of(alone, folds=1, seeds=1))))
    assert "One run a line: no band." in text
    assert "the only setting" in text
    assert "Significance" not in text
    assert "Privacy" not in text


def test_single_runs_of_several_settings_have_no_test(make_run, parts, tmp_path):
    text = words(page_of(tmp_path, make_run(rows=parts.rows_of(parts.settings(), folds=1, seeds=1))))
    assert "Significance" not in text


def test_no_offline_rows(make_run, parts, tmp_path):
    text = words(page_of(tmp_path, make_run(rows=parts.rows_of(parts.settings(), offline=False))))
    assert "offline" not in text
    assert "Online nDCG@10 on mq2007" in text


def test_values_that_are_not_numbers(make_run, parts, full, tmp_path):
    rows = parts.rows_of(parts.settings())
    broken = (pl.col("setting") == 1) & (pl.col("metric") == "offline_ndcg@10")
    rows = rows.with_columns(value=pl.when(broken).then(math.nan).otherwise("value"))
    full["verdicts"][0] |= {"ours": math.nan, "sd": None, "runs": 0, "verdict": "data missing"}
    full["comparisons"][0]["rows"][0] |= {"p": None, "corrected_p": math.nan, "left": None}
    page = page_of(tmp_path, make_run(rows=rows, **full))
    assert "nan" not in words(page).lower()
    assert "? data missing" in page


@pytest.mark.parametrize("stored", [0, 2])
def test_rows_of_no_or_few_settings(make_run, parts, tmp_path, stored: int):
    rows = parts.rows_of(parts.settings()).filter(pl.col("setting") < stored)
    text = words(page_of(tmp_path, make_run(rows=rows)))
    assert ("No learning curve" in text) == (stored == 0)


def test_the_barest_manifest(tiny_run, tmp_path):
    (tiny_run / "manifest.json").write_text("{}")
    assert "unnamed data" in words(page_of(tmp_path, tiny_run))


def test_a_page_that_cannot_be_written_leaves_nothing(tiny_run, tmp_path):
    (tmp_path / "taken").mkdir()
    with pytest.raises(StorageError, match="taken: cannot be written"):
        write_page([tiny_run], tmp_path / "taken")
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot be written"):
        write_page([tiny_run], tmp_path / "file" / "page.html")
    assert {path.name for path in tmp_path.iterdir()} == {"tiny", "taken", "file"}


def test_an_old_page_survives_a_full_disk(tiny_run, tmp_path, monkeypatch):
    out = tmp_path / "page.html"
    out.write_text("old")

    def full_disk(*_: object, **__: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full_disk)
    with pytest.raises(StorageError, match="the disk is full"):
        write_page([tiny_run], out)
    assert out.read_bytes() == b"old"


def test_new_folders_are_made(tiny_run, tmp_path):
    out = tmp_path / "a" / "b" / "page.html"
    assert write_page([tiny_run], out) == out
    assert [path.name for path in out.parent.iterdir()] == ["page.html"]


def test_what_is_missing_is_said(tiny_run, tmp_path, monkeypatch):
    with pytest.raises(InputError, match="at least one run"):
        write_page([], tmp_path / "page.html")
    with pytest.raises(StorageError, match="not a finished run"):
        write_page([tmp_path / "nowhere"], tmp_path / "page.html")
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(InputError, match=r"pip install 'foltr\[report\]'"):
        write_page([tiny_run], tmp_path / "page.html")
