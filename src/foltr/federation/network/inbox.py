"""What arrives at the coordinator: contributions of nodes, and the second operator's parts and answers.

Everything is checked, bounded and on the disk before its receipt. One contribution of a node and round counts, and one
answer of each kind of the second operator.
"""

from hashlib import sha256

import msgspec

from foltr.errors import Refused, SecureAggregationError
from foltr.federation.network import enrolment
from foltr.federation.network.charter import Desk
from foltr.federation.network.rounds import open_round, operator_zero, read_answers, waiting_round, window_of_stored
from foltr.federation.network.wire import OperatorAnswer, RoundWork
from foltr.secagg.two_servers import checked_part, context, is_contribution, parts


def note_opening(desk: Desk, round: int, client: int) -> None:
    """Before the answer to a question leaves: the inbox stays open for this node."""
    with desk.store.transaction():
        desk.store.execute("INSERT OR IGNORE INTO openings VALUES (?, ?)", round, client)
        desk.store.execute("UPDATE rounds SET state = 'open' WHERE round = ? AND state = 'announced'", round)


def receive(desk: Desk, client: int, message: bytes, now: float) -> tuple[int, bytes, float]:
    """Stores a contribution: its round, its digest, and when it came first. One that was changed is refused."""
    digest = sha256(message).digest()
    with desk.store.transaction():
        sent = desk.store.row("SELECT round, received FROM receipts WHERE client = ? AND digest = ?", client, digest)
        if sent is not None:  # its receipt was lost
            return sent[0], digest, sent[1]
        current = open_round(desk)
        if current is None:
            raise Refused("no round is open; the contribution came too late, and is not in a sum")
        if desk.store.row("SELECT 1 FROM receipts WHERE round = ? AND client = ?", current.round, client):
            raise Refused(f"round {current.round} has another contribution of member {client}; the first one counts")
        setup = enrolment.setup(desk, current.registry)
        if client not in setup.registry.keys:
            raise Refused(f"member {client} is not in the registry of round {current.round}")
        if not is_contribution(message, client, setup=setup, round=current.round):
            raise Refused(f"not a contribution of member {client} to round {current.round}")
        now_context = context(window_of_stored(current, setup))
        try:
            for index, part in enumerate(parts(message, setup=setup)):
                checked_part(part, client, index, setup=setup, context=now_context, round=current.round)
        except SecureAggregationError as problem:
            raise Refused(str(problem)) from None
        desk.store.execute("INSERT INTO inbox VALUES (?, ?, ?)", current.round, client, message)
        desk.store.execute(
            "INSERT INTO receipts (round, client, digest, received) VALUES (?, ?, ?, ?)",
            current.round,
            client,
            digest,
            now,
        )
    return current.round, digest, now


def work_for_second(desk: Desk, now: float) -> tuple[RoundWork, ...]:
    """The oldest round that waits for the second operator, and what it is asked for."""
    waiting = waiting_round(desk)
    if waiting is None:
        return ()
    answers, setup = read_answers(desk, waiting.round), enrolment.setup(desk, waiting.registry)
    operator, window = operator_zero(desk, setup, now), window_of_stored(waiting, setup)
    about = (waiting.round, waiting.registry, waiting.ranker, waiting.keys)
    try:
        if "listing" not in answers:
            return (RoundWork(*about, "list"),)
        if "agreement" not in answers:
            return (RoundWork(*about, "agree", operator.listing(window, {})[0]),)
        return (RoundWork(*about, "half", operator.agreement(window, answers["listing"].content)),)
    except SecureAggregationError:  # `advance` fails the round with the reason
        return ()


def parts_for_second(desk: Desk, round: int, after: int, most_bytes: int) -> dict[int, bytes]:
    """Parts of a closed round for the second operator, by client in rising order, as many as fit."""
    waiting = waiting_round(desk)
    if waiting is None or waiting.round != round:
        raise Refused(f"round {round} does not wait for parts")
    setup, found, size = enrolment.setup(desk, waiting.registry), dict[int, bytes](), 0
    for client, message in desk.store.rows(
        "SELECT client, message FROM inbox WHERE round = ? AND client > ? ORDER BY client", round, after
    ):
        part = parts(message, setup=setup)[1]
        size += len(part)
        if found and size > most_bytes:
            break
        found[client] = part
    return found


def answer_of_second(desk: Desk, answer: OperatorAnswer) -> None:
    """Stores an answer; the first of a kind counts, so that a second list or half changes nothing."""
    with desk.store.transaction():
        waiting = waiting_round(desk)
        if waiting is None or waiting.round != answer.round:
            known = desk.store.value(
                "SELECT 1 FROM rounds WHERE round = ? AND state IN ('opened', 'published')", answer.round
            )
            if known:
                return  # its reply was lost, and the round went on
            raise Refused(f"round {answer.round} does not wait for an answer")
        stored = read_answers(desk, answer.round).get(answer.kind)
        if stored is not None and stored != answer:
            raise Refused(f"round {answer.round}: the second operator has sent another {answer.kind} before")
        desk.store.execute(
            "INSERT OR IGNORE INTO answers VALUES (?, ?, ?)", answer.round, answer.kind, msgspec.msgpack.encode(answer)
        )
