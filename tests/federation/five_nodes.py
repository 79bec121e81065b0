"""Five real nodes with documents, indexes and logs of choices of their own, and a coordinator of them."""

from typing import NamedTuple

import numpy as np

from foltr import node as foltr_node
from foltr.federation.coordinator import Coordinator, OneServer, TwoOperators
from foltr.federation.membership import Member, Storage
from foltr.federation.operator import Operator
from foltr.federation.policy import Guarded, Limits, Policy, accept
from foltr.federation.server import add_scaled, init_state
from foltr.node.learning import federated, versions
from foltr.secagg.crypto import new_identity
from foltr.secagg.terms import Terms, new_federation, registry
from foltr.secagg.two_servers import two_servers

NODES = 5
TOPICS = ("tax", "garden", "piano", "travel", "recipe")
CLIP = 0.5
FRACTION = 32


def fill(home, number):
    """A node whose person opened the second result of twelve searches."""
    folder = home / "documents"
    folder.mkdir(parents=True)
    for k in range(24):
        words = f"{TOPICS[number]} note {k} " + " ".join(f"word{(k * 7 + j) % 30}" for j in range(12))
        (folder / f"{TOPICS[number]}-{k}.txt").write_text(f"{words}. " * (1 + k % 3))
    with foltr_node.open(home / "home") as node:
        node.add([folder])
        for _ in node.index():
            pass
        for k in range(12):
            results = node.search(f"word{(k * 5 + number) % 30} {TOPICS[number]}")
            node.settle(results)
            node.choose(results, results.rows[(1 + k) % 3].id)


class Fed(NamedTuple):
    terms: Terms
    registry: object
    identities: dict
    server: object
    operators: tuple
    secrets: tuple


def federation(**terms):
    """Terms, keys and registry; the parameters are those of a search node."""
    identities, server = {client: new_identity() for client in range(NODES)}, new_identity()
    public = {client: one.public_key().public_bytes_raw() for client, one in identities.items()}
    secrets = new_identity(), new_identity()
    length = len(federated.parameter_names())
    usual = {"bits": 64, "fraction": FRACTION, "clip": CLIP, "dropouts": 0.2}
    return Fed(
        Terms(new_federation(), length, **usual | terms), registry(server.public_key().public_bytes_raw(), public),
        identities, server, tuple(one.public_key().public_bytes_raw() for one in secrets), secrets,
    )  # fmt: skip


def member(fed, client):
    return Member(client, fed.identities[client], fed.terms, fed.registry)


def join(places, fed):
    """The person of a node accepts the federation, with limits that the test's terms keep."""
    limits = Limits(epsilon=50.0, delta=1e-5, noise_multiplier=0.5, min_clients=4)
    Guarded(federated.policy_folder(places)).save(accept(Policy(limits), fed.terms.federation, fed.operators))


def collector(fed, transport, folder, mode, clock=None):
    extra = {} if clock is None else {"clock": clock}
    coordinator = Coordinator(fed.terms, fed.registry, fed.server, federated.parameter_names(), transport, **extra)
    if mode == "one-server":
        return OneServer(coordinator)
    setup = two_servers(fed.terms, fed.registry, fed.operators)
    operators = tuple(
        Operator(index, identity, setup, Storage(folder / f"operator-{index}", folder / f"witness-{index}"))
        for index, identity in enumerate(fed.secrets)
    )
    return TwoOperators(coordinator, setup, operators, folder / "coordinator" / "journal")


def start():
    names = federated.parameter_names()
    return init_state(versions.values_of(versions.start_weights(), names))


OPTIMIZER = add_scaled(versions.FEDERATED.server_learning_rate)
STEP = 2.0 ** (1 - FRACTION) * versions.FEDERATED.server_learning_rate  # a value is cut to a multiple of 2^-fraction


def plain_round(updates, parameters):
    """The model after a plain mean of the clipped updates [n, P]."""
    norms = np.linalg.norm(updates, axis=1, keepdims=True)
    clipped = updates * np.minimum(1, CLIP / np.maximum(norms, CLIP))
    return parameters + versions.FEDERATED.server_learning_rate * clipped.mean(axis=0)
