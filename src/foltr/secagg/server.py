"""The server's side of a round: a generator that yields requests and is sent replies, over any transport.

Sources: Bonawitz et al. 2017, figure 4; Bell et al. 2020. Stages: keys are advertised, secrets shared
among neighbours, masked vectors sent, the survivors agreed on, shares opened. A client whose reply is absent has
dropped out; one whose reply is wrong stops the round with its name: the next round can do without it.

Differs from the paper: every opened share is checked against its owner's commitment, and every secret against the key
or commitment it belongs to, so that the sum is exact or there is none.
"""

from collections.abc import Collection, Generator, Iterable, Mapping
from typing import NamedTuple

import msgspec
import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from foltr.errors import SecureAggregationError, SpecError
from foltr.secagg import graph, messages, ring, shamir, tree
from foltr.secagg.post import Post, Replies, Requests, address, ask, read
from foltr.secagg.recovery import Opened, unmasked
from foltr.secagg.terms import Registry, Terms, context, shape_of, to_set
from foltr.types import Array


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
    view: bytes  # what clients were told of it


def secure_sum(
    clients: Iterable[int], *, terms: Terms, registry: Registry, identity: Ed25519PrivateKey, round: int
) -> Generator[Requests, Replies, Sum]:
    """The exact sum of the clients' vectors; or a SecureAggregationError, and nobody knows more than before."""
    cohort = _cohort(clients, registry)
    post = Post(context(terms, round), round, registry, identity, dict.fromkeys(cohort, 0), dict.fromkeys(cohort, 0))
    adverts = yield from ask(post, "advertise", {client: messages.Start() for client in cohort})
    keys = _distinct(read(post, "advertise", adverts, messages.Keys))
    _at_least(len(keys), terms.least, "clients sent keys")

    circle, neighbourhoods = _neighbourhoods(adverts, terms, registry)
    shares = read(post, "share", (yield from ask(post, "share", neighbourhoods)), messages.Shares)
    _check_sizes(shares, circle)
    _check_circle(shares, shares, circle, "shared their secrets")

    masked = read(post, "mask", (yield from ask(post, "mask", _deliveries(shares, circle))), messages.Masked)
    vectors = {client: _vector(client, body, terms, circle) for client, body in masked.items()}
    _at_least(len(vectors), terms.least, "clients sent their vectors")
    _check_circle(shares, vectors, circle, "sent their vectors")

    survivors = to_set(vectors, registry)
    agreed = yield from ask(post, "agree", {client: messages.Survivors(survivors) for client in vectors})
    _check_agreed(read(post, "agree", agreed, messages.Agreement), messages.agreement(circle.view, survivors))

    agreements = _agreements(post, agreed, masked, circle)
    revealed = read(post, "unmask", (yield from ask(post, "unmask", agreements)), messages.Revealed)
    _check_revealed(revealed, circle)
    opened = Opened(
        terms, post.context, circle.threshold, circle.around, circle.places, keys, shares, vectors, revealed
    )
    return Sum(unmasked(opened), tuple(vectors), post.up, post.down)


def _cohort(clients: Iterable[int], registry: Registry) -> list[int]:
    cohort = sorted(set(clients))
    unknown = [client for client in cohort if client not in registry.keys]
    if unknown:
        raise SpecError(f"clients {unknown[:5]} are not in the registry; register their identities first")
    if len(cohort) < graph.FEWEST:
        raise SpecError(f"{len(cohort)} clients; a secure sum needs {graph.FEWEST} or more")
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
    adverts: Mapping[int, bytes], terms: Terms, registry: Registry
) -> tuple[Circle, dict[int, messages.Neighbourhood]]:
    members = list(adverts)
    shape = shape_of(terms, len(members))
    levels = tree.levels([tree.leaf(advert) for advert in adverts.values()])
    root, bits = levels[-1][0], to_set(members, registry)
    view = messages.view(bits, root)
    around, requests = {}, {}
    for place, client in enumerate(members):
        near = graph.neighbours(view, len(members), shape.degree, place)
        around[client] = tuple(members[other] for other in near)
        keys = [adverts[other] for other in around[client]]
        requests[client] = messages.Neighbourhood(bits, root, tree.path(levels, place), keys)
    places = {client: {other: k for k, other in enumerate(near)} for client, near in around.items()}
    return Circle(around, places, shape.threshold, view), requests


def _check_sizes(shares: Mapping[int, messages.Shares], circle: Circle) -> None:
    for client, body in shares.items():
        expected = len(circle.around[client])
        if len(body.sealed) != expected or len(body.commitments) != expected or not all(body.sealed):
            raise SecureAggregationError(
                f"client {client} sent shares for {len(body.sealed)} neighbours, not {expected}"
            )


def _check_circle(owners: Iterable[int], holders: Collection[int], circle: Circle, what: str) -> None:
    """Each owner's secrets can be found again with the help of the holders who remain."""
    for owner in owners:
        left = sum(other in holders for other in circle.around[owner])
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
    post: Post, agreed: Mapping[int, bytes], masked: Mapping[int, messages.Masked], circle: Circle
) -> dict[int, messages.Agreements]:
    """A threshold of signatures for each client that can have so many; the others count as dropped out."""
    signatures = {
        client: messages.opened(raw, address(post, "reply", "agree", client)).signature
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
