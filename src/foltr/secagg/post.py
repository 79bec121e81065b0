"""Requests that the server signs and sends, and replies that it counts and verifies.

Only those are heard who were asked. A client whose reply is absent has dropped out; one whose reply is invalid is
dropped, with the reason.
"""

from collections.abc import Callable, Generator, Iterable, Mapping
from typing import NamedTuple, TypeAlias

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from foltr.errors import SecureAggregationError, SpecError
from foltr.secagg.messages import Address, AnyStage, Body, Direction, Kind, receive, send
from foltr.secagg.terms import Registry
from foltr.secagg.unmasking import Report, named

Requests: TypeAlias = dict[int, bytes]
Replies: TypeAlias = Mapping[int, bytes]


class Post(NamedTuple):
    """Signed requests to clients, and their verified replies."""

    context: bytes
    round: int
    registry: Registry
    identity: Ed25519PrivateKey
    most_bytes: int  # of a reply
    seconds: float  # of a stage
    up: dict[int, int]  # bytes that each client sent so far
    down: dict[int, int]  # bytes that each client was sent so far
    dropped: dict[int, str]  # whose reply was absent or invalid: the first reason
    reports: list[Report]


def open_post(
    clients: Iterable[int],
    *,
    context: bytes,
    round: int,
    registry: Registry,
    identity: Ed25519PrivateKey,
    most: int,
    seconds: float,
) -> Post:
    asked = list(clients)
    return Post(
        context, round, registry, identity, most, seconds, dict.fromkeys(asked, 0), dict.fromkeys(asked, 0), {}, []
    )


def registered(clients: Iterable[int], known: Registry) -> list[int]:
    """Whom a server asks, sorted; refuses strangers."""
    asked = sorted(set(clients))
    if strangers := [client for client in asked if client not in known.keys]:
        raise SpecError(f"clients {strangers[:5]} are not in the registry; register their identities first")
    return asked


def ask(post: Post, stage: AnyStage, bodies: Mapping[int, Body]) -> Generator[Requests, Replies, dict[int, bytes]]:
    """Replies by client, in the order of clients; whoever is absent is dropped, who was not asked is not heard."""
    requests = {c: send(post.identity, address(post, "request", stage, c), body) for c, body in bodies.items()}
    replies = yield requests
    for client, request in requests.items():
        post.down[client] += len(request)
        post.up[client] += len(replies.get(client, b""))
        if client not in replies:
            post.dropped.setdefault(client, f"no reply of stage {stage!r} within {post.seconds:g} s")
    return {client: replies[client] for client in sorted(replies) if client in requests}


def read(
    post: Post, stage: AnyStage, replies: Replies, kind: type[Kind], check: Callable[[int, Kind], None]
) -> dict[int, Kind]:
    """The valid contents; a client whose reply is invalid is dropped, and the reason noted."""
    found = {}
    for client, raw in replies.items():
        try:
            if len(raw) > post.most_bytes:
                refuse(f"a reply of {len(raw)} bytes; {post.most_bytes} at most")
            body = receive(raw, address(post, "reply", stage, client), post.registry.keys[client], kind)
            check(client, body)
        except SecureAggregationError as problem:
            post.dropped.setdefault(client, str(problem))
        else:
            found[client] = body
    return found


def refuse(what: str) -> None:
    raise SecureAggregationError(what)


def at_least(post: Post, found: int, wanted: int, what: str) -> None:
    if found < wanted:
        raise SecureAggregationError(f"{found} {what}, at least {wanted} are needed; no sum{blamed(post)}")


def blamed(post: Post) -> str:
    some = "; ".join(f"client {client}: {why}" for client, why in list(post.dropped.items())[:3])
    return f" (dropped: {some})" if some else named(post.reports)


def address(post: Post, direction: Direction, stage: AnyStage, client: int) -> Address:
    return Address(post.context, post.round, direction, stage, client)
