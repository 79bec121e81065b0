"""What the tests of secure aggregation share: a small federation, and rounds in it."""

import hashlib
import os
from typing import NamedTuple

import msgspec
import numpy as np

from foltr.federation.announcement import announce, digest_of, ranker_of
from foltr.secagg import certificate, messages, ring
from foltr.secagg import crypto as primitives
from foltr.secagg.client import answer, join
from foltr.secagg.in_process import run_in_memory
from foltr.secagg.messages import STAGES, Address, Envelope, send
from foltr.secagg.server import aggregate
from foltr.secagg.terms import Terms, context, guaranteed, new_federation, registry, to_set

LENGTH = 6  # numbers of the ranker that nodes on a disk are announced
ANNOUNCED = ranker_of(1, tuple(f"feature {place}" for place in range(LENGTH)), np.zeros(LENGTH))
RANKER = digest_of(ANNOUNCED)
SERVERS = {}  # private identities of coordinators, by their public ones


class Federation(NamedTuple):
    identities: dict
    server: object
    registry: object
    terms: Terms


def federation(clients, length=5, **terms):
    """With names that are not places, so that one taken for the other shows."""
    identities = {10 + 3 * k: primitives.new_identity() for k in range(clients)}
    server = primitives.new_identity()
    SERVERS[public(server)] = server
    keys = {name: public(identity) for name, identity in identities.items()}
    return Federation(identities, server, registry(public(server), keys), Terms(new_federation(), length, **terms))


def announced(fed, round=1, identity=None):
    """The announcement of a round, signed by the coordinator unless by somebody else."""
    return announce("round", ANNOUNCED, federation=fed.terms.federation, round=round, identity=identity or fed.server)


def announced_in(member, round):
    """The announcement of a round to a member of any federation of these tests."""
    return announced(member, round, SERVERS[member.registry.server])


def public(identity):
    return identity.public_key().public_bytes_raw()


def vectors(fed):
    """Any integers of the ring, of all sizes."""
    wide = np.arange(len(fed.identities) * fed.terms.length, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    rows = wide.reshape(len(fed.identities), -1).astype(ring.dtype(fed.terms.bits))
    return dict(zip(fed.identities, rows, strict=True))


def members(fed, round=1, rows=None):
    rows = vectors(fed) if rows is None else rows
    return {
        name: join(name, identity, rows[name], terms=fed.terms, registry=fed.registry, round=round, ranker=RANKER)
        for name, identity in fed.identities.items()
    }


def server_of(fed, round=1, clients=None):
    clients = fed.identities if clients is None else clients
    return aggregate(clients, terms=fed.terms, registry=fed.registry, identity=fed.server, round=round, ranker=RANKER)


def run(fed, round=1, **faults):
    return run_in_memory(server_of(fed, round), members(fed, round), **faults)


def plain_sum(fed, names):
    rows = vectors(fed)
    return np.array([rows[name] for name in names]).sum(axis=0, dtype=ring.dtype(fed.terms.bits))


def until(fed, stage, silent=()):
    """An honest round up to a stage: the server, the clients' states, and the requests that are to be answered."""
    server, states = server_of(fed), members(fed)
    requests = next(server)
    for current in STAGES:
        if current == stage:
            return server, states, requests
        requests = server.send(answers(states, requests, silent if current == "mask" else ()))
    raise ValueError(stage)


def answers(states, requests, silent=()):
    """Honest replies; the states move on."""
    replies = {}
    for client, request in requests.items():
        if client not in silent:
            states[client], replies[client] = answer(states[client], request)
    return replies


def content(message, kind):
    return msgspec.msgpack.decode(msgspec.msgpack.decode(message, type=Envelope).body, type=kind)


def sizes(fed):
    return guaranteed(fed.terms, fed.registry)


def sealed_for(fed, round=1):
    return context(fed.terms, fed.registry, round, RANKER)


def asked(fed, stage, client, body, round=1):
    """A request that a server which breaks the rules signs."""
    return send(fed.server, Address(sealed_for(fed, round), round, "request", stage, client), body)


def said(fed, stage, client, body, round=1):
    """A reply that a client which breaks the rules signs."""
    return send(fed.identities[client], Address(sealed_for(fed, round), round, "reply", stage, client), body)


def certificate_of(state, signatures, claim=None):
    """A certificate for the claim of a client from any signatures, true or not, by client; as a server makes it."""
    claim = messages.agreement(state.view, state.survivors) if claim is None else claim
    signatures = dict(sorted(signatures.items()))
    signers = to_set(signatures, state.registry)
    tags = b"".join(certificate.tag(state.context, claim.digest, *one) for one in signatures.items())
    number = certificate.samples(len(signatures), state.sizes, failure=state.terms.failure)
    places = certificate.draw(state.context, claim.digest, signers, tags, number)
    shown = [list(signatures.values())[place] for place in places]
    return messages.Certificate(signers, tags, b"".join(shown))


def signature_of(reply):
    return msgspec.msgpack.decode(reply, type=Envelope).signature


def counted(monkeypatch, start):
    """In place of the operating system: a hash of a counter."""
    state = {"calls": start}

    def urandom(size):
        state["calls"] += 1
        return hashlib.shake_256(str(state["calls"]).encode()).digest(size)

    monkeypatch.setattr(os, "urandom", urandom)
