"""How the server writes to clients and reads their replies: signed, counted, and only from those who were asked.

Differs from the paper: nothing.
"""

from collections.abc import Generator, Mapping
from typing import NamedTuple, TypeAlias

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from foltr.errors import SecureAggregationError
from foltr.secagg.messages import Address, Body, Direction, Kind, Stage, receive, send
from foltr.secagg.terms import Registry

Requests: TypeAlias = dict[int, bytes]
Replies: TypeAlias = Mapping[int, bytes]


class Post(NamedTuple):
    context: bytes
    round: int
    registry: Registry
    identity: Ed25519PrivateKey
    up: dict[int, int]  # bytes that each client sent so far
    down: dict[int, int]  # bytes that each client was sent so far


def ask(post: Post, stage: Stage, bodies: Mapping[int, Body]) -> Generator[Requests, Replies, dict[int, bytes]]:
    """Replies by client, in the order of clients; whoever is absent has dropped out."""
    requests = {c: send(post.identity, address(post, "request", stage, c), body) for c, body in bodies.items()}
    replies = yield requests
    for client in replies.keys() - requests.keys():
        raise SecureAggregationError(f"client {client} replied at stage {stage!r} but was not asked or has dropped out")
    for client, request in requests.items():
        post.down[client] += len(request)
        post.up[client] += len(replies.get(client, b""))
    return {client: replies[client] for client in sorted(replies)}


def read(post: Post, stage: Stage, replies: Replies, kind: type[Kind]) -> dict[int, Kind]:
    """The contents; a reply that is not its sender's stops the round."""
    keys = post.registry.keys
    return {c: receive(raw, address(post, "reply", stage, c), keys[c], kind) for c, raw in replies.items()}


def address(post: Post, direction: Direction, stage: Stage, client: int) -> Address:
    return Address(post.context, post.round, direction, stage, client)
