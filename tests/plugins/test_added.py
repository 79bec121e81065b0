"""The format, the feature and the page of CONTRIBUTING.md, added to a copy of the package and used there."""

import datetime
import json
import re
import select
import subprocess
import sys

import httpx
import pytest
from shown import TASKS, Changed, edits, section

import foltr.node
from foltr.node.page import sign_ins
from foltr.node.page.security import HEADERS

CALENDAR = """BEGIN:VCALENDAR
VERSION:2.0
BEGIN:VEVENT
DTSTART:20240603T100000Z
SUMMARY;LANGUAGE=en;ALTREP="cid:part1":Dentist\\, upper jaw
LOCATION:12 Baker
  Street
DESCRIPTION:bring the form\\nand the insurance card
END:VEVENT
END:VCALENDAR
"""
SEARCHING = """
import json, sys
import foltr.node

home, folder, query = sys.argv[1:]
with foltr.node.open(home) as node:
    node.add([folder])
    last = list(node.index())[-1]
    results = node.search(query)
    rows = [[row.title, row.kind, row.date, row.score, {c.feature: c.points for c in node.explain(results, row.id)}]
            for row in results.rows]
    if rows:
        node.choose(results, results.rows[0].id)
    status = node.status()
    print(json.dumps({"rows": rows, "states": {state: n for state, n in status.states.items() if n},
                      "confinement": status.confinement,
                      "package": foltr.node.__file__}))
"""


@pytest.fixture
def changed(tmp_path):
    return lambda heading: Changed(tmp_path / "copy", heading)


def searched(copy, tmp_path, query):
    found = json.loads(copy.run("-c", SEARCHING, str(tmp_path / "home"), str(tmp_path / "documents"), query))
    assert found["package"].startswith(str(copy.folder))
    return found


@pytest.mark.parametrize(("heading", "files"), TASKS.items(), ids=TASKS)
def test_a_change_touches_as_many_files_as_it_says(changed, heading, files):
    copy = changed(heading)
    assert len([path for path in copy.paths if path.startswith("src/")]) == files
    assert f"Files: {files}, and " in section(heading)
    python = [path for path in copy.paths if path.endswith(".py")]
    if heading != "A page":
        assert python
    copy.run("-m", "ruff", "check", "--no-cache", *python)
    copy.run("-m", "ruff", "format", "--no-cache", "--check", *python)


def test_the_format_is_indexed_inside_the_sandbox_and_found_by_its_kind(changed, tmp_path):
    (tmp_path / "documents").mkdir()
    (tmp_path / "documents" / "june.ics").write_text(CALENDAR)
    (tmp_path / "documents" / "torn.ics").write_bytes(b'DTSTART:99999999\nSUMMARY;X="' + b"\\" * 10_000)
    (tmp_path / "documents" / "letter.txt").write_text("the dentist wrote a letter about the insurance")
    copy = changed("A document format")
    found = searched(copy, tmp_path, "baker street insurance type:calendar")
    assert found["states"] == {"indexed": 3}
    ((title, kind, date, *_),) = found["rows"]
    assert (title, kind) == ("Dentist, upper jaw", "calendar")
    assert date == datetime.datetime(2024, 6, 3, 10, tzinfo=datetime.UTC).timestamp()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no seccomp and no Landlock")
def test_the_reader_of_the_format_opens_no_file(changed, tmp_path):
    (tmp_path / "documents").mkdir()
    (tmp_path / "documents" / "june.ics").write_text(CALENDAR)
    copy = changed("A document format")
    reader = copy.folder / "src/foltr/node/extract/icalendar.py"
    first_line = '    """Titles, places and descriptions of the events of a calendar."""\n'
    text = reader.read_text()
    assert text.count(first_line) == 1
    reader.write_text(text.replace(first_line, first_line + f"    open({str(reader)!r}).read()\n"))
    found = searched(copy, tmp_path, "dentist")
    assert found["states"] == {"failed": 1}
    assert found["confinement"] != "limits on memory and time only: this system lacks the rest"


def test_the_feature_ranks(changed, tmp_path):
    folder = tmp_path / "documents"
    folder.mkdir()
    (folder / "a.md").write_text("# Old garden plan\n\nwater the trees\n")
    (folder / "b.md").write_text("# Garden plan of last year\n\nwater the trees\n")
    (folder / "c.md").write_text("# Another plan\n\nnot about the garden\n")
    with foltr.node.open(tmp_path / "before") as node:
        node.add([folder])
        list(node.index())
        assert [row.title[:3] for row in node.search("garden plan").rows] == ["Old", "Gar", "Ano"]
    rows = searched(changed("A ranking feature"), tmp_path, "garden plan")["rows"]
    assert [title[:3] for title, *_ in rows] == ["Gar", "Old", "Ano"]
    assert [points["title_begins"] for *_, points in rows] == [2.0, 0.0, 0.0]
    for *_, score, points in rows:
        assert score == pytest.approx(sum(points.values()))


def test_the_feature_equals_its_slow_oracle(changed):
    copy = changed("A ranking feature")
    oracle_test = "tests/text/test_matching.py::test_every_feature_equals_brute_force_over_the_raw_text[1-False]"
    command = ("-m", "pytest", "--quiet", "-p", "no:cacheprovider", oracle_test)
    copy.run(*command)
    oracle = copy.folder / "tests/text/brute_force.py"
    ((_, before, after),) = (edit for edit in edits(section("A ranking feature")) if edit[0].startswith("tests/"))
    oracle.write_text(oracle.read_text().replace(after, before))
    with pytest.raises(AssertionError, match="title_begins"):
        copy.run(*command)


def test_the_page_is_served_with_the_headers_to_nobody_but_its_person(changed, tmp_path):
    folder = tmp_path / "documents"
    folder.mkdir()
    (folder / "<b>tax.txt").write_text("tax of the year")
    copy = changed("A page")
    searched(copy, tmp_path, "tax")  # opens what it finds
    server = subprocess.Popen(
        [sys.executable, "-u", "-m", "foltr", "node", "serve", "--no-browser", "--port", "0"], stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, cwd=copy.folder, env=copy.environment(FOLTR_NODE_HOME=str(tmp_path / "home")),
    )  # fmt: skip
    try:
        assert select.select([server.stdout], [], [], 60)[0]
        line = server.stdout.readline().decode()
        assert "http" in line, line + server.stdout.read().decode()
        address = re.search(r"http\S+", line)[0].rstrip("/")
        with httpx.Client(base_url=address, follow_redirects=True) as browser:
            stranger = browser.get("/opened")
            browser.get("/", params={"token": sign_ins.mint(tmp_path / "home" / "data" / "page")})
            answer = browser.get("/opened")
    finally:
        server.terminate()
        server.wait(30)
        server.stdout.close()
    assert stranger.status_code == 401
    assert "tax" not in stranger.text
    assert answer.status_code == 200
    assert "&lt;b&gt;tax.txt" in answer.text
    assert '<a href="/opened" aria-current="page">Opened</a>' in answer.text
    for response in (stranger, answer):
        assert {name: response.headers[name] for name in HEADERS} == dict(HEADERS)
