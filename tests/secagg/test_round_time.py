"""The time of a round on a deployed node: five stages of 120 seconds, after which nothing is answered or stored."""

import math

import pytest
from small_nodes import FED, VICTIM, node, round_with
from small_rounds import server_of

from foltr.errors import SecureAggregationError
from foltr.federation import participant
from foltr.federation.membership import round_place
from foltr.federation.participant import end_if_late
from foltr.secagg import shamir
from foltr.secagg.messages import STAGES
from foltr.witnessed import head, load

JOINED = 1.75e9
OVER = [600.5, 1e7, -0.5, math.nan]  # seconds after it was joined; below 0 the clock was turned back


def joined(tmp_path):
    """A node that has joined a round, and the same machine at another time."""
    victim = node(tmp_path, clock=lambda: JOINED)
    victim.join()
    return victim, lambda seconds: node(tmp_path, clock=lambda: JOINED + seconds)


def is_erased(one, key):
    """Neither the state nor the key that it was sealed under is on the disk."""
    left = [path.read_bytes() for folder in one.storage for path in folder.rglob("*") if path.is_file()]
    return not (one.storage.folder / "round.state").exists() and not any(key in content for content in left)


@pytest.mark.parametrize("seconds", OVER, ids=str)
@pytest.mark.parametrize("stage", STAGES)
def test_a_request_after_the_time_of_a_round_gets_nothing_and_the_secrets_are_erased(tmp_path, stage, seconds):
    victim, at = joined(tmp_path)
    _, _, requests = round_with(victim, stage)
    key = head(round_place(victim.storage)).key
    assert not is_erased(victim, key)
    with pytest.raises(SecureAggregationError, match="600 s ago, or the clock was turned back; its secrets are erased"):
        at(seconds).answer(requests[VICTIM])
    assert is_erased(victim, key)
    with pytest.raises(SecureAggregationError, match="no open round"):
        at(1).answer(requests[VICTIM])  # a clock that is put right again brings nothing back
    assert sum(victim.ledger.counts().values()) == (stage in ("agree", "unmask"))  # what was charged stays charged
    with pytest.raises(SecureAggregationError, match="already joined round 1; rounds only rise"):
        victim.join(round=1)
    victim.join(round=2)


@pytest.mark.parametrize("seconds", [0, 600])
def test_within_the_time_of_a_round_everything_is_answered(tmp_path, seconds):
    victim, at = joined(tmp_path)
    _, _, requests = round_with(victim, "unmask")
    assert at(seconds).answer(requests[VICTIM]) == victim.answer(requests[VICTIM])


@pytest.mark.parametrize("seconds", OVER, ids=str)
@pytest.mark.parametrize("stage", STAGES)
def test_a_stored_reply_is_not_sent_again_after_the_time_of_its_round(tmp_path, stage, seconds):
    victim, at = joined(tmp_path)
    _, _, requests = round_with(victim, stage)
    victim.answer(requests[VICTIM])
    with pytest.raises(SecureAggregationError, match="its secrets are erased"):
        at(seconds).answer(requests[VICTIM])
    with pytest.raises(SecureAggregationError, match="no open round"):
        victim.answer(requests[VICTIM])


def test_a_node_ends_a_late_round_by_itself(tmp_path):
    """A server that never asks again leaves no secrets behind either."""
    victim, at = joined(tmp_path)
    _, _, requests = round_with(victim, "agree")
    assert not end_if_late(victim.member, storage=victim.storage, clock=at(600).clock)
    assert at(600).answer(requests[VICTIM])
    key = head(round_place(victim.storage)).key
    assert not is_erased(victim, key)
    assert end_if_late(victim.member, storage=victim.storage, clock=at(601).clock)
    assert is_erased(victim, key)
    assert not end_if_late(victim.member, storage=victim.storage, clock=at(601).clock)
    victim.join(round=2)


def test_a_node_ends_a_round_whose_state_was_restored_or_is_missing(tmp_path):
    """The witness has the key of the newest state, of which there may be a copy in a backup."""
    victim, at = joined(tmp_path)
    path = victim.storage.folder / "round.state"
    before = path.read_bytes()
    round_with(victim, "agree")
    for damage, round in ((lambda: path.write_bytes(before), 1), (path.unlink, 2)):
        key = head(round_place(victim.storage)).key
        damage()
        assert end_if_late(victim.member, storage=victim.storage, clock=at(1).clock)
        assert is_erased(victim, key)
        assert not end_if_late(victim.member, storage=victim.storage, clock=at(1).clock)
        victim.join(round=round + 1)


def test_a_node_without_a_round_has_none_that_is_late(tmp_path):
    one = node(tmp_path)
    assert not end_if_late(one.member, storage=one.storage)


def test_whoever_reads_the_disks_of_others_reads_a_vector_until_the_round_is_late(tmp_path):
    """Why a round has a time: a server that stops before `unmask` and corrupts the neighbours one after the other has
    the shares of both secrets of the victim. After the time of the round there is none on any disk."""
    nodes = {name: node(tmp_path, name, clock=lambda: JOINED) for name in FED.identities}
    for one in nodes.values():
        one.join()
    server = server_of(FED)
    requests = next(server)
    for _ in STAGES[:-1]:
        requests = server.send({name: nodes[name].answer(request) for name, request in requests.items()})
    stored = load(round_place(nodes[VICTIM].storage), participant._Stored)
    held = [load(round_place(nodes[name].storage), participant._Stored).held[VICTIM] for name in stored.neighbours]
    for part, secret in ((slice(None, shamir.SHARE), stored.mask), (slice(shamir.SHARE, None), stored.seed)):
        shares = dict(enumerate([both[part] for both in held][: stored.threshold]))
        assert shamir.combine(shares) == secret
    for one in nodes.values():
        assert end_if_late(one.member, storage=one.storage, clock=lambda: JOINED + 601)
        with pytest.raises(SecureAggregationError, match="no open round"):
            load(round_place(one.storage), participant._Stored)
