"""The server's side of a draw: a generator that yields requests and is sent replies, over any transport. See `draw`."""

from collections.abc import Generator, Iterable, Mapping
from typing import NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from foltr.errors import SecureAggregationError
from foltr.secagg import certificate, claims, crypto, graph, messages
from foltr.secagg.lot import draw
from foltr.secagg.lot.sizes import ATTEMPTS, most_missing
from foltr.secagg.post import Post, Replies, Requests, ask, at_least, open_post, read, refuse, registered
from foltr.secagg.terms import Drawn, Registry, Terms, context, to_set


class Draw(NamedTuple):
    drawn: Drawn
    attempts: int
    struck: tuple[int, ...]  # who did not open a value of an attempt that was repeated, sorted
    up: dict[int, int]  # bytes that each client sent
    down: dict[int, int]  # bytes that each client was sent
    dropped: dict[int, str]  # whose reply was absent or invalid: the first reason


def draw_cohort(
    clients: Iterable[int], *, terms: Terms, registry: Registry, identity: Ed25519PrivateKey, round: int, ranker: bytes
) -> Generator[Requests, Replies, Draw]:
    """The result of a draw among these clients, repeated as often as clients allow; or a SecureAggregationError."""
    present = registered(clients, registry)
    sizes, base = draw.sizes_of(terms, registry), context(terms, registry, round, ranker)
    most, struck = draw.most_bytes(sizes), set[int]()
    post = open_post(present, context=base, round=round, registry=registry, identity=identity, most=most,
                     seconds=terms.stage_seconds)  # fmt: skip
    for attempt in range(ATTEMPTS):
        post = post._replace(context=draw.in_attempt(base, attempt))
        drawn, silent = yield from _attempt(post, attempt, present, terms)
        if drawn is not None:
            return Draw(drawn, attempt + 1, tuple(sorted(struck)), post.up, post.down, post.dropped)
        struck |= silent
        present = [client for client in present if client not in silent]
    raise SecureAggregationError(
        f"{ATTEMPTS} draws failed: clients {sorted(struck)[:5]} and others did not open their values; no sum"
    )


def _attempt(
    post: Post, attempt: int, present: list[int], terms: Terms
) -> Generator[Requests, Replies, tuple[Drawn | None, set[int]]]:
    """One attempt: the result, or the clients that are left out of the next one."""
    known, sizes = post.registry, draw.sizes_of(terms, post.registry)
    commit, close, reveal, settle = (messages.draw_stage(stage, attempt) for stage in messages.DRAW_STAGES)
    replies = yield from ask(post, commit, {client: messages.Start() for client in present})
    committed = read(post, commit, replies, messages.Commitment, _check_commitment)
    at_least(post, len(committed), sizes.min_clients, "clients committed to a value")

    levels = draw.tree({client: one.digest for client, one in committed.items()})
    members, root = to_set(committed, known), levels[-1][0]
    claim = draw.claim_of(post.context, members, root, attempt=attempt, terms=terms, known=known, round=post.round)
    lists = {
        client: messages.Closed(members, root, graph.merkle_path(levels, place))
        for place, client in enumerate(committed)
    }
    replies = yield from ask(post, close, lists)
    signed = read(post, close, replies, messages.Agreement, lambda _, body: _check_same(body.digest, claim.digest))
    at_least(post, len(signed), certificate.needed(sizes), "clients signed the list of commitments")

    shown = claims.show(claim, {client: messages.signature_of(replies[client]) for client in signed})
    replies = yield from ask(post, reveal, dict.fromkeys(committed, shown))
    digests = {client: one.digest for client, one in committed.items()}
    opened = read(post, reveal, replies, messages.Value, lambda c, body: _check_value(post.context, c, body, digests))
    silent = set(committed) - set(opened)
    if len(silent) > most_missing(len(known.clients)):
        return None, silent

    values = b"".join(opened[client].value if client in opened else digests[client] for client in committed)
    body = messages.Values(to_set(opened, known), values)
    drawn = draw.result(terms, known, claim.digest, body.opened, values)
    replies = yield from ask(post, settle, dict.fromkeys(sorted(drawn.cohort), body))
    read(post, settle, replies, messages.Agreement, lambda _, body: _check_same(body.digest, drawn.seed))
    return drawn, set()


def _check_commitment(_: int, body: messages.Commitment) -> None:
    if len(body.digest) != draw.DIGEST:
        refuse(f"it sent a commitment of {len(body.digest)} bytes, expected {draw.DIGEST}")


def _check_same(found: bytes, expected: bytes) -> None:
    if found != expected:
        refuse("it signed something else than it was sent")


def _check_value(context: bytes, client: int, body: messages.Value, digests: Mapping[int, bytes]) -> None:
    if len(body.value) != crypto.SECRET or draw.commitment(context, client, body.value) != digests[client]:
        refuse("it opened another value than it committed to")
