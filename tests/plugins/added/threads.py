"""A transport: every node is a thread with an inbox of its own, and all of them write to one outbox."""

import queue
import threading


class Threads:
    def __init__(self, nodes):
        self.outbox = queue.SimpleQueue()
        self.inboxes = {client: queue.SimpleQueue() for client in nodes}
        self.threads = [threading.Thread(target=self._serve, args=item, daemon=True) for item in nodes.items()]
        for thread in self.threads:
            thread.start()

    def send(self, requests):
        for client, request in requests.items():
            if client in self.inboxes:  # a node that is away is silent, not an error
                self.inboxes[client].put(request)

    def receive(self, seconds):
        try:
            return self.outbox.get(timeout=seconds)
        except queue.Empty:
            return None

    def close(self):
        for inbox in self.inboxes.values():
            inbox.put(None)
        for thread in self.threads:
            thread.join()

    def _serve(self, client, respond):
        while (request := self.inboxes[client].get()) is not None:
            reply = respond(request)
            if reply is not None:
                self.outbox.put((client, reply))
