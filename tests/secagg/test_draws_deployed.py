"""Deployed nodes in draws: the whole way to a sum, asked twice, restored, late."""

import shutil
from typing import NamedTuple

import msgspec
import numpy as np
import pytest
from small_draws import asked, drawing
from small_rounds import RANKER, announced_in, federation

from foltr.errors import SecureAggregationError, SpecError
from foltr.federation import draws, participant
from foltr.federation.membership import Member, Storage, draw_place
from foltr.privacy.ledger_file import open_ledger
from foltr.secagg import groups, messages, ring
from foltr.secagg.lot import draw
from foltr.secagg.server import aggregate
from foltr.secagg.terms import guaranteed
from foltr.witnessed import head, load

FED = federation(12, length=6, dropouts=0, corrupt=0.15, cohort=5, noise_multiplier=4.0)  # 2 colluders
NAME = 10


class Node(NamedTuple):
    member: Member
    ledger: object
    storage: Storage

    def enter(self, round=1, **clock):
        known = {"ledger": self.ledger, "storage": self.storage}
        draws.enter_draw(self.member, announced_in(self.member, round), **known, **clock)

    def draw(self, request, **clock):
        return draws.answer_draw(self.member, request, storage=self.storage, **clock)

    def join(self, round=1, member=None, **clock):
        member, known = member or self.member, {"ledger": self.ledger, "storage": self.storage}
        return participant.join_round(member, announced_in(member, round), np.full(6, 0.1), **known, **clock)

    def answer(self, request, member=None):
        return participant.answer(member or self.member, request, ledger=self.ledger, storage=self.storage)


def node(tmp_path, name=NAME, fed=FED):
    home = tmp_path / str(name)
    storage = Storage(home / "state", home / "witness")
    for folder in storage:
        folder.mkdir(parents=True)
    ledger = open_ledger(home / "state" / "ledger", delta=1e-5, budget=None, witness=home / "witness" / "ledger")
    return Node(Member(name, fed.identities[name], fed.terms, fed.registry), ledger, storage)


def conversation(server, answer):
    """What a server's side returns when everybody answers."""
    requests = next(server)
    while True:
        try:
            requests = server.send({name: answer(name, request) for name, request in requests.items()})
        except StopIteration as finished:
            return finished.value


def drawn_by(nodes, fed=FED, **clock):
    for one in nodes.values():
        one.enter(**clock)
    return conversation(drawing(fed), lambda name, request: nodes[name].draw(request, **clock)).drawn


def test_nodes_draw_a_cohort_and_sum_its_vectors(tmp_path):
    nodes = {name: node(tmp_path, name) for name in FED.identities}
    drawn = drawn_by(nodes)
    assert len(drawn.cohort) == 5
    for name in drawn.cohort:
        assert nodes[name].join().noise_contributors == guaranteed(FED.terms, FED.registry).honest == 3
    others = sorted(set(nodes) - drawn.cohort)
    with pytest.raises(SecureAggregationError, match="it was not drawn"):
        nodes[others[0]].join()
    server = aggregate(drawn.cohort, terms=FED.terms, registry=FED.registry, identity=FED.server, round=1,
                       ranker=RANKER, drawn=drawn)  # fmt: skip
    found = conversation(server, lambda name, request: nodes[name].answer(request))
    assert set(found.included) == drawn.cohort
    total = ring.decode(found.total, ring.Ring(5))
    assert np.abs(total - 0.5).max() < 8 * 4 * np.sqrt(5 / 3)  # 8 deviations of the noise of 5 shares
    assert {name: one.ledger.highest_round(FED.terms.federation) for name, one in nodes.items()} == {
        name: 1 if name in drawn.cohort else -1 for name in nodes
    }


def test_no_draw_is_entered_for_a_round_that_was_joined(tmp_path):
    """Also where the files of the draw are lost: a second value in the draw of a round would be a second lot."""
    nodes = {name: node(tmp_path, name) for name in FED.identities}
    joined = nodes[min(drawn_by(nodes).cohort)]
    joined.join()
    for file in draw_place(joined.storage)[:2]:
        file.unlink()
    with pytest.raises(SecureAggregationError, match="already took part in round 1"):
        joined.enter()
    joined.enter(round=2)


def test_without_a_draw_of_the_round_nobody_joins(tmp_path):
    nodes = {name: node(tmp_path, name) for name in FED.identities}
    with pytest.raises(SecureAggregationError, match="no open draw"):
        nodes[NAME].join()
    drawn = drawn_by(nodes)
    with pytest.raises(SecureAggregationError, match="no result of the draw of round 2"):
        nodes[min(drawn.cohort)].join(round=2)


def test_the_groups_of_a_round_follow_from_its_draw(tmp_path):
    fed = federation(14, length=6, dropouts=0, corrupt=0, noise_multiplier=4.0)
    nodes = {name: node(tmp_path, name, fed) for name in fed.identities}
    drawn = drawn_by(nodes, fed)
    members = {name: draws.member_of_group(one.member, 2, round=1, storage=one.storage) for name, one in nodes.items()}
    for name, one in nodes.items():
        event = one.join(member=members[name])
        assert event.noise_contributors == 6  # of seven, one of which may collude: an epsilon of its own group
    parts = groups.assign(drawn.seed, fed.registry.clients, 2)
    server = groups.group_means(
        parts, ring=ring.Ring(7), terms=groups.group_terms(fed.terms, 14, 2), known=fed.registry, identity=fed.server,
        round=1, ranker=RANKER,
    )  # fmt: skip
    found = conversation(server, lambda name, request: nodes[name].answer(request, members[name]))
    assert tuple(one.included for one in found.sums) == parts
    assert np.abs(found.means - 0.1).max() < 8 * 4 * np.sqrt(7 / 6) / 7


def test_who_joined_with_all_others_does_not_answer_in_a_group(tmp_path):
    """Its share of noise is one of 13, and the sum of a group has six of them."""
    fed = federation(14, length=6, dropouts=0, corrupt=0, noise_multiplier=4.0)
    nodes = {name: node(tmp_path, name, fed) for name in fed.identities}
    drawn = drawn_by(nodes, fed)
    one = nodes[NAME]
    mine = draws.member_of_group(one.member, 2, round=1, storage=one.storage)
    assert one.join().noise_contributors == 13
    server = groups.group_means(
        groups.assign(drawn.seed, fed.registry.clients, 2), ring=ring.Ring(7), terms=mine.terms, known=fed.registry,
        identity=fed.server, round=1, ranker=RANKER,
    )  # fmt: skip
    with pytest.raises(SecureAggregationError, match="joined under another registry or other terms"):
        one.answer(next(server)[NAME], mine)


def test_a_draw_is_answered_only_as_the_member_that_entered_it(tmp_path):
    """Two federations with one folder: an attempt of the first would be one of the second."""
    one, _, request = committed(tmp_path)
    more = federation(12, length=6, dropouts=0, corrupt=0.15, cohort=5, noise_multiplier=4.0)
    other = one._replace(member=Member(NAME, more.identities[NAME], more.terms, more.registry))
    with pytest.raises(SecureAggregationError, match="entered under another registry or other terms"):
        other.draw(next(drawing(more))[NAME])
    one.draw(request)
    with pytest.raises(SecureAggregationError, match="entered under another registry or other terms"):
        other.join()


# asked twice, restored, late


def committed(tmp_path, **clock):
    one = node(tmp_path)
    one.enter(**clock)
    state = draw.enter(NAME, FED.identities[NAME], terms=FED.terms, registry=FED.registry, round=1, ranker=RANKER)
    request = asked(FED, state, "commit", messages.Start(), attempt=0)
    return one, state, request


def closed(one, state, other=bytes(32)):
    """A list of commitments with the node's own; the others' are `other`."""
    value = load(draw_place(one.storage), draws._Stored).value
    now = draw.in_attempt(state.context, 0)
    commitments = dict.fromkeys(FED.identities, other) | {NAME: draw.commitment(now, NAME, value)}
    levels, places = draw.tree(commitments), sorted(commitments)
    path = draw.graph.merkle_path(levels, places.index(NAME))
    body = messages.Closed(draws.to_set(commitments, FED.registry), levels[-1][0], path)
    return asked(FED, state, "close", body, attempt=0)


def test_the_same_request_gets_the_same_bytes_and_another_list_nothing(tmp_path):
    one, state, request = committed(tmp_path)
    assert one.draw(request) == one.draw(request)
    first = closed(one, state)
    assert one.draw(first) == one.draw(first)
    with pytest.raises(SecureAggregationError, match="'close 1', expected 'reveal 1'"):
        one.draw(closed(one, state, other=b"x" * 32))


def test_a_restored_folder_signs_no_second_list(tmp_path):
    one, state, request = committed(tmp_path)
    one.draw(request)
    backup = tmp_path / "backup"
    shutil.copytree(one.storage.folder, backup)
    second = closed(one, state, other=b"x" * 32)
    one.draw(closed(one, state))
    shutil.rmtree(one.storage.folder)
    shutil.copytree(backup, one.storage.folder)
    with pytest.raises(SecureAggregationError, match="restored from a copy"):
        one.draw(second)


def test_rounds_only_rise_in_draws_and_after_them(tmp_path):
    one, _, request = committed(tmp_path)
    one.draw(request)
    for round in (0, 1):
        with pytest.raises(SecureAggregationError, match="rounds only rise"):
            one.enter(round=round)
    one.enter(round=2)
    with pytest.raises(SecureAggregationError, match="round is 1, expected 2"):
        one.draw(request)


@pytest.mark.parametrize("seconds", [480.1, -0.5, np.nan], ids=str)
def test_an_attempt_has_a_time_and_the_next_one_its_own(tmp_path, seconds):
    one, state, request = committed(tmp_path, clock=lambda: 1000.0)
    one.draw(request, clock=lambda: 2000.0)  # the server began late: an attempt begins when it is asked for
    one.draw(closed(one, state), clock=lambda: 2480.0)
    other = asked(FED, state, "reveal", messages.Certificate(b"", b"", b""), attempt=0)
    with pytest.raises(SecureAggregationError, match="no time left"):
        one.draw(other, clock=lambda: 2000.0 + seconds)
    again = asked(FED, state, "commit", messages.Start(), attempt=1)
    one.draw(again, clock=lambda: 9000.0)
    assert load(draw_place(one.storage), draws._Stored).begun == 9000.0


@pytest.mark.parametrize("seconds", [600.5, -0.5, np.nan], ids=str)
def test_a_result_is_used_within_the_time_of_its_draw(tmp_path, seconds):
    """A server that knows the cohort and waits could corrupt it: fewer clients than it may corrupt in the registry."""
    nodes = {name: node(tmp_path, name) for name in FED.identities}
    one = nodes[min(drawn_by(nodes, clock=lambda: 1000.0).cohort)]
    with pytest.raises(SecureAggregationError, match="the result of the draw of round 1 is older than 600 s"):
        one.join(clock=lambda: 1000.0 + seconds)
    one.join(clock=lambda: 1600.0)


def test_groups_are_used_within_the_time_of_their_draw(tmp_path):
    fed = federation(7, length=6, dropouts=0, corrupt=0, noise_multiplier=4.0)
    nodes = {name: node(tmp_path, name, fed) for name in fed.identities}
    drawn_by(nodes, fed, clock=lambda: 1000.0)
    known = {"round": 1, "storage": nodes[NAME].storage}
    assert draws.member_of_group(nodes[NAME].member, 2, **known, clock=lambda: 1600.0).registry.clients
    with pytest.raises(SecureAggregationError, match="older than 600 s"):
        draws.member_of_group(nodes[NAME].member, 2, **known, clock=lambda: 1600.5)


def test_nothing_shows_the_value_and_one_folder_is_refused(tmp_path):
    one, state, request = committed(tmp_path)
    one.draw(request)
    stored = load(draw_place(one.storage), draws._Stored)
    entrant = msgspec.structs.replace(state, value=stored.value)
    shown = " ".join(map(repr, [stored, entrant, head(draw_place(one.storage))]))
    assert len(stored.value) == 32
    assert repr(stored.value)[2:-1] not in shown
    assert stored.value not in (one.storage.folder / "draw.state").read_bytes()
    assert (one.storage.folder / "draw.state").stat().st_mode & 0o777 == 0o600
    with pytest.raises(SpecError, match="another folder"):
        one._replace(storage=Storage(tmp_path, tmp_path)).enter()
