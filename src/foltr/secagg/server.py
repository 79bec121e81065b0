"""The server's side of a round: a generator that yields requests and is sent replies, over any transport.

Sources: Bonawitz et al. 2017, figure 4; Bell et al. 2020. Stages: keys are advertised, secrets shared
among neighbours, masked vectors sent, the survivors agreed on, shares opened. A client whose reply is absent has
dropped out. So has one whose reply is malformed, too long, of another stage or round, or not its own: its name and the
reason are in the result. Whoever was not asked is not heard. `deadlines.conduct` waits for replies: here is no clock.

A client that cannot use a neighbour's key or shares leaves the entry of that neighbour empty in its signed reply: a
report. Either may be lying, so the one with the most reports for and against it is dropped, then the next; of two with
one report, the one reported. A lying client aborts this round and at most one more.

Differs from the paper: what a bad party sends drops it and not the round. `unmasking` has the last step.
"""

from collections import Counter
from collections.abc import Collection, Generator, Iterable, Mapping
from typing import NamedTuple

import msgspec
import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from foltr.errors import SecureAggregationError, SpecError
from foltr.secagg import certificate, claims, crypto, graph, messages, ring, shamir
from foltr.secagg.claims import Claim
from foltr.secagg.guarantee import Guarantee
from foltr.secagg.messages import Kind
from foltr.secagg.post import Post, Replies, Requests, ask, at_least, blamed, open_post, read, refuse, registered
from foltr.secagg.terms import Drawn, Registry, Terms, cohort_of, context, guaranteed, most_bytes, shape_of, to_set
from foltr.secagg.unmasking import Opened, Report, unmasked
from foltr.types import Array

_SEALED = 2 * shamir.SHARE + 16  # bytes of two shares and their tag


class Sum(NamedTuple):
    total: Array  # [P] of the ring
    included: tuple[int, ...]  # whose vectors are in it, sorted
    up: dict[int, int]  # bytes that each client sent
    down: dict[int, int]  # bytes that each client was sent
    dropped: dict[int, str]  # whose reply was absent or invalid, or who was reported: the first reason
    reports: tuple[Report, ...]


class Circle(NamedTuple):
    """The neighbour graph of a round."""

    around: dict[int, tuple[int, ...]]  # neighbours of each client, sorted
    places: dict[int, dict[int, int]]  # of each neighbour in that order
    threshold: int
    view: bytes  # the graph as described to clients


def aggregate(
    clients: Iterable[int], *, terms: Terms, registry: Registry, identity: Ed25519PrivateKey, round: int, ranker: bytes,
    drawn: Drawn | None = None,
) -> Generator[Requests, Replies, Sum]:  # fmt: skip
    """The exact sum of the clients' vectors; or a SecureAggregationError, and nothing is revealed. `drawn`: the result
    of `draw_server.draw_cohort`, where cohorts are drawn by lot."""
    sizes = guaranteed(terms, registry)
    asked = cohort_of(terms, registry, round, drawn)
    cohort = _cohort(clients, registry, asked, sizes, round)
    now = context(terms, registry, round, ranker, drawn.seed if drawn else b"")
    most = most_bytes(terms, sizes, len(registry.clients))
    post = open_post(cohort, context=now, round=round, registry=registry, identity=identity, most=most,
                     seconds=terms.stage_seconds)  # fmt: skip
    replies = yield from ask(post, "advertise", {client: messages.Start() for client in cohort})
    keys = _distinct(post, read(post, "advertise", replies, messages.Keys, _check_keys))
    at_least(post, len(keys), sizes.min_clients, "clients sent keys")

    circle, neighbourhoods = _neighbourhoods({client: replies[client] for client in keys}, terms, sizes, registry)
    replies = yield from ask(post, "share", neighbourhoods)
    shares = read(post, "share", replies, messages.Shares, lambda c, body: _check_shares(body, circle.around[c]))
    _settle(post, shares, _unsealed(shares, circle))
    _check_circle(post, shares, shares, circle, "shared their secrets")

    replies = yield from ask(post, "mask", _deliveries(shares, circle))
    masked = read(post, "mask", replies, messages.Masked, lambda c, body: _check_masked(body, terms, circle.around[c]))
    _settle(post, masked, _unproved(masked, shares, circle))
    vectors = {client: np.frombuffer(body.vector, ring.dtype(terms.bits)) for client, body in masked.items()}
    at_least(post, len(vectors), sizes.min_clients, "clients sent their vectors")
    _check_circle(post, shares, vectors, circle, "sent their vectors")

    survivors = to_set(vectors, registry)
    replies = yield from ask(post, "agree", {client: messages.Survivors(survivors) for client in vectors})
    expected = messages.agreement(circle.view, survivors)
    agreed = read(post, "agree", replies, messages.Agreement, lambda _, body: _check_agreed(body, expected))

    at_least(post, len(agreed), certificate.needed(sizes), "clients signed the survivors")

    signatures = {client: messages.signature_of(replies[client]) for client in agreed}
    claim = Claim("the survivors", expected.digest, post.context, round, "agree", registry, asked, sizes, terms.failure)
    shown = claims.show(claim, signatures)
    replies = yield from ask(post, "unmask", _openings(shown, agreed, masked, circle))
    revealed = read(post, "unmask", replies, messages.Revealed, lambda c, body: _check_revealed(body, circle.around[c]))
    opened = Opened(
        terms=terms,
        context=post.context,
        threshold=circle.threshold,
        around=circle.around,
        places=circle.places,
        keys=keys,
        shares=shares,
        vectors=vectors,
        proofs={client: body.proofs for client, body in masked.items()},
        revealed=revealed,
        reports=post.reports,
    )
    total = unmasked(opened)
    return Sum(total, tuple(vectors), post.up, post.down, post.dropped, tuple(post.reports))


def _cohort(
    clients: Iterable[int], registry: Registry, asked: frozenset[int], sizes: Guarantee, round: int
) -> list[int]:
    cohort = registered(clients, registry)
    if not set(cohort) <= asked:
        raise SpecError(f"clients {sorted(set(cohort) - asked)[:5]} are asked in round {round}; it is not their turn")
    if len(cohort) < sizes.min_clients:
        raise SpecError(f"{len(cohort)} clients; a sum of this federation needs {sizes.min_clients} or more")
    return cohort


# --- what is checked in each reply --------------------------------------------------------------------------------


def _check_keys(_: int, body: messages.Keys) -> None:
    if body.channel == body.mask or not all(map(crypto.usable, (body.channel, body.mask))):
        refuse("its keys are not usable; take freshly generated ones")


def _distinct(post: Post, keys: dict[int, messages.Keys]) -> dict[int, messages.Keys]:
    """Every key has one owner; those who sent the same one are dropped together."""
    owners: dict[bytes, list[int]] = {}
    for client, both in keys.items():
        for key in msgspec.structs.astuple(both):
            owners.setdefault(key, []).append(client)
    for several in owners.values():
        for client in several if len(several) > 1 else ():
            post.dropped[client] = f"clients {several[0]} and {several[1]} sent the same key; each needs its own"
    return {client: both for client, both in keys.items() if client not in post.dropped}


def _check_shares(body: messages.Shares, around: Collection[int]) -> None:
    sizes = {len(one) for one in body.sealed} <= {0, _SEALED} and {len(one) for one in body.commitments} <= {
        2 * crypto.COMMITMENT
    }
    if not sizes or len(body.sealed) != len(around) or len(body.commitments) != len(around):
        refuse(f"it sent shares for {len(body.sealed)} neighbours, not {len(around)}, or of a wrong size")


def _check_masked(body: messages.Masked, terms: Terms, around: Collection[int]) -> None:
    expected = terms.length * terms.bits // 8
    if len(body.vector) != expected:
        refuse(f"it sent a vector of {len(body.vector)} bytes, expected {expected}")
    if len(body.proofs) != len(around) or not {len(one) for one in body.proofs} <= {0, crypto.COMMITMENT}:
        refuse(f"it sent {len(body.proofs)} proofs, one for each neighbour expected")


def _check_agreed(body: messages.Agreement, expected: messages.Agreement) -> None:
    if body != expected:
        refuse("it signed another set of survivors than it was sent")


def _check_revealed(body: messages.Revealed, around: Collection[int]) -> None:
    if len(body.shares) != len(around) or not {len(one) for one in body.shares} <= {0, shamir.SHARE}:
        refuse("it did not open one share for each of its neighbours")


# --- reports: who cannot work with whom ----------------------------------------------------------------------------


def _unsealed(shares: Mapping[int, messages.Shares], circle: Circle) -> list[Report]:
    """Neighbours whose keys a client could not use."""
    return [
        Report(client, other, "its keys cannot be used")
        for client, body in shares.items()
        for other, sealed in zip(circle.around[client], body.sealed, strict=True)
        if not sealed
    ]


def _unproved(
    masked: Mapping[int, messages.Masked], shares: Mapping[int, messages.Shares], circle: Circle
) -> list[Report]:
    """Neighbours whose shares a client could not open."""
    return [
        Report(client, other, "its sealed shares do not open")
        for client, body in masked.items()
        for other, proof in zip(circle.around[client], body.proofs, strict=True)
        if not proof and other in shares
    ]


def _settle(post: Post, present: dict[int, Kind], reports: list[Report]) -> None:
    """Removes clients from `present` until no report stands between two that are left."""
    post.reports.extend(reports)
    standing = [one for one in reports if one.by in present and one.about in present]
    while standing:
        counts = Counter(one.by for one in standing) + Counter(one.about for one in standing)
        accused = {one.about for one in standing}
        worst = max(counts, key=lambda client: (counts[client], client in accused, -client))
        found = next(one for one in standing if worst in (one.by, one.about))
        post.dropped.setdefault(worst, f"client {found.by} reports client {found.about}: {found.what}")
        del present[worst]
        standing = [one for one in standing if worst not in (one.by, one.about)]


# --- what clients are sent ---------------------------------------------------------------------------------------


def _neighbourhoods(
    adverts: Mapping[int, bytes], terms: Terms, sizes: Guarantee, registry: Registry
) -> tuple[Circle, dict[int, messages.Neighbourhood]]:
    members = list(adverts)
    shape = shape_of(terms, sizes, len(members))
    levels = graph.merkle_levels([graph.merkle_leaf(advert) for advert in adverts.values()])
    root, bits = levels[-1][0], to_set(members, registry)
    view = messages.view(bits, root)
    signed = {client: messages.signed_keys(advert) for client, advert in adverts.items()}
    around, requests = {}, {}
    for place, client in enumerate(members):
        near = graph.neighbours(view, len(members), shape.degree, place)
        around[client] = tuple(members[other] for other in near)
        keys = [signed[other] for other in around[client]]
        requests[client] = messages.Neighbourhood(bits, root, graph.merkle_path(levels, place), keys)
    places = {client: {other: k for k, other in enumerate(near)} for client, near in around.items()}
    return Circle(around, places, shape.threshold, view), requests


def _check_circle(post: Post, owners: Iterable[int], remaining: Collection[int], circle: Circle, what: str) -> None:
    """Each owner's secrets can be found again from the shares of the neighbours that remain."""
    for owner in owners:
        left = sum(other in remaining for other in circle.around[owner])
        if left < circle.threshold:
            raise SecureAggregationError(
                f"{left} neighbours of client {owner} {what}, {circle.threshold} are needed; no sum{blamed(post)}"
            )


def _deliveries(shares: Mapping[int, messages.Shares], circle: Circle) -> dict[int, messages.Deliveries]:
    def sealed(sender: int, receiver: int) -> bytes:
        return shares[sender].sealed[circle.places[sender][receiver]] if sender in shares else b""

    return {
        client: messages.Deliveries([sealed(other, client) for other in circle.around[client]]) for client in shares
    }


def _openings(
    shown: messages.Certificate, clients: Iterable[int], masked: Mapping[int, messages.Masked], circle: Circle
) -> dict[int, messages.Opening]:
    def proof(sender: int, receiver: int) -> bytes:
        return masked[sender].proofs[circle.places[sender][receiver]] if sender in masked else b""

    return {
        client: messages.Opening(shown, [proof(other, client) for other in circle.around[client]]) for client in clients
    }
