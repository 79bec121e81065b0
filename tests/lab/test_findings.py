"""Tables of the documents say which queries an offline mean counts, and how to get the mean over all."""

import re
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
DOCUMENTS = [PROJECT / "README.md", *sorted((PROJECT / "docs").glob("*.md"))]
OFFLINE = re.compile(r"(?<!online )nDCG@10|offline MRR")
COUNTED = re.compile(r"\d of [\d,]+(?: queries)?; over all (?:about )?x \.\d|all test queries have a relevant document")


def headers(text):
    """First rows of tables."""
    return re.findall(r"(?m)^(\|.*\|)\n\|[-| :]+\|$", text)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_tables_of_offline_means_say_what_they_count(document):
    found = [row for row in headers(document.read_text(encoding="utf-8")) if OFFLINE.search(row)]
    assert [row for row in found if not COUNTED.search(row)] == []


def test_the_findings_have_such_tables():
    text = (PROJECT / "docs" / "findings.md").read_text(encoding="utf-8")
    assert sum(bool(OFFLINE.search(row)) for row in headers(text)) > 20


TEXTS = {path.name: path.read_text(encoding="utf-8") for path in DOCUMENTS}


@pytest.mark.parametrize("name", ["README.md", "findings.md"])
def test_sketches_are_not_called_fast_without_what_they_miss_at_the_papers_size(name):
    paragraphs = [part for part in re.split(r"\n(?=\d\. |#)", TEXTS[name]) if "silo/speed" in part]
    assert paragraphs
    assert all("recall" in part and re.search(r"miss\s+half", part) for part in paragraphs)


@pytest.mark.parametrize("name", TEXTS)
def test_pooled_training_is_nowhere_an_upper_bound(name):
    claims = re.findall(r"(?i)[^.|]*\bpooled\b[^.|]*\bupper bound\b", TEXTS[name])
    assert [claim for claim in claims if "no upper bound" not in claim] == []


@pytest.mark.parametrize("name", TEXTS)
def test_local_plus_stands_where_regimes_are_compared(name):
    tables = [row for row in headers(TEXTS[name]) if "| Local |" in row and "| CS-F-LTR |" in row]
    assert all("| Local+ |" in row for row in tables)


def test_defaults_of_a_spec_are_not_called_the_papers_values():
    assert not any("Defaults are the papers' values" in text for text in TEXTS.values())
