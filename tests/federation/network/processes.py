"""Coordinator and second operator as processes of their own on loopback, with TLS; nodes connect from the test."""

import json
import os
import select
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager

import msgspec
from machines import Node, public, visit

from foltr.federation.announcement import Ranker, digest_of
from foltr.federation.network import wire
from foltr.federation.network.https import connect
from foltr.federation.network.invitation import from_text
from foltr.federation.policy import Guarded, Limits, Policy, accept
from foltr.federation.registries import follow_editions
from foltr.secagg.crypto import new_identity
from foltr.secagg.terms import registry

LIMITS = Limits(epsilon=1e6, noise_multiplier=0.1, min_clients=3, rounds_per_week=10_000)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def foltr(*arguments, fails=False, **environment):
    """A command's JSON output, or its text; None where it may fail and does."""
    command = [sys.executable, "-m", "foltr", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=_environment(**environment))
    if fails and done.returncode == 1:
        return None
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout) if "--json" in arguments else done.stdout


def _environment(**more):
    kept = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    return kept | {"PYTHONUNBUFFERED": "1"} | more


@contextmanager
def running(*arguments, says, log):
    """A command that runs until the test ends it; it is ready when it says so."""
    with log.open("wb") as errors:
        command = [sys.executable, "-m", "foltr", *map(str, arguments)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, env=_environment())
    try:
        ready, _, _ = select.select([process.stdout], [], [], 60)
        line = process.stdout.readline().decode() if ready else ""
        assert says in line, (line, log.read_text())
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
        process.stdout.close()


class RemoteNode:
    """A node of a federation that runs elsewhere: keys, invitation, and visits over HTTPS."""

    def __init__(self, home, text):
        self.home, self.invitation, self.identity = home, from_text(text), new_identity()
        self.update = self.adopted = None

    @property
    def version(self):
        return self.adopted.version if self.adopted else 0

    def connect(self):
        invitation = self.invitation
        return connect(invitation.address, invitation.certificate, self.identity, invitation.federation)

    def join(self, post):
        reply = wire.decode(post("join", wire.encode(wire.JoinRequest(self.invitation.code))), wire.JoinReply)
        assert digest_of(reply.ranker) == self.invitation.ranker
        self.client, self.start = reply.client, msgspec.msgpack.decode(reply.ranker, type=Ranker)

    def accept(self, post):
        """The person confirms all members; False while there is no registry."""
        invitation = self.invitation
        current = wire.decode(post("announcement", wire.encode(wire.SyncRequest(0, self.start.version))), wire.Current)
        if not current.editions:
            return False
        newest = follow_editions(current.editions, None, federation=invitation.federation,
                                 coordinator=invitation.coordinator, second=invitation.operators[1])[-1]  # fmt: skip
        known = registry(invitation.coordinator, newest.members)
        policy = accept(Policy(LIMITS), invitation.federation, invitation.operators, circle=known)
        Guarded(self.home / "config").save(policy)
        return True

    def visit(self, post, clock, endpoint="announcement"):
        invitation = self.invitation
        node = Node(
            self.home, self.identity, self.client, invitation.terms, invitation.coordinator, invitation.operators,
            self.start, invitation.round, lambda _: self.update, lambda ranker: setattr(self, "adopted", ranker), clock,
            invitation.server_learning_rate,
        )  # fmt: skip
        return visit(node, post, endpoint)


__all__ = ["RemoteNode", "foltr", "free_port", "public", "running"]
