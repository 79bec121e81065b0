"""What the tests of two aggregators share: a small federation, its contributions, and rounds step by step."""

from hashlib import sha256
from typing import NamedTuple

import numpy as np

from foltr.secagg import aggregator, crypto, ring
from foltr.secagg.aggregator import Secrets
from foltr.secagg.terms import Terms, new_federation, registry
from foltr.secagg.two_in_process import keys_of
from foltr.secagg.two_servers import TwoServers, Window, contribute, parts, two_servers

RANKER = bytes(range(32))


class Federation(NamedTuple):
    identities: dict
    operators: tuple  # private identities
    setup: TwoServers
    seed: bytes  # of the keys of all rounds

    def secrets(self, round=1):
        """The private keys of both aggregators in a round."""
        return tuple(
            Secrets(identity, sha256(self.seed + bytes([index]) + round.to_bytes(8, "big")).digest())
            for index, identity in enumerate(self.operators)
        )

    def window(self, round=1, ranker=RANKER, setup=None):
        return Window(setup or self.setup, round, ranker, keys_of(self.secrets(round)))


def federation(clients=7, length=5, groups=1, federation=None, **terms):
    """With names that are not places, so that one taken for the other shows."""
    identities = {10 + 3 * k: crypto.new_identity() for k in range(clients)}
    known = registry(public(crypto.new_identity()), {name: public(one) for name, one in identities.items()})
    operators = crypto.new_identity(), crypto.new_identity()
    pair = tuple(map(public, operators))
    setup = two_servers(Terms(federation or new_federation(), length, **terms), known, pair, groups=groups)
    return Federation(identities, operators, setup, crypto.new_secret())


def public(identity):
    return identity.public_key().public_bytes_raw()


def vectors(fed):
    """Small signed numbers, so that an honest sum is within the clip."""
    terms = fed.setup.terms
    steps = np.arange(len(fed.identities) * terms.length, dtype=np.int64).reshape(len(fed.identities), -1) * 37 - 200
    return dict(zip(fed.identities, steps.astype(ring.dtype(terms.bits)), strict=True))


def plain_sum(fed, names):
    rows = vectors(fed)
    return np.array([rows[name] for name in names]).sum(axis=0, dtype=ring.dtype(fed.setup.terms.bits))


def contributions(fed, round=1, ranker=RANKER, rows=None, setup=None, window=None):
    rows = vectors(fed) if rows is None else rows
    window = window or fed.window(round, ranker, setup)
    return {name: contribute(row, name, fed.identities[name], window=window) for name, row in rows.items()}


def inboxes(fed, sent):
    """The parts of all contributions for aggregator 0 and for aggregator 1."""
    both = {name: parts(message, setup=fed.setup) for name, message in sent.items()}
    return [{name: pair[index] for name, pair in both.items()} for index in (0, 1)]


def begun(fed, index, round=1, ranker=RANKER, memory=None):
    memory = memory or aggregator.Memory(fed.setup.terms.federation)
    return aggregator.begin(index, fed.secrets(round)[index], memory, window=fed.window(round, ranker))


def listed(fed, sent=None, round=1, ranker=RANKER, boxes=None):
    """Both aggregators with all parts, and their lists."""
    boxes = boxes or inboxes(fed, contributions(fed, round, ranker) if sent is None else sent)
    states, lists = [], []
    for index in (0, 1):
        state, _ = aggregator.accept_all(begun(fed, index, round, ranker), boxes[index])
        state, message = aggregator.listing(state)
        states.append(state)
        lists.append(message)
    return states, lists


def agreed(fed, **faults):
    """Both aggregators after they agreed on the clients, and their agreements."""
    states, lists = listed(fed, **faults)
    both = [aggregator.agree(states[index], lists[1 - index]) for index in (0, 1)]
    return [state for state, _ in both], [message for _, message in both]
