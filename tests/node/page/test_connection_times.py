"""How long a connection may stay without a complete request; what is no HTTP; a log that stays small."""

import asyncio
import contextlib
import logging
import os
import socket

import httpx
import pytest
import uvicorn

from foltr.node.page import server_log
from foltr.node.page.connections import BODY_SECONDS, HEADER_SECONDS, WRITE_SECONDS, Connection, Door
from foltr.node.page.security import HEADERS
from foltr.node.page.serve import bound

REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
LONG = b"GET /30000000 HTTP/1.1\r\nHost: x\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n"


class Clock(asyncio.SelectorEventLoop):
    """A loop whose time passes when a test says so."""

    passed = 0.0

    def time(self):
        return self.passed

    async def passes(self, seconds):
        """Lets what was sent arrive, then the time pass, then what is due happen."""
        for step in (0.0, seconds, 0.0):
            self.passed += step
            for _ in range(20):
                await asyncio.sleep(0)


async def application(scope, receive, send):
    """Reads the body; answers with as many bytes as the path says."""
    message = await receive()
    while message.get("more_body"):
        message = await receive()
    if message["type"] == "http.request":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"x" * int(scope["path"][1:] or 3)})


def talk(conversation):
    """Runs a conversation with our protocol over a real connection of this process."""
    loop, door = Clock(), Door({os.getuid()}, None)
    config = uvicorn.Config(application, http="h11", log_config=None, lifespan="off", timeout_keep_alive=5)
    config.load()
    loop.state = state = uvicorn.Server(config).server_state

    def connection():
        return Connection(config=config, server_state=state, app_state={}, door=door)

    async def served():
        with contextlib.closing(bound("127.0.0.1", 0, door)) as listening:
            async with await loop.create_server(connection, sock=listening):
                reader, writer = await asyncio.open_connection(*listening.getsockname(), limit=1000)
                try:
                    return await conversation(loop, reader, writer)
                finally:
                    writer.close()
                    await loop.passes(0.0)

    with contextlib.closing(loop):
        asyncio.set_event_loop(loop)
        try:
            return loop.run_until_complete(served())
        finally:
            asyncio.set_event_loop(None)


async def ends(reader):
    """Whether the other side has ended the connection, without another byte."""
    try:
        return await reader.read() == b""
    except ConnectionError:
        return True


async def answered(reader):
    line = await reader.readuntil(b"\r\n")
    await reader.readuntil(b"0\r\n\r\n")
    return line.split()[1] == b"200"


@pytest.mark.parametrize("seconds", [HEADER_SECONDS - 1, HEADER_SECONDS + 1])
def test_headers_have_a_time_that_a_byte_a_second_does_not_extend(seconds):
    async def conversation(loop, reader, writer):
        for second in range(int(seconds)):
            writer.write(REQUEST[second : second + 1])
            await loop.passes(1.0)
        if seconds > HEADER_SECONDS:
            return await ends(reader)
        writer.write(REQUEST[int(seconds) :])
        return await answered(reader)

    assert talk(conversation)


@pytest.mark.parametrize("sent", [b"", b"GET / HT"])
def test_a_second_request_has_the_same_time(sent):
    async def conversation(loop, reader, writer):
        writer.write(REQUEST)
        assert await answered(reader)
        await loop.passes(1.0)
        writer.write(sent)
        await loop.passes(HEADER_SECONDS + 0.1)
        return await ends(reader)

    assert talk(conversation)


def test_a_body_has_a_time_that_a_byte_a_second_does_not_extend():
    async def conversation(loop, reader, writer):
        writer.write(POST)
        for _ in range(int(BODY_SECONDS) + 1):
            writer.write(b"x")
            await loop.passes(1.0)
        return await ends(reader)

    assert talk(conversation)


def test_a_body_in_time_is_answered():
    async def conversation(loop, reader, writer):
        writer.write(POST)
        for _ in range(10):
            writer.write(b"x" * 10)
            await loop.passes(2.0)
        return await answered(reader)

    assert talk(conversation)


def test_an_answer_that_is_not_read_is_given_up():
    async def conversation(loop, reader, writer):
        writer.write(LONG)
        await reader.readuntil(b"\r\n")
        open_connections = []
        for seconds in (WRITE_SECONDS - 1, 1.1):
            await loop.passes(seconds)
            open_connections.append(len(loop.state.connections))
        return open_connections

    assert talk(conversation) == [1, 0]


def test_an_answer_that_is_read_slowly_arrives():
    """It takes five minutes, with something read in every half of the time without progress."""

    async def conversation(loop, reader, writer):
        writer.write(LONG)
        received = len(await reader.readuntil(b"\r\n\r\n"))
        for _ in range(20):
            await loop.passes(WRITE_SECONDS / 2)
            received += len(await reader.readexactly(1_000_000))
        return received + len(await reader.read())

    assert talk(conversation) > 30_000_000


# ---- what is no HTTP


NO_HTTP = (b"\0" * 100, b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01\x02\x00\x01",
           b"GET / HTTP/1.1\r\n\xff: x\r\n\r\n",
           b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", b"GET / HTTP/1.1\r\nX: " + b"y" * 200_000,
           b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
           b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
           REQUEST + b"\0\0\0", REQUEST * 50 + b"x")  # fmt: skip


def test_what_is_no_http_raises_nothing_and_is_logged_once(serve):
    """Each is sent a hundred times; the log has a few lines, and no traceback."""
    server = serve("--no-index")
    for data in NO_HTTP * 100:
        with socket.create_connection(("127.0.0.1", server.port)) as client, contextlib.suppress(OSError):
            client.sendall(data)
            client.shutdown(socket.SHUT_WR)
            answer = client.recv(4000)
            if b" 400 " in answer:
                assert all(f"{name}: {value}".encode() in answer for name, value in HEADERS.items())
    _send_half_forms(server)
    server.process.terminate()
    log = server.process.stderr.read().decode()
    assert "Traceback" not in log
    assert "Fatal" not in log
    assert len(log) < 2_000


def _send_half_forms(server):
    """Forms of a browser that was let in, which end or go wrong in the middle."""
    with httpx.Client(base_url=server.base) as client:
        assert client.get(server.fresh_address()).status_code == 200
        ((name, cookie),) = client.cookies.items()
        for path in ("/settings", "/act", "/settle", "/enter"):
            head = (f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nCookie: {name}={cookie}\r\n"
                    "Content-Type: application/x-www-form-urlencoded\r\n").encode()  # fmt: skip
            for rest in (b"Content-Length: 500\r\n\r\na=b", b"Transfer-Encoding: chunked\r\n\r\n3\r\na=b\r\nzz\r\n"):
                with socket.create_connection(("127.0.0.1", server.port)) as broken:
                    broken.sendall(head + rest)
        assert client.get("/").status_code == 200


# ---- the log


def record(message, created, *arguments):
    made = logging.LogRecord("uvicorn.error", logging.WARNING, "x.py", 1, message, arguments, None)
    made.created = created
    return made


def test_a_message_that_repeats_is_counted():
    limit = server_log.Limit()
    passed = [made for second in range(120) if limit.filter(made := record("invalid %s", float(second), second))]
    assert [made.getMessage() for made in passed] == [
        "invalid 0",
        "invalid 60 (59 times more since it was last written)",
    ]


def test_an_hour_has_a_hundred_messages_whatever_they_say():
    limit = server_log.Limit()
    passed = [number for number in range(100_000) if limit.filter(record(f"message {number}", 7200 + number / 50))]
    assert len(passed) == server_log.MOST_MESSAGES
    later = record("another", 7200 + 3600.0)
    assert limit.filter(later)
    assert later.getMessage() == "another (99,900 messages were left out)"


def test_a_clock_that_goes_back_silences_nothing():
    limit = server_log.Limit()
    assert limit.filter(record("late", 1e9))
    assert limit.filter(record("late", 1e8))


def test_a_long_message_is_cut():
    text = server_log.Short().format(record("x" * 1_000_000, 0.0))
    assert len(text) < 9_000
