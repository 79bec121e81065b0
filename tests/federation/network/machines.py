"""A federation of machines in one process: the real desk, the real second operator and real nodes, with a clock that
the test turns. Bytes go through `desk.handle`, as they do behind HTTPS."""

from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from foltr.federation.announcement import Ranker, digest_of, parameters_of, ranker_of
from foltr.federation.member import NodeSide, read_shared, respond
from foltr.federation.membership import Member, Storage
from foltr.federation.network import enrolment, rounds, second, shared_ranker, wire
from foltr.federation.network.charter import Charter, Desk, Settings
from foltr.federation.network.desk import in_memory
from foltr.federation.network.store import Store
from foltr.federation.opening import is_question
from foltr.federation.policy import Guarded, Limits, Policy, accept
from foltr.federation.registries import follow_editions, read_held, store_held
from foltr.privacy.ledger_file import open_ledger
from foltr.secagg.crypto import new_identity
from foltr.secagg.terms import Terms, new_federation, registry

NAMES = ("bm25", "title", "age")
WINDOW = 86_400.0
START = 1_700_000_000.0


class Time:
    def __init__(self, now=START):
        self.now = now

    def __call__(self):
        return self.now


def start_ranker():
    return Ranker(0, NAMES, np.array([1.0, 0.5, 0.25], "<f8").tobytes())


def charter(**terms):
    usual = {"bits": 64, "fraction": 32, "clip": 1.0, "noise_multiplier": 0.0, "dropouts": 0.0, "stage_seconds": WINDOW}
    given = Terms(new_federation(), len(NAMES), **usual | terms)
    return Charter("circle" if given.noise_multiplier == 0 else "open", given, start_ranker())


def public(identity):
    return identity.public_key().public_bytes_raw()


class Node(NamedTuple):
    """A node's side of a federation, without its searches."""

    home: Path
    identity: object
    client: int
    terms: Terms
    coordinator: bytes
    operators: tuple
    start: Ranker
    since: int
    learn: object
    adopt: object
    clock: object
    server_learning_rate: float = 1.0


def visit(node, post, endpoint="announcement"):
    """One visit of a node: registries, steps, question, contribution, receipt. Returns the receipt, or None."""
    home, terms = node.home, node.terms
    held = read_held(home / "registry")
    ledger = open_ledger(home / "data" / "ledger", delta=1e-5, budget=None if not terms.noise_multiplier else 1e6,
                         witness=home / "config" / "ledger")  # fmt: skip

    def side(chain):
        known = {one.link.head.number: registry(node.coordinator, one.members) for one in chain}
        return NodeSide(
            Member(node.client, node.identity, terms, known[max(known)], since=node.since),
            Storage(home / "data" / "round", home / "config" / "round"), ledger, learn=node.learn, adopt=node.adopt,
            operators=node.operators, clock=node.clock, start=node.start, policy=Guarded(home / "config"),
            registries=known, server_learning_rate=node.server_learning_rate,
        )  # fmt: skip

    version = read_shared(side([held])).version if held else node.start.version
    request = wire.encode(wire.SyncRequest(held.link.head.number if held else 0, version))
    current = wire.decode(post(endpoint, request), wire.Current)
    chain = follow_editions(
        current.editions, held, federation=terms.federation, coordinator=node.coordinator, second=node.operators[1]
    )
    here, receipt = side(chain), None
    if current.announcement:
        answer = respond(here, current.announcement)
        if answer is not None and is_question(answer):
            answer = respond(here, post("open", answer))
        if answer is not None:
            receipt = wire.decode(post("contribute", answer), wire.Receipt)
            digest = sha256(answer).digest()
            assert wire.is_receipt(receipt, terms.federation, node.coordinator, client=node.client, digest=digest)
    store_held(home / "registry", chain[-1])
    return receipt


class Machines:
    """Coordinator, second operator and nodes below one folder; every party can be opened again after a crash."""

    def __init__(self, folder, nodes=5, *, settings=None, limits=None, **terms):
        self.folder, self.clock, self.nodes = folder, Time(), nodes
        self.charter = charter(**terms)
        self.settings = settings or Settings("test", "https://127.0.0.1:1")
        self.limits = limits or Limits(epsilon=1e6, noise_multiplier=0.1, min_clients=3, rounds_per_week=10_000)
        self.keys = {name: new_identity() for name in ("coordinator", "first", "second")}
        self.node_keys = [new_identity() for _ in range(nodes)]
        self.updates = {k: np.array([0.01 * (k + 1), -0.02 * k, 0.005]) for k in range(nodes)}
        self.clients, self.invitations, self.starts, self.adopted = {}, {}, {}, {}
        self.desk = self.open_desk()

    def open_desk(self):
        return Desk(
            Store(self.folder / "coordinator" / "desk.sqlite"), self.charter, self.settings, self.keys["coordinator"],
            self.keys["first"],
            Storage(self.folder / "coordinator" / "operator", self.folder / "coordinator-witness"), {},
        )  # fmt: skip

    def restart_desk(self):
        self.desk.store.close()
        self.desk = self.open_desk()

    def post(self, identity):
        return lambda endpoint, body: in_memory(self.desk, public(identity), self.clock)(endpoint, body)

    def join_second(self):
        _, invitation = enrolment.invite_operator(self.desk, b"", self.clock(), self.ranker())
        self.post(self.keys["second"])("operator/join", wire.encode(wire.OperatorJoin(invitation.code)))

    @property
    def second(self):
        operators = public(self.keys["first"]), public(self.keys["second"])
        return second.SecondOperator(
            self.keys["second"], self.charter.terms, public(self.keys["coordinator"]), operators,
            Storage(self.folder / "second", self.folder / "second-witness"), self.post(self.keys["second"]), self.clock,
        )  # fmt: skip

    def ranker(self):
        start = self.charter.start
        return ranker_of(0, start.names, parameters_of(start))

    def invite(self, k):
        newest = shared_ranker.newest_shared(self.desk)
        _, self.invitations[k] = enrolment.invite(
            self.desk,
            b"",
            self.clock(),
            version=newest.version,
            round=newest.round,
            ranker=shared_ranker.newest_ranker(self.desk),
        )
        return self.invitations[k]

    def join(self, k):
        invitation = self.invitations.get(k) or self.invite(k)
        reply = self.post(self.node_keys[k])("join", wire.encode(wire.JoinRequest(invitation.code)))
        joined = wire.decode(reply, wire.JoinReply)
        assert digest_of(joined.ranker) == invitation.ranker
        self.clients[k], self.starts[k] = joined.client, msgspec.msgpack.decode(joined.ranker, type=Ranker)

    def begin(self):
        """Everybody joins, the registry is countersigned, and both operators have left keys."""
        self.join_second()
        for k in range(self.nodes):
            self.join(k)
        rounds.advance(self.desk, self.clock())
        second.work(self.second)
        for k in range(self.nodes):
            self.accept(k)
        second.work(self.second)
        rounds.advance(self.desk, self.clock())

    def accept(self, k, circle=None):
        pair = public(self.keys["first"]), public(self.keys["second"])
        circle = circle or enrolment.known(self.desk, enrolment.effective(self.desk))
        guarded = Guarded(self.home(k) / "config")
        guarded.save(accept(Policy(self.limits), self.charter.terms.federation, pair, circle=circle))

    def home(self, k):
        return self.folder / f"node-{k}"

    def sync(self, k, endpoint="announcement", post=None):
        """One visit of a node: registries, steps, question, contribution, receipt. Returns the receipt, or None."""
        node = Node(
            self.home(k), self.node_keys[k], self.clients[k], self.charter.terms, public(self.keys["coordinator"]),
            (public(self.keys["first"]), public(self.keys["second"])), self.starts[k], self.invitations[k].round,
            lambda _: self.updates[k], lambda ranker: self.adopted.__setitem__(k, ranker), self.clock,
        )  # fmt: skip
        return visit(node, post or self.post(self.node_keys[k]), endpoint)

    def finish(self):
        """The window ends, and the second operator does its part."""
        self.clock.now += self.charter.terms.stage_seconds + rounds.GRACE
        rounds.advance(self.desk, self.clock())
        second.work(self.second)
        rounds.advance(self.desk, self.clock())

    def states(self):
        return dict(self.desk.store.rows("SELECT round, state FROM rounds"))

    def parameters(self):
        return np.frombuffer(shared_ranker.newest_shared(self.desk).values, "<f8")
