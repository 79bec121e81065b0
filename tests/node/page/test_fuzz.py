"""Random and hostile requests to every route: none is answered with a fault of the server, whatever it carries."""

import asyncio
import logging
import shutil
from collections import Counter

import psutil
import pytest
from page_client import PORT
from request_fuzzer import Fuzzer, answer, true_values

import foltr.node
from foltr.errors import FoltrError
from foltr.node.index.background import return_memory
from foltr.node.page import sign_ins
from foltr.node.page.app import create_app
from foltr.node.page.demo import Story
from foltr.node.page.security import HEADERS

STORY = Story(corpus="x", documents=1, people=2, seeds=(1,), rounds=1, clicks=1, own_folder="")
AGAIN = 250  # requests until the state is looked at: forms erase it
MOST_GROWTH = 150e6  # bytes of memory


class Fuzzed:
    """A node with a small index that is restored when requests have erased it."""

    def __init__(self, library, folder):
        self._library, self._folder, self._node, self.statuses, self._times = library, folder, None, Counter(), 0
        self.documents = [str(library / "docs"), str(library / "hostile")]

    def restore(self):
        self.close()
        home = self._folder / "home"
        shutil.rmtree(home, ignore_errors=True)
        shutil.copytree(self._library / "home", home)
        self._node = foltr.node.open(home)
        self.folder = sign_ins.page_folder(self._node.places)
        self.application = create_app(self._node, PORT, story=STORY)
        self._times += 1

    def close(self):
        if self._node is not None:
            self._node.close()

    def is_usable(self):
        try:
            return self._node.status().documents >= 20
        except FoltrError:  # settings that were taken and do not work
            return False

    async def run(self, seed, requests):
        self.restore()
        fuzzer, cookie = Fuzzer(self.application._inner.routes, seed), b""
        for number in range(requests):
            if number % AGAIN == 0 and not self.is_usable():
                self.restore()
            if number % AGAIN == 0 or not sign_ins.is_signed_in(self.folder, cookie.decode().partition("=")[2]):
                cookie = f"foltr_{PORT}={sign_ins.redeem(self.folder, sign_ins.mint(self.folder))}".encode()
                fuzzer.values = {**await true_values(self.application, cookie), "roots": ["\n".join(self.documents)],
                                 "path": [self.documents[0]], "token": [sign_ins.mint(self.folder)]}  # fmt: skip
            request = fuzzer.request(cookie)
            try:
                status, headers, body = await answer(self.application, *request)
            except Exception as problem:
                raise AssertionError(f"request {number}: {request}") from problem
            assert status < 500, request
            assert all(headers[name.encode()] == value.encode() for name, value in HEADERS.items()), request
            assert b"Traceback" not in body, request
            self.statuses[request[1] if status != 404 else "missing", request[0], status] += 1
        assert self._times > 1  # forgetting was among the requests


@pytest.fixture
def fuzzed(library, tmp_path, monkeypatch):
    """Opening starts a program that does nothing; no other can be found."""
    (tmp_path / "programs").mkdir()
    (tmp_path / "programs" / "xdg-open").write_text("#!/bin/sh\n")
    (tmp_path / "programs" / "xdg-open").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "programs"))
    node = Fuzzed(library, tmp_path)
    yield node
    node.close()


def fuzz(fuzzed, caplog, seed, requests):
    with caplog.at_level(logging.WARNING), asyncio.Runner() as runner:
        runner.run(fuzzed.run(seed, requests))
    assert [record for record in caplog.records if record.exc_info or record.levelno >= logging.ERROR] == []
    reached = {(path, method) for path, method, status in fuzzed.statuses if status in (200, 204, 303)}
    declared = {(route.path, "POST" if "POST" in route.methods else "GET")
                for route in fuzzed.application._inner.routes if hasattr(route, "methods")}  # fmt: skip
    return declared - reached


def test_two_thousand_fuzzed_requests(fuzzed, caplog):
    fuzz(fuzzed, caplog, seed=1, requests=2_000)


@pytest.mark.slow
def test_a_hundred_thousand_fuzzed_requests(fuzzed, caplog):
    """Every route also succeeds at times, so that more than refusals was tried; memory stays bounded."""
    process = psutil.Process()
    return_memory()  # as `foltr node serve` does: each of the many short threads would leave space of its own behind
    fuzz(fuzzed, caplog, seed=2, requests=20_000)
    before = process.memory_info().rss
    never = fuzz(fuzzed, caplog, seed=3, requests=80_000)
    assert process.memory_info().rss - before < MOST_GROWTH
    assert never == set()
