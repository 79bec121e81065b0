"""HTTPS of a node and of the second operator: one address, one pinned authority, signed requests.

Nothing but the coordinator's address is contacted: redirects are not followed. HTTP proxies of the environment
(HTTPS_PROXY, NO_PROXY) are used. Without a pinned certificate the system's authorities count (SSL_CERT_FILE).
"""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from foltr.errors import InputError, Refused
from foltr.federation.network.requests import KEY_HEADER, NONCE_HEADER, PREFIX, SIGNATURE_HEADER, sign
from foltr.federation.network.wire import Post

MOST_REPLY = 64_000_000  # bytes of a reply
_MOST_REASON = 1000  # bytes of a refusal that are shown
_SECONDS = 60.0
_CONNECT_SECONDS = 15.0
_OK, _STALE, _REFUSED, _TOO_LONG = 200, 401, 403, 413


@contextmanager
def connect(address: str, certificate: bytes, identity: Ed25519PrivateKey, federation: str) -> Iterator[Post]:
    """A `Post` to a coordinator. `certificate`: DER, of its authority; empty: a publicly trusted one."""
    import httpx

    if not address.startswith("https://"):
        raise InputError(f"{address!r}: a coordinator is reached over https:// only")
    timeout = httpx.Timeout(_SECONDS, connect=_CONNECT_SECONDS)
    try:
        trusted = ssl.create_default_context(cadata=certificate or None)
    except ssl.SSLError as problem:
        raise InputError(f"the certificate of the invitation cannot be read ({problem}); ask for another") from None
    with httpx.Client(verify=trusted, timeout=timeout, follow_redirects=False, base_url=address.rstrip("/")) as client:
        conversation = _Conversation(client, identity, federation)
        yield conversation.post


class _Conversation:
    """The requests of one connection: each is signed with the nonce of the reply before."""

    def __init__(self, client: Any, identity: Ed25519PrivateKey, federation: str) -> None:
        self._client, self._identity, self._federation = client, identity, federation
        self._nonce = b""

    def post(self, endpoint: str, body: bytes) -> bytes:
        for attempt in range(2):
            nonce = self._nonce or self._send("nonce", b"", {})[2]
            self._nonce = b""
            headers = {
                KEY_HEADER: self._identity.public_key().public_bytes_raw().hex(),
                NONCE_HEADER: nonce.hex(),
                SIGNATURE_HEADER: sign(self._identity, self._federation, endpoint, nonce, body).hex(),
            }
            status, content, self._nonce = self._send(endpoint, body, headers)
            if status == _OK:
                return content
            if status != _STALE or attempt:
                break
        reason = content[:_MOST_REASON].decode("utf-8", "replace")
        if status in (_REFUSED, _TOO_LONG):
            raise Refused(reason if reason.isprintable() else "the coordinator refused without a readable reason")
        raise ConnectionError(f"the coordinator answered with status {status}; ask again later")

    def _send(self, endpoint: str, body: bytes, headers: dict[str, str]) -> tuple[int, bytes, bytes]:
        """Status, body and the next nonce."""
        import httpx

        content = bytearray()
        try:
            with self._client.stream("POST", PREFIX + endpoint, content=body, headers=headers) as reply:
                for piece in reply.iter_bytes():
                    content += piece
                    if len(content) > MOST_REPLY:
                        raise ConnectionError(f"a reply of more than {MOST_REPLY:,} bytes; it is not read")
            return reply.status_code, bytes(content), bytes.fromhex(reply.headers.get(NONCE_HEADER, ""))
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError) as problem:
            raise ConnectionError(f"the coordinator at {self._client.base_url} cannot be reached: {problem}") from None
