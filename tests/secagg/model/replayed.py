"""A view of the model against the real client: real keys, real messages, a server that lies as the paths say.

The colluders follow the protocol where that helps: they share, mask with everybody, sign every claim and open all that
they hold. A root of the model is a tree with other keys of a colluder, who must then be among the members. `recovered`
is what the adversary computes from the replies.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from decisions import members_of
from formal import NOBODY, Path, World
from small_rounds import RANKER, Federation, asked, certificate_of, content, federation, members, said, signature_of

from foltr.errors import SecureAggregationError
from foltr.secagg import certificate, crypto, graph, messages, ring, rules, shamir
from foltr.secagg.client import Client, answer
from foltr.secagg.messages import Deliveries, Neighbourhood, Opening, Survivors
from foltr.secagg.terms import context, to_set


class Replay(NamedTuple):
    fed: Federation
    ids: list[int]  # of the real clients, by their number in the model
    paths: Sequence[Path]
    vectors: dict[int, np.ndarray]  # masked, by client of the model
    refused: dict[int, str]  # why a client sent no further reply
    shares: dict[tuple[int, tuple, bool], dict[int, bytes]]  # by owner, graph and kind (True: seed): by place
    keys: dict[int, messages.Keys]  # public
    corrupt: dict[int, Client]  # states of colluders


def replay(world: World, paths: Sequence[Path], dropouts: float, corrupt: float) -> Replay:
    fed = federation(world.clients, length=3, dropouts=dropouts, corrupt=corrupt)
    ids = sorted(fed.identities)
    states, adverts = {}, {}
    for client, state in enumerate(members(fed).values()):
        states[client], adverts[client] = answer(state, asked(fed, "advertise", ids[client], messages.Start()))
    found = Replay(fed, ids, paths, {}, {}, {}, {c: content(a, messages.Keys) for c, a in adverts.items()}, {})
    rooms = {graph_of(path): _shared(world, found, states, adverts, path) for path in paths}
    masked, signed = {}, {}
    for path in paths:
        after, sealed = rooms[graph_of(path)]
        with _refusals(found, path.client):
            deliveries = [sealed[other][path.client] if path.held >> other & 1 else b"" for other in _around(path)]
            states[path.client], reply = answer(
                after[path.client], asked(fed, "mask", ids[path.client], Deliveries(deliveries))
            )
            body = content(reply, messages.Masked)
            found.vectors[path.client] = np.frombuffer(body.vector, ring.dtype(fed.terms.bits))
            masked[path.client] = dict(zip(_around(path), body.proofs, strict=True))
            if path.survivors != NOBODY:
                survivors = Survivors(to_set([ids[c] for c in members_of(path.survivors)], fed.registry))
                states[path.client], reply = answer(
                    states[path.client], asked(fed, "agree", ids[path.client], survivors)
                )
                signed[path.client] = signature_of(reply)
    for path in paths:
        if path.client in signed:
            with _refusals(found, path.client):
                _unmasked(world, found, rooms[graph_of(path)][0], states[path.client], path, masked, signed)
    return found


def graph_of(path: Path) -> tuple[int, int]:
    return path.members, path.root


def _around(path: Path) -> list[int]:
    return sorted(members_of(path.members) - {path.client})


class _refusals:  # noqa: N801
    """A client that refuses sends nothing more; the round goes on."""

    def __init__(self, found: Replay, client: int) -> None:
        self.found, self.client = found, client

    def __enter__(self) -> None: ...

    def __exit__(self, kind, problem, _) -> bool:
        if kind is not None and issubclass(kind, SecureAggregationError):
            self.found.refused[self.client] = str(problem)
            return True
        return False


def _shared(world: World, found: Replay, states, adverts, path: Path):
    """All members of a graph answer `share` in it, restored to before that stage: their states and sealed shares."""
    fed, ids, named = found.fed, found.ids, sorted(members_of(path.members))
    leaves = [adverts[client] + bytes(path.root if client == named[-1] else 0) for client in named]
    tree = graph.merkle_levels([graph.merkle_leaf(leaf) for leaf in leaves])
    after, sealed = {}, {}
    for place, client in enumerate(named):
        state = states[client]
        if client == named[-1] and path.root:  # a colluder accepts any root
            state = msgspec.structs.replace(state, advert=leaves[place])
        keys = [messages.signed_keys(adverts[other]) for other in named if other != client]
        request = Neighbourhood(
            to_set([ids[c] for c in named], fed.registry), tree[-1][0], graph.merkle_path(tree, place), keys
        )
        with _refusals(found, client):
            after[client], reply = answer(state, asked(fed, "share", ids[client], request))
            sealed[client] = dict(
                zip([c for c in named if c != client], content(reply, messages.Shares).sealed, strict=True)
            )
    for client in named:
        if world.colluders >> client & 1 and client in after:
            deliveries = [sealed[other][client] for other in named if other != client]
            state, _ = answer(after[client], asked(fed, "mask", ids[client], Deliveries(deliveries)))
            found.corrupt[client] = state
            for other in named:
                if other != client and not world.colluders >> other & 1:
                    _collect(found, other, path, client, state.held[ids[other]])
    return after, sealed


def _collect(found: Replay, owner: int, path: Path, holder: int, both: bytes) -> None:
    place = sorted(members_of(path.members) - {owner}).index(holder)
    found.shares.setdefault((owner, graph_of(path), False), {})[place] = both[: shamir.SHARE]
    found.shares.setdefault((owner, graph_of(path), True), {})[place] = both[shamir.SHARE :]


def _unmasked(world: World, found: Replay, after, state: Client, path: Path, masked, signed) -> None:
    fed, ids = found.fed, found.ids
    signatures, proofs = {}, []
    same = {one.client for one in found.paths if one.claim == path.claim and one.client in signed}
    for other in same | members_of(world.colluders):
        forged = said(fed, "agree", ids[other], messages.agreement(state.view, state.survivors))
        signatures[ids[other]] = signature_of(forged) if world.colluders >> other & 1 else signed[other]
    if not rules.enough_signers(len(signatures), certificate.needed(state.sizes)):
        signatures = {client: signatures.get(client, bytes(64)) for client in ids}
    for other in _around(path):
        if world.colluders >> other & 1:
            proofs.append(
                crypto.proof(after[other].shared[ids[path.client]], state.context, ids[other], ids[path.client])
            )
        else:
            proofs.append(masked.get(other, {}).get(path.client, b""))
    opening = Opening(certificate_of(state, signatures), proofs)
    _, reply = answer(state, asked(fed, "unmask", ids[path.client], opening))
    for other, share in zip(_around(path), content(reply, messages.Revealed).shares, strict=True):
        if share and not world.colluders >> other & 1:
            place = sorted(members_of(path.members) - {other}).index(path.client)
            for seed in (True, False):  # which kind it is shows when it fits the others
                if share == _kind(found, other, path, state, seed):
                    found.shares.setdefault((other, graph_of(path), seed), {})[place] = share


def _kind(found: Replay, owner: int, path: Path, state: Client, seed: bool) -> bytes:
    """The server knows the kind by the owner's commitments; here it is looked up in the holder's state."""
    both = state.held[found.ids[owner]]
    return both[shamir.SHARE :] if seed else both[: shamir.SHARE]


def secret(found: Replay, world: World, owner: int, seed: bool) -> bytes | None:
    """A secret of an honest client, from a threshold of shares in one graph; None if there are too few."""
    for (whose, where, kind), shares in found.shares.items():
        threshold = world.shapes[where[0].bit_count()].threshold
        if (whose, kind) == (owner, seed) and len(shares) >= threshold:
            return shamir.combine(dict(sorted(shares.items())[:threshold]))
    return None


def recovered(found: Replay, world: World, clients: Iterable[int]) -> np.ndarray | None:
    """The sum of some honest vectors from the adversary's view; None if a mask stays unknown."""
    clients, terms = set(clients), found.fed.terms
    total = np.zeros(terms.length, ring.dtype(terms.bits))
    seal = context(terms, found.fed.registry, 1, RANKER)

    def mask_of(key: bytes, owner: int, other: int) -> np.ndarray:
        public = {found.ids[other]: found.keys[other].mask}
        size = {"length": terms.length, "bits": terms.bits}
        return crypto.pairwise_mask(key, found.ids[owner], public, **size, context=seal)

    for path in found.paths:
        if path.client not in clients:
            continue
        seed = secret(found, world, path.client, True)
        if seed is None or path.client not in found.vectors:
            return None
        total += found.vectors[path.client] - crypto.self_mask(seed, terms.length, terms.bits)
        for other in members_of(path.held) - clients:
            key = found.corrupt[other].mask if world.colluders >> other & 1 else secret(found, world, other, False)
            if key is not None:
                total += mask_of(key, other, path.client)
            elif (own := secret(found, world, path.client, False)) is not None:  # the mask of two follows from either
                total -= mask_of(own, path.client, other)
            else:
                return None
    return total
