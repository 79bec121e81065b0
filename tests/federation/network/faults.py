"""A fault injector: stops a party before or after any durable write or send, then starts it again from its disk.

Every file of the package that must be on the disk passes through `os.fsync`, every change of the coordinator's
database through `Store.commit`, every message through `post`. Each of these is two points: just before, and just
after. `Killed` is no Exception, so that no handler of the package catches it. A point that lies inside of a request is
the coordinator's death: whoever sent the request sees a connection that breaks.
"""

import os
from contextlib import contextmanager

from machines import Machines, public

from foltr.federation.network import second
from foltr.federation.network.desk import in_memory
from foltr.federation.network.store import Store


class Killed(BaseException):
    pass


class Injector:
    """Counts points, and kills at one of them, once."""

    def __init__(self, at=None):
        self.at, self.points, self.victims = at, [], []
        self.party = "nobody"

    def point(self, what):
        self.points.append((self.party, what))
        if self.at == len(self.points) - 1:
            self.victims.append(self.party)
            raise Killed(f"{self.party}: {what}")

    @contextmanager
    def acting(self, party):
        before, self.party = self.party, party
        try:
            yield
        finally:
            self.party = before


class FaultyMachines(Machines):
    """Machines whose parties die where the injector says, and go on with what is on their disks."""

    def __init__(self, folder, injector, monkeypatch, **options):
        self.injector = injector
        super().__init__(folder, **options)
        commit = Store.commit

        def committed(store):
            injector.point("before a commit")
            commit(store)
            injector.point("after a commit")

        def synced(_descriptor):
            injector.point("before or after a file is on the disk")

        monkeypatch.setattr(Store, "commit", committed)
        monkeypatch.setattr(os, "fsync", synced)

    def open_desk(self):
        """The points stand for the disk, which is not waited for."""
        desk = super().open_desk()
        desk.store.rows("PRAGMA synchronous = OFF")
        return desk

    def post(self, identity):
        def send(endpoint, body):
            self.injector.point(f"before a request to {endpoint}")
            try:
                with self.injector.acting("coordinator"):
                    reply = in_memory(self.desk, public(identity), self.clock)(endpoint, body)
            except Killed:
                self.restart_desk()
                raise ConnectionError("the coordinator died") from None
            self.injector.point(f"after a request to {endpoint}")
            return reply

        return send

    def tick(self):
        from foltr.federation.network import rounds

        try:
            with self.injector.acting("coordinator"):
                rounds.advance(self.desk, self.clock())
        except Killed:
            self.restart_desk()

    def try_node(self, k):
        """A visit; a node that is killed, or whose coordinator is away, comes again."""
        try:
            with self.injector.acting(f"node {k}"):
                return self.sync(k)
        except (Killed, ConnectionError):
            return None

    def try_second(self):
        try:
            with self.injector.acting("second operator"):
                second.work(self.second)
        except (Killed, ConnectionError):
            pass
