"""Real nodes and the real second operator, driven by the adversary of `operator_machine`: it has the coordinator's key,
operator A's keys and the colluders', carries every message, and keeps copies of everything that was ever sent."""

import contextlib
from typing import NamedTuple

import msgspec
import numpy as np
from operator_machine import Context, World

from foltr.errors import FoltrError
from foltr.federation import key_files
from foltr.federation.announcement import Ranker, announce, digest_of, ranker_of
from foltr.federation.member import NodeSide, respond, resume
from foltr.federation.membership import Member, Storage
from foltr.federation.opening import checked_question, opening
from foltr.federation.operator import Operator
from foltr.federation.policy import Guarded, Limits, Policy, accept
from foltr.privacy.ledger_file import open_ledger
from foltr.secagg import aggregator, ring
from foltr.secagg.aggregator import Agreement, Listing, Memory, Secrets
from foltr.secagg.crypto import new_identity
from foltr.secagg.ring import Ring
from foltr.secagg.round_keys import checked_keys, round_of
from foltr.secagg.terms import Terms, new_federation, registry, set_of, to_set
from foltr.secagg.two_servers import At, Half, Signed, Window, context, contribute, parts, sign, two_servers

NAMES = ("first", "second")
VALUES = np.array([1.0, 2.0])
NOW = 1.8e9


class Federation(NamedTuple):
    world: World
    folder: object
    identities: dict
    server: object
    operators: tuple
    setup: object
    statements: tuple  # of both operators, by round
    sent: dict  # every contribution that a node ever sent, by client and context
    halves: set  # that B ever sent


def federation(world, folder):
    """The founders are all honest nodes: registries do not change."""
    everybody = range(world.honest + world.colluders)
    identities, server = {client: new_identity() for client in everybody}, new_identity()
    known = registry(public(server), {client: public(one) for client, one in identities.items()})
    missing = world.dropouts / len(everybody)
    terms = Terms(new_federation(), 2, bits=64, fraction=32, dropouts=missing, noise_multiplier=1.0 * world.noise)
    secrets = new_identity(), new_identity()
    setup = two_servers(terms, known, (public(secrets[0]), public(secrets[1])))
    operators = tuple(
        Operator(place, one, setup, Storage(folder / f"operator-{place}", folder / f"witness-{place}"), clock)
        for place, one in enumerate(secrets)
    )
    statements = tuple({round_of(one): one for one in operator.statements(1)} for operator in operators)
    return Federation(world, folder, identities, server, operators, setup, statements, {}, set())


def clock():
    return NOW


def public(identity):
    return identity.public_key().public_bytes_raw()


def update_of(client, version):
    """Binary fractions, another one for each node and ranker."""
    return np.array([2.0 ** -(2 + client), 2.0 ** -(8 + 4 * version + client)])


def ranker(version):
    """The announced version is higher, the values are those that nodes computed: one of several that they accept."""
    return ranker_of(version, NAMES, VALUES)


def side_of(fed, client):
    home, terms = fed.folder / f"node-{client}", fed.setup.terms
    guarded = Guarded(home / "policy")
    if not guarded.path.exists():
        limits = Limits(epsilon=1e6, noise_multiplier=0.5, min_clients=3, rounds_per_week=1_000)
        guarded.save(accept(Policy(limits), terms.federation, fed.setup.operators, circle=fed.setup.registry))
    ledger = open_ledger(home / "ledger" / "ledger", delta=1e-5, budget=None, witness=home / "witness" / "ledger")
    return NodeSide(
        Member(client, fed.identities[client], terms, fed.setup.registry), Storage(home / "data", home / "state"),
        ledger, learn=lambda announced: update_of(client, announced.version), adopt=lambda _: None,
        operators=fed.setup.operators, clock=clock, start=Ranker(0, NAMES, VALUES.astype("<f8").tobytes()),
        policy=guarded,
    )  # fmt: skip


def charged(fed, client):
    """The rounds that a node was charged for, as its ledger on the disk has them."""
    path = fed.folder / f"node-{client}" / "ledger" / "ledger"
    lines = path.read_bytes().splitlines() if path.exists() else []
    rounds = [msgspec.json.decode(line[65:]).get("rounds", {}) for line in lines]
    return tuple(sorted(round for by_federation in rounds for round in by_federation.values()))


def window_of(fed, at: Context):
    statements = tuple(by_round[at.round] for by_round in fed.statements)
    keys = checked_keys(statements, setup=fed.setup, round=at.round, now=NOW)
    return Window(fed.setup, at.round, digest_of(ranker(at.ranker)), keys), statements


def announced(fed, at: Context, identity=None):
    return announce(
        "round", ranker(at.ranker), federation=fed.setup.terms.federation, round=at.round,
        identity=identity or fed.server, statements=window_of(fed, at)[1],
    )  # fmt: skip


def tell(fed, client, at: Context):
    """Announces a round to a node; its contribution, or None where it refuses. The person resumes a node that pauses,
    which the model does not have."""
    side, message = side_of(fed, client), announced(fed, at)
    try:
        with contextlib.suppress(FoltrError):
            resume(side)
        answer = respond(side, message)
        question = checked_question(answer, client, message, federation=fed.setup.terms.federation)
        if question is not None:
            answer = respond(side, opening(question, fed.server))
    except FoltrError:
        return None
    fed.sent[client, at] = answer
    return answer


def forge(fed, client, at: Context):
    """An announcement that somebody else signed; whether the node does anything."""
    try:
        return respond(side_of(fed, client), announced(fed, at, new_identity())) is not None
    except FoltrError:
        return False


def restore_node(fed, client):
    """The folder becomes one from before the first round; ledger and witnesses stay."""
    for path in (fed.folder / f"node-{client}" / "data").glob("*"):
        path.unlink()


def restore_operator(fed, copy):
    """B's folder becomes an old copy; its witnesses and keys are in no backup."""
    folder = fed.operators[1].storage.folder
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.is_file():
            path.unlink()
    for name, content in copy.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def copy_of_operator(fed):
    folder = fed.operators[1].storage.folder
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def messages_for(fed, at: Context):
    """Of each honest node what the adversary has for a round, fitting or not, and of each colluder a fresh one."""
    window, _ = window_of(fed, at)
    arrived = {}
    for (client, other), message in sorted(fed.sent.items(), key=lambda one: one[0][1] == at):
        if other.round == at.round or client not in arrived:
            arrived[client] = message
    for client in range(fed.world.honest, fed.world.honest + fed.world.colluders):
        arrived[client] = contribute(np.zeros(2, np.uint64), client, fed.identities[client], window=window)
    return arrived


def close(fed, at: Context):
    """B lists a round; the honest nodes in its list and the messages, or None where it refuses."""
    window, _ = window_of(fed, at)
    arrived = messages_for(fed, at)
    seconds = {client: parts(message, setup=fed.setup)[1] for client, message in arrived.items()}
    try:
        message, _ = fed.operators[1].listing(window, seconds)
    except FoltrError:
        return None
    body = msgspec.msgpack.decode(msgspec.msgpack.decode(message, type=Signed).body, type=Listing)
    return set_of(body.members, fed.setup.registry) - colluders(fed), arrived


def colluders(fed):
    return frozenset(range(fed.world.honest, fed.world.honest + fed.world.colluders))


def open_sum(fed, at: Context, clients, arrived):
    """A lists these honest nodes and the colluders, and asks for B's half; the sum of the vectors, or None."""
    window, now = window_of(fed, at)[0], context(window_of(fed, at)[0])
    members = sorted({*clients, *colluders(fed)})
    secret = key_files.secret_of(fed.operators[0].storage.witness / "keys", at.round)
    state = aggregator.begin(
        0, Secrets(fed.operators[0].identity, secret), Memory(fed.setup.terms.federation), window=window
    )
    state, refused = aggregator.accept_all(
        state, {client: parts(arrived[client], setup=fed.setup)[0] for client in members}
    )
    assert not refused
    listed, coin = to_set(members, fed.setup.registry), bytes(32)
    listing = Listing(
        listed, b"".join(state.digests[client] for client in members), aggregator._commitment(now, 0, coin)
    )
    try:
        fed.operators[1].agreement(window, _signed(fed, now, at, "listing", listing))
        half = fed.operators[1].half(window, _signed(fed, now, at, "agreement", Agreement(listed, coin)))
    except FoltrError:
        return None
    if half in fed.halves:
        return None  # the stored bytes again: nothing new is released
    fed.halves.add(half)
    theirs = msgspec.msgpack.decode(msgspec.msgpack.decode(half, type=Signed).body, type=Half)
    assert theirs.members == listed
    total = np.frombuffer(theirs.totals, np.uint64).copy()
    for client in members:
        total += aggregator.share(state, client)
    return ring.decode(total, Ring(len(fed.setup.registry.clients), 64, 32))


def _signed(fed, now, at, kind, body):
    return sign(fed.operators[0].identity, At(now, at.round, kind, 0), body)
