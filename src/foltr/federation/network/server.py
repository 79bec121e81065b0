"""The coordinator as an HTTPS server: signed POST requests to a handful of endpoints, and nothing else.

    POST /foltr/1/nonce       a nonce; the only request without a signature
    POST /foltr/1/ENDPOINT    `desk.handle`, for the key that signed the request
    GET  /health              from this machine only: whether the database answers

Bodies are bounded before they are read. A request that fails concerns its connection and never a round. The log has
endpoints and numbers; addresses are not stored.
"""

import asyncio
import contextlib
import logging
import ssl
import threading
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, NamedTuple

from foltr.errors import FoltrError, Refused
from foltr.federation.network import rounds
from foltr.federation.network.charter import Clock, Desk
from foltr.federation.network.desk import body_limit, handle
from foltr.federation.network.requests import KEY_HEADER, NONCE_HEADER, PREFIX, SIGNATURE_HEADER, Nonces, is_signed

_LOG = logging.getLogger(__name__)
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
_BODY_SECONDS = 30.0  # within which a body has to be here
_TICK_SECONDS = 1.0
_MOST_CONNECTIONS = 500
_LOOPBACK = ("127.0.0.1", "::1")


class Reply(NamedTuple):
    status: int
    body: bytes


def application(desk: Desk, clock: Clock = time.time) -> Callable[[Scope, Receive, Send], Awaitable[None]]:
    """The ASGI application."""
    nonces = Nonces()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        reply = await _reply(desk, nonces, scope, receive, clock)
        headers = [
            (b"content-type", b"application/octet-stream"),
            (b"content-length", str(len(reply.body)).encode()),
            (b"cache-control", b"no-store"),
            (NONCE_HEADER.encode(), nonces.new(clock()).hex().encode()),
        ]
        if reply.status == 413:  # the rest of the body is not read
            headers.append((b"connection", b"close"))
        await send({"type": "http.response.start", "status": reply.status, "headers": headers})
        await send({"type": "http.response.body", "body": reply.body})

    return app


async def _reply(desk: Desk, nonces: Nonces, scope: Scope, receive: Receive, clock: Clock) -> Reply:
    method, path = scope["method"], scope["path"]
    if (method, path) == ("GET", "/health") and (scope.get("client") or ("",))[0] in _LOOPBACK:
        return await asyncio.to_thread(_health, desk)
    if method != "POST" or not path.startswith(PREFIX):
        return Reply(404, b"there is nothing here")
    endpoint = path[len(PREFIX) :]
    if endpoint == "nonce":
        return Reply(200, b"")
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    limit = await asyncio.to_thread(body_limit, desk, endpoint)
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            body = await _body(headers, receive, limit)
    except TimeoutError:
        return Reply(408, b"the request took too long")
    if body is None:
        return Reply(413, f"a request to this endpoint has at most {limit} bytes".encode())
    return await asyncio.to_thread(_answer, desk, nonces, endpoint, headers, body, clock())


async def _body(headers: dict[str, str], receive: Receive, limit: int) -> bytes | None:
    """The body; None where it is longer than the limit, of which no more is read."""
    stated = headers.get("content-length", "0")
    if not stated.isdecimal() or int(stated) > limit:
        return None
    body = bytearray()
    while True:
        event = await receive()
        if event["type"] != "http.request":
            return None  # disconnected
        body += event.get("body", b"")
        if len(body) > limit:
            return None
        if not event.get("more_body"):
            return bytes(body)


def _answer(desk: Desk, nonces: Nonces, endpoint: str, headers: dict[str, str], body: bytes, now: float) -> Reply:
    try:
        key, nonce, signature = (
            bytes.fromhex(headers.get(name, "")) for name in (KEY_HEADER, NONCE_HEADER, SIGNATURE_HEADER)
        )
    except ValueError:
        return Reply(403, b"the request is not signed")
    if not is_signed(key, signature, desk.charter.terms.federation, endpoint, nonce, body):
        return Reply(403, b"the signature of the request is not that of its key")
    if not nonces.use(nonce, now):
        return Reply(401, b"the nonce is over or was used; take a new one")
    try:
        return Reply(200, handle(desk, endpoint, key, body, now))
    except Refused as problem:
        _LOG.info("a request to %s was refused: %s", endpoint, problem)
        return Reply(403, str(problem).encode()[:1000])
    except FoltrError as problem:
        _LOG.error("a request to %s failed: %s", endpoint, problem)
        return Reply(503, b"the coordinator cannot answer now; its operator finds the reason in its log")


def _health(desk: Desk) -> Reply:
    try:
        desk.store.value("SELECT COUNT(*) FROM rounds")
    except FoltrError:
        return Reply(503, b"the database does not answer\n")
    return Reply(200, b"ok\n")


# --- the process ----------------------------------------------------------------------------------------------------


def serve(desk: Desk, certificate: str, key: str, announce: Callable[[], None], *, clock: Clock = time.time) -> None:
    """Serves until SIGINT or SIGTERM. `announce` is called when the port is ours."""
    import uvicorn

    config = uvicorn.Config(
        application(desk, clock), host=desk.settings.host, port=desk.settings.port, ssl_certfile=certificate,
        ssl_keyfile=key, ssl_version=ssl.PROTOCOL_TLS_SERVER, loop="asyncio", http="h11", ws="none", lifespan="off",
        log_config=None, log_level="warning", access_log=False, server_header=False, proxy_headers=False,
        limit_concurrency=_MOST_CONNECTIONS, timeout_keep_alive=10, timeout_graceful_shutdown=5,
        h11_max_incomplete_event_size=16_384,
    )  # fmt: skip
    server, over = uvicorn.Server(config), threading.Event()
    ticking = threading.Thread(target=_tick, args=(server, over, desk, announce, clock), daemon=True)
    ticking.start()
    try:
        with contextlib.suppress(KeyboardInterrupt):  # uvicorn raises a signal again after a shutdown in good order
            server.run()
    finally:
        over.set()
        ticking.join()


def _tick(server: Any, over: threading.Event, desk: Desk, announce: Callable[[], None], clock: Clock) -> None:
    """Closes and opens windows while nobody asks."""
    while not server.started:
        if over.wait(0.02):
            return
    announce()
    while not over.wait(_TICK_SECONDS):
        try:
            rounds.advance(desk, clock())
        except FoltrError as problem:
            _LOG.error("%s", problem)
