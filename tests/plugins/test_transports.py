"""Transports keep one contract: the one within a process, the example of CONTRIBUTING, and no broken one."""

import importlib.util
from pathlib import Path

import pytest

from foltr.federation.in_memory import InMemory
from foltr.testing import check_transport

ADDED = Path(__file__).parent / "added"


def threads():
    specification = importlib.util.spec_from_file_location("threads_example", ADDED / "threads.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module.Threads


def test_the_transport_within_a_process_keeps_the_contract():
    check_transport(InMemory)


def test_the_example_of_contributing_keeps_the_contract():
    check_transport(threads(), close=lambda transport: transport.close())


class Cutting(InMemory):
    def receive(self, seconds):
        received = super().receive(seconds)
        return received and (received[0], received[1][:65536])


class Misnaming(InMemory):
    def receive(self, seconds):
        received = super().receive(seconds)
        return received and (0, received[1])


class Repeating(InMemory):
    def receive(self, seconds):
        received = super().receive(seconds)
        if received:
            self._replies.appendleft(received)
        return received


class Losing(InMemory):
    def send(self, requests):
        super().send(dict(list(requests.items())[1:]))


class Strict(InMemory):
    def send(self, requests):
        for client in requests:
            self.nodes[client]
        super().send(requests)


class Viewing(InMemory):
    def receive(self, seconds):
        received = super().receive(seconds)
        return received and (received[0], bytearray(received[1]))


BROKEN = {
    Cutting: "all bytes in order",
    Misnaming: "delivered once",
    Repeating: "delivered once",
    Losing: "a message that was sent arrives",
    Strict: "silent or absent is no error",
    Viewing: "messages are bytes",
}


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.__name__)
def test_a_broken_transport_is_refused_with_the_law_that_it_breaks(broken):
    with pytest.raises(AssertionError, match=BROKEN[broken]):
        check_transport(broken)
