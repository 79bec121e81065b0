"""The cryptographic primitives, each behind one short function; every secret comes from the operating system.

X25519 (RFC 7748), Ed25519 (RFC 8032), HKDF-SHA256 (RFC 5869), ChaCha20-Poly1305 (RFC 8439), AES-256 in counter mode
(NIST SP 800-38A). Every key is derived for one use in one round, so nonces and counters start at zero.
AES-256-CTR and ChaCha20 expand a mask of a kilobyte in the same 8 microseconds; AES needs slightly less for long ones.

The masks of a vector (Bonawitz et al. 2017): added by its owner, removed by the server after unmasking.

Differs from the paper: nothing.
"""

import hmac
import os
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from itertools import count
from struct import Struct
from typing import Any, ClassVar

import numpy as np
from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from foltr.errors import SecureAggregationError
from foltr.types import Array

SECRET = 32  # bytes of every secret, key and seed
SIGNATURE = 64  # bytes
COMMITMENT = 16  # bytes: binding
_NONCE = bytes(12)
_PAIR = Struct(">QQB")


class HidesSecrets:
    """For records with secrets: `repr`, and the representation that rich prints, have the fields of `shown` only."""

    __slots__ = ()
    shown: ClassVar[tuple[str, ...]] = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.__rich_repr__())})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [(name, getattr(self, name)) for name in self.shown]


def new_secret() -> bytes:
    """A private key or a seed."""
    return os.urandom(SECRET)


def label(*parts: bytes | str | int) -> bytes:
    """An injective encoding of the parts."""
    found = []
    for part in parts:
        word = part.to_bytes(8, "big") if isinstance(part, int) else part.encode() if isinstance(part, str) else part
        found += [len(word).to_bytes(4, "big"), word]
    return b"".join(found)


def between(context: bytes, first: int, second: int, purpose: str) -> bytes:
    """The label of what two clients do in a round; called a million times, so without `label`. `context`: 32 bytes."""
    return context + _PAIR.pack(first, second, len(purpose)) + purpose.encode()


def agreement_key(secret: bytes) -> X25519PrivateKey:
    return X25519PrivateKey.from_private_bytes(secret)


def public_of(key: X25519PrivateKey) -> bytes:
    return key.public_key().public_bytes_raw()


@lru_cache(maxsize=2**12)  # many clients in one process agree with the same key
def _public(key: bytes) -> X25519PublicKey:
    return X25519PublicKey.from_public_bytes(key)


def agree(key: X25519PrivateKey, other: bytes) -> bytes:
    """The secret that two owners of keys share."""
    try:
        return key.exchange(_public(other))
    except ValueError:  # too short, or a point that gives everybody the same secret
        raise SecureAggregationError("an X25519 public key is not usable; take a freshly generated one") from None


_SMALL_ORDER = frozenset(  # RFC 7748 section 6.1; others reduce to these or have their highest bit set
    bytes.fromhex(point)
    for point in (
        "00" * 32,
        "01" + "00" * 31,
        "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
        "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
        "ec" + "ff" * 30 + "7f",
        "ed" + "ff" * 30 + "7f",
        "ee" + "ff" * 30 + "7f",
    )
)


def usable(public: bytes) -> bool:
    """Whether a public key does not give everybody the same secret."""
    return len(public) == SECRET and public not in _SMALL_ORDER


def extract(secret: bytes, salt: bytes = bytes(32)) -> bytes:
    """The first half of HKDF, once for each agreed secret: what keys are derived from."""
    return hmac.digest(salt, secret, "sha256")


def derive(extracted: bytes, context: bytes, sender: int, receiver: int, purpose: str) -> bytes:
    """A key for one purpose, one round and one direction between two clients: the second half of HKDF."""
    return hmac.digest(extracted, between(context, sender, receiver, purpose) + b"\x01", "sha256")


def hkdf(secret: bytes, *, info: bytes, salt: bytes | None = None, size: int = SECRET) -> bytes:
    """By `hmac`, which takes a third of the time of the library's object."""
    key, block, found = extract(secret, salt or bytes(32)), b"", b""
    for counter in range(1, -(-size // 32) + 1):
        block = hmac.digest(key, block + info + bytes([counter]), "sha256")
        found += block
    return found[:size]


def stream(secret: bytes, purpose: bytes) -> Callable[[int], bytes]:
    """Secret bytes in the order in which they are asked for: a keystream of their own for every call."""
    calls = count()
    return lambda size: expand(hkdf(secret, info=purpose + next(calls).to_bytes(4, "big")), size)


def encrypt(key: bytes, plain: bytes, associated: bytes) -> bytes:
    """Under a key that encrypts nothing else."""
    return ChaCha20Poly1305(key).encrypt(_NONCE, plain, associated)


def decrypt(key: bytes, sealed: bytes, associated: bytes) -> bytes:
    try:
        return ChaCha20Poly1305(key).decrypt(_NONCE, sealed, associated)
    except (InvalidTag, ValueError):
        raise SecureAggregationError("a sealed share was changed or is meant for somebody else") from None


def proof(shared: bytes, context: bytes, sender: int, receiver: int) -> bytes:
    """A tag that proves that the sender applied the pairwise mask; only the two clients can compute it."""
    return derive(shared, context, sender, receiver, "masked")[:COMMITMENT]


def same(one: bytes, other: bytes) -> bool:
    """Equality in constant time."""
    return hmac.compare_digest(one, other)


def commitment(context: bytes, owner: int, recipient: int, purpose: str, secret: bytes) -> bytes:
    return sha256(between(context, owner, recipient, purpose) + secret).digest()[:COMMITMENT]


def new_identity() -> Ed25519PrivateKey:
    """A long-term signing key; its public bytes go into the registry."""
    return Ed25519PrivateKey.from_private_bytes(os.urandom(SECRET))


_SMALL_ORDER_IDENTITIES = frozenset(  # y of the points of order 1, 2, 4 and 8, the unreduced ones too; without sign bit
    bytes.fromhex(point)
    for point in (
        "00" * 32,
        "01" + "00" * 31,
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "ec" + "ff" * 30 + "7f",
        "ed" + "ff" * 30 + "7f",
        "ee" + "ff" * 30 + "7f",
    )
)


def is_identity(public: bytes) -> bool:
    """Whether bytes can be an Ed25519 public key. For one of small order anybody finds signatures."""
    return len(public) == SECRET and public[:-1] + bytes([public[-1] & 0x7F]) not in _SMALL_ORDER_IDENTITIES


def signed_by(public: bytes, signature: bytes, message: bytes) -> bool:
    """Whether the owner of a key signed a message. Other lengths are refused here: `_verified` keeps its arguments."""
    return len(public) == SECRET and len(signature) == SIGNATURE and _verified(public, signature, message)


@lru_cache(maxsize=2**16)  # many clients in one process verify the same signature
def _verified(public: bytes, signature: bytes, message: bytes) -> bool:
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def forget_verified() -> None:
    """Empties the cache of verified signatures, so that a benchmark measures the work of one client."""
    _verified.cache_clear()


def expand(seed: bytes, size: int, counter: bytes = bytes(16)) -> bytes:
    """AES-256-CTR keystream: `size` bytes from a seed that is used once."""
    return Cipher(algorithms.AES(seed), modes.CTR(counter)).encryptor().update(bytes(size))


def masks(seeds: Sequence[bytes], length: int, bits: int) -> Array:
    """The mask of each seed, [seeds, length] unsigned integers of so many bits."""
    stream = b"".join(expand(seed, length * bits // 8) for seed in seeds)
    return np.frombuffer(stream, dtype=f"<u{bits // 8}").reshape(len(seeds), length)


def self_mask(seed: bytes, length: int, bits: int) -> Array:
    """The mask that only a client itself knows. [P]"""
    return masks([seed], length, bits)[0]


def pairwise_mask(
    secret: bytes, me: int, keys: Mapping[int, bytes], *, length: int, bits: int, context: bytes
) -> Array:
    """The sum of the masks that a client has with these others: what one of two adds, the other subtracts. [P]"""
    private = agreement_key(secret)
    seeds = [
        derive(extract(agree(private, key)), context, min(me, other), max(me, other), "mask")
        for other, key in keys.items()
    ]
    each = masks(seeds, length, bits)  # [others, P]
    added = np.array([me < other for other in keys], bool)
    return each[added].sum(axis=0, dtype=each.dtype) - each[~added].sum(axis=0, dtype=each.dtype)


def seed_commitment(context: bytes, owner: int, seed: bytes) -> bytes:
    return commitment(context, owner, owner, "whole seed", seed)
