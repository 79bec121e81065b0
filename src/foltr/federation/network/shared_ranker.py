"""The shared ranker of a coordinator of machines: its versions, the steps between them, and the way back.

A version follows from the sums that both operators signed, or from a step back that the coordinator signed. Nodes
compute it themselves from the stored steps.
"""

import logging

import msgspec
import numpy as np

from foltr.errors import InputError, Refused
from foltr.federation.announcement import ranker_of
from foltr.federation.network import enrolment
from foltr.federation.network.charter import Desk
from foltr.federation.steps import MOST_STEPS, SharedRanker, SignedSum, Step, advanced, first_shared, step_back

_LOG = logging.getLogger(__name__)  # numbers of versions and of rounds
_SHARED, _BACK = "shared", "step back"


def newest_shared(desk: Desk) -> SharedRanker:
    """The newest ranker of the federation."""
    stored = desk.store.get(_SHARED)
    return msgspec.msgpack.decode(stored, type=SharedRanker) if stored else first_shared(desk.charter.start, 0)


def newest_ranker(desk: Desk) -> bytes:
    """Encoded, as it is announced."""
    newest = newest_shared(desk)
    return ranker_of(newest.version, desk.charter.start.names, np.frombuffer(newest.values, "<f8"))


def steps_after(desk: Desk, version: int) -> tuple[Step, ...]:
    rows = desk.store.rows("SELECT step FROM steps WHERE version > ? ORDER BY version", version)
    if len(rows) > MOST_STEPS:
        raise Refused(f"this node is {len(rows)} versions behind; ask the coordinator for a new invitation")
    return tuple(msgspec.msgpack.decode(step, type=Step) for (step,) in rows)


def oldest_registry(desk: Desk, version: int) -> int:
    """The oldest registry that a node of this version needs to check the steps after it."""
    numbers = [total.registry for step in steps_after(desk, version) for total in step.sums]
    return min([*numbers, enrolment.effective(desk)])


def publish(desk: Desk, now: float) -> None:
    """One step with the sums of all opened rounds. Between windows only: a node that woke in one and has a newer ranker
    than the announced one could not take part."""
    with desk.store.transaction():
        rows = desk.store.rows("SELECT sum, rehearsal FROM rounds WHERE state = 'opened' ORDER BY round")
        sums = tuple(msgspec.msgpack.decode(total, type=SignedSum) for total, rehearsal in rows if not rehearsal)
        if sums:
            before = newest_shared(desk)
            step = Step(before.version + 1, sums)
            _take(desk, before, step)
            included = desk.store.value("SELECT COUNT(*) FROM rounds WHERE state = 'opened'")
            _LOG.info("version %d has the sums of %d rounds", step.version, included)
            desk.store.note(
                now, f"version {step.version} is published, with the sums of rounds {[total.round for total in sums]}"
            )
        if rows:
            desk.store.execute("UPDATE rounds SET state = 'published' WHERE state = 'opened'")


def go_back(desk: Desk, back_to: int, reason: str, now: float) -> None:
    """Asks for a new version with the parameters of an earlier one, when no window is open. Nodes are told the reason,
    and go back ten versions at most."""
    before = newest_shared(desk)
    versions = [version for version, _ in before.earlier]
    if back_to not in versions:
        raise InputError(
            f"version {back_to} cannot return; versions that can: {', '.join(map(str, versions)) or 'none'}"
        )
    if not reason.strip() or not reason.isprintable() or len(reason) > 200:
        raise InputError("a step back needs a reason in one line of at most 200 characters; nodes show it")
    with desk.store.transaction():
        desk.store.put(_BACK, msgspec.msgpack.encode((back_to, reason)))
        desk.store.note(now, f"the operator goes back to version {back_to}: {reason}")


def step_back_if_asked(desk: Desk, now: float) -> None:
    """After the sums that began with the ranker which the step takes back."""
    asked = desk.store.get(_BACK)
    if asked is None:
        return
    back_to, reason = msgspec.msgpack.decode(asked, type=tuple[int, str])
    before = newest_shared(desk)
    if back_to in [version for version, _ in before.earlier]:
        step = step_back(
            desk.identity, federation=desk.charter.terms.federation, version=before.version + 1, back_to=back_to,
            reason=reason,
        )  # fmt: skip
        _take(desk, before, step)
        desk.store.note(now, f"version {step.version} has the parameters of version {back_to}")
    desk.store.execute("DELETE FROM meta WHERE key = ?", _BACK)


def _take(desk: Desk, before: SharedRanker, step: Step) -> None:
    """The ranker after a step, computed as every node computes it."""
    numbers = {total.registry for total in step.sums}
    after = advanced(
        before, (step,), setup=enrolment.setup(desk, enrolment.effective(desk)),
        server_learning_rate=desk.charter.server_learning_rate,
        registries={number: enrolment.known(desk, number) for number in numbers},
    )  # fmt: skip
    desk.store.execute("INSERT INTO steps VALUES (?, ?)", step.version, msgspec.msgpack.encode(step))
    desk.store.put(_SHARED, msgspec.msgpack.encode(after))
