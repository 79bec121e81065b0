"""Wherever an offline metric is shown, the queries that it counts and the mean by the other choice stand beside it.

One small run of every kind goes through terminal, page and JSON. Synthetic data has test and validation queries without
a relevant document, so both means differ.
"""

import html
import io
import re

import pytest
from laboratory import write_clinics
from rich.console import Console

from foltr.lab.figures.claims import claims
from foltr.lab.figures.compare import comparisons, verdicts
from foltr.lab.records import FigureRecord, Matrix, MetricTable, is_offline
from foltr.lab.reporting.page import render, section
from foltr.lab.reporting.terminal import terminal_table, terminal_tests
from foltr.lab.runs.progress import _print_verdicts, _with, run_plan
from foltr.lab.runs.run import results
from foltr.lab.spec.parse import plan

NDCG = "offline_ndcg@10"
BASE = {
    "data": {"name": "synthetic-mq2007@60", "folds": "1-2"},
    "federation": {"clients": 4, "interactions": 4, "rounds": 6},
    "runs": {"seeds": 1},
}
TWO = {"users.clicks": ["perfect", "informational"]}
LEARNERS = {"learner.kind": ["pdgd", "foltr-es"]}
UNLEARNING = {"forget_clients": [0], "z": 1.5, "keep_every": 2, "local_steps": 2}
INTENTS = {
    "data": {"name": "synthetic-intents", "folds": "1"},
    "federation": {"clients": 4, "interactions": 5, "rounds": 4},
    "partition": {"kind": "intents", "shuffled": False},
    "sweep": {"personal.kind": ["none", "local_only"]},
}
KINDS = {
    "single": {**BASE},
    "sweep": {**BASE, "sweep": LEARNERS},
    "chosen on the validation part": {**BASE, "sweep": LEARNERS, "tune": "validation"},
    "as zero": {**BASE, "sweep": TWO, "metrics": {"empty": "zero"}},
    "skip beside zero": {**BASE, "sweep": {"metrics.empty": ["skip", "zero"]}},
    "listed metrics": {**BASE, "metrics": ["nDCG@5", "AP(rel=2)", "R(rel=2)@5"]},
    "clients of their own": INTENTS,
    "calibrated unlearning": {**BASE, "unlearning": {"method": "calibrated", **UNLEARNING}},
    "exact unlearning": {**BASE, "unlearning": {"method": "logs", **UNLEARNING}},
    "matrix": {**BASE, "sweep": {**TWO, "federation.aggregator": ["fedavg", "median"]}},
    "judged figure": {**BASE, "sweep": TWO},
    "cross-silo training": {
        "data": {"name": "clinics", "folds": 1},
        "silo": {"kind": "train", "parties": 2, "queries": 40, "top_k": 6},
        "runs": {"seeds": 1},
    },
}
FIGURES = {
    "matrix": FigureRecord(metric=NDCG, matrix=Matrix(["federation.aggregator"], [], ["users.clicks"])),
    "listed metrics": FigureRecord(
        metrics=["offline_nDCG@5"], tables=[MetricTable("By cut", "", ["offline"], ["nDCG@5"], "{row}_{column}")]
    ),
    "judged figure": FigureRecord(metric=NDCG, metrics=[NDCG]),
}
PERFECT, INFORMATIONAL = ({"users.clicks": name} for name in ("perfect", "informational"))
JUDGED = {
    "expected": [{"metric": NDCG, "by": ["users.clicks"], "rows": [["perfect", 0.4]], "tolerance": "4 %"}],
    "claim": [{"text": "more", "kind": "greater", "metric": NDCG, "left": PERFECT, "right": INFORMATIONAL}],
    "comparison": [
        {"title": "perfect against informational", "metric": NDCG, "left": {}, "right": {},
         "rows": [{"name": "users", "left": PERFECT, "right": INFORMATIONAL}]},
    ],
}  # fmt: skip
METRIC = re.compile(r"(?<![Oo]nline )\b(?:n?DCG|MRR|AP|RR|ERR|P|R)(?:\([a-z_=0-9]+\))?@?\d*")
VALUE = re.compile(r"(?<![\d.])[01]?\.\d{3,4}")
COUNTS = re.compile(r"\d of \d[\d,]*")
OTHER = re.compile(r"over all|if relevant")


@pytest.fixture(scope="module")
def runs(shelf, tmp_path_factory):
    """Kind -> its run, computed when it is first asked for."""
    made, data = {}, tmp_path_factory.mktemp("data")
    write_clinics(data / "clinics")
    with (
        (data / "clinics" / "queries.jsonl").open("a") as queries,
        (data / "clinics" / "qrels.tsv").open("a") as judged,
    ):
        for number in range(20):
            queries.write(f'\n{{"_id": "none{number}", "text": "any{number}"}}')
            judged.write(f"\nnone{number}\td{number}\t0")

    def run(kind):
        if kind not in made:
            out, extra = tmp_path_factory.mktemp("runs"), {"figure": FIGURES[kind]} if kind in FIGURES else {}
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("FOLTR_DATA", str(data))
                made[kind] = run_plan(plan(KINDS[kind]), out, jobs=1, quiet=True, extra=extra)
            if kind == "judged figure":
                known = {"verdicts": verdicts(made[kind], JUDGED, [])}
                made[kind] = _with(made[kind], **known, claims=claims(made[kind], JUDGED))
                made[kind] = _with(made[kind], comparisons=comparisons(made[kind], JUDGED))
        return made[kind]

    return run


def printed(*contents):
    file = io.StringIO()
    for content in contents:
        Console(file=file, width=80).print(content)
    return " ".join(file.getvalue().split())


def displays(run):
    """Name -> the text of everything that shows numbers: blocks of the page with their notes, and the terminal."""
    page = render([section(run, 0)]).split("<h3>Spec, data and versions</h3>")[0]
    page = re.sub(
        r"<svg.*?</svg>", " [picture] ", re.sub(r"<head.*?</head>", "", page, flags=re.DOTALL), flags=re.DOTALL
    )
    blocks = re.split(r"(?=<h3>)|(?=<figure>)|(?<=</figure>)", page)
    texts = [" ".join(html.unescape(re.sub(r"<[^>]*>", " ", block)).split()) for block in blocks]
    return {text[:60]: text for text in texts} | {"terminal": printed(terminal_table(run), terminal_tests(run))}


def shows_a_metric(text):
    return METRIC.search(text) and (VALUE.search(text) or "[picture]" in text)


def names_its_queries(text):
    return COUNTS.search(text) and OTHER.search(text)


@pytest.mark.parametrize("kind", KINDS)
def test_page_and_terminal_show_queries_and_both_means_beside_every_offline_metric(kind, runs):
    found = displays(runs(kind))
    showing = {name: text for name, text in found.items() if shows_a_metric(text)}
    assert "terminal" in showing
    assert len(showing) > 1
    assert {name: text for name, text in showing.items() if not names_its_queries(text)} == {}


@pytest.mark.parametrize("kind", KINDS)
def test_json_has_queries_and_both_means_of_every_offline_metric(kind, runs):
    needed, checked = {"queries", "relevant_queries", "skip", "zero"}, 0
    for one in results(runs(kind))["results"]:
        offline = {
            name: values
            for name, values in one["metrics"].items()
            if is_offline(name) or name.startswith(("nDCG@10, ", "nDCG, ", "ERR, "))
        }
        for name, values in {**offline, **one["clients"]}.items():
            assert needed <= values.keys(), name
            assert 0 < values["relevant_queries"] <= values["queries"], name
            assert values["zero"] <= values["skip"], name
            checked += 1
    assert checked


def test_the_mean_over_all_is_the_mean_over_relevant_queries_times_their_share(runs):
    """In one fold, for the metrics of the test part, of the validation part, of unlearning and of single clients."""
    for kind in ("calibrated unlearning", "clients of their own"):
        spec = {**KINDS[kind], "data": {**KINDS[kind]["data"], "folds": "1"}}
        (one, *_) = results(run_plan(plan(spec), runs(kind).dir.parent / "one", jobs=1, quiet=True))["results"]
        metrics = one["clients"] or {name: values for name, values in one["metrics"].items() if is_offline(name)}
        assert kind == "clients of their own" or {"honest", "attacked", "retrained", NDCG} <= metrics.keys()
        for name, values in metrics.items():
            share = values["relevant_queries"] / values["queries"]
            assert values["zero"] == pytest.approx(values["skip"] * share, abs=1e-9), name


def test_a_table_of_both_ways_says_which_setting_counts_how(runs):
    text = displays(runs("skip beside zero"))["terminal"]
    assert "counted in two ways, not to be compared" in text
    assert 'with metrics.empty = "skip" over the test queries with a relevant document' in text
    assert 'with metrics.empty = "zero" over all test queries' in text


def test_clients_are_shown_with_their_own_queries(runs):
    run = runs("clients of their own")
    (table,) = section(run, 0)["gains"]
    sizes = run.manifest.settings[0].clients
    assert [f"({relevant:,} of {tested:,} queries)" in name for name, (relevant, tested) in
            zip(table["clients"], sizes.values(), strict=True)] == [True] * 4  # fmt: skip


def test_verdicts_and_claims_of_a_figure_say_their_queries_in_a_terminal(runs, capsys):
    class Named:
        title, source = "figure", "S9"

    run = runs("judged figure")
    _print_verdicts(Console(width=80), Named, run, run.dir, [])
    text = " ".join(capsys.readouterr().out.split())
    assert "more: " in text
    assert names_its_queries(text)
