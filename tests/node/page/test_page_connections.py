"""Whose connections are accepted, and how many; another user who floods the page."""

import contextlib
import errno
import os
import resource
import socket
import subprocess
from pathlib import Path

import httpx
import pytest

from foltr.node.page import connections, peers
from foltr.node.page.connections import Door
from foltr.node.page.peers import SocketOwners, tells_owners
from foltr.node.page.serve import bound

needs_owners = pytest.mark.skipif(not tells_owners(), reason="the system does not tell who owns a connection")
needs_another_user = pytest.mark.skipif(
    os.getuid() != 0 or not tells_owners() or not Path("/usr/bin/python3").exists(),
    reason="needs root to become another user, and a Python that everybody may run",
)
NOBODY = 65534
SERVER = ("127.0.0.1", 8390)


def as_nobody(program, *arguments):
    return subprocess.Popen(["/usr/bin/python3", "-I", "-S", "-u", "-c", program, *map(str, arguments)], user=NOBODY,
                            stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True, cwd="/")  # fmt: skip


# ---- owners


@needs_owners
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_the_system_tells_who_owns_a_connection(host):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with (
        SocketOwners() as owners,
        socket.create_server((host, 0), family=family) as server,
        socket.socket(family) as client,
    ):
        client.connect(server.getsockname()[:2])
        accepted, _ = server.accept()
        with accepted:
            ends = client.getsockname()[:2], server.getsockname()[:2]
            for way in (owners.asked, peers.looked_up, owners):
                assert way(*ends) == os.getuid()
                assert way((host, 1), ends[1]) is None
            client.shutdown(socket.SHUT_WR)  # half closed: still owned
            for way in (owners.asked, peers.looked_up):
                assert way(*ends) == os.getuid()
            client.close()  # nobody's any more, and not root's
            for way in (owners.asked, peers.looked_up):
                assert way(*ends) is None


@needs_owners
def test_owners_are_told_without_a_free_descriptor():
    with (
        SocketOwners() as owners,
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as client,
    ):
        ends = client.getsockname(), server.getsockname()
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, before[1]))
        try:
            with pytest.raises(OSError, match="Too many open files"):
                socket.socket()
            assert owners(*ends) == os.getuid()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)


@needs_another_user
def test_a_connection_of_another_user_is_closed_before_it_is_read(serve):
    """It is reset, whatever it sends, and it needs no cookie to find that out."""
    server = serve("--no-index")
    program = (
        "import socket, sys; s = socket.create_connection(('127.0.0.1', int(sys.argv[1])))\n"
        "try:\n s.sendall(b'GET / HTTP/1.1\\r\\n\\r\\n'); print(len(s.recv(100)))\n"
        "except ConnectionError: print('reset')"
    )
    with as_nobody(program, server.port) as other:
        assert other.communicate(timeout=30)[0].strip() in ("reset", "0")
    assert httpx.get(server.base).status_code == 401


@needs_another_user
def test_a_user_who_is_allowed_is_answered(serve):
    import pwd

    server = serve("--no-index", "--allow-user", pwd.getpwuid(NOBODY).pw_name)
    program = (
        "import http.client, sys; c = http.client.HTTPConnection('127.0.0.1', int(sys.argv[1]));"
        "c.request('GET', '/'); print(c.getresponse().status)"
    )
    with as_nobody(program, server.port) as other:
        assert other.communicate(timeout=30)[0].strip() == "401"


FLOOD = r"""
import resource, socket, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (2048, 2048))
held = []
for i in range(int(sys.argv[2])):
    s = socket.socket()
    s.setblocking(False)
    s.connect_ex(('127.0.0.1', int(sys.argv[1])))
    held.append(s)
    if i % 2:
        try: s.send(b'POST /settings HTTP/1.1\r\nHost: x\r\nX')
        except OSError: pass
print('flooded', flush=True)
sys.stdin.read()
"""


@needs_another_user
def test_half_requests_of_another_user_do_not_keep_the_owner_out(serve):
    """1,200 half requests, held open: the owner is answered, nothing is held for them, the log stays small."""
    import psutil

    server = serve("--no-index")
    process = psutil.Process(server.process.pid)
    process.rlimit(psutil.RLIMIT_NOFILE, (1024, 1024))  # as usual: fewer than the connections
    httpx.get(server.base)
    before = process.num_fds()
    with as_nobody(FLOOD, server.port, 1_200) as other:
        assert other.stdout.readline() == "flooded\n"
        with httpx.Client(timeout=connections.HEADER_SECONDS) as client:
            for _ in range(20):
                assert client.get(server.base).status_code == 401
                client.get(server.base, headers={"connection": "close"})
        assert process.num_fds() - before < 10
        other.stdin.close()
        other.wait(30)
    server.process.terminate()
    assert len(server.process.stderr.read()) < 10_000


# ---- numbers


class Half:
    """A connection without a complete request."""

    def __init__(self, door, number):
        self.client, self.transport, self.ended = ("127.0.0.1", number), self, False
        self.admitted = door.admits(self.client, SERVER)
        door.wait(self.client, self)

    def abort(self):
        self.ended = True


def test_a_new_connection_takes_the_place_of_the_oldest_half_request():
    door = Door({1}, lambda *_: 1, each=4, most=8)
    held = [Half(door, number) for number in range(1, 20)]
    assert all(one.admitted for one in held)
    assert [one.ended for one in held] == [True] * 15 + [False] * 4


def test_one_owner_cannot_use_the_places_of_another():
    door = Door({1, 2}, lambda client, _: 1 if client[1] < 1000 else 2, each=4, most=8)
    proxy = [Half(door, 1000 + number) for number in range(4)]
    held = [Half(door, number) for number in range(1, 100)]
    assert not any(one.ended for one in proxy)
    assert sum(not one.ended for one in held) == 4


def test_a_request_in_work_is_never_ended_for_another_connection():
    door = Door({1}, lambda *_: 1, each=2, most=8)
    working = [Half(door, number) for number in (1, 2)]
    for one in working:
        door.work(one.client)
    assert not door.admits(("127.0.0.1", 3), SERVER)
    assert not any(one.ended for one in working)
    door.leave(working[0].client)
    assert door.admits(("127.0.0.1", 3), SERVER)


def test_where_no_owner_is_told_all_connections_share_one_limit():
    door = Door({1}, None, each=4, most=8)
    held = [Half(door, number) for number in range(1, 50)]
    assert sum(not one.ended for one in held) == 4


def test_limits_fit_the_descriptors_of_the_process(monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (64, 64))
    assert connections.limits() == {"each": 8, "most": 16}
    monkeypatch.setattr(resource, "getrlimit", lambda _: (4096, 4096))
    assert connections.limits() == {"each": connections.EACH, "most": connections.MOST}


def test_without_descriptors_accepting_pauses_and_is_told_once(monkeypatch):
    """asyncio asks as often as the queue is long, and logs every failure: only the first one is a failure here."""
    asked = []

    def exhausted(_):
        asked.append(1)
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(socket.socket, "accept", exhausted)
    with contextlib.closing(bound("127.0.0.1", 0, Door({1}, None))) as listening:
        with pytest.raises(OSError, match="Too many open files"):
            listening.accept()
        for _ in range(100):
            with pytest.raises(BlockingIOError):
                listening.accept()
    assert len(asked) == 1


def test_other_connections_get_a_turn_between_refusals():
    with contextlib.closing(bound("127.0.0.1", 0, Door({1}, lambda *_: 2))) as listening:
        clients = [socket.create_connection(listening.getsockname()) for _ in range(70)]
        listening.setblocking(False)
        with pytest.raises(BlockingIOError, match="turn"):
            listening.accept()
        for client in clients:
            client.close()
