"""Tokens work once and expire; sessions are stored by hash, end by a button, a command or without use."""

import os
import pty
import re
import subprocess
import sys
import time

import httpx
import psutil
import pytest
from page_client import PORT, Client, form_of

import foltr.node
from foltr.node.page import sign_ins
from foltr.node.page.app import create_app
from foltr.node.page.entrance import served_pages
from foltr.node.page.security import HEADERS

COOKIE = f"foltr_{PORT}"


def foltr_node(home, *words):
    command = [sys.executable, "-m", "foltr", "node", *words]
    environment = {**os.environ, "FOLTR_NODE_HOME": str(home), "NO_COLOR": "1"}
    return subprocess.run(command, env=environment, capture_output=True, text=True)


def aged(folder, seconds):
    """Makes all files older."""
    for file in folder.iterdir():
        moment = file.stat().st_mtime - seconds
        os.utime(file, (moment, moment))


# ---- tokens


def test_a_token_lets_one_browser_in_once(application, page_folder):
    token = sign_ins.mint(page_folder)
    with Client(application) as first, Client(application) as second:
        answer = first.get("/", params={"token": token})
        assert answer.status_code == 200
        assert first.get("/").status_code == 200
        assert second.get("/", params={"token": token}).status_code == 401
        assert not second.cookies
        assert first.get("/", params={"token": token}).status_code == 200  # a known browser goes on
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert first.cookies[COOKIE] not in answer.text
    assert token not in answer.text


def test_of_two_requests_with_one_token_one_is_let_in(page_folder):
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(8) as threads:
        for _ in range(20):
            token = sign_ins.mint(page_folder)
            cookies = list(threads.map(lambda _, token=token: sign_ins.redeem(page_folder, token), range(8)))
            assert sum(cookie is not None for cookie in cookies) == 1


@pytest.mark.parametrize(("seconds", "status"), [(sign_ins.TOKEN_SECONDS - 60, 200), (sign_ins.TOKEN_SECONDS + 1, 401)])
def test_a_token_expires(stranger, page_folder, seconds, status):
    token = sign_ins.mint(page_folder)
    aged(page_folder / "tokens", seconds)
    assert stranger.get("/", params={"token": token}).status_code == status


def test_a_token_of_the_future_is_void(stranger, page_folder):
    """The clock was turned back: nobody knows how old it is."""
    token = sign_ins.mint(page_folder)
    aged(page_folder / "tokens", -3600)
    assert stranger.get("/", params={"token": token}).status_code == 401


@pytest.mark.parametrize("token", ["", "x", "é", "x" * 5000, "../sessions/x", "\0", "%2e%2e"])
def test_a_wrong_token_does_not_open_the_page(stranger, page_folder, token):
    sign_ins.mint(page_folder)
    for answer in (stranger.get("/", params={"token": token}), stranger.post("/enter", data={"token": token})):
        assert answer.status_code == 401
        assert "foltr node page" in answer.text
    assert not stranger.cookies


def test_the_form_of_a_started_browser_lets_in_from_a_file(stranger, page_folder):
    headers = {"origin": "null", "sec-fetch-site": "cross-site"}
    answer = stranger.post("/enter", data={"token": sign_ins.mint(page_folder)}, headers=headers)
    assert answer.status_code == 200
    assert all(answer.headers[name] == value for name, value in HEADERS.items())
    assert stranger.get("/").status_code == 200


def test_a_search_for_a_token_is_a_search(browser_client):
    assert "token=x" in browser_client.get("/?q=token=x").text


def test_tokens_and_sessions_are_bounded_and_no_secret_is_on_the_disk(page_folder, home):
    secrets = [sign_ins.mint(page_folder) for _ in range(2 * sign_ins.MOST_TOKENS)]
    assert len(list((page_folder / "tokens").iterdir())) == sign_ins.MOST_TOKENS
    secrets += [sign_ins.redeem(page_folder, sign_ins.mint(page_folder)) for _ in range(2 * sign_ins.MOST_BROWSERS)]
    assert len(sign_ins.last_uses(page_folder)) == sign_ins.MOST_BROWSERS
    stored = [file for file in home.rglob("*") if file.is_file()]
    for file in stored:
        content = file.read_bytes()
        assert not any(secret in file.name or secret.encode() in content for secret in secrets[-5:]), file
    for file in page_folder.rglob("*"):
        assert file.stat().st_mode & 0o077 == 0


# ---- sessions


def test_a_session_outlives_a_restart(browser_client, home):
    with foltr.node.open(home) as again, Client(create_app(again, PORT), **dict(browser_client.cookies)) as client:
        assert client.get("/").status_code == 200


def test_a_session_ends_after_a_time_without_use(browser_client, page_folder):
    day = 86_400
    for _ in range(3):  # each use counts
        aged(page_folder / "browsers", (sign_ins.IDLE_DAYS - 1) * day)
        assert browser_client.get("/").status_code == 200
    aged(page_folder / "browsers", sign_ins.IDLE_DAYS * day + 1)
    assert browser_client.get("/").status_code == 401
    assert list((page_folder / "browsers").iterdir()) == []


def test_the_last_use_is_stored_once_an_hour(browser_client, page_folder):
    (file,) = (page_folder / "browsers").iterdir()
    aged(page_folder / "browsers", 1800)
    before = file.stat().st_mtime
    browser_client.get("/")
    assert file.stat().st_mtime == before
    aged(page_folder / "browsers", 1801)
    browser_client.get("/")
    assert file.stat().st_mtime > time.time() - 60


def let_in(application, page_folder):
    client = Client(application)
    client.get("/", params={"token": sign_ins.mint(page_folder)})
    return client, form_of(client.get("/settings").text)["csrf"]


def test_a_form_token_belongs_to_its_session(application, page_folder, node):
    (first, one), (second, other) = (let_in(application, page_folder) for _ in range(2))
    with first, second:
        assert one != other
        assert first.post("/index", data={"csrf": other, "action": "pause"}).status_code == 403
        assert not node.status().paused
        assert first.post("/index", data={"csrf": one, "action": "pause"}).status_code == 303


@pytest.mark.parametrize(("form", "others"), [({}, 200), ({"everywhere": "yes"}, 401)])
def test_signing_out_ends_this_session_or_all(application, page_folder, form, others):
    (first, csrf), (second, _) = (let_in(application, page_folder) for _ in range(2))
    token = sign_ins.mint(page_folder)
    with first, second:
        cookie = first.cookies[COOKIE]
        answer = first.post("/sign-out", data={"csrf": csrf, **form})
        assert answer.status_code == 200
        assert "signed out" in answer.text
        assert COOKIE not in first.cookies
        assert first.get("/", headers={"cookie": f"{COOKIE}={cookie}"}).status_code == 401
        assert second.get("/").status_code == others
        assert second.get("/", params={"token": token}).status_code == others  # unused addresses are void too


def test_the_settings_say_how_many_browsers_are_signed_in(application, page_folder):
    (first, _), (second, _) = (let_in(application, page_folder) for _ in range(2))
    with first, second:
        assert "2 browsers are signed in" in first.get("/settings").text


# ---- commands


def test_the_output_of_a_server_without_a_terminal_has_no_token(serve, home):
    """As in the journal of a systemd unit; the command that it names prints a fresh address."""
    server = serve("--no-index")
    printed = server.process.stdout.readline().decode()
    assert "token" not in server.base + printed
    assert f"FOLTR_NODE_HOME={home} foltr node page" in printed
    for _ in range(2):
        address = foltr_node(home, "page").stdout.strip()
        assert address.startswith(server.base + "/?token=")
        assert httpx.get(address).status_code == 200
        assert httpx.get(address).status_code == 401
    token = address.partition("token=")[2]
    for process in (psutil.Process(server.process.pid), *psutil.Process(server.process.pid).children()):
        assert token not in " ".join(process.cmdline())
    second = foltr_node(home, "serve", "--no-browser", "--port", str(server.port))
    assert second.returncode == 0
    assert server.base in second.stdout
    assert "token" not in second.stdout


def test_a_second_server_leaves_the_files_of_the_first_alone(serve, home, node):
    """Its end deletes neither tokens, nor the record of who follows changes, nor the announcement of the first."""
    first = serve()
    address = foltr_node(home, "page").stdout.strip()
    before = {file.name for file in (home / "data").rglob("*") if file.name.startswith(("running-", "following"))}
    second = serve()
    assert len(served_pages(node.places)) == 2
    second.end()
    after = {file.name for file in (home / "data").rglob("*") if file.name.startswith(("running-", "following"))}
    assert after == before
    assert node.status().following.running
    assert httpx.get(address).status_code == 200
    unused = foltr_node(home, "page").stdout.strip()
    first.end()
    assert list((home / "data" / "page" / "tokens").iterdir()) == [], unused


def test_a_terminal_gets_the_address_with_a_token(home):
    reading, writing = pty.openpty()
    command = [sys.executable, "-u", "-m", "foltr", "node", "serve", "--no-browser", "--no-index", "--port", "0"]
    environment = {**os.environ, "FOLTR_NODE_HOME": str(home), "NO_COLOR": "1", "COLUMNS": "80"}
    with subprocess.Popen(command, env=environment, stdout=writing, stderr=subprocess.DEVNULL) as server:
        os.close(writing)
        printed = ""
        while "Ctrl-C" not in printed:
            printed += os.read(reading, 4096).decode()
        address = re.search(r"http\S+", printed)[0]
        assert httpx.get(address).status_code == 200
        server.terminate()
    os.close(reading)


def test_a_command_signs_all_browsers_out(serve, home):
    server = serve("--no-index")
    with httpx.Client(base_url=server.base) as client:
        assert client.get(server.fresh_address()).status_code == 200
        assert client.get("/").status_code == 200
        assert "1 browser signed out" in foltr_node(home, "page", "--sign-out").stdout
        assert client.get("/").status_code == 401


def test_without_a_server_the_command_says_so(home, node):
    answer = foltr_node(home, "page")
    assert answer.returncode == 2
    assert "foltr node serve" in answer.stderr
    assert served_pages(node.places) == []


def test_files_of_older_versions_are_deleted_and_open_nothing(home, serve):
    (home / "config" / "page.json").write_text('{"port": 8390, "cookie": "' + "c" * 43 + '", "token": "t"}')
    (home / "data" / "page_running.json").write_text('{"pid": 1, "port": 8390, "token": "t"}')
    server = serve("--no-index")
    assert httpx.get(server.base, headers={"cookie": f"foltr_{server.port}={'c' * 43}"}).status_code == 401
    assert not (home / "config" / "page.json").exists()
    assert not (home / "data" / "page_running.json").exists()


def test_a_killed_server_is_not_taken_for_a_running_one(serve, node):
    server = serve("--no-index")
    assert [served.port for served in served_pages(node.places)] == [server.port]
    server.kill()
    assert served_pages(node.places) == []
