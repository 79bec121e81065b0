"""A node's side of a federation: messages of the coordinator in, bytes that leave the machine out.

    round begins -> learn from the own log -> clip, noise, charge, store -> what is sent

Two protocols have this one interface. With one server a node joins the round and then answers the requests of five
stages (`participant`); with two operators its only message is its answer to the announcement (`two_servers`). What a
node learns from is the caller's: `learn` computes the update from the ranker that was announced, with
`client.local_update`; `adopt` takes the shared ranker over.
"""

import logging
import time
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from foltr.errors import SecureAggregationError
from foltr.federation import participant
from foltr.federation.announcement import Ranker, checked, digest_of, is_announcement
from foltr.federation.membership import Clock, Member, Storage, require_apart
from foltr.federation.two_servers import contribute_once
from foltr.privacy.ledger_file import NodeLedger
from foltr.secagg.two_servers import Pair, two_servers
from foltr.types import Array

_LOG = logging.getLogger(__name__)  # numbers of rounds and versions only
Learn: TypeAlias = Callable[
    [Ranker], Array
]  # the update [P] of the own log, from this ranker; neither clipped nor noisy
Adopt: TypeAlias = Callable[[Ranker], None]


class NodeSide(NamedTuple):
    """A node in one federation."""

    member: Member
    storage: Storage
    ledger: NodeLedger
    learn: Learn
    adopt: Adopt
    operators: Pair | None = None  # two aggregators; None: one server
    clock: Clock = time.time


def respond(side: NodeSide, message: bytes) -> bytes | None:
    """The answer to a message of the coordinator, None where it needs none. What a node refuses raises a FoltrError,
    and nothing leaves."""
    if not is_announcement(message):
        if side.operators is not None:
            raise SecureAggregationError("with two operators a node answers announcements only")
        return participant.answer(side.member, message, ledger=side.ledger, storage=side.storage, clock=side.clock)
    announcement, ranker = checked(message, terms=side.member.terms, registry=side.member.registry)
    if announcement.kind == "version":
        side.adopt(ranker)
        _LOG.info("the shared ranker of version %d ranks", ranker.version)
        return None
    return _take_part(side, announcement.round, ranker, digest_of(announcement.ranker))


def _take_part(side: NodeSide, round: int, ranker: Ranker, digest: bytes) -> bytes | None:
    member = side.member
    _LOG.info("taking part in round %d", round)
    update = side.learn(ranker)
    if side.operators is None:
        participant.join_round(
            member, update, round=round, ranker=digest, ledger=side.ledger, storage=side.storage, clock=side.clock
        )
        return None
    require_apart(side.storage)
    return contribute_once(
        update, member.id, member.identity, setup=two_servers(member.terms, member.registry, side.operators),
        round=round, ranker=digest, path=side.storage.folder / "contribution", ledger=side.ledger,
    )  # fmt: skip
