"""The deployed client of a draw: every step on the disk before it leaves, as in `participant`.

    enter_draw         takes part in the draw of an announced round; once, and rounds only rise by bounded steps
    answer_draw        the reply to a request; the same request again gets the same bytes
    result             what was drawn, for `participant.join_round`
    member_of_group    the member that a node is in its group of a round, where groups are summed

A client that signs two lists of commitments in one attempt gives the server a result to choose: a folder that was
restored from a backup answers nothing (`witnessed`).
An attempt has a time, `stage_seconds` for each of its stages; after that nothing is answered until the next attempt.
One stage later its result is void: whoever knows who was drawn, and waits, could corrupt more of a small cohort than
it has colluders by lot, or gather those that it corrupts in one group.
Nothing is charged: the values of a draw say nothing about the person.
"""

import time
from hashlib import sha256
from typing import ClassVar

import msgspec

from foltr.errors import SecureAggregationError, StateError
from foltr.federation.announcement import announced_round
from foltr.federation.membership import Clock, Member, Storage, draw_place, prepare, require_near, round_place
from foltr.files import locked
from foltr.privacy.ledger_file import NodeLedger
from foltr.secagg import groups
from foltr.secagg.crypto import HidesSecrets
from foltr.secagg.lot import draw
from foltr.secagg.messages import DRAW_STAGES
from foltr.secagg.terms import Drawn, set_of, to_set
from foltr.witnessed import erase, head, load, save


class _Stored(HidesSecrets, msgspec.Struct, frozen=True, array_like=True):
    """A draw on the disk; the value is secret until it is opened."""

    round: int
    ranker: bytes
    begun: float  # the newest attempt, seconds since 1970
    attempt: int = -1
    done: int = 0
    value: bytes = b""
    members: bytes = b""
    root: bytes = b""
    seed: bytes = b""  # of the result
    cohort: bytes = b""  # of the result, as a set
    replies: dict[bytes, bytes] = {}  # of this attempt, by the digest of their request
    context: bytes = b""  # of the member that entered

    shown: ClassVar[tuple[str, ...]] = ("round", "attempt", "done")


_FIELDS = ("attempt", "done", "value", "members", "root")  # of a `secagg.lot.draw.Entrant`


def enter_draw(
    member: Member, announcement: bytes, *, ledger: NodeLedger, storage: Storage, clock: Clock = time.time
) -> None:
    """Stores that this node takes part in the draw of the round that a signed announcement begins; nothing is sent."""
    round, ranker = announced_round(announcement, terms=member.terms, registry=member.registry)
    prepare(storage)
    with locked(storage.folder / "draw.lock"):
        joined = head(round_place(storage))
        ledger.require(joined.owner, path=round_place(storage).path)
        rounds = (head(draw_place(storage)).number, joined.number)
        highest = max(ledger.highest_round(member.terms.federation), *rounds)
        if round <= highest:
            raise SecureAggregationError(
                f"draw of round {round} of federation {member.terms.federation}: this node already took part in round "
                f"{highest}; rounds only rise"
            )
        require_near(member, round, highest)
        begun = _begun(member, round, ranker)  # refuses what cannot be entered, before it counts
        save(draw_place(storage), round, _Stored(round, ranker, clock(), context=begun.context))


def answer_draw(member: Member, request: bytes, *, storage: Storage, clock: Clock = time.time) -> bytes:
    """The reply to a request of the draw that was entered; it may be asked for again while the attempt has time."""
    with locked(storage.folder / "draw.lock"):
        stored = load(draw_place(storage), _Stored)
        asked, first = sha256(request).digest(), draw.begins_attempt(request)
        if not first and not 0 <= clock() - stored.begun <= len(DRAW_STAGES) * member.terms.stage_seconds:
            raise SecureAggregationError(
                f"attempt {stored.attempt + 1} of the draw of round {stored.round} has no time left, or the clock was "
                f"turned back; nothing is sent"
            )
        if asked in stored.replies:
            return stored.replies[asked]
        state, reply = draw.answer(_entrant(member, stored), request)
        after = msgspec.structs.replace(
            stored, **{name: getattr(state, name) for name in _FIELDS}, begun=clock() if first else stored.begun,
            replies={asked: reply} if first else {**stored.replies, asked: reply},
            seed=state.drawn.seed if state.drawn else b"",
            cohort=to_set(state.drawn.cohort, member.registry) if state.drawn else b"",
        )  # fmt: skip
        save(draw_place(storage), after.round, after)
        return reply


def end_damaged(storage: Storage, *, highest: int | None = None) -> None:
    """Ends a draw whose witness is damaged, so that the node can enter the next one (`participant.end_round`)."""
    with locked(storage.folder / "draw.lock"):
        try:
            head(draw_place(storage))
        except StateError:
            erase(draw_place(storage), highest=highest)


def result(member: Member, round: int, storage: Storage, clock: Clock = time.time) -> Drawn:
    """The result of the draw for a round; refused where this node does not know it, or the draw is too long ago."""
    with locked(storage.folder / "draw.lock"):
        stored = load(draw_place(storage), _Stored)
    drawn, seconds = _entrant(member, stored).drawn, (len(DRAW_STAGES) + 1) * member.terms.stage_seconds
    if stored.round != round or drawn is None:
        raise SecureAggregationError(f"this node knows no result of the draw of round {round}; it was not drawn")
    if not 0 <= clock() - stored.begun <= seconds:
        raise SecureAggregationError(
            f"the result of the draw of round {round} is older than {seconds:g} s, or the clock was turned back; take "
            f"part in the next draw"
        )
    return drawn


def member_of_group(member: Member, count: int, *, round: int, storage: Storage, clock: Clock = time.time) -> Member:
    """The member that takes part in the sum of its own group, which the node computes from the draw of the round.

    For that round only. `count`: agreed on with the terms; a server that could set it would choose among more groups
    than `group_guarantee` counts.
    """
    terms = groups.group_terms(member.terms, len(member.registry.clients), count)
    seed = result(member, round, storage, clock).seed
    return member._replace(terms=terms, registry=groups.own_group(member.id, seed, member.registry, count))


def _begun(member: Member, round: int, ranker: bytes) -> draw.Entrant:
    return draw.enter(
        member.id, member.identity, terms=member.terms, registry=member.registry, round=round, ranker=ranker
    )


def _entrant(member: Member, stored: _Stored) -> draw.Entrant:
    begun = _begun(member, stored.round, stored.ranker)
    if begun.context != stored.context:
        raise SecureAggregationError(
            f"the draw of round {stored.round} was entered under another registry or other terms; nothing is sent: "
            f"answer as the member that entered, and give each federation a folder of its own"
        )
    drawn = Drawn(stored.seed, set_of(stored.cohort, member.registry)) if stored.seed else None
    return msgspec.structs.replace(begun, drawn=drawn, **{name: getattr(stored, name) for name in _FIELDS})
