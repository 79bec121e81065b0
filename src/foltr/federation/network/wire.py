"""Messages between the machines of a federation: requests of nodes and of the second operator, replies of the desk.

Every request is a POST of one msgpack body to one of these endpoints; there is nothing else to ask for.

    of a node                request                        reply
    join                     `JoinRequest`                  `JoinReply`
    announcement             `SyncRequest`                  `Current`: registries that it lacks, the open round
    open                     `opening.OpenQuestion`         `opening.OpenAnswer`
    contribute               `two_servers.Contribution`     `Receipt`
    version                  `SyncRequest`                  `Current`, with the newest ranker instead of the round
    rounds                   `RoundsRequest`                `Fates`: why this node was in a sum, or was not
    leave                    empty                          empty

    of the second operator
    operator/join            `OperatorJoin`                 `OperatorTerms`
    operator/work            `WorkRequest`                  `Work`
    operator/statements      tuple of statements            empty
    operator/registry        `registries.Link`              empty
    operator/parts           `PartsRequest`                 `Parts`
    operator/answer          `OperatorAnswer`               empty

The sender of a request is the public key that signed it (`network.https`). A `Post` sends one body to an endpoint and
returns the body of the reply: ConnectionError where the coordinator cannot be reached, `errors.Refused` with its reason
where it refuses. The same `Post` is a call of the desk in memory, and HTTPS between machines.
"""

from collections.abc import Callable
from typing import Annotated, Literal, TypeAlias, TypeVar

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from foltr.errors import Refused
from foltr.federation.registries import Edition, Head, Link
from foltr.secagg import crypto
from foltr.secagg.crypto import label
from foltr.secagg.terms import Terms
from foltr.secagg.two_servers import Bytes32, Pair

PROTOCOL = 1  # of the requests; a desk answers its own number and the one before
OLDEST_PROTOCOL = 1
CODE_BYTES = 16  # of a one-time code
Post: TypeAlias = Callable[[str, bytes], bytes]  # (endpoint, body) -> body
Standing: TypeAlias = Literal["waiting", "member", "dormant", "removed"]
RoundState: TypeAlias = Literal["announced", "open", "closed", "listed", "agreed", "opened", "published", "failed"]
Code = Annotated[bytes, msgspec.Meta(min_length=CODE_BYTES, max_length=CODE_BYTES)]
Signature = Annotated[bytes, msgspec.Meta(min_length=crypto.SIGNATURE, max_length=crypto.SIGNATURE)]
Decoded = TypeVar("Decoded")


class Message(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A request or a reply."""


# --- of a node ------------------------------------------------------------------------------------------------------


class JoinRequest(Message, frozen=True):
    """Takes an invitation; the key that signs the request becomes the node's identity."""

    code: Code
    protocol: int = PROTOCOL


class JoinReply(Message, frozen=True):
    client: int  # number of the node in this federation
    ranker: bytes  # that the invitation names by digest (`announcement.Ranker`)


class SyncRequest(Message, frozen=True):
    registry: int  # number of the registry that the node holds; 0: none
    version: int  # of the shared ranker that it has computed
    protocol: int = PROTOCOL


class Current(Message, frozen=True):
    """Follow the editions, take the steps of the announcement with the registries of the chain, then store the last."""

    standing: Standing  # of this node; only a member has a round to answer
    client: int
    editions: tuple[Edition, ...]  # that the node lacks, oldest first
    announcement: bytes  # to `member.respond`; empty: there is nothing to answer
    round: int  # that is open, or was the last
    state: RoundState | Literal["none"]
    closes: float  # seconds since 1970, by the coordinator's clock
    note: str = ""  # of the coordinator to the person, one line
    rehearsal: bool = False  # the round sums zeros, charges nothing and changes nothing


class Receipt(Message, frozen=True):
    """The coordinator's signature that a contribution is on its disk."""

    round: int
    client: int
    digest: Bytes32  # of the contribution
    received: float  # seconds since 1970
    signature: Signature


class RoundsRequest(Message, frozen=True):
    most: int = 10  # newest rounds


class Fate(Message, frozen=True):
    """One round, as this node was or was not in it."""

    round: int
    state: RoundState
    sent: bool  # a contribution of this node arrived in time
    included: bool
    reason: str  # why there is no sum, or why this node is not in it; empty where it is


class Fates(Message, frozen=True):
    rounds: tuple[Fate, ...]  # newest first


# --- of the second operator -----------------------------------------------------------------------------------------


class OperatorJoin(Message, frozen=True):
    code: Code
    protocol: int = PROTOCOL


class OperatorTerms(Message, frozen=True):
    """What the second operator signs for; its person compares the fingerprints over another channel."""

    terms: Terms
    coordinator: Bytes32
    operators: Pair


class WorkRequest(Message, frozen=True):
    protocol: int = PROTOCOL


class RoundWork(Message, frozen=True):
    """A closed round whose half is missing."""

    round: int
    registry: int
    ranker: Bytes32
    keys: tuple[Bytes32, Bytes32]
    stage: Literal["list", "agree", "half"]  # what the second operator is asked for
    theirs: bytes = b""  # of operator 0: its list before "agree", its agreement before "half"


class Proposal(Message, frozen=True):
    """A registry to countersign, as a change of the one before."""

    head: Head
    signature: Signature  # of the coordinator
    added: dict[int, bytes]
    removed: tuple[int, ...]


class Work(Message, frozen=True):
    statements_from: int  # first round whose key is missing; 0: there are enough
    proposal: Proposal | None
    rounds: tuple[RoundWork, ...]


class PartsRequest(Message, frozen=True):
    round: int
    after: int = -1  # number of the last client whose part is here


class Parts(Message, frozen=True):
    """Parts of clients in rising order; fewer than all where they would be too many bytes. Empty: there are no more."""

    parts: dict[int, bytes]


class OperatorAnswer(Message, frozen=True):
    round: int
    kind: Literal["listing", "agreement", "half", "failure"]
    content: bytes  # signed; of a failure, the reason in one line of text
    refused: dict[int, str] = {}  # with a list: clients that are not in it, with reasons


# --- receipts and decoding ------------------------------------------------------------------------------------------


def receipt(
    identity: Ed25519PrivateKey, federation: str, *, round: int, client: int, digest: bytes, received: float
) -> Receipt:
    signature = identity.sign(_receipt_label(federation, round, client, digest))
    return Receipt(round, client, digest, received, signature)


def is_receipt(given: Receipt, federation: str, coordinator: bytes, *, client: int, digest: bytes) -> bool:
    """Whether the coordinator signed that it has this contribution of this node."""
    signed = _receipt_label(federation, given.round, client, digest)
    return (given.client, given.digest) == (client, digest) and crypto.signed_by(coordinator, given.signature, signed)


def encode(message: Message | Link | tuple[bytes, ...]) -> bytes:
    return msgspec.msgpack.encode(message)


def decode(body: bytes, kind: type[Decoded]) -> Decoded:
    """A message of this kind; anything else is refused."""
    try:
        return msgspec.msgpack.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, OverflowError, RecursionError) as problem:
        raise Refused(f"not a {getattr(kind, '__name__', kind)} ({problem})") from None


def _receipt_label(federation: str, round: int, client: int, digest: bytes) -> bytes:
    return label("foltr-receipt", PROTOCOL, federation, round, client, digest)
