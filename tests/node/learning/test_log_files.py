"""The log as files: an export has everything that was logged, and UBI what its schemas require."""

import base64
import json

import msgspec
import numpy as np
import pytest
from logged_lists import NAMES, NOW, chosen, impression, keys

from foltr.node.learning import erasure, versions
from foltr.node.learning.log import FORGOTTEN, Log
from foltr.node.learning.log_files import export_lines, object_id, ubi_events, ubi_queries
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


def test_an_export_has_every_list_with_its_choices(log):
    lines = [json.loads(line) for line in filled(log)]
    assert lines[0] == {"type": "header", "format": "foltr-log", "version": 1}
    lists = [line for line in lines if line["type"] == "impression"]
    assert [line["query"] for line in lists] == ["query 0", "query 1", "query 2", None, "query 9"]
    assert lists[-1]["documents"] == ["/a/\udcff.txt", "/mail\0" + "3"]
    assert lists[-1]["propensities"] == [1.0, 0.5]
    for number, line in zip((0, 1, 2, 3, 9), lists, strict=True):
        shape = len(line["scores"]), len(line["feature_names"])
        features = np.frombuffer(base64.b64decode(line["features"]), "<f4").reshape(shape)
        assert line["feature_names"] == list(NAMES)
        assert features.tolist() == impression(number).features[: shape[0]].astype("<f4").tolist()
    choices = [line for line in lines if line["type"] == "choice"]
    assert [(line["impression"], line["position"], line["withdrawn"]) for line in choices] == [
        (lists[0]["id"], 0, 0), (lists[1]["id"], 1, 0), (lists[2]["id"], 2, FORGOTTEN), (lists[3]["id"], 3, 0)
    ]  # fmt: skip
    assert lines[-2] == {"type": "memory", "typed": "from before", "document": "/old/machine.txt", "time": NOW}
    assert lines[-1]["weights"]["features"] == list(msgspec.to_builtins(start_weights().features))


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
