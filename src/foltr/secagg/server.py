"""The server's side of a round: a generator that yields requests and is sent replies, over any transport.

Sources: Bonawitz et al. 2017, figure 4; Bell et al. 2020. Stages: keys are advertised, secrets shared
among neighbours, masked vectors sent, the survivors agreed on, shares opened. A client whose reply is absent has
dropped out; one whose reply is invalid stops the round with an error that names it, so that the next round excludes it.

From masked vectors and opened shares to the sum: of a client whose vector arrived the self mask is reconstructed; of
one that shared its secrets and then dropped out, the mask key, and with it the masks that its neighbours added.

Differs from the paper: every opened share is checked against its owner's commitment, and every secret against the key
or commitment it belongs to, so that the sum is exact or there is none.
"""

from collections.abc import Collection, Generator, Iterable, Mapping
from typing import NamedTuple, TypeAlias

import msgspec
import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from foltr.errors import SecureAggregationError, SpecError
from foltr.secagg import crypto, graph, messages, ring, shamir
from foltr.secagg.guarantee import Guarantee
from foltr.secagg.messages import (
    Address,
    Body,
    Direction,
    Kind,
    Registry,
    Stage,
    Terms,
    context,
    guaranteed,
    receive,
    send,
    shape_of,
    to_set,
)
from foltr.types import Array

Requests: TypeAlias = dict[int, bytes]
Replies: TypeAlias = Mapping[int, bytes]


class Sum(NamedTuple):
    total: Array  # [P] of the ring
    included: tuple[int, ...]  # whose vectors are in it, sorted
    up: dict[int, int]  # bytes that each client sent
    down: dict[int, int]  # bytes that each client was sent


class Circle(NamedTuple):
    """The neighbour graph of a round."""

    around: dict[int, tuple[int, ...]]  # neighbours of each client, sorted
    places: dict[int, dict[int, int]]  # of each neighbour in that order
    threshold: int
    view: bytes  # the graph as described to clients


class _Post(NamedTuple):
    """Signed requests to clients, and their verified replies."""

    context: bytes
    round: int
    registry: Registry
    identity: Ed25519PrivateKey
    up: dict[int, int]  # bytes that each client sent so far
    down: dict[int, int]  # bytes that each client was sent so far


class _Opened(NamedTuple):
    """The server's state after shares are opened."""

    terms: Terms
    context: bytes
    threshold: int
    around: Mapping[int, tuple[int, ...]]  # neighbours of each client
    places: Mapping[int, Mapping[int, int]]  # of each neighbour in that order
    keys: Mapping[int, messages.Keys]
    shares: Mapping[int, messages.Shares]  # of those who take part
    vectors: Mapping[int, Array]  # of those who survive
    revealed: Mapping[int, messages.Revealed]


def aggregate(
    clients: Iterable[int], *, terms: Terms, registry: Registry, identity: Ed25519PrivateKey, round: int, ranker: bytes
) -> Generator[Requests, Replies, Sum]:
    """The exact sum of the clients' vectors; or a SecureAggregationError, and nothing is revealed."""
    sizes = guaranteed(terms, registry)
    cohort = _cohort(clients, registry, sizes)
    seal = context(terms, registry, round, ranker)
    post = _Post(seal, round, registry, identity, dict.fromkeys(cohort, 0), dict.fromkeys(cohort, 0))
    adverts = yield from _ask(post, "advertise", {client: messages.Start() for client in cohort})
    keys = _distinct(_read(post, "advertise", adverts, messages.Keys))
    _at_least(len(keys), sizes.min_clients, "clients sent keys")

    circle, neighbourhoods = _neighbourhoods(adverts, terms, sizes, registry)
    shares = _read(post, "share", (yield from _ask(post, "share", neighbourhoods)), messages.Shares)
    _check_sizes(shares, circle)
    _check_circle(shares, shares, circle, "shared their secrets")

    masked = _read(post, "mask", (yield from _ask(post, "mask", _deliveries(shares, circle))), messages.Masked)
    vectors = {client: _vector(client, body, terms, circle) for client, body in masked.items()}
    _at_least(len(vectors), sizes.min_clients, "clients sent their vectors")
    _check_circle(shares, vectors, circle, "sent their vectors")

    survivors = to_set(vectors, registry)
    agreed = yield from _ask(post, "agree", {client: messages.Survivors(survivors) for client in vectors})
    _check_agreed(_read(post, "agree", agreed, messages.Agreement), messages.agreement(circle.view, survivors))

    agreements = _agreements(post, agreed, masked, circle)
    revealed = _read(post, "unmask", (yield from _ask(post, "unmask", agreements)), messages.Revealed)
    _check_revealed(revealed, circle)
    opened = _Opened(
        terms, post.context, circle.threshold, circle.around, circle.places, keys, shares, vectors, revealed
    )
    return Sum(_unmasked(opened), tuple(vectors), post.up, post.down)


def _cohort(clients: Iterable[int], registry: Registry, sizes: Guarantee) -> list[int]:
    cohort = sorted(set(clients))
    unknown = [client for client in cohort if client not in registry.keys]
    if unknown:
        raise SpecError(f"clients {unknown[:5]} are not in the registry; register their identities first")
    if len(cohort) < sizes.min_clients:
        raise SpecError(f"{len(cohort)} clients; a sum of this federation needs {sizes.min_clients} or more")
    return cohort


def _distinct(keys: dict[int, messages.Keys]) -> dict[int, messages.Keys]:
    """Every key has its size and one owner."""
    owners: dict[bytes, int] = {}
    for client, both in keys.items():
        for key in msgspec.structs.astuple(both):
            if key in owners:
                raise SecureAggregationError(
                    f"clients {owners[key]} and {client} sent the same key; each needs its own"
                )
            owners[key] = client
    return keys


def _neighbourhoods(
    adverts: Mapping[int, bytes], terms: Terms, sizes: Guarantee, registry: Registry
) -> tuple[Circle, dict[int, messages.Neighbourhood]]:
    members = list(adverts)
    shape = shape_of(terms, sizes, len(members))
    levels = graph.merkle_levels([graph.merkle_leaf(advert) for advert in adverts.values()])
    root, bits = levels[-1][0], to_set(members, registry)
    view = messages.view(bits, root)
    around, requests = {}, {}
    for place, client in enumerate(members):
        near = graph.neighbours(view, len(members), shape.degree, place)
        around[client] = tuple(members[other] for other in near)
        keys = [adverts[other] for other in around[client]]
        requests[client] = messages.Neighbourhood(bits, root, graph.merkle_path(levels, place), keys)
    places = {client: {other: k for k, other in enumerate(near)} for client, near in around.items()}
    return Circle(around, places, shape.threshold, view), requests


def _check_sizes(shares: Mapping[int, messages.Shares], circle: Circle) -> None:
    for client, body in shares.items():
        expected = len(circle.around[client])
        if len(body.sealed) != expected or len(body.commitments) != expected or not all(body.sealed):
            raise SecureAggregationError(
                f"client {client} sent shares for {len(body.sealed)} neighbours, not {expected}"
            )


def _check_circle(owners: Iterable[int], remaining: Collection[int], circle: Circle, what: str) -> None:
    """Each owner's secrets can be found again from the shares of the neighbours that remain."""
    for owner in owners:
        left = sum(other in remaining for other in circle.around[owner])
        if left < circle.threshold:
            raise SecureAggregationError(
                f"{left} neighbours of client {owner} {what}, {circle.threshold} are needed; no sum"
            )


def _deliveries(shares: Mapping[int, messages.Shares], circle: Circle) -> dict[int, messages.Deliveries]:
    def sealed(sender: int, receiver: int) -> bytes:
        return shares[sender].sealed[circle.places[sender][receiver]] if sender in shares else b""

    return {
        client: messages.Deliveries([sealed(other, client) for other in circle.around[client]]) for client in shares
    }


def _vector(client: int, body: messages.Masked, terms: Terms, circle: Circle) -> Array:
    expected = terms.length * terms.bits // 8
    if len(body.vector) != expected:
        raise SecureAggregationError(f"client {client} sent a vector of {len(body.vector)} bytes, expected {expected}")
    if len(body.proofs) != len(circle.around[client]):
        raise SecureAggregationError(f"client {client} sent {len(body.proofs)} proofs, one for each neighbour expected")
    return np.frombuffer(body.vector, ring.dtype(terms.bits))


def _check_agreed(agreed: Mapping[int, messages.Agreement], expected: messages.Agreement) -> None:
    for client, body in agreed.items():
        if body != expected:
            raise SecureAggregationError(f"client {client} signed another set of survivors than it was sent")


def _agreements(
    post: _Post, agreed: Mapping[int, bytes], masked: Mapping[int, messages.Masked], circle: Circle
) -> dict[int, messages.Agreements]:
    """A threshold of signatures for each client that can have so many; the others count as dropped out."""
    signatures = {
        client: messages.opened(raw, _address(post, "reply", "agree", client)).signature
        for client, raw in agreed.items()
    }
    requests = {}
    for client in agreed:
        near = circle.around[client]
        chosen = set([other for other in near if other in signatures][: circle.threshold])
        if len(chosen) == circle.threshold:
            proofs = [masked[other].proofs[circle.places[other][client]] if other in masked else b"" for other in near]
            signed = [signatures[other] if other in chosen else b"" for other in near]
            requests[client] = messages.Agreements(signed, proofs)
    return requests


def _check_revealed(revealed: Mapping[int, messages.Revealed], circle: Circle) -> None:
    for client, body in revealed.items():
        if len(body.shares) != len(circle.around[client]) or any(
            len(one) not in (0, shamir.SHARE) for one in body.shares
        ):
            raise SecureAggregationError(f"client {client} did not open one share for each of its neighbours")


def _at_least(found: int, wanted: int, what: str) -> None:
    if found < wanted:
        raise SecureAggregationError(f"{found} {what}, at least {wanted} are needed; no sum")


# --- requests and replies: signed, counted, and only from those who were asked --------------------------------------


def _ask(post: _Post, stage: Stage, bodies: Mapping[int, Body]) -> Generator[Requests, Replies, dict[int, bytes]]:
    """Replies by client, in the order of clients; whoever is absent has dropped out."""
    requests = {c: send(post.identity, _address(post, "request", stage, c), body) for c, body in bodies.items()}
    replies = yield requests
    for client in replies.keys() - requests.keys():
        raise SecureAggregationError(f"client {client} replied at stage {stage!r} but was not asked or has dropped out")
    for client, request in requests.items():
        post.down[client] += len(request)
        post.up[client] += len(replies.get(client, b""))
    return {client: replies[client] for client in sorted(replies)}


def _read(post: _Post, stage: Stage, replies: Replies, kind: type[Kind]) -> dict[int, Kind]:
    """The contents; a reply that is not its sender's stops the round."""
    keys = post.registry.keys
    return {c: receive(raw, _address(post, "reply", stage, c), keys[c], kind) for c, raw in replies.items()}


def _address(post: _Post, direction: Direction, stage: Stage, client: int) -> Address:
    return Address(post.context, post.round, direction, stage, client)


# --- masks that do not cancel -----------------------------------------------------------------------------------


def _unmasked(opened: _Opened) -> Array:
    """The exact sum of the survivors' vectors. [P]"""
    secrets = {owner: _secret(opened, owner) for owner in opened.shares}  # all of them, before anything is summed
    total = np.zeros(opened.terms.length, ring.dtype(opened.terms.bits))
    for owner, secret in secrets.items():
        if owner in opened.vectors:
            total += opened.vectors[owner] - crypto.self_mask(secret, opened.terms.length, opened.terms.bits)
        else:
            total += _left_behind(opened, owner, secret)
    return total


def _left_behind(opened: _Opened, owner: int, secret: bytes) -> Array:
    """What a client would have added against the masks of its surviving neighbours. [P]"""
    keys = {other: opened.keys[other].mask for other in opened.around[owner] if other in opened.vectors}
    terms = opened.terms
    return crypto.pairwise_mask(secret, owner, keys, length=terms.length, bits=terms.bits, context=opened.context)


def _secret(opened: _Opened, owner: int) -> bytes:
    """A client's self mask if it survived, else its mask key."""
    purpose = "seed" if owner in opened.vectors else "mask"
    shares: dict[int, bytes] = {}
    for place, recipient in enumerate(opened.around[owner]):
        if recipient in opened.revealed and len(shares) < opened.threshold:
            shares[place] = _checked(opened, owner, recipient, place, purpose)
    if len(shares) < opened.threshold:
        raise SecureAggregationError(
            f"{len(shares)} neighbours opened their shares of client {owner}, {opened.threshold} are needed; no sum"
        )
    secret = shamir.combine(shares)
    if not _belongs(opened, owner, purpose, secret):
        raise SecureAggregationError(f"client {owner} shared a {purpose} secret that is not its own; no sum")
    return secret


def _checked(opened: _Opened, owner: int, recipient: int, place: int, purpose: str) -> bytes:
    """The share that a neighbour opened, if it is the one that the owner committed to."""
    share = opened.revealed[recipient].shares[opened.places[recipient][owner]]
    both, half = opened.shares[owner].commitments[place], crypto.COMMITMENT
    expected = both[:half] if purpose == "mask" else both[half:]
    if crypto.commitment(opened.context, owner, recipient, purpose, share) != expected:
        raise SecureAggregationError(
            f"client {recipient} opened a share of client {owner} that is not the one committed to; "
            f"one of the two is dishonest; no sum"
        )
    return share


def _belongs(opened: _Opened, owner: int, purpose: str, secret: bytes) -> bool:
    if purpose == "mask":
        return crypto.public_of(crypto.agreement_key(secret)) == opened.keys[owner].mask
    return crypto.seed_commitment(opened.context, owner, secret) == opened.shares[owner].seed
