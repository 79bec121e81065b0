"""Requests that nobody waits for any more are not computed: one waiting place a tab, and a look before computing."""

import asyncio
import socket
import threading

import httpx
import pytest
from page_client import HOST

from foltr.node.page import search, sign_ins
from foltr.node.page.serve import serve


@pytest.fixture
def computed(monkeypatch):
    """The texts whose list was really computed, in order."""
    texts, compute = [], search.list_view

    def counted(node, asked):
        texts.append(asked.text)
        return compute(node, asked)

    monkeypatch.setattr(search, "list_view", counted)
    return texts


@pytest.fixture
def run(application, browser_client):
    """Runs `scenario(get)` with a client that was let in; a scenario that waits for ever fails."""
    cookies = dict(browser_client.cookies)

    def start(scenario):
        async def with_client():
            transport = httpx.ASGITransport(application, client=("127.0.0.1", 50_000))
            async with httpx.AsyncClient(transport=transport, base_url=HOST, cookies=cookies) as client:

                def get(text, **headers):
                    named = {name.replace("_", "-"): value for name, value in headers.items()}
                    return asyncio.create_task(client.get("/list", params={"q": text}, headers=named))

                async with asyncio.timeout(60):
                    return await scenario(get)

        return asyncio.run(with_client())

    return start


def test_of_many_keys_the_first_list_and_the_newest_are_computed(node, run, computed):
    async def scenario(get):
        with node._lock:  # the first list is being computed, and takes long
            keys = [get(f"json {number}", x_tab="a", x_sequence=str(number)) for number in range(1, 51)]
            replaced = await asyncio.gather(*keys[1:-1])
        return replaced, await keys[0], await keys[-1]

    replaced, first, last = run(scenario)
    assert {answer.status_code for answer in replaced} == {204}
    assert (first.status_code, last.status_code) == (200, 200)
    assert last.headers["x-sequence"] == "50"
    assert computed == ["json 1", "json 50"]


def test_a_late_request_of_an_older_key_does_not_replace_a_newer_one(node, run, computed):
    async def scenario(get):
        with node._lock:
            first = get("json", x_tab="a", x_sequence="1")
            newer = get("json dumps", x_tab="a", x_sequence="3")
            older = await get("json d", x_tab="a", x_sequence="2")
        return older, await first, await newer

    older, _, newer = run(scenario)
    assert (older.status_code, newer.status_code) == (204, 200)
    assert computed == ["json", "json dumps"]


def test_tabs_do_not_replace_each_other_and_keep_their_order(node, run, computed):
    async def scenario(get):
        with node._lock:
            asked = [get("first", x_tab="a", x_sequence="1")]
            asked += [get("b old", x_tab="b", x_sequence="1"), get("c", x_tab="c", x_sequence="1")]
            asked += [get("b new", x_tab="b", x_sequence="2")]
            await asked[1]
        return await asyncio.gather(*asked)

    assert [answer.status_code for answer in run(scenario)] == [200, 204, 200, 200]
    assert computed == ["first", "b new", "c"]


@pytest.mark.parametrize("headers", [{}, {"x_sequence": "7"}, {"x_tab": "a"}, {"x_tab": "a" * 65, "x_sequence": "7"},
                                     {"x_tab": "a", "x_sequence": "-1"}])  # fmt: skip
def test_requests_without_a_tab_or_serial_are_all_answered(headers, node, run, computed):
    async def scenario(get):
        return await asyncio.gather(*(get(f"json {number}", **headers) for number in range(5)))

    assert [answer.status_code for answer in run(scenario)] == [200] * 5
    assert len(computed) == 5


def test_an_error_gives_the_turn_to_the_next(node, run, monkeypatch):
    def fails(*_):
        raise OSError("a disk that fails")

    async def scenario(get):
        with monkeypatch.context() as patch:
            patch.setattr(search, "list_view", fails)
            with pytest.raises(OSError, match="a disk that fails"):
                await get("json")
        return await get("json")

    assert run(scenario).status_code == 200


# ---- over sockets


@pytest.fixture
def served(node):
    """The port of a real server over the node of this process."""
    begun, serving = threading.Event(), []

    def announce(started):
        serving.append(started)
        begun.set()

    thread = threading.Thread(target=serve, args=(node, announce), kwargs={"port": 0, "follow": False})
    thread.start()
    assert begun.wait(30)
    yield serving[0].served.port
    serving[0].end()
    thread.join(30)
    assert not thread.is_alive()


@pytest.mark.parametrize("path", ["/list", "/"])
def test_requests_whose_browser_has_gone_are_not_computed(path, served, node, page_folder, computed):
    with httpx.Client(base_url=f"http://127.0.0.1:{served}", timeout=60) as client:
        client.get("/", params={"token": sign_ins.mint(page_folder)})
        cookie = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
        head = f"Host: 127.0.0.1:{served}\r\nCookie: {cookie}\r\n\r\n"
        with node._lock:  # the first request is being computed
            for number in range(50):
                with socket.create_connection(("127.0.0.1", served)) as browser:
                    browser.sendall(f"GET {path}?q=gone{number} HTTP/1.1\r\n{head}".encode())
                assert client.get("/static/page.css").status_code == 200  # the server saw both request and end
        assert client.get(path, params={"q": "json"}).status_code == 200
    assert computed[-1] == "json"
    assert len(computed) <= 2
