"""The guard of the page: it answers the browser of the person who started the node, on this machine, for this page.

    connection         of this user: `connections` closes others before a byte of them is read
    Host header        127.0.0.1, localhost or [::1] with our port; anything else is DNS rebinding
    opening token      `serve` or `page` prints it; opening the page with it, once, begins a session
    session            a cookie, HttpOnly and SameSite=Strict; without it there is only a page that says how to get in
    Sec-Fetch-Site     requests that another site causes are refused; Origin where a browser does not send it
    form token         every change is a POST that carries a token of the session which only our pages contain
    headers            no script or style but our files, no frame, no referrer, nothing stored

`sign_ins` stores tokens and sessions, so that a restart does not lock out.
"""

import hashlib
import hmac
from collections.abc import Awaitable, Callable, MutableMapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs

from foltr.errors import InputError, StorageError
from foltr.node.page import sign_ins

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
RefusalPage = Callable[[str, str], bytes]  # heading, explanation -> page

MAX_BODY = 256_000  # bytes of a form
_MOST_TOKEN_BYTES = 4096  # of a request that brings a token
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
_FORM = "application/x-www-form-urlencoded"
_SAFE = ("GET", "HEAD")
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


class Site(NamedTuple):
    """Where a page is served, and where its sessions are stored."""

    port: int
    folder: Path

    @property
    def cookie_name(self) -> str:
        return f"foltr_{self.port}"

    @property
    def hosts(self) -> frozenset[str]:
        return frozenset(f"{name}:{self.port}" for name in _LOOPBACK)


_current: ContextVar[str] = ContextVar("foltr_cookie", default="")


def current_cookie() -> str:
    """The cookie of the session that the request in work belongs to; empty for files that everybody gets."""
    return _current.get()


def form_token() -> str:
    """The token of the forms of the current session."""
    return form_token_of(current_cookie()) if current_cookie() else ""


def form_token_of(cookie: str) -> str:
    return hmac.new(cookie.encode(), b"form", hashlib.sha256).hexdigest()


def form_token_is_right(given: str) -> bool:
    return bool(form_token()) and hmac.compare_digest(given.encode("utf-8", "replace"), form_token().encode())


class Guard:
    """An application that answers only whom it should, and adds the headers to every answer."""

    def __init__(self, inner: Application, site: Site, answer: RefusalPage) -> None:
        self._inner, self._site, self._answer = inner, site, answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._inner(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # no web sockets
        guarded = _with_headers(send)
        refused = self._refusal(scope)
        cookie = "" if refused else self._cookie(scope)
        _current.set(cookie)
        if refused is not None:
            await _respond(guarded, refused[0], self._answer(*refused[1:]))
        elif _enters(scope):
            await self._enter(cookie, await _token(scope, receive), guarded)
        elif not (cookie or _is_public(scope["path"])):
            await _respond(guarded, 401, self._answer("This page belongs to somebody", HOW_TO_GET_IN))
        else:
            await self._inner(scope, _limited(receive), guarded)

    def _refusal(self, scope: Scope) -> tuple[int, str, str] | None:
        """Why a request is refused before anybody asks who it is."""
        hosts = _headers(scope, b"host")
        if len(hosts) != 1 or hosts[0].lower() not in self._site.hosts:
            return 421, "Wrong address", f"Open http://127.0.0.1:{self._site.port}/ instead."
        if not self._same_site(scope):
            return 403, "Another site", "Another web page caused this request; it is not answered."
        length = _headers(scope, b"content-length")
        if length and not (length[0].isdecimal() and len(length[0]) < 10 and int(length[0]) <= MAX_BODY):
            return 413, "Too long", f"A form may have at most {MAX_BODY:,} bytes."
        kinds = [kind.partition(";")[0].strip().lower() for kind in _headers(scope, b"content-type")]
        if scope["method"] == "POST" and kinds != [_FORM]:  # files and other encodings have parsers that nobody needs
            return 415, "No form", f"Only forms of this page are taken ({_FORM})."
        return None

    def _same_site(self, scope: Scope) -> bool:
        """Only our own pages and the address bar ask; who enters may come from anywhere, with a token.

        A form of ours is sent with `Origin: null`, since the pages send no referrer: then Sec-Fetch-Site decides.
        """
        sites, origins = _headers(scope, b"sec-fetch-site"), _headers(scope, b"origin")
        own = {f"http://{host}" for host in self._site.hosts}
        if _enters(scope):
            return all(site in _SITES for site in sites) and (not origins or origins[0] in {*own, "null"})
        if scope["method"] in _SAFE:
            return all(site in _SITES[:2] for site in sites) and (not origins or origins[0] in own)
        if origins and origins[0] not in own and not (origins[0] == "null" and sites):
            return False
        return all(site == "same-origin" for site in sites)

    def _cookie(self, scope: Scope) -> str:
        """The cookie of a session among those that were sent; of very many the first ones."""
        pairs = [pair.strip().partition("=") for line in _headers(scope, b"cookie") for pair in line.split(";")]
        given = [value for name, _, value in pairs if name == self._site.cookie_name][:_MOST_COOKIES]
        return next((value for value in given if value and sign_ins.is_signed_in(self._site.folder, value)), "")

    async def _enter(self, cookie: str, token: str, send: Send) -> None:
        """Begins a session, on a page that goes on by itself: a redirect that began elsewhere would send no cookie.

        The page replaces the address that has the token. A browser that is known goes on with a token of before too.
        """
        try:
            fresh = sign_ins.redeem(self._site.folder, token) if token else None
        except (OSError, StorageError) as problem:
            await _respond(send, 503, self._answer("The node cannot store that this browser is known", str(problem)))
            return
        if fresh is not None:
            header = f"{self._site.cookie_name}={fresh}; Path=/; HttpOnly; SameSite=Strict; Max-Age={_COOKIE_SECONDS}"
            await _respond(send, 200, _WELCOME, [(b"set-cookie", header.encode())])
        elif cookie:
            await _respond(send, 200, _WELCOME)
        else:
            await _respond(send, 401, self._answer("This address has been used, or is too old", HOW_TO_GET_IN))


_SITES = ("same-origin", "none", "same-site", "cross-site")
_MOST_COOKIES = 10
_COOKIE_SECONDS = 400 * 86_400  # as long as browsers keep one; a session without use ends earlier
_WELCOME = (
    b'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>foltr</title>'
    b'<script src="/static/enter.js"></script>'
    b'<noscript><meta http-equiv="refresh" content="0; url=/"></noscript></head>'
    b'<body><p><a href="/">Go on</a></p></body></html>'
)
HOW_TO_GET_IN = (
    "Run `foltr node page` on this machine: it prints an address that lets one browser in, once, within ten minutes. "
    "After that this browser is known."
)


def _enters(scope: Scope) -> bool:
    """Whether a request brings a token: an address that was printed, or the form of a browser that was started."""
    if scope["method"] == "GET":
        return scope["path"] == "/" and b"&token=" in b"&" + scope["query_string"]
    return bool(scope["method"] == "POST" and scope["path"] == "/enter")


async def _token(scope: Scope, receive: Receive) -> str:
    fields = scope["query_string"][:_MOST_TOKEN_BYTES]
    if scope["method"] == "POST":
        fields, more = b"", True
        while more and len(fields) < _MOST_TOKEN_BYTES:
            message = await receive()
            fields, more = fields + message.get("body", b""), message.get("more_body", False)
    return parse_qs(fields[:_MOST_TOKEN_BYTES].decode("latin-1")).get("token", [""])[0]


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
