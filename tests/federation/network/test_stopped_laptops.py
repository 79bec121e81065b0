"""A laptop that stops before or after every durable write and every message, and goes on from its disk.

The points are enumerated: each visit is run once to count them, then once for each, from a copy of all folders.
"""

import copy
import os
import shutil

import msgspec
import pytest
from five_nodes import NODES

from foltr import node as foltr_node
from foltr.federation.network import enrolment
from foltr.federation.network.desk import in_memory
from foltr.federation.network.joined import mark_left, read_membership
from foltr.federation.policy import Guarded
from foltr.node.learning import federated, versions
from foltr.node.learning.log import Log

VICTIM = 0


class Stopped(BaseException):
    """The machine stops here: nothing in the package catches it."""


class Injector:
    """Counts the points of whoever is armed, and stops it at one of them."""

    def __init__(self, monkeypatch):
        self.armed, self.points, self.stop_at, self.paused = False, [], None, False
        monkeypatch.setattr(os, "fsync", lambda _descriptor: self.twice("write"))
        transaction = Log.transaction

        class Committed:
            def __init__(self, log):
                self.log = log

            def __enter__(self):
                self.inner = transaction(self.log)
                return self.inner.__enter__()

            def __exit__(self, *error):
                if error[0] is None:
                    try:
                        injector.point("commit", "before")
                    except Stopped as stopped:
                        self.inner.__exit__(Stopped, stopped, None)
                        raise
                done = self.inner.__exit__(*error)
                if error[0] is None:
                    injector.point("commit", "after")
                return done

        injector = self
        monkeypatch.setattr(Log, "transaction", lambda log: Committed(log))

    def twice(self, kind):
        self.point(kind, "before")
        self.point(kind, "after")

    def point(self, kind, side):
        if not self.armed or self.paused:
            return
        self.points.append((kind, side))
        if self.stop_at == len(self.points) - 1:
            raise Stopped

    def post(self, desk, key, clock):
        through = in_memory(desk, key, clock)

        def post(endpoint, body):
            self.point(endpoint, "before")
            self.paused = True  # what the coordinator writes is not this machine's
            try:
                reply = through(endpoint, body)
            finally:
                self.paused = False
            self.point(endpoint, "after")  # the coordinator has it, and its reply is lost
            return reply

        return post

    def run(self, function, stop_at=None):
        """The points of a function; it stops at one of them where a number is given."""
        self.armed, self.points, self.stop_at = True, [], stop_at
        try:
            function()
        except Stopped:
            pass
        finally:
            self.armed = False
        return list(self.points)


@pytest.fixture
def injector(monkeypatch):
    return Injector(monkeypatch)


def copies(laptops, tmp_path, injector, scenario):
    """For every point of a scenario a copy of the federation in which the victim stopped there."""
    laptops.desk.store.close()
    first = duplicate(laptops, tmp_path.with_name(tmp_path.name + "-count"), injector)
    points = injector.run(lambda: scenario(first))
    first.desk.store.close()
    for number, point in enumerate(points):
        stopped = duplicate(laptops, tmp_path.with_name(f"{tmp_path.name}-copy-{number}"), injector)
        assert injector.run(lambda stopped=stopped: scenario(stopped), number) == points[: number + 1]
        yield number, point, stopped
        stopped.desk.store.close()


def duplicate(laptops, folder, injector):
    others = [str(k) for k in range(NODES) if k != VICTIM]  # their machines do not change
    shutil.copytree(laptops.folder, folder, ignore=lambda at, _names: others if at.endswith("/nodes") else ())
    other = copy.copy(laptops)
    other.folder, other.clock = folder, copy.copy(laptops.clock)
    other.homes = {k: folder / home.relative_to(laptops.folder) for k, home in laptops.homes.items()}
    other.invitations, other.posts = dict(laptops.invitations), {VICTIM: injector.post}
    other.desk = other.open_desk()
    return other


def charges(laptops):
    return [record.rounds for record in laptops.ledger(VICTIM).records() if record.kind == "release"]


@pytest.mark.usefixtures("silent_operators")
def test_wherever_a_visit_stops_nothing_is_applied_twice_and_no_release_is_spent_without_a_sum(
    laptops, tmp_path, injector
):
    """The visit takes version 1 over and contributes to round 2. It stops at every point, starts again, and the round
    ends. The victim is in the sum unless it died between its charge and the next write."""
    federation = laptops.charter.terms.federation
    laptops.begin()
    for k in range(NODES):
        laptops.visit(k)
    laptops.finish()
    for k in range(1, NODES):
        assert laptops.visit(k).round == 2
    kinds, lost = set(), []
    for number, point, stopped in copies(laptops, tmp_path, injector, lambda these: these.visit(VICTIM)):
        kinds.add(point)
        charged = {federation: 2} in charges(stopped)
        sent = federated_file(stopped, "contribution")
        synced = stopped.visit(VICTIM)
        if synced.state == "lost":
            assert charged
            assert federated_file(stopped, "contribution") == sent != b""
            lost.append(number)
        else:
            assert (synced.state, synced.round, synced.version) == ("sent", 2, 1)
        assert charges(stopped) == [{federation: 1}, {federation: 2}]  # once, wherever it stopped
        history = Guarded(federated.policy_folder(stopped.places(VICTIM))).histories()[federation]
        assert len(history.rounds) == 2
        with foltr_node.open(stopped.homes[VICTIM]) as node:
            origins = [version.weights.origin for version in versions.versions(node.log)]
        assert origins.count(f"{federation}/1") == 1
        stopped.finish()
        included = msgspec.msgpack.decode(
            stopped.desk.store.value("SELECT included FROM rounds WHERE round = 2"), type=list[int]
        )
        client = read_membership(stopped.storage(VICTIM)).joined.client
        assert (client in included) == (synced.state == "sent")
        assert stopped.states()[2] == "published"
    assert {"version", "announcement", "open", "contribute", "write", "commit"} == {kind for kind, _ in kinds}
    # from the record of the charge to the name of the message: the only gap, and it is one stretch
    assert 0 < len(lost) <= 12
    assert lost == list(range(lost[0], lost[-1] + 1))


def federated_file(laptops, name):
    path = laptops.storage(VICTIM).folder / name
    return path.read_bytes() if path.exists() else b""


def test_wherever_joining_stops_the_same_invitation_goes_on_and_makes_one_member(laptops, tmp_path, injector):
    laptops.join_second()
    for k in range(1, NODES):
        laptops.accept(k)
        laptops.visit(k)

    def joining(these):
        these.accept(VICTIM)
        these.visit(VICTIM)

    invitation = laptops.invite(VICTIM)
    laptops.invite = lambda _k: invitation  # the person pastes one line, again where it stopped
    for _number, _point, stopped in copies(laptops, tmp_path, injector, joining):
        assert not foltr_node.places.find(stopped.homes[VICTIM]).witnesses.is_file()
        before = read_key(stopped)
        joining(stopped)
        membership = read_membership(stopped.storage(VICTIM))
        assert before in (b"", read_key(stopped))  # no second key
        assert stopped.desk.store.value("SELECT COUNT(*) FROM members") == NODES
        assert enrolment.client_of(stopped.desk, membership.key) == membership.joined.client
        assert membership.joined.invitation.code == bytes(16)  # used, and not kept


def read_key(laptops):
    path = laptops.storage(VICTIM).folder / "identity"
    return path.read_bytes() if path.exists() else b""


def test_wherever_leaving_stops_the_next_visit_ends_it_and_the_key_is_gone(laptops, tmp_path, injector):
    laptops.begin()
    for k in range(NODES):
        laptops.visit(k)
    client = read_membership(laptops.storage(VICTIM)).joined.client

    def leaving(these):
        mark_left(read_membership(these.storage(VICTIM)), these.clock())
        these.visit(VICTIM)

    for number, _point, stopped in copies(laptops, tmp_path, injector, leaving):
        membership = read_membership(stopped.storage(VICTIM))
        if membership is not None and not membership.joined.left:
            assert number <= 1  # the decision was not stored: the person decides again
            leaving(stopped)
        elif membership is not None:
            assert stopped.visit(VICTIM).state == "left"
        assert not list(stopped.storage(VICTIM).folder.rglob("*"))
        assert stopped.desk.store.value("SELECT removed FROM members WHERE client = ?", client) == 1
        assert len(charges(stopped)) == 1  # the ledger stays
