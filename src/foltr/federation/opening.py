"""Whether a round is open, asked with a nonce immediately before a node charges its ledger.

An announcement may be late or repeated, and clocks are wrong. So an announcement alone costs nothing: the node sends a
question with a fresh nonce, and only the coordinator's signature under announcement, node and nonce lets it charge. A
nonce is used once and counts for `ANSWER_SECONDS`, so that an answer that somebody held back costs nothing either.

    ask                node: remembers the announcement, returns a question
    opening            coordinator: the signed answer, while the window is open
    checked_opening    node: the announcement that the answer is about; it can be used once
"""

from pathlib import Path

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from foltr.errors import SecureAggregationError, StateError
from foltr.federation.announcement import signed_digest
from foltr.federation.membership import Member
from foltr.files import write_durably
from foltr.secagg import crypto
from foltr.secagg.crypto import label
from foltr.secagg.two_servers import Bytes32, decoded

PROTOCOL_QUESTION, PROTOCOL_OPENING = "foltr-question", "foltr-opening"
VERSION = 1
ANSWER_SECONDS = 60.0  # an answer counts for so long after its question
_LIMIT = 512  # bytes of either message


class OpenQuestion(msgspec.Struct, frozen=True, array_like=True, tag=PROTOCOL_QUESTION, forbid_unknown_fields=True):
    federation: str
    client: int
    announcement: Bytes32  # its digest
    nonce: Bytes32
    version: int  # of the shared ranker that the node has computed; the coordinator sends the steps after it


class OpenAnswer(msgspec.Struct, frozen=True, array_like=True, tag=PROTOCOL_OPENING, forbid_unknown_fields=True):
    announcement: Bytes32
    nonce: Bytes32
    signature: bytes


class Pending(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The question that a node waits for an answer to."""

    announcement: bytes  # the message
    digest: bytes  # of what the coordinator signed of it
    nonce: bytes
    asked: float  # seconds since 1970


def ask(member: Member, announcement: bytes, *, version: int, path: Path, now: float) -> bytes:
    """A question about an announcement; an earlier question gets no answer any more."""
    nonce, digest = crypto.new_secret(), signed_digest(announcement)
    write_durably(path, msgspec.msgpack.encode(Pending(announcement, digest, nonce, now)))
    return msgspec.msgpack.encode(OpenQuestion(member.terms.federation, member.id, digest, nonce, version))


def is_question(message: bytes) -> bool:
    """Whether a message claims to be a question; nothing is verified."""
    return message[1:].startswith(msgspec.msgpack.encode(PROTOCOL_QUESTION))


def is_opening(message: bytes) -> bool:
    """Whether a message claims to be an answer to a question; nothing is verified."""
    return message[1:].startswith(msgspec.msgpack.encode(PROTOCOL_OPENING))


def checked_question(message: bytes, client: int, announcement: bytes, *, federation: str) -> OpenQuestion | None:
    """A node's question about this announcement; None where it is about another one, or no question."""
    try:
        question = decoded(message, OpenQuestion, limit=_LIMIT, what=f"question of node {client}")
    except SecureAggregationError:
        return None
    asked = (question.federation, question.client, question.announcement)
    return question if asked == (federation, client, signed_digest(announcement)) else None


def opening(question: OpenQuestion, identity: Ed25519PrivateKey) -> bytes:
    """The signed answer that the round is open."""
    signed = _signed(question.federation, question.client, question.announcement, question.nonce)
    return msgspec.msgpack.encode(OpenAnswer(question.announcement, question.nonce, identity.sign(signed)))


def checked_opening(message: bytes, member: Member, *, path: Path, now: float) -> bytes:
    """The announcement whose round is open by the coordinator's word; the question is forgotten."""
    answer, pending = decoded(message, OpenAnswer, limit=_LIMIT, what="answer of the coordinator"), _pending(path)
    if pending is None or not crypto.same(pending.nonce, answer.nonce):
        raise SecureAggregationError("the answer to a question that this node does not wait for; nothing is charged")
    signed = _signed(member.terms.federation, member.id, pending.digest, pending.nonce)
    if answer.announcement != pending.digest or not crypto.signed_by(member.registry.server, answer.signature, signed):
        raise SecureAggregationError("an answer that the coordinator of this federation did not sign for this question")
    path.unlink(missing_ok=True)  # before anything is charged
    if not 0 <= now - pending.asked <= ANSWER_SECONDS:
        raise SecureAggregationError(
            f"the answer came more than {ANSWER_SECONDS:g} s after the question, or the clock was turned back; nothing "
            f"is charged: ask again when the round is announced again"
        )
    return pending.announcement


def _pending(path: Path) -> Pending | None:
    try:
        return msgspec.msgpack.decode(path.read_bytes(), type=Pending)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError, ValueError) as problem:
        raise StateError(
            f"{path}: the question cannot be read ({problem}); the next announcement replaces it"
        ) from None


def _signed(federation: str, client: int, announcement: bytes, nonce: bytes) -> bytes:
    return label(PROTOCOL_OPENING, VERSION, federation, client, announcement, nonce, "open")
