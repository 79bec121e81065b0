"""The story of the demo in small: the sum of the protocol moves the shared weights, and figures are what they say."""

import msgspec
import numpy as np
import pytest

from foltr.errors import InputError
from foltr.federation import coordinator
from foltr.lab.data.docstring_files import file_texts, write_docstrings
from foltr.lab.people import story
from foltr.lab.people.corpora import load_texts, subset
from foltr.lab.people.settings import Together
from foltr.lab.people.story import Begun, Ended, Indexed, Measured, StorySetting, run_story
from foltr.lab.people.weights import shipped, weights_for
from foltr.node.learning.versions import FEDERATED
from foltr.privacy.ledger_repair import inspect_ledger
from foltr.text.corpus import Document, Place, assemble

SMALL = StorySetting(people=4, seeds=(1001, 1002, 1003), rounds=2, clicks_a_round=3, tests=6)


@pytest.fixture(scope="module")
def texts():
    every = load_texts("docstrings")
    return subset(every, np.flatnonzero(every.folders < 60))


@pytest.fixture(scope="module")
def records(texts):
    return list(run_story(SMALL, texts))


def rounds(records):
    return [one for one in records if isinstance(one, Measured)]


def test_the_records_come_in_order(records):
    kinds = [type(one) for one in records]
    assert kinds == [Begun, *[Indexed] * 3, *[Measured] * 3, Ended]
    assert [one.seeds for one in records if isinstance(one, Indexed)] == [1, 2, 3]
    assert [(one.round, one.clicks) for one in rounds(records)] == [(0, 0), (1, 3), (2, 6)]


def test_the_start_is_bm25_and_the_gain_is_the_difference_to_it(records):
    first, *later = rounds(records)
    assert (first.learned, first.gain.mean, first.gain.error) == (first.bm25, 0.0, 0.0)
    assert all(one.gain.mean == pytest.approx(one.learned.mean - one.bm25.mean) for one in later)
    assert {(one.bm25, one.start_weights) for one in later} == {(first.bm25, first.start_weights)}
    assert first.counting == first.start_weights  # nothing was opened yet


def test_the_first_seed_is_a_deployed_federation_with_its_state_on_the_disk(texts, tmp_path):
    found = rounds(run_story(msgspec.structs.replace(SMALL, state=str(tmp_path)), texts))
    assert found[0].sent == found[0].numbers == 0
    for one in found[1:]:
        assert one.numbers == len(shipped().names)
        assert 8 * one.numbers < one.sent < 8 * one.numbers + 600  # one sealed vector and its signature
        assert one.received > 8 * one.numbers  # the ranker
    for person in range(SMALL.people):
        home = tmp_path / f"person-{person}"
        seen = inspect_ledger(home / "data" / "ledger", witness=home / "state" / "ledger")
        assert (sum(seen.counts.values()), seen.problem) == (SMALL.rounds, "")


def test_deployed_and_simulated_people_learn_the_same(texts, monkeypatch):
    deployed = rounds(run_story(SMALL, texts))
    real = story._group
    monkeypatch.setattr(story, "with_traffic", lambda rounds, _transport, traffic: simulated(rounds, traffic))

    def simulated(_rounds, traffic):
        for done in groups[0]:
            traffic.append((0, 0))
            yield done

    groups = []

    def group(*arguments, state):
        without = real(*arguments, state=None)
        groups.append(without.rounds)
        found = real(*arguments, state=state)
        return found._replace(engine=without.engine) if state else found

    monkeypatch.setattr(story, "_group", group)
    assert [one.learned for one in rounds(run_story(SMALL, texts))] == [one.learned for one in deployed]


def test_nothing_but_the_sum_moves_the_shared_weights(texts, monkeypatch):
    """A coordinator that gets zeros instead of the sum stays at BM25, whatever people click."""
    monkeypatch.setattr(story, "two_server_sum", lambda rows: np.zeros(rows.shape[1]))
    monkeypatch.setattr(coordinator.ring, "decode", lambda totals, _ring: np.zeros(totals.shape))
    found = rounds(run_story(SMALL, texts))
    assert {one.learned for one in found} == {found[0].bm25}


def test_the_same_seeds_tell_the_same_story_although_masks_differ(texts, records):
    again = rounds(run_story(SMALL, texts))
    assert [(one.learned, one.gain) for one in again] == [(one.learned, one.gain) for one in rounds(records)]


def test_the_error_is_the_standard_error_over_seeds():
    found = story._estimate(np.array([0.1, 0.2, 0.6]))
    assert found.mean == pytest.approx(0.3)
    assert found.error == pytest.approx(((0.04 + 0.01 + 0.09) / 2) ** 0.5 / 3**0.5)


def test_the_promise_is_the_fewest_people_in_a_sum(records):
    assert records[-1].sum_of == 4  # sums without noise have all people


def test_constants_are_those_of_a_node_and_shown_seeds_are_not_those_of_development():
    setting = Together()
    assert (setting.prior, setting.clip, setting.server_step) == (
        FEDERATED.prior,
        FEDERATED.clip,
        FEDERATED.server_learning_rate,
    )
    assert not set(story.SEEDS) & set(range(1001, 1006))
    assert shipped().names == weights_for(story.CORPUS).names


@pytest.mark.parametrize("setting", [{"people": 2}, {"seeds": [1]}, {"rounds": 0}, {"clients": 20}])
def test_impossible_settings_are_refused(setting):
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(msgspec.json.encode(setting), type=StorySetting)


# --- the documents of the person who watches --------------------------------------------------------------------------


def library(*names):
    documents = [Document(name, name, f"Text of {name}.", Place("x.py", 1)) for name in names]
    return assemble("some", documents, [], {})


def test_methods_stand_with_their_class_and_private_objects_are_left_out():
    found = file_texts(
        library("json", "json.dump", "json.decoder.JSONDecoder", "json.decoder.JSONDecoder.decode", "json._x", "_io.y")
    )
    assert list(found) == ["json", "json.dump", "json.decoder.JSONDecoder"]
    assert found["json.decoder.JSONDecoder"] == (
        "# json.decoder.JSONDecoder\n\nText of json.decoder.JSONDecoder.\n\n## decode\n\n"
        "Text of json.decoder.JSONDecoder.decode.\n"
    )


def test_files_are_written_once_into_an_empty_folder(tmp_path):
    corpus = library("json", "json.dump", "no.such.module")
    assert write_docstrings(tmp_path / "python", corpus) == 3
    names = sorted(file.relative_to(tmp_path).as_posix() for file in tmp_path.rglob("*") if file.is_file())
    assert names == ["python/json.md", "python/json/dump.md", "python/no/such/module.md"]
    assert (tmp_path / "python/json.md").stat().st_mtime < 4e9
    with pytest.raises(InputError, match="not empty"):
        write_docstrings(tmp_path / "python", corpus)
