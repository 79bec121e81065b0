"""A transport within one process: every node answers when it is sent a message, or never."""

from collections import deque
from collections.abc import Callable, Mapping
from typing import TypeAlias

from foltr.errors import FoltrError

Respond: TypeAlias = Callable[[bytes], bytes | None]  # `member.respond` of one node


class InMemory:
    """See `secagg.deadlines.Transport`. Counts the bytes of each node."""

    def __init__(self, nodes: Mapping[int, Respond]) -> None:
        self.nodes = dict(nodes)  # whoever is not in it is away
        self.refusals: dict[int, str] = {}  # why a node refused its last message
        self.up, self.down = dict.fromkeys(nodes, 0), dict.fromkeys(nodes, 0)
        self._replies: deque[tuple[int, bytes]] = deque()

    def send(self, requests: Mapping[int, bytes]) -> None:
        late = [reply for reply in self._replies if reply[0] not in requests]
        self._replies = deque(late)  # without what nobody waited for: a node that is sent a message replies anew
        for client, request in requests.items():
            if client in self.nodes:
                self._ask(client, request)

    def receive(self, seconds: float) -> tuple[int, bytes] | None:  # noqa: ARG002 - whoever can answer has answered
        return self._replies.popleft() if self._replies else None

    def _ask(self, client: int, request: bytes) -> None:
        self.down[client] += len(request)
        try:
            reply = self.nodes[client](request)
        except FoltrError as problem:
            self.refusals[client] = str(problem)
            return
        if reply is not None:
            self.up[client] += len(reply)
            self._replies.append((client, reply))
