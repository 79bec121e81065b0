"""The server as a process: addresses, ends, kills, what it contacts."""

import asyncio
import contextlib
import os
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
import time

import httpx
import pytest
from fake_desktop import Desktop
from page_client import Server, form_of, numbers

import foltr.node
from foltr.errors import InputError
from foltr.node.page.connections import Door
from foltr.node.page.serve import bound, check_host


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.0.1", "::", "example.org", "", "127.0.0.1.example.org"])  # noqa: S104
def test_other_addresses_than_loopback_are_refused(host):
    with pytest.raises(InputError, match="ssh"):
        check_host(host)


@pytest.fixture
def let_in():
    """Clients that know the token of a server."""
    clients = []

    def enter(server):
        client = httpx.Client(base_url=server.base, timeout=30)
        clients.append(client)
        assert client.get(server.fresh_address()).status_code == 200
        return client

    yield enter
    for client in clients:
        client.close()


def test_the_server_listens_on_loopback_only(serve):
    import psutil

    server = serve("--no-index")
    process = psutil.Process(server.process.pid)
    listening = [one for one in process.net_connections() if one.status == psutil.CONN_LISTEN]
    assert {one.laddr.ip for one in listening} == {"127.0.0.1"}


@pytest.fixture
def open_umask():
    """As on most machines: what is not said otherwise can be read by everybody."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def modes(home):
    found = {}
    for one in home.glob("*/**/*"):
        with contextlib.suppress(FileNotFoundError):  # replaced meanwhile
            found[one.relative_to(home).as_posix()] = stat.S_IMODE(one.stat().st_mode)
    return found


def test_all_files_of_a_node_are_readable_by_their_owner_only(open_umask, tmp_path):
    """After add, index, search, choices, learning and while the page is served and follows a change."""
    (tmp_path / "docs").mkdir()
    for i in range(30):
        (tmp_path / "docs" / f"{i}.md").write_text(f"# Note {i}\n\napple number{i}\n")
    home, seen = tmp_path / "home", {}
    with foltr.node.open(home) as node:
        node.add([tmp_path / "docs"])
        seen |= {name: mode for _ in node.index() for name, mode in modes(home).items() if "candidates-" not in name}
        for i in range(12):
            results = node.search(f"apple number{i}")
            node.choose(results, results.rows[-1].id)
        node.refit()
        seen |= modes(home)
    server = Server(home)
    try:
        (tmp_path / "docs" / "late.md").write_text("apple late\n")
        with foltr.node.open(home) as node:
            last = time.monotonic() + 120
            while not node.search("late").rows and time.monotonic() < last:
                seen |= modes(home)
            assert node.search("late").rows
        seen |= modes(home)
    finally:
        server.end()
    seen |= modes(home)
    assert {"config/settings.toml", "data/log.sqlite", "cache/index.json"} <= set(seen)
    assert any(name.startswith("data/page/running-") for name in seen)
    assert any(name.endswith(".term") for name in seen)  # tantivy's
    folders = {name for name in seen if any(other.startswith(name + "/") for other in seen)}
    assert {name: oct(mode) for name, mode in seen.items() if mode != (0o700 if name in folders else 0o600)} == {}


def test_a_port_that_is_taken_is_explained(home):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        command = [
            sys.executable,
            "-m",
            "foltr",
            "node",
            "serve",
            "--no-browser",
            "--port",
            str(taken.getsockname()[1]),
        ]
        found = subprocess.run(
            command, env={**os.environ, "FOLTR_NODE_HOME": str(home)}, capture_output=True, text=True
        )
    assert found.returncode == 2
    assert "--port" in found.stderr


def test_ending_the_server_leaves_no_process_and_no_token(serve, home):
    import psutil

    server = serve()
    children = psutil.Process(server.process.pid).children(recursive=True)
    assert children
    server.fresh_address()
    assert list((home / "data" / "page" / "tokens").iterdir())
    server.process.send_signal(signal.SIGTERM)
    server.process.wait(30)
    _, alive = psutil.wait_procs(children, timeout=30)
    assert alive == []
    assert [file for file in (home / "data" / "page").rglob("*") if file.is_file()] == []


@pytest.mark.parametrize("during", ["typing", "opening", "learning"])
def test_kill_9_and_a_restart(serve, let_in, home, during, tmp_path):
    """What was acknowledged is there after a restart, and the page works with the cookie of before."""
    import psutil

    variables = {}
    read = Desktop(tmp_path / "desktop", variables.__setitem__)
    read.program("xdg-open")
    server = serve(**variables)
    children = psutil.Process(server.process.pid).children(recursive=True)
    client = let_in(server)
    acknowledged = []
    more = [" module", " class"] if during == "learning" else []  # a text teaches once
    for words in (word + then for then in ["", *more] for word in ("json", "queue", "heapq", "thread", "calendar")):
        text = client.get("/", params={"q": words}).text
        form = form_of(text)
        assert client.post("/settle", data=form).status_code == 204
        if during == "typing":
            acknowledged.append(words)
            client.get("/list", params={"q": words[:3]})
            continue
        assert client.post("/act", data={**form, "open": numbers(text)[1]}).status_code == 303
        acknowledged.append((words, read()))
    server.kill()
    _, alive = psutil.wait_procs(children, timeout=30)
    assert alive == []
    again = serve(port=server.port, **variables)
    assert again.port == server.port
    assert client.get("/", params={"q": "json"}).status_code == 200
    with foltr.node.open(home) as node:
        history = node.history(limit=100)
        if during == "typing":
            assert sorted(one.query for one in history) == sorted(acknowledged)
        else:
            chosen = [(one.query, choice.document) for one in history for choice in one.choices]
            assert sorted(chosen) == sorted(acknowledged)
            assert node.search("json").rows[0].remembered
        if during == "learning":
            assert node.versions()
        assert node.status().documents > 0
    text = client.get("/", params={"q": "tempfile"}).text
    assert client.post("/act", data={**form_of(text), "open": numbers(text)[0]}).status_code == 303
    assert read()


def test_kill_9_in_the_middle_of_requests(serve, let_in, home, tmp_path):
    """The server is killed while a client goes on typing and opening; every tenth choice fits the weights."""
    import itertools
    import threading

    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "xdg-open").write_text("#!/bin/sh\n")
    (programs / "xdg-open").chmod(0o755)
    acknowledged = []
    words = itertools.cycle(
        [word + then for then in ("", " module", " class") for word in ("json", "queue", "heapq", "thread", "calendar")]
    )

    def work(client, enough, reached):
        try:
            while True:
                query = next(words)
                client.get("/list", params={"q": query[:3]})
                text = client.get("/", params={"q": query}).text
                number = numbers(text)[len(acknowledged) % 3]
                if client.post("/act", data={**form_of(text), "open": number}).status_code == 303:
                    acknowledged.append(query)
                if len(acknowledged) >= enough:
                    reached.set()
        except httpx.TransportError:
            reached.set()

    for enough in (3, 9, 19):
        server, reached = serve(PATH=f"{programs}:{os.environ['PATH']}"), threading.Event()
        client = threading.Thread(target=work, args=(let_in(server), enough, reached))
        client.start()
        assert reached.wait(120)
        server.kill()
        client.join(60)
        assert len(acknowledged) >= enough
        with foltr.node.open(home) as node:
            chosen = [one.query for one in node.history(limit=200) for _ in one.choices]
            assert len(chosen) - len(acknowledged) in range(4)  # one in flight may be stored, each time
            assert all(chosen.count(query) >= acknowledged.count(query) for query in set(acknowledged))
            assert node.search("json").rows


def test_nobody_is_contacted_by_the_server(serve, let_in):
    import psutil

    server = serve()
    client = let_in(server)
    process = psutil.Process(server.process.pid)
    for words in ("json", "queue http://example.org", "from:ada@example.org"):
        client.get("/", params={"q": words})
        for one in [process, *process.children(recursive=True)]:
            remote = {place.raddr.ip for place in one.net_connections() if place.raddr}
            assert remote <= {"127.0.0.1"}


def test_an_index_of_another_version_is_explained_until_it_is_rebuilt(serve, let_in, home):
    (index,) = home.glob("cache/index-*/index.sqlite")
    with contextlib.closing(sqlite3.connect(index)) as connection:
        connection.execute("PRAGMA user_version = 9999")
    before = let_in(serve("--no-index")).get("/", params={"q": "json"})
    assert before.status_code == 503
    assert "index again" in before.text
    client = let_in(serve())
    last = time.monotonic() + 120
    while (found := client.get("/", params={"q": "json"})).status_code == 503 and time.monotonic() < last:
        assert "Traceback" not in found.text
    assert numbers(found.text)


# ---- installing


def test_answers_do_not_wait_for_acknowledgements():
    """Nagle's algorithm would hold back the body of an answer until its headers are acknowledged, up to 40 ms later."""

    async def connected() -> int:
        options: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        def accepted(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            found = writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            writer.close()
            options.set_result(found)

        with contextlib.closing(bound("127.0.0.1", 0, Door({os.getuid()}, None))) as listening:
            async with await asyncio.start_server(accepted, sock=listening):
                _, writer = await asyncio.open_connection(*listening.getsockname())
                try:
                    return await asyncio.wait_for(options, 30)
                finally:
                    writer.close()

    assert asyncio.run(connected()) == 1
