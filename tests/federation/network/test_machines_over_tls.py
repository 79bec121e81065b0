"""Real processes on loopback with TLS: coordinator, second operator, and nodes that wake, send and leave."""

import socket
import ssl
import sys
import time
import urllib.request

import numpy as np
import pytest
from processes import RemoteNode, foltr, free_port, running

from foltr.errors import InputError, Refused
from foltr.federation.announcement import parameters_of
from foltr.federation.network import wire
from foltr.federation.network.certificates import authority_of, make_authority
from foltr.federation.network.https import connect
from foltr.federation.network.invitation import from_text
from foltr.secagg.crypto import new_identity

NODES, ROUNDS, WINDOW = 5, 3, 4


def test_rounds_complete_over_https_between_processes(tmp_path):
    port, home, other = free_port(), tmp_path / "coordinator", tmp_path / "aggregator"
    created = foltr(
        "coordinator", "init", "--name", "Team", "--kind", "circle", "--address", f"https://127.0.0.1:{port}",
        "--window-hours", WINDOW / 3600, "--folder", home, "--yes", "--json",
    )  # fmt: skip
    with running("coordinator", "serve", "--folder", home, says="serving Team", log=tmp_path / "coordinator.log"):
        joined = foltr("aggregator", "join", created["operator_invitation"], "--folder", other, "--yes", "--json")
        assert joined["warning"] == "one party plays both: no protection between them"
        with running(
            "aggregator", "serve", "--folder", other, "--every", 0.2, says="asking", log=tmp_path / "aggregator.log"
        ):
            invited = foltr("coordinator", "invite", "--count", NODES, "--folder", home, "--json")["invitations"]
            nodes = [RemoteNode(tmp_path / f"node-{k}", one["text"]) for k, one in enumerate(invited)]
            for k, node in enumerate(nodes):
                node.update = 0.01 * np.sin(np.arange(node.invitation.terms.length) + k)
            for node in nodes:
                with node.connect() as post:
                    node.join(post)
            foltr("coordinator", "admit", "--folder", home)
            _run(nodes)
            state = foltr("coordinator", "status", "--folder", home, "--json")
    published = [round for round in state["rounds"] if round["state"] == "published"]
    assert len(published) == state["version"] == ROUNDS
    step = nodes[0].invitation.server_learning_rate * np.mean([node.update for node in nodes], axis=0)
    for node in nodes:
        expected = parameters_of(node.start) + ROUNDS * step
        np.testing.assert_allclose(parameters_of(node.adopted), expected, atol=1e-8)


def _run(nodes):
    """Nodes wake, send and leave until each has taken over version ROUNDS; then none sends any more."""
    deadline, accepted = time.monotonic() + 120, set()
    while time.monotonic() < deadline and any(node.version < ROUNDS for node in nodes):
        for k, node in enumerate(nodes):
            with node.connect() as post:
                if k not in accepted:
                    accepted |= {k} if node.accept(post) else set()
                    continue
                node.visit(post, time.time, "version")
                if node.version < ROUNDS:
                    node.visit(post, time.time)
        time.sleep(0.05)


@pytest.fixture(scope="module")
def coordinator(tmp_path_factory):
    """A running coordinator: its port, its folder and the second operator's invitation."""
    folder, port = tmp_path_factory.mktemp("coordinator"), free_port()
    created = foltr(
        "coordinator", "init", "--name", "Team", "--kind", "circle", "--address", f"https://127.0.0.1:{port}",
        "--folder", folder / "home", "--yes", "--json",
    )  # fmt: skip
    with running("coordinator", "serve", "--folder", folder / "home", says="serving", log=folder / "log"):
        yield port, folder / "home", from_text(created["operator_invitation"])


def test_only_the_pinned_authority_is_trusted_and_plain_http_is_refused(coordinator, tmp_path, monkeypatch):
    port, home, invitation = coordinator
    make_authority(tmp_path, "f" * 32, time.time())
    key, join = new_identity(), wire.encode(wire.OperatorJoin(bytes(16)))
    address = f"https://127.0.0.1:{port}"
    for certificate in (authority_of(tmp_path), b""):  # another authority, and those of the system
        with connect(address, certificate, key, invitation.federation) as post, pytest.raises(ConnectionError):
            post("operator/join", join)
    with pytest.raises(InputError, match="https"), connect(f"http://127.0.0.1:{port}", b"", key, "f" * 32):
        pass
    with socket.create_connection(("127.0.0.1", port), timeout=20) as plain:
        plain.sendall(b"POST /foltr/1/nonce HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
        assert b"200" not in plain.recv(100)
    monkeypatch.setenv("SSL_CERT_FILE", str(home / "authority.pem"))  # a private authority of the machine
    with connect(address, b"", key, invitation.federation) as post, pytest.raises(Refused, match="unknown here"):
        post("operator/join", join)


def test_a_node_contacts_the_coordinators_address_and_nothing_else(coordinator):
    port, _, invitation = coordinator
    contacted, watching = [], [True]

    def watch(event, arguments):  # a hook stays for ever
        if watching and event in ("socket.connect", "socket.getaddrinfo", "socket.sendto"):
            contacted.append(arguments)

    sys.addaudithook(watch)
    with (
        connect(invitation.address, invitation.certificate, new_identity(), invitation.federation) as post,
        pytest.raises(Refused, match="no member"),
    ):
        post("announcement", wire.encode(wire.SyncRequest(0, 0)))
    watching.clear()
    hosts = {str(arguments[1] if not isinstance(arguments[0], str) else arguments[:2]) for arguments in contacted}
    assert hosts
    assert all("127.0.0.1" in host and str(port) in host for host in hosts), hosts


def test_the_health_endpoint_answers_this_machine(coordinator):
    port, home, _ = coordinator
    context = ssl.create_default_context(cafile=home / "authority.pem")
    with urllib.request.urlopen(f"https://127.0.0.1:{port}/health", context=context, timeout=20) as reply:
        assert reply.read() == b"ok\n"
