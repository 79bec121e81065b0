"""The log as files: an export comes back as it was, and hostile files change nothing."""

import base64
import json

import numpy as np
import pytest
from logged_lists import NAMES, NOW, chosen, impression, keys

from foltr.errors import DataError
from foltr.node.learning import erasure, versions
from foltr.node.learning.log import FORGOTTEN, Log
from foltr.node.learning.log_files import export_lines, import_lines, object_id, ubi_events, ubi_queries
from foltr.node.learning.memory import Use
from foltr.node.learning.versions import start_weights


@pytest.fixture
def log(tmp_path):
    with Log(tmp_path / "log.db") as opened:
        yield opened


@pytest.fixture
def other(tmp_path):
    with Log(tmp_path / "other" / "log.db") as opened:
        yield opened


def filled(log):
    for number in range(4):
        chosen(log, number, place=number)
    log.record(impression(9, documents=["/a/\udcff.txt", "/mail\0" + "3"], propensities=np.array([1.0, 0.5])))
    log.forget_choice("query 2", keys(2)[2])
    erasure.scrub(log, documents=[keys(3)[3]])
    log.remember([Use("from before", "/old/machine.txt", NOW)])
    versions.adopt(log, start_weights())
    return list(export_lines(log))


def test_an_export_comes_back_as_it_was(log, other):
    lines = filled(log)
    result = import_lines(other, lines, where="file")
    assert (result.impressions, result.choices, result.skipped, result.weights) == (5, 5, 0, True)
    assert [one._replace(impression=0, choices=()) for one in other.history()] == [
        one._replace(impression=0, choices=()) for one in log.history()
    ]
    for mine, theirs in zip(log.interactions(NAMES), other.interactions(NAMES), strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(mine, theirs, strict=True))
    for query in ("query 0", "query 1", "query 2", "query 3", "from before"):
        assert other.lookup(query, NOW) == log.lookup(query, NOW)
    assert other.openings(NOW) == log.openings(NOW)
    assert versions.serving(other).current.features == versions.serving(log).current.features


def test_importing_twice_changes_nothing(log, other):
    lines = filled(log)
    import_lines(other, lines, where="file")
    before = list(export_lines(other))
    again = import_lines(other, [line for line in lines if '"weights"' not in line], where="file")
    assert (again.impressions, again.choices, again.skipped) == (0, 0, 6)
    assert list(export_lines(other)) == before


def changed(line, **values):
    return json.dumps(json.loads(line) | values)


HOSTILE = {
    "no JSON": lambda line: "{",
    "a number": lambda line: "17",
    "deeply nested": lambda line: "[" * 100_000,
    "an unknown kind": lambda line: changed(line, type="rowid"),
    "an unknown key": lambda line: changed(line, extra=1),
    "a missing key": lambda line: json.dumps({"type": "impression"}),
    "NaN": lambda line: line.replace('"time": 1', '"time": NaN, "x": 1'),
    "a time of the far future": lambda line: changed(line, time=1e300),
    "a negative time": lambda line: changed(line, time=-5.0),
    "a huge integer": lambda line: line.replace('"id": ', '"id": 1' + "0" * 5000),
    "no base64": lambda line: changed(line, features="***"),
    "too few features": lambda line: changed(line, features=base64.b64encode(b"\0" * 8).decode()),
    "odd bytes": lambda line: changed(line, features=base64.b64encode(b"\0" * 7).decode()),
    "infinite features": lambda line: changed(
        line, features=base64.b64encode(np.full(36, np.inf, dtype="<f4").tobytes()).decode()
    ),
    "a long query": lambda line: changed(line, query="x" * 100_000),
    "a long path": lambda line: changed(line, documents=["/" + "x" * 100_000, "/b", "/c", "/d", "/e"]),
    "an empty path": lambda line: changed(line, documents=["", "/b", "/c", "/d", "/e"]),
    "the same document twice": lambda line: changed(line, documents=["/b", "/b", "/c", "/d", "/e"]),
    "more shown than candidates": lambda line: changed(line, documents=[f"/{i}" for i in range(50)]),
    "too many candidates": lambda line: changed(line, scores=[0.0] * 100_000),
    "text instead of scores": lambda line: changed(line, scores="0.1"),
    "a choice before its list": lambda line: json.dumps(
        {"type": "choice", "impression": 7, "position": 0, "time": 1.0}
    ),
    "a second header": lambda line: json.dumps({"type": "header", "format": "foltr-log", "version": 1}),
    "weights that are infinite": lambda line: json.dumps(
        {
            "type": "weights",
            "weights": {
                "version": 1,
                "kind": "linear",
                "from": 0,
                "features": [{"name": "bm25", "scaling": "range", "weight": 1e308}],
            },
        }
    ),
    "weights of nothing": lambda line: json.dumps(
        {
            "type": "weights",
            "weights": {"version": 1, "kind": "linear", "from": 0, "features": []},
        }
    ),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_broken_line_refuses_the_file_with_its_number(log, other, kind):
    for number in range(3):
        chosen(log, number)
    lines = list(export_lines(log))
    assert json.loads(lines[3])["type"] == "impression"
    broken = [*lines[:3], HOSTILE[kind](lines[3]), *lines[4:]]
    with pytest.raises(DataError, match=r"memory\.jsonl, line 4: .*nothing was imported"):
        import_lines(other, broken, where="memory.jsonl")
    assert other.history() == []
    assert versions.versions(other) == []


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        ([], "is empty"),
        ([""], "line 1"),
        (['{"type": "header", "format": "other", "version": 1}'], "line 1: format 'other' 1"),
        (['{"type": "header", "format": "foltr-log", "version": 2}'], "line 1: format 'foltr-log' 2"),
        (['{"type": "memory", "typed": "a", "document": "/b", "time": 1.0}'], "line 1: expected the header"),
        (["\0\0\0"], "line 1"),
    ],
)
def test_a_file_that_is_no_export_is_refused(other, lines, complaint):
    with pytest.raises(DataError, match=complaint):
        import_lines(other, lines, where="file")


def test_a_choice_beyond_its_list_is_refused(log, other):
    chosen(log, 1)
    header, one, choice = export_lines(log)
    with pytest.raises(DataError, match=r"line 3: .*no place 100"):
        import_lines(other, [header, one, changed(choice, position=99)], where="file")
    with pytest.raises(DataError, match="line 3: list 1 comes twice"):
        import_lines(other, [header, one, one], where="file")


# ---- UBI 1.3.0, as its schemas require


def test_queries_and_events_are_those_of_ubi(log):
    first = chosen(log, 1, place=2, query="annual report")
    log.forget_choice("annual report", keys(1)[2])
    (query,), (event,) = map(json.loads, ubi_queries(log)), map(json.loads, ubi_events(log))
    assert query == {
        "application": "foltr-node", "query_id": f"foltr-node-{first}", "user_query": "annual report",
        "timestamp": "2027-01-15T08:00:01.000Z", "object_id_field": "path", "query_response_hit_ids": keys(1),
    }  # fmt: skip
    assert event == {
        "application": "foltr-node", "action_name": "click", "query_id": f"foltr-node-{first}",
        "timestamp": "2027-01-15T08:00:02.000Z",
        "event_attributes": {
            "object": {"object_id": keys(1)[2], "object_id_field": "path"}, "position": {"ordinal": 3},
            "withdrawn": True,
        },
    }  # fmt: skip


def test_every_event_names_a_hit_of_its_query(log):
    filled(log)
    hits = {one["query_id"]: one["query_response_hit_ids"] for one in map(json.loads, ubi_queries(log))}
    for event in map(json.loads, ubi_events(log)):
        attributes = event["event_attributes"]
        assert hits[event["query_id"]][attributes["position"]["ordinal"] - 1] == attributes["object"]["object_id"]


def test_object_ids_are_unicode_of_bounded_length():
    for key in ("/a/b.txt", "/a/\udcff", "/" + "x" * 4000, "/mail\0" + "3"):
        assert len(object_id(key).encode()) <= 256
    assert object_id("/mail\0" + "3") == "/mail#3"
    assert object_id(None) == "erased"
    assert FORGOTTEN == 2  # as files name it
