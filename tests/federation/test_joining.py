"""What a node does before a signature is seen, and what a late, repeated or forged message costs: nothing."""

import msgspec
import numpy as np
import pytest
from small_members import NAMES, NODES, START, rounds_of, small

from foltr.errors import SecureAggregationError, StorageError
from foltr.federation import participant
from foltr.federation.announcement import announce, ranker_of
from foltr.federation.member import respond
from foltr.federation.membership import MOST_AHEAD, round_place
from foltr.federation.opening import ANSWER_SECONDS, OpenAnswer, OpenQuestion, checked_question, opening
from foltr.secagg.crypto import new_identity
from foltr.secagg.messages import round_seconds
from foltr.secagg.round_keys import round_of
from foltr.witnessed import head

pytestmark = pytest.mark.usefixtures("silent_operators")

NODE = 2


def announcement(fed, round=1, identity=None, two=True, kind="round"):
    statements = ()
    if two:
        left = [{round_of(one): one for one in operator.statements(round)} for operator in fed.operators()]
        statements = tuple(by_round[round] for by_round in left)
    return announce(
        kind, ranker_of(0, NAMES, START.parameters), federation=fed.terms.federation, round=round,
        identity=identity or fed.server, statements=statements,
    )  # fmt: skip


def answer(fed, question, message, client=NODE, identity=None):
    asked = checked_question(question, client, message, federation=fed.terms.federation)
    return None if asked is None else opening(asked, identity or fed.server)


def take_part(fed, side, message):
    return respond(side, answer(fed, respond(side, message), message))


def test_a_forged_round_number_locks_no_node_out(tmp_path):
    """Neither one that a stranger signed, nor one of the coordinator itself."""
    fed = small(tmp_path)
    alone = fed.side(NODE)._replace(operators=None)
    known = {"ledger": alone.ledger, "storage": alone.storage}
    for wrong in (
        announcement(fed, 2**61, new_identity(), two=False), announcement(fed, 2**61, two=False),
        announcement(fed, MOST_AHEAD + 1, two=False), announcement(fed, 1, two=False, kind="version"), b"",
    ):  # fmt: skip
        with pytest.raises(SecureAggregationError):
            participant.join_round(alone.member, wrong, np.zeros(3), **known)
    assert head(round_place(alone.storage)).number == -1
    assert respond(alone, announcement(fed, 1, two=False)) is None
    assert head(round_place(alone.storage)).number == 1


def test_a_forged_round_number_locks_no_node_of_two_operators_out(tmp_path):
    fed = small(tmp_path)
    side = fed.side(NODE)
    good = announcement(fed, 1)
    far = announce(
        "round", ranker_of(0, NAMES, START.parameters), federation=fed.terms.federation, round=2**61,
        identity=fed.server, statements=msgspec.msgpack.decode(good)[6],
    )  # fmt: skip
    for wrong in (far, announcement(fed, 1, new_identity()), announcement(fed, 1, two=False)):
        with pytest.raises(SecureAggregationError):
            respond(side, wrong)
    assert take_part(fed, side, good)
    assert fed.charged(NODE) == 1


def test_who_was_away_for_a_year_of_daily_rounds_comes_back_and_an_invitation_says_where_to_begin(tmp_path):
    fed = small(tmp_path)
    side = fed.side(NODE)._replace(operators=None)
    respond(side, announcement(fed, MOST_AHEAD, two=False))
    invited = fed.side(3)._replace(operators=None)
    invited = invited._replace(member=invited.member._replace(since=5000))
    respond(invited, announcement(fed, 5001, two=False))
    assert [head(round_place(one.storage)).number for one in (side, invited)] == [MOST_AHEAD, 5001]


def test_nothing_new_is_joined_while_a_round_is_open(tmp_path):
    fed = small(tmp_path)
    side = fed.side(NODE)._replace(operators=None)
    respond(side, announcement(fed, 1, two=False))
    with pytest.raises(SecureAggregationError, match="round 1 is still open"):
        respond(side, announcement(fed, 2, two=False))
    fed.clock.now += round_seconds(fed.terms) + 1
    respond(side, announcement(fed, 2, two=False))
    assert head(round_place(side.storage)).number == 2


# with two operators: asked with a nonce before anything is charged


def test_a_late_or_repeated_announcement_costs_no_release_whatever_the_clocks_say(tmp_path):
    fed = small(tmp_path)
    side, message = fed.side(NODE), announcement(fed, 1)
    for now in (fed.clock.now, fed.clock.now - 10**8, fed.clock.now + 3600):
        fed.clock.now = now
        assert msgspec.msgpack.decode(respond(side, message), type=OpenQuestion).client == NODE
    assert fed.charged(NODE) == 0
    assert not (side.storage.folder / "contribution").exists()


def test_only_the_coordinators_answer_to_this_question_lets_a_node_charge(tmp_path):
    fed = small(tmp_path)
    side, message, other = fed.side(NODE), announcement(fed, 1), announcement(fed, 2)
    stale = answer(fed, respond(side, message), message)
    question = respond(side, message)
    good = msgspec.msgpack.decode(answer(fed, question, message), type=OpenAnswer)
    in_name_of_another = msgspec.structs.replace(msgspec.msgpack.decode(question, type=OpenQuestion), client=3)
    wrong = [
        stale,  # to a question that the node asked before
        answer(fed, question, message, identity=new_identity()),
        answer(fed, msgspec.msgpack.encode(in_name_of_another), message, client=3),
        msgspec.msgpack.encode(msgspec.structs.replace(good, nonce=bytes(32))),
        msgspec.msgpack.encode(msgspec.structs.replace(good, announcement=bytes(32))),
        msgspec.msgpack.encode(good)[:-1],
        msgspec.msgpack.encode(good) + bytes(1000),
    ]
    for one in wrong:
        with pytest.raises(SecureAggregationError):
            respond(side, one)
    assert fed.charged(NODE) == 0
    assert answer(fed, question, other) is None  # a coordinator answers for the round that is open
    sent = respond(side, msgspec.msgpack.encode(good))
    assert fed.charged(NODE) == 1
    with pytest.raises(SecureAggregationError, match="does not wait for"):
        respond(side, msgspec.msgpack.encode(good))
    assert respond(side, message) == sent  # announced again: the stored bytes, without a question
    assert fed.charged(NODE) == 1


@pytest.mark.parametrize("late", [ANSWER_SECONDS + 1, -1.0])
def test_an_answer_that_somebody_held_back_costs_nothing(tmp_path, late):
    fed = small(tmp_path)
    side, message = fed.side(NODE), announcement(fed, 1)
    held = answer(fed, respond(side, message), message)
    fed.clock.now += late
    with pytest.raises(SecureAggregationError, match="nothing is charged"):
        respond(side, held)
    fed.clock.now -= late
    with pytest.raises(SecureAggregationError, match="does not wait for"):  # a nonce is used once
        respond(side, held)
    assert fed.charged(NODE) == 0
    assert take_part(fed, side, message)


def test_a_node_that_is_restarted_between_question_and_answer_takes_part(tmp_path):
    fed = small(tmp_path)
    message = announcement(fed, 1)
    answered = answer(fed, respond(fed.side(NODE), message), message)
    assert respond(fed.side(NODE), answered)
    assert fed.charged(NODE) == 1


def test_a_damaged_question_stops_nothing_but_its_answer(tmp_path):
    fed = small(tmp_path)
    side, message = fed.side(NODE), announcement(fed, 1)
    answered = answer(fed, respond(side, message), message)
    (side.storage.folder / "question").write_bytes(b"\xff")
    with pytest.raises(StorageError, match="cannot be read"):
        respond(side, answered)
    assert fed.charged(NODE) == 0
    assert take_part(fed, side, message)


def test_a_node_that_asks_without_end_is_answered_ten_times(tmp_path):
    """The others are heard all the same, and the window closes."""
    fed = small(tmp_path)
    transport = fed.transport()
    honest, answered = transport.nodes[NODE], []

    def asking(message):
        question = honest(message) if not answered else answered[0]
        answered.append(question)
        return answered[0]

    transport.nodes[NODE] = asking
    result = next(rounds_of(fed.collector(transport), 1))
    assert len(answered) == 11  # the announcement and ten answers
    assert result.collected.included.tolist() == [client for client in range(NODES) if client != NODE]
    assert fed.charged(NODE) == 0
