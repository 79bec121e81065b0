"""Visits to a federation's coordinator beside the page: by the server, by a timer, and what the page says of them."""

import os
import shlex
import shutil
import subprocess
import sys
import threading

import pytest
from page_client import PORT, Client

import foltr.node
from foltr.federation.announcement import digest_of, parameters_of, ranker_of
from foltr.federation.network.invitation import Invitation, to_text
from foltr.federation.network.joined import accept_invitation
from foltr.federation.network.syncing import read_synced
from foltr.federation.policy import Guarded, accept, release_event
from foltr.node.learning import federated
from foltr.node.page import install, sign_ins
from foltr.node.page.app import create_app
from foltr.node.page.syncing import EVERY_SECONDS, Syncing, is_member
from foltr.secagg.crypto import new_identity
from foltr.secagg.terms import Terms, new_federation, registry

NOW = 1.8e9


def invitation():
    """Of a coordinator that cannot be reached: nothing listens on port 1."""
    keys = [new_identity().public_key().public_bytes_raw() for _ in range(3)]
    start = federated.start_ranker()
    ranker = ranker_of(0, start.names, parameters_of(start))
    terms = Terms(new_federation(), len(start.names), bits=64, fraction=32, noise_multiplier=3.0, quorum=0.5)
    return Invitation(
        "node", "open", "team", "https://127.0.0.1:1", b"", bytes(range(16)), 4e9, terms, keys[0],
        (keys[1], keys[2]), 0, 0, digest_of(ranker),
    )  # fmt: skip


def joined(home):
    """A node whose person accepted an invitation."""
    with foltr.node.open(home) as node:
        places, given = node.places, invitation()
    guarded = Guarded(federated.policy_folder(places))
    guarded.save(accept(guarded.load(), given.federation, given.operators))
    return places, accept_invitation(given, federated.storage_of(places, given.federation), NOW)


class Waits:
    """Stands for the time: the thread wakes so often, then the server ends."""

    def __init__(self, wakes):
        self.wakes, self.seconds, self.done = wakes, [], threading.Event()

    def __call__(self, ended, seconds):
        self.seconds.append(seconds)
        if len(self.seconds) > self.wakes:
            self.done.set()
            return ended.wait(60)
        return False


def test_a_node_in_no_federation_starts_no_process(tmp_path, monkeypatch):
    with foltr.node.open(tmp_path / "home") as node:
        places = node.places
    assert not is_member(places)
    monkeypatch.setattr(subprocess, "Popen", lambda *_given, **_more: pytest.fail("a process was started"))
    waits = Waits(2)
    syncing = Syncing(places, wait=waits)
    syncing.start()
    assert waits.done.wait(60)
    syncing.stop()
    assert waits.seconds == [60.0, EVERY_SECONDS, EVERY_SECONDS]


def test_the_server_visits_the_coordinator_in_a_process_of_its_own(tmp_path):
    places, membership = joined(tmp_path / "home")
    waits = Waits(1)
    syncing = Syncing(places, wait=waits)
    syncing.start()
    assert waits.done.wait(120)
    syncing.stop()
    synced = read_synced(membership.storage)
    assert synced.state == "refused"
    assert "https://127.0.0.1:1 cannot be reached" in synced.words


def test_serving_loads_no_network_stack(tmp_path):
    """What a federation needs is in the process of a visit, and in no process that serves or searches."""
    program = (
        "import sys, foltr.node.page.serve, foltr.cli.node\n"
        "print([name for name in sys.modules if name.startswith(('httpx', 'foltr.federation'))])"
    )
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert output.strip() == "[]"


def test_the_timer_is_valid_and_its_command_visits_the_coordinator(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    _, membership = joined(tmp_path / "my home")
    service, timer = install.install_timer(home=str(tmp_path / "my home"))
    if shutil.which("systemd-analyze"):
        verified = subprocess.run(
            ["systemd-analyze", "--user", "verify", str(service), str(timer)], capture_output=True, text=True,
            env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path), "HOME": str(tmp_path)},
        )  # fmt: skip
        assert (verified.returncode, verified.stderr) == (0, "")
    lines = dict(line.partition("=")[::2] for line in service.read_text().splitlines() if "=" in line)
    environment = dict([shlex.split(lines["Environment"])[0].split("=", 1)])
    done = subprocess.run(shlex.split(lines["ExecStart"]), env=os.environ | environment, capture_output=True, text=True)
    assert done.returncode == 1
    assert "cannot be reached" in done.stderr
    assert read_synced(membership.storage).state == "refused"
    assert set(install.remove()) == {service, timer}


def test_on_battery_or_a_metered_network_a_visit_in_the_background_waits(tmp_path):
    _, membership = joined(tmp_path / "home")
    (tmp_path / "programs").mkdir()
    answering = tmp_path / "programs" / "busctl"
    answering.write_text("#!/bin/sh\necho 'u 1'\n")  # NetworkManager: metered
    answering.chmod(0o755)
    environment = os.environ | {"FOLTR_NODE_HOME": str(tmp_path / "home"),
                                "PATH": f"{tmp_path / 'programs'}:{os.environ['PATH']}"}  # fmt: skip
    command = [sys.executable, "-m", "foltr", "node", "sync", "--background"]
    assert subprocess.run(command, env=environment, capture_output=True).returncode == 0
    assert read_synced(membership.storage) is None
    answering.write_text("#!/bin/sh\necho 'u 4'\n")  # it guesses that it is not
    assert subprocess.run(command, env=environment, capture_output=True).returncode == 1
    assert read_synced(membership.storage).state == "refused"


def test_the_page_lists_every_message_that_left(tmp_path):
    places, membership = joined(tmp_path / "home")
    given = membership.joined.invitation
    known = registry(given.coordinator, {k: new_identity().public_key().public_bytes_raw() for k in range(9)})
    event = release_event(given.terms, known, given.operators)
    federated.ledger_of(places, given.terms).charge(
        event, federation=given.federation, round=4, time=NOW, address=given.address, size=379
    )
    with foltr.node.open(tmp_path / "home") as node, Client(create_app(node, PORT)) as client:
        client.get("/", params={"token": sign_ins.mint(sign_ins.page_folder(places))})
        text = client.get("/leaves").text
    assert "Nothing." not in text
    assert "1 messages so far" in text
    assert "Federation team, at https://127.0.0.1:1." in text


def test_join_asks_and_without_a_terminal_it_wants_both_fingerprints(tmp_path):
    environment = os.environ | {"FOLTR_NODE_HOME": str(tmp_path / "home")}

    def run(*words):
        command = [sys.executable, "-m", "foltr", "node", *words]
        return subprocess.run(command, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL)

    given = invitation()
    asked = run("join", to_text(given))
    assert asked.returncode == 2
    assert "add --yes and --fingerprint of both operators" in asked.stderr
    for words in ("What leaves: 15 numbers", "How often: one message", "NOT against both operators", "it ends on 20"):
        assert words in asked.stdout
    wrong = run("join", to_text(given), "--yes", "--fingerprint", "0000", "--fingerprint", "1111")
    assert wrong.returncode == 2
    assert "are not the invitation's" in wrong.stderr
    assert not list((tmp_path / "home" / "data").glob("federation/*"))  # nothing was accepted
    assert run("sync").returncode == 2
    assert "0 releases" in run("ledger").stdout
