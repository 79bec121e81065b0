"""Questions and answers between two members of a group: signed, sealed, padded, and each valid once.

    key        HKDF-SHA256(X25519(sender, receiver), salt, header)         a fresh salt: no key seals twice
    sealed     ChaCha20-Poly1305(key, padded message, header)
    signature  Ed25519 by the sender of header and SHA-256(sealed)

The header holds the group's context (protocol, version, name, epoch, maker, members: `keys`), the kind, sender,
receiver and number; that of an answer also the digest of the question's envelope. So a message of another group, epoch,
version, sender, receiver, direction or number does not open, and an answer belongs to one question only. That a number
was not used before is for the owner to check (`allowance`): it stores the highest of every asker.

The server sees the header (who asks whom, when, the number) and sizes. Messages are padded (Padme: at most 12 % longer,
log log n bits of the size remain); answers to `top` and `statistics` have one size an owner before that, whatever the
term. Static keys: who gets a member's secret later can open what the server has stored.

Differs from the paper: it sends questions and answers in the clear.
"""

from hashlib import sha256
from typing import Literal

import msgspec

from foltr.errors import DataError, SecureAggregationError
from foltr.secagg.crypto import SECRET, decrypt, encrypt, hkdf, label, new_secret, signed_by
from foltr.silo.keys import PROTOCOL, VERSION, Membership, sign

MAX_BYTES = 1 << 28  # of one envelope
Kind = Literal["question", "answer"]
_SMALLEST = 512  # bytes of a padded message


class Envelope(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    version: int
    context: bytes  # of the group
    kind: Kind
    sender: int  # place among the members
    receiver: int
    number: int
    about: bytes  # of an answer: the digest of the question's envelope; else empty
    salt: bytes
    sealed: bytes
    signature: bytes


def seal(member: Membership, kind: Kind, receiver: int, number: int, plain: bytes, about: bytes = b"") -> bytes:
    """A message from this member to another one."""
    salt = new_secret()
    header = _header(member.context, kind, member.place, receiver, number, about)
    key = hkdf(member.shared[receiver], salt=salt, info=header)
    sealed = encrypt(key, _padded(plain), header)
    signature = sign(member.signing, _signed(header, salt, sealed))
    return msgspec.msgpack.encode(
        Envelope(VERSION, member.context, kind, member.place, receiver, number, about, salt, sealed, signature)
    )


def read_envelope(content: bytes) -> Envelope:
    """The header as it was sent, not yet verified."""
    if len(content) > MAX_BYTES:
        raise DataError(f"a message of {len(content):,} bytes; at most {MAX_BYTES:,} are read")
    try:
        envelope = msgspec.msgpack.decode(content, type=Envelope)
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise DataError(f"a message that is no envelope ({problem}); both ends need the same version") from None
    if envelope.version != VERSION:
        raise DataError(f"a message of version {envelope.version}; this party speaks version {VERSION}")
    return envelope


def open_envelope(member: Membership, content: bytes, kind: Kind) -> tuple[Envelope, bytes]:
    """The header and the message, for the member that it was sealed for; otherwise an error, and nothing is used."""
    envelope = read_envelope(content)
    if envelope.context != member.context:
        raise DataError(f"a message of another group or epoch; this party is in {member.name!r}, epoch {member.epoch}")
    if envelope.kind != kind or envelope.receiver != member.place:
        raise DataError(f"a message that is no {kind} to this party; nothing was read")
    if not 0 <= envelope.sender < len(member.members) or len(envelope.salt) != SECRET or envelope.number < 1:
        raise DataError(f"a {kind} of nobody in the group {member.name!r}; only members are answered")
    header = _header(envelope.context, kind, envelope.sender, envelope.receiver, envelope.number, envelope.about)
    public = member.members[envelope.sender].signing
    if not signed_by(public, envelope.signature, _signed(header, envelope.salt, envelope.sealed)):
        raise DataError(
            f"a {kind} that is not signed by the member it names; only members of {member.name!r} are answered"
        )
    key = hkdf(member.shared[envelope.sender], salt=envelope.salt, info=header)
    try:
        return envelope, _unpadded(decrypt(key, envelope.sealed, header))
    except SecureAggregationError:
        raise DataError(f"a {kind} that does not open; it was changed, or sealed for somebody else") from None


def digest(content: bytes) -> bytes:
    """Of an envelope, for the answer to name it."""
    return sha256(content).digest()


def _header(context: bytes, kind: str, sender: int, receiver: int, number: int, about: bytes) -> bytes:
    return label(PROTOCOL, VERSION, context, kind, sender, receiver, number, about)


def _signed(header: bytes, salt: bytes, sealed: bytes) -> bytes:
    return sha256(label(header, salt, sha256(sealed).digest())).digest()


def padded_size(size: int) -> int:
    """The size that the server sees of a message of so many bytes."""
    if size <= _SMALLEST:
        return _SMALLEST
    exponent = size.bit_length() - 1
    step = 1 << (exponent - exponent.bit_length())
    return -(-size // step) * step


def _padded(plain: bytes) -> bytes:
    """A one and zeros after the message, as ISO/IEC 7816-4 has it."""
    return plain + b"\x80" + bytes(padded_size(len(plain) + 1) - len(plain) - 1)


def _unpadded(content: bytes) -> bytes:
    end = content.rfind(b"\x80")
    if end < 0 or content[end + 1 :].strip(b"\0"):
        raise DataError("a message whose padding is damaged; ask again")
    return content[:end]
