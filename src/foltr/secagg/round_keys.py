"""Statements about the key of a round: each aggregator signs ahead of time what nodes may seal their shares for.

A long-term key that opened shares would open every share that was ever recorded, and a share carries no noise. So the
key of an aggregator belongs to one round, and its secret is erased when the half of the round is stored. A laptop that
wakes cannot ask the aggregators for the key; it takes their signed statements from the coordinator and checks them:

    identity      pinned by the node, compared over another channel
    federation    its own
    round         the one that was announced
    last day      not over; a day is a UTC day

An aggregator leaves at most `AHEAD` statements about rounds to come. A thief of its machine gets the keys of these
rounds and of those that are not summed yet.
"""

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from foltr.errors import SecureAggregationError
from foltr.secagg import crypto
from foltr.secagg.messages import Body
from foltr.secagg.two_servers import PROTOCOL, VERSION, Bytes32, Pair, TwoServers, decoded

AHEAD = 7  # rounds to come that an aggregator has keys for
DAY = 86_400  # seconds
MAX_STATEMENT = 512  # bytes


class RoundKey(Body, frozen=True):
    """The content of a statement."""

    federation: str
    round: int
    index: int  # of the aggregator
    key: Bytes32  # X25519
    last_day: int  # on which nodes seal for it, counted from 1970


class Statement(Body, frozen=True):
    content: bytes  # a `RoundKey`, encoded
    signature: bytes


def day_of(seconds: float) -> int:
    return int(seconds // DAY)


def sign_key(identity: Ed25519PrivateKey, round_key: RoundKey) -> bytes:
    content = msgspec.msgpack.encode(round_key)
    return msgspec.msgpack.encode(Statement(content, identity.sign(_signed(content))))


def checked_key(statement: bytes, *, setup: TwoServers, index: int, round: int, now: float) -> bytes:
    """The key of aggregator `index` for a round; what its operator did not sign for that round is refused."""
    what = f"key of aggregator {index} for round {round}"
    envelope = decoded(statement, Statement, limit=MAX_STATEMENT, what=what)
    if not crypto.signed_by(setup.operators[index], envelope.signature, _signed(envelope.content)):
        raise SecureAggregationError(f"{what}: the signature is not that of the operator that this node knows")
    stated = decoded(envelope.content, RoundKey, limit=MAX_STATEMENT, what=what)
    if (stated.federation, stated.round, stated.index) != (setup.terms.federation, round, index):
        raise SecureAggregationError(f"{what}: the statement is about another federation, round or aggregator")
    if day_of(now) > stated.last_day:
        raise SecureAggregationError(f"{what}: its last day is over; wait for the next round")
    return stated.key


def checked_keys(statements: tuple[bytes, ...], *, setup: TwoServers, round: int, now: float) -> Pair:
    """The keys of both aggregators for a round."""
    if len(statements) != len(setup.operators):
        raise SecureAggregationError(
            f"round {round} was announced with {len(statements)} statements about keys; both operators have to sign one"
        )
    first, second = (
        checked_key(statement, setup=setup, index=index, round=round, now=now)
        for index, statement in enumerate(statements)
    )
    return first, second


def round_of(statement: bytes) -> int:
    """The round that a statement is about; nothing is verified."""
    envelope = decoded(statement, Statement, limit=MAX_STATEMENT, what="statement about a key")
    return decoded(envelope.content, RoundKey, limit=MAX_STATEMENT, what="statement about a key").round


def _signed(content: bytes) -> bytes:
    return crypto.label(PROTOCOL, VERSION, "round key", content)
