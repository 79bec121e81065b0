"""Who gets an answer: the browser of the person who started the node, on this machine, asking from this page.

    Host header        127.0.0.1, localhost or [::1] with our port; anything else is DNS rebinding
    opening token      printed by `serve` and stored with mode 0600; opening the page with it sets a cookie
    cookie             HttpOnly, SameSite=Strict; without it there is nothing but a page that says how to get in
    peer               on Linux the other end of the connection must belong to this user: cookies are shared by all
                       ports of a host name, so that a server of another user could be sent one
    Sec-Fetch-Site     requests that another site causes are refused; Origin where a browser does not send it
    form token         every change is a POST that carries a token which only our pages contain
    headers            no script or style but our files, no frame, no referrer, nothing stored

Keys are random bytes of the operating system. The key of the cookie is stored, so that a restart does not lock out.
"""

import hashlib
import hmac
import os
import secrets
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import msgspec

from foltr.atomic import atomic_write, dump_json
from foltr.errors import InputError
from foltr.node.page.peers import Owner
from foltr.node.places import private_file

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
RefusalPage = Callable[[str, str], bytes]  # heading, explanation -> page

MAX_BODY = 256_000  # bytes of a form
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS = {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}
_SAFE = ("GET", "HEAD")
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


class Keys(msgspec.Struct, frozen=True):
    """What a page is protected with."""

    port: int
    cookie: str  # the value of the cookie
    token: str  # opens the page the first time

    @property
    def cookie_name(self) -> str:
        return f"foltr_{self.port}"

    @property
    def form_token(self) -> str:
        return hmac.new(self.cookie.encode(), b"form", hashlib.sha256).hexdigest()

    @property
    def hosts(self) -> frozenset[str]:
        return frozenset(f"{name}:{self.port}" for name in _LOOPBACK)


def load_keys(file: Path, port: int) -> Keys:
    """The stored keys, with a new opening token; a file that is no such file is replaced."""
    try:
        cookie = msgspec.json.decode(file.read_bytes(), type=Keys).cookie
    except (OSError, msgspec.MsgspecError):
        cookie = ""
    keys = Keys(port, cookie if len(cookie) >= 43 else secrets.token_urlsafe(32), secrets.token_urlsafe(32))
    with atomic_write(file) as temporary:
        private_file(temporary).write_text(dump_json(msgspec.to_builtins(keys)))
    return keys


class Guard:
    """An application that answers only whom it should, and adds the headers to every answer."""

    def __init__(
        self,
        inner: Application,
        keys: Keys,
        answer: RefusalPage,
        *,
        allowed_users: Iterable[int] = (),
        owner: Owner | None,
    ) -> None:
        self._inner, self._keys, self._answer, self._owner = inner, keys, answer, owner
        self._users = frozenset({os.getuid() if hasattr(os, "getuid") else 0, *allowed_users})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._inner(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # no web sockets
        guarded = _with_headers(send)
        refused = self._refusal(scope)
        if refused is not None:
            await _respond(guarded, refused[0], self._answer(*refused[1:]))
        elif self._opening_token(scope):
            await self._let_in(guarded)
        elif not (self._has_cookie(scope) or _is_public(scope["path"])):
            await _respond(guarded, 401, self._answer("This page belongs to somebody", _HOW_TO_GET_IN))
        else:
            await self._inner(scope, _limited(receive), guarded)

    def _refusal(self, scope: Scope) -> tuple[int, str, str] | None:
        """Why a request is refused before anybody asks who it is."""
        hosts = _headers(scope, b"host")
        if len(hosts) != 1 or hosts[0].lower() not in self._keys.hosts:
            return 421, "Wrong address", f"Open http://127.0.0.1:{self._keys.port}/ instead."
        if not self._same_user(scope):
            return 403, "Another user", "This node belongs to another user of this machine."
        if not self._same_site(scope):
            return 403, "Another site", "Another web page caused this request; it is not answered."
        length = _headers(scope, b"content-length")
        if length and (not length[0].isdecimal() or int(length[0]) > MAX_BODY):
            return 413, "Too long", f"A form may have at most {MAX_BODY:,} bytes."
        return None

    def _same_site(self, scope: Scope) -> bool:
        """Only our own pages and the address bar ask; a first opening may come from anywhere, it carries the token.

        A form of ours is sent with `Origin: null`, since the pages send no referrer: then Sec-Fetch-Site decides.
        """
        sites, origins = _headers(scope, b"sec-fetch-site"), _headers(scope, b"origin")
        own = {f"http://{host}" for host in self._keys.hosts}
        if scope["method"] in _SAFE:
            allowed = ("same-origin", "none") if not self._opening_token(scope) else (*_SITES,)
            return all(one in allowed for one in sites) and (not origins or origins[0] in own)
        if origins and origins[0] not in own and not (origins[0] == "null" and sites):
            return False
        return all(one == "same-origin" for one in sites)

    def _same_user(self, scope: Scope) -> bool:
        if self._owner is None:
            return True
        client, server = scope.get("client"), scope.get("server")
        if client is None or server is None:
            return False
        owner = self._owner((client[0], client[1]), (server[0], server[1]))
        return owner is not None and owner in self._users

    def _opening_token(self, scope: Scope) -> bool:
        if scope["method"] != "GET" or scope["path"] != "/":
            return False
        given = parse_qs(scope["query_string"][:4096].decode("latin-1")).get("token", [""])[0]
        return hmac.compare_digest(given.encode(), self._keys.token.encode())

    def _has_cookie(self, scope: Scope) -> bool:
        pairs = [pair.strip().partition("=") for line in _headers(scope, b"cookie") for pair in line.split(";")]
        given = [value for name, _, value in pairs if name == self._keys.cookie_name]
        return any(hmac.compare_digest(one.encode(), self._keys.cookie.encode()) for one in given)

    async def _let_in(self, send: Send) -> None:
        """Sets the cookie on a page that goes on by itself: a redirect that began elsewhere would not send it."""
        cookie = f"{self._keys.cookie_name}={self._keys.cookie}; Path=/; HttpOnly; SameSite=Strict; Max-Age=31536000"
        await _respond(send, 200, _WELCOME, [(b"set-cookie", cookie.encode())])


def form_token_is_right(keys: Keys, given: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), keys.form_token.encode())


_SITES = ("same-origin", "none", "same-site", "cross-site")
_WELCOME = (
    b'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>foltr</title>'
    b'<meta http-equiv="refresh" content="0; url=/"></head><body><p><a href="/">Go on</a></p></body></html>'
)
_HOW_TO_GET_IN = (
    "Open it with the address that `foltr node serve` prints: it carries a token that only the owner of the node can "
    "read. After that this browser is known. `foltr node serve` prints the address again while the node is running."
)


def _is_public(path: str) -> bool:
    """Files of the package, which tell nothing about the node: style sheet, scripts, the description for browsers."""
    return path.startswith("/static/") or path in ("/opensearch.xml", "/favicon.ico")


def _headers(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in scope["headers"] if key == name]


def _with_headers(send: Send) -> Send:
    extra = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
    replaced = {name for name, _ in extra}

    async def sending(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            others = [(name, value) for name, value in message.get("headers", []) if name.lower() not in replaced]
            message = {**message, "headers": [*others, *extra]}
        await send(message)

    return sending


def _limited(receive: Receive) -> Receive:
    """A body that comes in pieces is bounded too."""
    received = 0

    async def receiving() -> MutableMapping[str, Any]:
        nonlocal received
        message = await receive()
        received += len(message.get("body", b""))
        if received > MAX_BODY:
            raise InputError(f"a form may have at most {MAX_BODY:,} bytes")
        return message

    return receiving


async def _respond(send: Send, status: int, body: bytes, headers: list[tuple[bytes, bytes]] | None = None) -> None:
    first = [(b"content-type", b"text/html; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": [*first, *(headers or [])]})
    await send({"type": "http.response.body", "body": body})
