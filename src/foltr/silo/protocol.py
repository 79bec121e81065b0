"""Asker, server, owner: a question about a term, through a server that must not learn it.

Source: S3 section IV-B.

    asker    `asking`: hashes the term under a key that the parties share (`keys`), hides its columns among decoys
    server   here: carries bytes, and has no key. `Seen` is all that it ever learns: who asks whom, when, the
             fingerprint of the key, z columns, the cells of the answer, and whether two questions are equal.
    owner    `answering`: reads its cells, adds noise, pays from its ledger

`relay` brings a query to an owner in this process; over a network the same bytes travel.

Differs from the paper: nothing.
"""

from typing import Generic, NamedTuple

from foltr.silo.answering import Owner, answered
from foltr.silo.asking import Query, Result


class Seen(NamedTuple):
    sender: str
    receiver: str
    content: bytes


class Exchange(NamedTuple, Generic[Result]):
    result: Result
    owner: Owner  # after it has paid
    seen: tuple[Seen, ...]  # by the server


def relay(
    query: Query[Result], who: Owner, *, asker_name: str = "asker", owner_name: str = "owner"
) -> Exchange[Result]:
    """The server: takes the question to the owner and the answer back, and remembers both."""
    request = next(query)
    after, reply = answered(who, request)
    seen = Seen(asker_name, owner_name, request), Seen(owner_name, asker_name, reply)
    try:
        query.send(reply)
    except StopIteration as finished:
        return Exchange(finished.value, after, seen)
    raise RuntimeError("a query asks once")
