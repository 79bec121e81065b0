"""Invitations: one line of text that a person pastes, with everything that a machine must not learn from the network.

    foltr-1-<base64url of compressed JSON><8 hexadecimal digits of its digest>

An invitation reaches its reader over a channel that the coordinator does not control (a message of a colleague, paper).
It pins the certificate authority of the coordinator, the identities of coordinator and operators, the terms and the
ranker that the federation stands at. Its code is used once and expires. Whoever reads an invitation on its way can use
the code in the person's place, and learns nothing else; the person then finds it used, and asks for another.
"""

import base64
import binascii
import zlib
from hashlib import sha256
from typing import Literal, TypeAlias

import msgspec

from foltr.errors import InputError, SpecError
from foltr.federation.network.wire import CODE_BYTES
from foltr.secagg.crypto import is_identity
from foltr.secagg.terms import Terms

_PREFIX = "foltr-1-"
_CHECK = 8  # hexadecimal digits of the digest: a line that was cut off is noticed
_MOST_TEXT = 16_384  # characters of a line
_MOST_BYTES = 65_536  # of its content
FederationKind: TypeAlias = Literal["open", "circle"]


class Invitation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Of a node, or of the second operator (`role`)."""

    role: Literal["node", "operator"]
    kind: FederationKind  # open: noise; circle: no noise, all members or no sum
    name: str  # of the federation, for people
    address: str  # https://host:port of the coordinator
    certificate: bytes  # DER, of its certificate authority; empty: a publicly trusted one
    code: bytes  # one-time
    expires: float  # seconds since 1970
    terms: Terms
    coordinator: bytes  # Ed25519 identity, which signs announcements and registries
    operators: tuple[bytes, bytes]  # identities; the second is empty in an invitation of the second operator
    version: int  # of the shared ranker that the node begins with
    round: int  # newest when the invitation was written
    ranker: bytes  # digest of that ranker
    server_learning_rate: float = 1.0

    @property
    def federation(self) -> str:
        return self.terms.federation


def to_text(invitation: Invitation) -> str:
    """One line without spaces."""
    packed = zlib.compress(msgspec.json.encode(invitation), 9)
    return _PREFIX + base64.urlsafe_b64encode(packed).decode().rstrip("=") + _check_of(packed)


def from_text(text: str) -> Invitation:
    """An invitation as it was pasted: spaces and line breaks of a mail program are left out."""
    line = "".join(text.split())
    if not line.startswith(_PREFIX) or len(line) > _MOST_TEXT:
        raise InputError(f"an invitation begins with {_PREFIX} and is one line of at most {_MOST_TEXT:,} characters")
    content, check = line[len(_PREFIX) : -_CHECK], line[-_CHECK:]
    try:
        packed = base64.urlsafe_b64decode(content + "=" * (-len(content) % 4))
        if _check_of(packed) != check:
            raise InputError("the invitation is incomplete or was changed; paste the whole line")
        stream = zlib.decompressobj()
        data = stream.decompress(packed, _MOST_BYTES)
        if stream.unconsumed_tail:
            raise InputError(f"the invitation has more than {_MOST_BYTES:,} bytes")
        invitation = msgspec.json.decode(data, type=Invitation)
    except (binascii.Error, zlib.error, msgspec.DecodeError, SpecError, ValueError) as problem:
        raise InputError(f"the invitation cannot be read ({problem}); paste the whole line") from None
    return _checked(invitation)


def fingerprint(identity: bytes) -> str:
    """A key as people compare it by telephone: 40 hexadecimal digits in groups of four."""
    digits = sha256(identity).hexdigest()[:40]
    return " ".join(digits[k : k + 4] for k in range(0, len(digits), 4))


def _checked(invitation: Invitation) -> Invitation:
    second = invitation.operators[1]
    keys = (invitation.coordinator, invitation.operators[0], *((second,) if invitation.role == "node" else ()))
    if not all(is_identity(key) for key in keys) or len(set(keys)) < len(keys):
        raise InputError("the invitation names parties without keys of their own; ask the coordinator for another")
    if not invitation.address.startswith("https://") or len(invitation.code) != CODE_BYTES:
        raise InputError("the invitation has no https address or no code; ask the coordinator for another")
    if not invitation.name.isprintable() or len(invitation.name) > 100:
        raise InputError("the invitation's name is not one line of at most 100 characters")
    if (invitation.kind == "circle") != (invitation.terms.noise_multiplier == 0):
        raise InputError("the invitation is of a circle with noise, or of an open federation without; it is refused")
    return invitation


def _check_of(packed: bytes) -> str:
    return sha256(packed).hexdigest()[:_CHECK]
