"""Rounds of a coordinator of machines: states on the disk, and what time and arriving messages make of them.

    announced -> open -> closed -> listed -> agreed -> opened -> published
                                     any of them -> failed, with a reason; a failed round consumes its number and keys

A state is stored before the message that follows from it leaves. `advance` is called every few seconds and after each
message of the second operator; it does what is due and can be killed anywhere. Windows go on while the second operator
is away, as long as it left statements about keys: closed rounds wait, oldest first, and their sums share one step.

Questions are answered until the window ends. Contributions are taken until every node that was answered has sent, or
`GRACE` seconds later: an answer counts for a minute, and a node that it made charge its ledger must not be late.
"""

import logging
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from foltr.errors import SecureAggregationError, SpecError
from foltr.federation.announcement import Kind, announce, window_digest
from foltr.federation.coordinator import signed_sum
from foltr.federation.journal import ClosedRound, window_of
from foltr.federation.network import enrolment
from foltr.federation.network.charter import DAY, Desk
from foltr.federation.network.shared_ranker import newest_ranker, newest_shared, publish, step_back_if_asked
from foltr.federation.network.wire import OperatorAnswer, RoundState
from foltr.federation.opening import ANSWER_SECONDS
from foltr.federation.operator import Operator
from foltr.secagg.round_keys import AHEAD, checked_keys, round_of
from foltr.secagg.two_servers import Pair, TwoServers, Window, fewest_of

_LOG = logging.getLogger(__name__)  # numbers of rounds and of nodes, never a message, a parameter or an address
GRACE = ANSWER_SECONDS + 30  # seconds after the window for contributions that were announced by a question
_WAITING: tuple[RoundState, ...] = ("closed", "listed", "agreed")
_PATIENCE = 3600.0  # seconds that the next window waits for the second operator, a tenth of a window at most
_FEWEST_MEMBERS = 3
_NEXT, _REHEARSE = "next round", "rehearse"


class StoredRound(NamedTuple):
    """A row of the table, without its announcement."""

    round: int
    state: RoundState
    registry: int
    version: int
    ranker: bytes  # digest
    keys: Pair
    opened: float
    closes: float
    reason: str


class Mailbox(NamedTuple):
    """The second operator as the coordinator knows it: the answers that it left. See `coordinator.OperatorSide`."""

    desk: Desk

    def statements(self, first: int) -> tuple[bytes, ...]:
        rows = self.desk.store.rows(
            "SELECT statement FROM statements WHERE operator = 1 AND round BETWEEN ? AND ?", first, first + AHEAD - 1
        )
        return tuple(statement for (statement,) in rows)

    def listing(self, window: Window, parts: Mapping[int, bytes]) -> tuple[bytes, dict[int, str]]:  # noqa: ARG002 - it fetched them
        answer = self._answer(window.round, "listing")
        return answer.content, answer.refused

    def agreement(self, window: Window, theirs: bytes) -> bytes:  # noqa: ARG002
        return self._answer(window.round, "agreement").content

    def half(self, window: Window, agreement: bytes) -> bytes:  # noqa: ARG002
        return self._answer(window.round, "half").content

    def _answer(self, round: int, kind: str) -> OperatorAnswer:
        answers = read_answers(self.desk, round)
        if "failure" in answers:
            reason = answers["failure"].content.decode("utf-8", "replace")[:200]
            raise SecureAggregationError(f"the second operator: {reason}")
        if kind not in answers:
            raise ConnectionError(f"the second operator has not sent its {kind}")
        return answers[kind]


def operator_zero(desk: Desk, setup: TwoServers, now: float) -> Operator:
    return Operator(0, desk.operator, setup, desk.storage, clock=lambda: now)


# --- reading --------------------------------------------------------------------------------------------------------


def newest_round(desk: Desk) -> StoredRound | None:
    return _round(desk, "ORDER BY round DESC LIMIT 1")


def open_round(desk: Desk) -> StoredRound | None:
    return _round(desk, "WHERE state IN ('announced', 'open')")


def waiting_round(desk: Desk) -> StoredRound | None:
    """The oldest closed round without its sum."""
    return _round(desk, "WHERE state IN ('closed', 'listed', 'agreed') ORDER BY round LIMIT 1")


def announcement_of(desk: Desk, round: int) -> bytes:
    return desk.store.value("SELECT announcement FROM rounds WHERE round = ?", round)


def read_answers(desk: Desk, round: int) -> dict[str, OperatorAnswer]:
    rows = desk.store.rows("SELECT kind, content FROM answers WHERE round = ?", round)
    return {kind: msgspec.msgpack.decode(content, type=OperatorAnswer) for kind, content in rows}


def waits_for(desk: Desk, current: StoredRound) -> list[int]:
    """Members that have not sent their contribution to an open round."""
    sent = {client for (client,) in desk.store.rows("SELECT client FROM inbox WHERE round = ?", current.round)}
    return [client for client in enrolment.known(desk, current.registry).clients if client not in sent]


def _round(desk: Desk, condition: str) -> StoredRound | None:
    row = desk.store.row(
        f"SELECT round, state, registry, version, ranker, keys, opened, closes, reason FROM rounds {condition}"  # noqa: S608
    )
    if row is None:
        return None
    found = StoredRound(*row)
    return found._replace(keys=(found.keys[:32], found.keys[32:]))  # type: ignore[arg-type]


# --- keys that operators leave -------------------------------------------------------------------


def store_statements(desk: Desk, operator: int, statements: tuple[bytes, ...]) -> None:
    """Keeps the first statement about each round: a key is never replaced."""
    with desk.store.transaction():
        for statement in statements[:AHEAD]:
            desk.store.execute(
                "INSERT OR IGNORE INTO statements VALUES (?, ?, ?)", operator, round_of(statement), statement
            )


def statements_from(desk: Desk) -> int:
    """The first round that the second operator has left too few keys for; 0: there are enough."""
    first = next_number(desk)
    return 0 if len(Mailbox(desk).statements(first)) == AHEAD else first


# --- time passes ----------------------------------------------------------------------------------------------------


def advance(desk: Desk, now: float) -> None:
    """Does what is due: closes a window, sums closed rounds, publishes, changes the registry, opens a window."""
    with desk.store.exclusive():
        _close(desk, now)
        while _sum_oldest(desk, now):
            pass
        if open_round(desk) is None:
            _publish(desk, now)
        if open_round(desk) is None and waiting_round(desk) is None:
            enrolment.take_effect(desk)
            enrolment.propose_registry(desk, now)
        if open_round(desk) is None:
            _open(desk, now)


def next_number(desk: Desk) -> int:
    newest = newest_round(desk)
    return max(newest.round + 1 if newest else 1, int(desk.store.get(_NEXT) or b"1"))


def skip_rounds(desk: Desk, count: int, now: float) -> int:
    """After a restore: fails what is open or waits, and goes on with a number that cannot have been used."""
    with desk.store.transaction():
        for (round,) in desk.store.rows(
            "SELECT round FROM rounds WHERE state NOT IN ('published', 'failed', 'opened')"
        ):
            _fail(desk, round, "the coordinator was restored from a backup", now)
        following = next_number(desk) + AHEAD + count
        desk.store.put(_NEXT, str(following).encode())
        desk.store.execute("DELETE FROM statements")
        desk.store.note(now, f"the coordinator was restored from a backup; rounds go on with {following}")
    return following


def _close(desk: Desk, now: float) -> None:
    with desk.store.transaction():
        current = open_round(desk)
        if current is None:
            return
        members, missing = enrolment.known(desk, current.registry).clients, waits_for(desk, current)
        arrived = len(members) - len(missing)
        enough = arrived >= max(desk.settings.close_share * len(members), fewest_of(len(members), desk.charter.terms))
        asked = {client for (client,) in desk.store.rows("SELECT client FROM openings WHERE round = ?", current.round)}
        late = asked & set(missing)  # they may have charged their ledgers
        over = now >= current.closes and (not late or now >= current.closes + GRACE)
        if not over and not (enough and not late):
            return
        fewest = fewest_of(len(members), desk.charter.terms)
        if arrived < fewest:
            _fail(
                desk, current.round, f"{arrived} of {len(members)} members sent their update, {fewest} are needed", now
            )
        else:
            desk.store.execute("UPDATE rounds SET state = 'closed' WHERE round = ?", current.round)
            _LOG.info("round %d is closed with %d contributions of %d members", current.round, arrived, len(members))


def _sum_oldest(desk: Desk, now: float) -> bool:
    """Whether the oldest waiting round got its sum or failed; False where it goes on waiting, or none does."""
    waiting = waiting_round(desk)
    if waiting is None:
        return False
    setup = enrolment.setup(desk, waiting.registry)
    arrived = dict(desk.store.rows("SELECT client, message FROM inbox WHERE round = ? ORDER BY client", waiting.round))
    closed = ClosedRound(waiting.round, waiting.ranker, waiting.keys, arrived)
    try:
        signed, included, refused = signed_sum(closed, setup, (operator_zero(desk, setup, now), Mailbox(desk)))
    except ConnectionError:
        answers = read_answers(desk, waiting.round)
        state = "agreed" if "agreement" in answers else "listed" if "listing" in answers else waiting.state
        if state != waiting.state:
            desk.store.execute("UPDATE rounds SET state = ? WHERE round = ?", state, waiting.round)
        return False
    except SecureAggregationError as problem:
        _fail(desk, waiting.round, str(problem), now)
        return True
    signed = msgspec.structs.replace(signed, registry=waiting.registry)
    with desk.store.transaction():
        desk.store.execute(
            "UPDATE rounds SET state = 'opened', sum = ?, included = ? WHERE round = ?",
            msgspec.msgpack.encode(signed), msgspec.msgpack.encode(included), waiting.round,
        )  # fmt: skip
        for client, reason in refused.items():
            desk.store.execute(
                "UPDATE receipts SET reason = ? WHERE round = ? AND client = ?", reason[:200], waiting.round, client
            )
        _forget_messages(desk, waiting.round)
    return True


def _publish(desk: Desk, now: float) -> None:
    with desk.store.transaction():
        publish(desk, now)
        if waiting_round(desk) is None:
            step_back_if_asked(desk, now)


def rehearse(desk: Desk, now: float) -> None:
    """The next round sums zeros: every part of a round runs, nothing is charged and nothing changes."""
    with desk.store.transaction():
        desk.store.put(_REHEARSE, b"1")
        desk.store.note(now, "the next round is a rehearsal")


def is_rehearsal(desk: Desk, round: int) -> bool:
    return bool(desk.store.value("SELECT rehearsal FROM rounds WHERE round = ?", round))


def _open(desk: Desk, now: float) -> None:
    if not _may_open(desk, now):
        return
    round, number = next_number(desk), enrolment.effective(desk)
    try:
        setup = enrolment.setup(desk, number)
        store_statements(desk, 0, operator_zero(desk, setup, now).statements(round))
    except (SpecError, SecureAggregationError) as problem:
        _LOG.warning("round %d is not announced: %s", round, problem)
        return
    statements = tuple(
        desk.store.value("SELECT statement FROM statements WHERE operator = ? AND round = ?", index, round)
        for index in (0, 1)
    )
    if None in statements:
        return  # the second operator is away, and left no more keys
    with desk.store.transaction():
        step_back_if_asked(desk, now)
    terms, ranker = desk.charter.terms, newest_ranker(desk)
    try:
        keys = checked_keys(statements, setup=setup, round=round, now=now)
        reason = ""
    except SecureAggregationError as problem:  # their last day is over: the number is used
        keys, reason = (bytes(32), bytes(32)), str(problem)
    kind: Kind = "rehearsal" if desk.store.get(_REHEARSE) else "round"
    message = announce(
        kind, ranker, federation=terms.federation, round=round, identity=desk.identity, statements=statements
    )
    with desk.store.transaction():
        desk.store.execute(
            "INSERT INTO rounds (round, state, registry, version, ranker, keys, announcement, opened, closes, "
            "rehearsal) VALUES (?, 'announced', ?, ?, ?, ?, ?, ?, ?, ?)",
            round, number, newest_shared(desk).version, window_digest(kind, ranker), keys[0] + keys[1], message, now,
            now + terms.stage_seconds, kind == "rehearsal",
        )  # fmt: skip
        desk.store.execute("DELETE FROM statements WHERE round < ?", round)
        if reason:
            _fail(desk, round, reason, now)
        else:
            desk.store.execute("DELETE FROM meta WHERE key = ?", _REHEARSE)
    if not reason:
        _LOG.info("round %d is announced to %d members", round, len(setup.registry.clients))


def _may_open(desk: Desk, now: float) -> bool:
    number, newest = enrolment.effective(desk), newest_round(desk)
    if not number:
        return False
    if len(enrolment.known(desk, number).clients) < _FEWEST_MEMBERS:
        return False
    window = desk.charter.terms.stage_seconds
    interval = max(window, desk.settings.interval_days * DAY)
    due = newest.opened + interval if newest and newest.keys[0] != bytes(32) else 0.0
    if now < due:
        return False
    waiting = waiting_round(desk) is not None
    if waiting and desk.charter.kind == "circle":
        return False  # a second sum for one ranker would show a difference
    patient = now < due + min(_PATIENCE, window / 10)
    return not (patient and (waiting or enrolment.proposal(desk) is not None))


def _fail(desk: Desk, round: int, reason: str, now: float) -> None:
    with desk.store.transaction():
        desk.store.execute("UPDATE rounds SET state = 'failed', reason = ? WHERE round = ?", reason[:300], round)
        _forget_messages(desk, round)
        desk.store.note(now, f"round {round} has no sum: {reason[:300]}")
    _LOG.warning("round %d has no sum; the model stays", round)


def _forget_messages(desk: Desk, round: int) -> None:
    """Sealed contributions and answers are deleted; receipts stay."""
    for table in ("inbox", "answers", "openings"):
        desk.store.execute(f"DELETE FROM {table} WHERE round = ?", round)  # noqa: S608


def window_of_stored(stored: StoredRound, setup: TwoServers) -> Window:
    return window_of(ClosedRound(stored.round, stored.ranker, stored.keys, {}), setup)
