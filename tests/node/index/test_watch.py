"""Following changes with real files and real events: every wait has a bound and ends with the event."""

import os
import threading
import time

import pytest

from foltr.node import places as node_places
from foltr.node import settings as node_settings
from foltr.node.index import background, watch
from foltr.node.index.indexing import Progress
from foltr.node.index.layout import Reader
from foltr.node.index.watch import Status
from foltr.node.settings import Settings

PATIENCE = 60.0  # seconds, of a loaded machine; the events come within two


@pytest.fixture
def node(tmp_path):
    places = node_places.create(node_places.find(tmp_path / "home"))
    root = tmp_path / "docs"
    root.mkdir()
    node_settings.save(places.settings_file, Settings(roots=(str(root),)))
    return places, root


def titles(places, text):
    reader = Reader(places)
    found = reader.candidates.search(reader.store, reader.store.query_text(text))
    names = {os.path.basename(one.path) for one in reader.store.documents(found)}  # noqa: PTH119
    reader.close()
    return names


def until(records, condition):
    """Takes records until the condition holds."""
    end = time.monotonic() + PATIENCE
    for record in records:
        if condition(record):
            return record
        assert time.monotonic() < end, "nothing happened"
    raise AssertionError("it stopped")


def is_status(record):
    return isinstance(record, Status)


def test_new_changed_moved_and_deleted_files_are_followed(node):
    places, root = node
    (root / "old.txt").write_text("apple")
    stop = threading.Event()
    records = watch.follow(places, stop)
    status = until(records, is_status)
    assert (status.mode, status.folders, status.reason) == ("watching", 1, None)
    assert titles(places, "apple") == {"old.txt"}
    (root / "new.txt").write_text("apple")
    until(records, lambda _: titles(places, "apple") == {"old.txt", "new.txt"})
    (root / "new.txt").write_text("pear")
    until(records, lambda _: titles(places, "apple") == {"old.txt"} and titles(places, "pear") == {"new.txt"})
    (root / "deep/er").mkdir(parents=True)
    (root / "deep/er/fig.txt").write_text("fig")
    until(records, lambda _: titles(places, "fig") == {"fig.txt"})
    (root / "deep/er/late.txt").write_text("fig")
    until(records, lambda _: titles(places, "fig") == {"fig.txt", "late.txt"})
    (root / "deep").rename(root.parent / "elsewhere")
    until(records, lambda _: titles(places, "fig") == set())
    (root / "old.txt").unlink()
    until(records, lambda _: titles(places, "apple") == set())
    stop.set()
    assert list(records) is not None


def test_what_arrives_between_the_first_scan_and_the_watches_is_indexed(node):
    """At the very first start no folder is known, so that the first scan happens before anything is watched."""
    places, root = node
    stop = threading.Event()
    records = watch.follow(places, stop, limit=100)
    until(records, lambda record: isinstance(record, Progress) and record.phase == "done")
    (root / "late.txt").write_text("arrived late")
    until(records, is_status)
    stop.set()
    records.close()
    assert titles(places, "arrived") == {"late.txt"}


def test_rules_and_settings_that_change_take_effect(node):
    places, root = node
    (root / "secret.txt").write_text("apple")
    (root / "open.txt").write_text("apple")
    stop = threading.Event()
    records = watch.follow(places, stop)
    until(records, is_status)
    (root / ".foltrignore").write_text("secret.txt\n")
    until(records, lambda _: titles(places, "apple") == {"open.txt"})
    other = root.parent / "other"
    other.mkdir()
    (other / "more.txt").write_text("apple")
    node_settings.save(places.settings_file, Settings(roots=(str(root), str(other)), exclude=("open.txt",)))
    until(records, lambda _: titles(places, "apple") == {"more.txt"})
    records.close()


def test_too_many_folders_are_scanned_again_and_the_status_says_so(node):
    places, root = node
    for i in range(5):
        (root / f"folder{i}").mkdir()
    records = watch.follow(places, threading.Event(), limit=3, rescan_seconds=0.01)
    status = until(records, is_status)
    assert status.mode == "rescanning"
    assert status.reason.startswith("6 folders and 3 watches: raise fs.inotify.max_user_watches")
    (root / "folder1/a.txt").write_text("apple")
    until(records, lambda _: titles(places, "apple") == {"a.txt"})
    records.close()


def test_a_paused_node_waits_and_goes_on_afterwards(node):
    places, root = node
    background.pause(places)
    records = watch.follow(places, threading.Event(), rescan_seconds=0.01)
    assert next(records).phase == "paused"
    (root / "a.txt").write_text("apple")
    background.resume(places)
    until(records, lambda record: isinstance(record, Progress) and titles(places, "apple") == {"a.txt"})
    records.close()


def test_the_budget_is_half_of_what_the_system_allows(tmp_path):
    (tmp_path / "limit").write_text("8192\n")
    assert watch.watch_limit(tmp_path / "limit") == 4096
    assert watch.watch_limit(tmp_path / "absent") == 0


def test_power_supplies(tmp_path):
    def supply(name, **files):
        (tmp_path / name).mkdir(exist_ok=True)
        for file, text in files.items():
            (tmp_path / name / file).write_text(text + "\n")

    assert not background.on_battery(tmp_path)
    supply("hidpp_battery_0", type="Battery", scope="Device", status="Discharging")  # of a mouse
    assert not background.on_battery(tmp_path)
    supply("BAT0", type="Battery", status="Discharging")
    assert background.on_battery(tmp_path)
    supply("AC", type="Mains", online="1")
    assert not background.on_battery(tmp_path)
    places = node_places.create(node_places.find(tmp_path / "home"))
    supply("AC", type="Mains", online="0")
    assert background.hold_reason(places, Settings(), tmp_path) == "on battery"
    assert background.hold_reason(places, Settings(on_battery=True), tmp_path) is None
