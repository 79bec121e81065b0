"""Two networks for the tests of deadlines: one in which time is a number, and one of real sockets."""

import heapq
import itertools
import selectors
import socket
import struct
import time

from foltr.errors import SecureAggregationError
from foltr.secagg import client as of_round
from foltr.secagg.messages import header_of

_LENGTH = struct.Struct(">I")


class Simulated:
    """Messages arrive at the times they are scheduled for; time passes only while somebody waits for them."""

    def __init__(
        self, events=(), clients=(), sends=lambda stage, client, reply: [(0.0, reply)], answer=of_round.answer
    ):
        """`sends`: after how many seconds a client sends what, when its honest reply of a stage is `reply`."""
        self.now, self.order, self.events, self.asked = 0.0, itertools.count(), [], {}
        self.states, self.sends, self.answer = dict(clients), sends, answer
        for at, client, message in events:
            self.schedule(at, client, message)

    def schedule(self, at, client, message):
        heapq.heappush(self.events, (at, next(self.order), client, message))

    def clock(self):
        return self.now

    def send(self, requests):
        stage = header_of(next(iter(requests.values()))).stage
        self.asked[stage] = tuple(requests)
        for client, request in requests.items():
            self.states[client], reply = self.answer(self.states[client], request)
            for delay, message in self.sends(stage, client, reply):
                self.schedule(self.now + delay, client, message)

    def receive(self, seconds):
        if not self.events or self.events[0][0] > self.now + seconds:
            self.now += seconds
            return None
        at, _, client, message = heapq.heappop(self.events)
        self.now = max(self.now, at)
        return client, message


class Sockets:
    """One connection for each client; a message is its length in four bytes, then itself."""

    def __init__(self, connections, most_bytes):
        self.connections, self.most_bytes = connections, most_bytes
        self.arrived = {client: bytearray() for client in connections}
        self.selector = selectors.DefaultSelector()
        for client, connection in connections.items():
            self.selector.register(connection, selectors.EVENT_READ, client)

    def send(self, requests):
        for client, request in requests.items():
            write(self.connections[client], request)  # shorter than the kernel's buffer, so this does not wait

    def receive(self, seconds):
        until = time.monotonic() + seconds
        while True:
            for client in self.arrived:
                message = self._whole(client)
                if message is not None:
                    return client, message
            ready = self.selector.select(max(0.0, until - time.monotonic()))
            if not ready:
                return None
            for key, _ in ready:
                self._read(key.data)

    def _read(self, client):
        more = self.connections[client].recv(4096)
        self.arrived[client] += more
        if not more or int.from_bytes(self.arrived[client][:4], "big") > self.most_bytes:
            self.selector.unregister(self.connections[client])

    def _whole(self, client):
        held = self.arrived[client]
        end = 4 + int.from_bytes(held[:4], "big")
        if len(held) < end:
            return None
        message = bytes(held[4:end])
        self.arrived[client] = held[end:]
        return message


def write(connection, message):
    connection.sendall(_LENGTH.pack(len(message)) + message)


def serve(connection, reply_to):
    """A client's side: answers every request until the server hangs up or is refused."""
    stream = connection.makefile("rb")
    with connection, stream:
        while header := stream.read(4):
            request = stream.read(_LENGTH.unpack(header)[0])
            try:
                write(connection, reply_to(request))
            except (SecureAggregationError, OSError):
                return


def connected(listener):
    """Both ends of a new connection over loopback: the client's, and the server's."""
    client = socket.create_connection(listener.getsockname())
    return client, listener.accept()[0]
