"""The messages of rounds and draws: msgpack envelopes, each signed by its sender for one context, stage, direction and
client.

Differs from the paper: the server signs as well, so that nobody on the network can change a request.
"""

from hashlib import sha256
from typing import Literal, NamedTuple, TypeAlias, TypeVar

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from foltr.errors import SecureAggregationError
from foltr.secagg.crypto import between, label, signed_by
from foltr.secagg.terms import VERSION, Terms

Stage = Literal["advertise", "share", "mask", "agree", "unmask"]
STAGES: tuple[Stage, ...] = ("advertise", "share", "mask", "agree", "unmask")
DrawStage = Literal["commit", "close", "reveal", "settle"]
DRAW_STAGES: tuple[DrawStage, ...] = ("commit", "close", "reveal", "settle")
AnyStage: TypeAlias = str  # a `Stage`, or `draw_stage`: a stage of a draw in one attempt
Direction = Literal["request", "reply"]


def draw_stage(stage: DrawStage, attempt: int) -> AnyStage:
    """The attempt is in the name: a late reply of an earlier attempt is no reply of this one."""
    return f"{stage} {attempt + 1}"


def round_seconds(terms: Terms) -> float:
    """The longest duration of a round: every stage up to its deadline."""
    return len(STAGES) * terms.stage_seconds


class Envelope(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    version: int
    round: int
    direction: str
    stage: str
    client: int
    body: bytes
    signature: bytes


class Body(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Content of the messages of a stage."""


class Start(Body, frozen=True):
    """Request of `advertise`: a round begins."""


class Keys(Body, frozen=True):
    """Reply: fresh public keys."""

    channel: bytes  # for shares and tags between clients; never revealed
    mask: bytes  # for masks; its secret is revealed if the client drops out before it sends its vector

    def __post_init__(self) -> None:
        if any(len(key) != 32 or key[31] > 127 for key in (self.channel, self.mask)):  # one spelling of each key
            raise ValueError("an X25519 public key is 32 bytes, the last of them below 128")


class Neighbourhood(Body, frozen=True):
    """Request of `share`: who takes part, and the signed keys of the client's neighbours."""

    members: bytes  # as a set
    root: bytes  # of the tree over all signed keys
    path: bytes  # proof that the client's own keys are in it
    keys: list[bytes]  # `signed_keys` of each neighbour, in the order of neighbours


class Shares(Body, frozen=True):
    """Reply: both secrets in shares, each sealed for one neighbour, and what the server checks them by."""

    sealed: list[bytes]  # in the order of neighbours
    seed: bytes  # commitment to the self mask
    commitments: list[bytes]  # to the two shares of each neighbour, in the order of neighbours


class Deliveries(Body, frozen=True):
    """Request of `mask`: what the neighbours sealed for this client, empty for those who dropped out."""

    sealed: list[bytes]  # in the order of neighbours


class Masked(Body, frozen=True):
    """Reply: the vector under all its masks, and for each neighbour the proof that its mask is among them."""

    vector: bytes
    proofs: list[bytes]  # in the order of neighbours, empty for those who dropped out


class Survivors(Body, frozen=True):
    """Request of `agree`: whose vectors the server has."""

    members: bytes  # as a set


class Agreement(Body, frozen=True):
    """Reply: the client's signature is on this set and no other."""

    digest: bytes  # of the graph as the client saw it, and of the set of survivors


def view(members: bytes, root: bytes) -> bytes:
    """A digest of the graph as the server described it; it seeds the order of the circle."""
    return sha256(label(members, root)).digest()


def agreement(seen: bytes, survivors: bytes) -> Agreement:
    """Those who agree saw the same graph and the same survivors."""
    return Agreement(sha256(label(seen, survivors)).digest())


class Certificate(Body, frozen=True):
    """That more than half of the honest clients signed the same claim; the same for all clients."""

    signers: bytes  # as a set
    tags: bytes  # one byte for each signer, in the order of clients
    signatures: bytes  # of the sampled signers, in the order of clients


class Opening(Body, frozen=True):
    """Request of `unmask`: why shares may be opened, and what survivors proved to this client."""

    certificate: Certificate
    proofs: list[bytes]  # in the order of neighbours, empty for those who dropped out


class Revealed(Body, frozen=True):
    """Reply: of a neighbour that survived its share of the self mask, of another its share of the mask key."""

    shares: list[bytes]  # in the order of neighbours, empty for those who never shared


class Commitment(Body, frozen=True):
    """Reply of `commit`, where a draw begins with `Start`: the digest of a secret value."""

    digest: bytes


class Closed(Body, frozen=True):
    """Request of `close`: who takes part in a draw; its reply is an `Agreement`, that of `reveal` a `Value`."""

    members: bytes  # as a set
    root: bytes  # of the tree over all commitments
    path: bytes  # proof that the client's own is in it


class Value(Body, frozen=True):
    """Reply of `reveal`, which was asked for with a `Certificate`."""

    value: bytes


class Values(Body, frozen=True):
    """Request of `settle`: the values from which the result follows; its reply is an `Agreement` on that."""

    opened: bytes  # who of the members opened a value, as a set
    values: bytes  # of the members in the order of clients: of those who did not open, the commitment


REQUESTS: dict[Stage, type[Body]] = dict(
    zip(STAGES, (Start, Neighbourhood, Deliveries, Survivors, Opening), strict=True)
)


class Address(NamedTuple):
    """The context in which a message is valid."""

    context: bytes
    round: int
    direction: Direction
    stage: AnyStage
    client: int  # the one that sends or receives it; the server is at the other end


Kind = TypeVar("Kind", bound=Body)
_envelope = msgspec.msgpack.Decoder(Envelope)


def send(identity: Ed25519PrivateKey, to: Address, body: Body) -> bytes:
    content = msgspec.msgpack.encode(body)
    signature = identity.sign(_signed(to, content))
    return msgspec.msgpack.encode(Envelope(VERSION, to.round, to.direction, to.stage, to.client, content, signature))


def receive(data: bytes, at: Address, signer: bytes, kind: type[Kind]) -> Kind:
    """The body of a message of this context; anything else is refused."""
    envelope = opened(data, at)
    if not signed_by(signer, envelope.signature, _signed(at, envelope.body)):
        raise SecureAggregationError(f"{_named(at)}: the signature is not its sender's in this federation and round")
    try:
        return msgspec.msgpack.decode(envelope.body, type=kind)
    except msgspec.DecodeError as problem:
        raise SecureAggregationError(f"{_named(at)}: not a {kind.__name__} ({problem})") from None


def opened(data: bytes, at: Address) -> Envelope:
    """An envelope that claims this context; its signature is not checked."""
    try:
        envelope = _envelope.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise SecureAggregationError(f"{_named(at)}: not a message ({problem})") from None
    found, expected = _header(envelope), Header(VERSION, at.round, at.stage, at.direction, at.client)
    if found != expected:
        each = zip(Header._fields, found, expected, strict=True)
        wrong = [f"{name} is {one!r}, expected {other!r}" for name, one, other in each if one != other]
        raise SecureAggregationError(f"{_named(at)}: {'; '.join(wrong)}")
    return envelope


def vouches(signature: bytes, at: Address, signer: bytes, body: Body) -> bool:
    """Whether the signature is that of a message with this body."""
    return signed_by(signer, signature, _signed(at, msgspec.msgpack.encode(body)))


class Header(NamedTuple):
    """The kind that a message claims to be."""

    version: int
    round: int
    stage: str
    direction: str
    client: int


def header_of(message: bytes) -> Header | None:
    """None if it is no message; nothing is verified."""
    try:
        return _header(_envelope.decode(message))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _header(envelope: Envelope) -> Header:
    return Header(envelope.version, envelope.round, envelope.stage, envelope.direction, envelope.client)


def signature_of(message: bytes) -> bytes:
    """Of a message that was received."""
    return _envelope.decode(message).signature


def signed_keys(advert: bytes) -> bytes:
    """The reply of `advertise` as its neighbours are sent it: two keys and the signature, without the envelope."""
    envelope = _envelope.decode(advert)
    keys = msgspec.msgpack.decode(envelope.body, type=Keys)
    return keys.channel + keys.mask + envelope.signature


def keys_of(signed: bytes, at: Address, signer: bytes) -> Keys | None:
    """The keys of a neighbour; None where they are not its own in this round."""
    try:
        keys = Keys(signed[:32], signed[32:64])
    except ValueError:
        return None
    return keys if vouches(signed[64:], at, signer, keys) else None


def _signed(at: Address, content: bytes) -> bytes:
    return sha256(between(at.context, at.client, len(content), f"{at.direction} {at.stage}") + content).digest()


def _named(at: Address) -> str:
    return f"{at.direction} of stage {at.stage!r} {'to' if at.direction == 'request' else 'from'} client {at.client}"
