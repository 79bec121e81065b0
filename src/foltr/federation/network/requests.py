"""Signed requests: who sends, what, to which endpoint, once.

    signed    the sender's Ed25519 signature of federation, method, endpoint, nonce and the digest of the body
    Nonces    the coordinator's: random, valid for five minutes, used once; nothing is stored before one is used

A nonce is part of every reply, so that a conversation costs one extra request. A restart of the coordinator ends all
nonces; the client then takes a new one and sends again, which is harmless because every endpoint is idempotent.
"""

import hmac
import os
from hashlib import sha256

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from foltr.secagg import crypto
from foltr.secagg.crypto import label

METHOD = "POST"
PREFIX = "/foltr/1/"  # of every endpoint
KEY_HEADER, NONCE_HEADER, SIGNATURE_HEADER = "foltr-key", "foltr-nonce", "foltr-signature"
_SECONDS = 300
_MOST_USED = 200_000  # nonces that are remembered: 20 MB
_STAMP, _RANDOM, _MAC = 8, 16, 16  # bytes of a nonce


def sign(identity: Ed25519PrivateKey, federation: str, endpoint: str, nonce: bytes, body: bytes) -> bytes:
    return identity.sign(_signed(federation, endpoint, nonce, body))


def is_signed(key: bytes, signature: bytes, federation: str, endpoint: str, nonce: bytes, body: bytes) -> bool:
    return crypto.is_identity(key) and crypto.signed_by(key, signature, _signed(federation, endpoint, nonce, body))


class Nonces:
    """Of one process of a coordinator."""

    def __init__(self) -> None:
        self._secret = os.urandom(32)
        self._used: dict[bytes, float] = {}  # until when it has to be remembered

    def new(self, now: float) -> bytes:
        start = int(now).to_bytes(_STAMP, "big", signed=True) + os.urandom(_RANDOM)
        return start + self._mac(start)

    def use(self, nonce: bytes, now: float) -> bool:
        """Whether this nonce is one of ours, not over, and used for the first time."""
        start, mac = nonce[: _STAMP + _RANDOM], nonce[_STAMP + _RANDOM :]
        if len(nonce) != _STAMP + _RANDOM + _MAC or not hmac.compare_digest(mac, self._mac(start)):
            return False
        age = now - int.from_bytes(start[:_STAMP], "big", signed=True)
        if not -1 <= age <= _SECONDS or nonce in self._used:
            return False
        if len(self._used) >= _MOST_USED:
            self._used = {old: end for old, end in self._used.items() if end >= now}
            if len(self._used) >= _MOST_USED:
                return False
        self._used[nonce] = now + _SECONDS
        return True

    def _mac(self, start: bytes) -> bytes:
        return hmac.digest(self._secret, start, "sha256")[:_MAC]


def _signed(federation: str, endpoint: str, nonce: bytes, body: bytes) -> bytes:
    return label("foltr-request", 1, federation, METHOD, endpoint, nonce, sha256(body).digest())
