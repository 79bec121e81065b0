"""A malicious server and its colluders in a draw: what they try, and what refuses it."""

import hashlib
from itertools import product

import msgspec
import numpy as np
import pytest
from small_draws import asked, begun, certificate_of, closing, drawing, entrants, run, signed
from small_rounds import RANKER, federation

from foltr.errors import SecureAggregationError
from foltr.secagg import certificate, claims, crypto, messages, rules
from foltr.secagg.client import answer as answer_round
from foltr.secagg.client import join
from foltr.secagg.lot import draw
from foltr.secagg.messages import Values, send
from foltr.secagg.terms import guaranteed, to_set

FED = federation(40, dropouts=0.1, corrupt=0.1, cohort=11)
NAMES = list(FED.identities)
COLLUDERS, HONEST = NAMES[:4], NAMES[4:]
VICTIM = HONEST[0]
NEEDED = 23  # 4 colluders and more than half of 36


ALL = to_set(NAMES, FED.registry)


def revealing(state, shown):
    return asked(FED, state, "reveal", shown)


def settling(state, values, opened=NAMES):
    return asked(FED, state, "settle", Values(to_set(opened, FED.registry), values))


def joined(values):
    return b"".join(values[name] for name in sorted(values))


def test_the_number_of_signers_that_no_other_list_can_have():
    assert certificate.needed(draw.sizes_of(FED.terms, FED.registry)) == NEEDED


def test_a_list_of_colluders_and_a_victim_is_not_signed():
    """With one victim among its colluders, the server would draw the cohort that it likes."""
    states, commitments = begun(FED)
    for names in ([VICTIM, *COLLUDERS], NAMES[:35]):
        some = {name: commitments[name] for name in names}
        with pytest.raises(SecureAggregationError, match=f"{len(names)} clients take part, at least 36"):
            draw.answer(states[VICTIM], closing(FED, states[VICTIM], some))


def test_a_list_without_the_own_commitment_is_not_signed():
    states, commitments = begun(FED)
    state = states[VICTIM]
    with pytest.raises(SecureAggregationError, match="its commitment is not in the list"):
        draw.answer(state, closing(FED, state, {**commitments, VICTIM: bytes(32)}))
    with pytest.raises(SecureAggregationError, match="takes no part"):
        draw.answer(state, closing(FED, state, {name: one for name, one in commitments.items() if name != VICTIM}))


def test_two_lists_in_one_attempt_are_not_both_opened():
    """The server shows one half another commitment of its colluder: neither half has a certificate of its own, and
    whichever list gets one, the clients that signed the other open nothing."""
    states, commitments = begun(FED)
    other = {**commitments, COLLUDERS[0]: bytes(32)}
    states, first = signed(FED, states, commitments, HONEST[:19])
    states, second = signed(FED, states, other, HONEST[19:])
    mine = {name: bytes(64) for name in COLLUDERS}  # any bytes: what counts is that they are not enough
    shown = certificate_of(FED, states[HONEST[20]], {**second, **dict(list(mine.items())[:4])}, other)
    with pytest.raises(SecureAggregationError, match=f"21 clients signed the list of commitments, at least {NEEDED}"):
        draw.answer(states[HONEST[20]], revealing(states[HONEST[20]], shown))
    forged = certificate_of(FED, states[HONEST[20]], {**second, **first, **mine}, other)
    with pytest.raises(SecureAggregationError, match="sampled signatures are on"):
        draw.answer(states[HONEST[20]], revealing(states[HONEST[20]], forged))
    true = certificate_of(FED, states[VICTIM], first, commitments)
    with pytest.raises(SecureAggregationError, match="19 clients signed"):
        draw.answer(states[VICTIM], revealing(states[VICTIM], true))


def test_a_list_is_signed_once_and_a_value_opened_once():
    states, commitments = begun(FED)
    states, signatures = signed(FED, states, commitments)
    state = states[VICTIM]
    with pytest.raises(SecureAggregationError, match="stage is 'close 1', expected 'reveal 1'"):
        draw.answer(state, closing(FED, state, {**commitments, COLLUDERS[0]: bytes(32)}))
    state, _ = draw.answer(state, revealing(state, certificate_of(FED, state, signatures, commitments)))
    with pytest.raises(SecureAggregationError, match="stage is 'reveal 1', expected 'settle 1'"):
        draw.answer(state, revealing(state, certificate_of(FED, state, signatures, commitments)))


def test_a_value_that_nobody_committed_to_is_found():
    """The server knows all values and looks for one of its colluder's that draws the cohort it likes."""
    states, commitments = begun(FED)
    states, signatures = signed(FED, states, commitments)
    state = states[VICTIM]
    state, _ = draw.answer(state, revealing(state, certificate_of(FED, state, signatures, commitments)))
    values = {name: states[name].value for name in NAMES}
    true, wrong = joined(values), joined({**values, COLLUDERS[0]: bytes(32)})
    cases = [(wrong, "nobody committed to"), (true[:-32], "bytes of 40 values"), (true + b"x", "bytes of 40 values")]
    for content, problem in cases:
        with pytest.raises(SecureAggregationError, match=problem):
            draw.answer(state, settling(state, content))
    state, _ = draw.answer(state, settling(state, true))
    assert len(state.drawn.cohort) == 11


def test_a_commitment_that_a_colluder_copied_cannot_be_opened():
    """It would stand for a value that nobody chose: the victim's, known when the victim opens it."""
    states, commitments = begun(FED)
    copied = {**commitments, COLLUDERS[0]: commitments[VICTIM]}
    states, signatures = signed(FED, states, copied, HONEST)
    state = states[VICTIM]
    state, _ = draw.answer(state, revealing(state, certificate_of(FED, state, signatures, copied)))
    values = {name: states[name].value for name in NAMES}
    with pytest.raises(SecureAggregationError, match="nobody committed to"):
        draw.answer(state, settling(state, joined({**values, COLLUDERS[0]: values[VICTIM]})))


def test_one_value_may_be_left_out_and_not_two_and_never_the_own():
    states, commitments = begun(FED)
    states, signatures = signed(FED, states, commitments)
    state = states[VICTIM]
    state, _ = draw.answer(state, revealing(state, certificate_of(FED, state, signatures, commitments)))
    values = {name: states[name].value for name in NAMES}

    def without(*names):
        opened = [name for name in NAMES if name not in names]
        return settling(state, joined({**values, **{name: commitments[name] for name in names}}), opened)

    for names, problem in [
        (NAMES[-2:], "2 values are missing, 1 may be"),
        ([VICTIM], "of others than took part"),
    ]:
        with pytest.raises(SecureAggregationError, match=problem):
            draw.answer(state, without(*names))
    with pytest.raises(SecureAggregationError, match="nobody committed to"):  # a value in place of its commitment
        draw.answer(state, settling(state, joined(values), [name for name in NAMES if name != NAMES[-1]]))
    whole, less = (draw.answer(state, without(*names))[0].drawn for names in ((), (NAMES[-1],)))
    assert whole.seed != less.seed
    assert NAMES[-1] not in less.cohort


def test_a_settled_draw_is_not_repeated_and_attempts_are_counted():
    states = entrants(FED)
    drawn = run(drawing(FED), states).drawn
    state = states[min(drawn.cohort)]
    with pytest.raises(SecureAggregationError, match="no further attempt"):
        draw.answer(state, asked(FED, state, "commit", messages.Start(), attempt=1))
    state = entrants(FED)[VICTIM]
    for attempt in range(8):
        state, _ = draw.answer(state, asked(FED, state, "commit", messages.Start(), attempt=attempt))
    with pytest.raises(SecureAggregationError, match="attempt 9 of a draw, 8 at most"):
        draw.answer(state, asked(FED, state, "commit", messages.Start(), attempt=8))


def test_values_are_fresh_in_every_attempt_and_messages_count_in_one():
    state = entrants(FED)[VICTIM]
    first = asked(FED, state, "commit", messages.Start(), attempt=0)
    state, _ = draw.answer(state, first)
    with pytest.raises(SecureAggregationError, match="stage is 'commit 1', expected 'commit 2'"):
        draw.answer(state, first)
    renamed = messages.Address(draw.in_attempt(state.context, 0), 1, "request", "commit 2", VICTIM)
    with pytest.raises(SecureAggregationError, match="signature"):
        draw.answer(state, send(FED.server, renamed, messages.Start()))
    after, _ = draw.answer(state, asked(FED, state, "commit", messages.Start(), attempt=1))
    assert after.value != state.value
    with pytest.raises(SecureAggregationError, match="'commit 3', expected 'commit 2'"):  # a number is not left out
        draw.answer(state, asked(FED, state, "commit", messages.Start(), attempt=2))


@pytest.mark.parametrize("junk", [b"", b"\x00", b"x" * 100, b"x" * 200_000])
def test_garbage_is_refused_and_costs_its_sender_only(junk):
    for states in (entrants(FED), begun(FED)[0]):
        with pytest.raises(SecureAggregationError):
            draw.answer(states[VICTIM], junk)
    for step in range(3):
        server, others = drawing(FED), entrants(FED)
        requests = next(server)
        for k in range(3):
            replies = {}
            for name, request in requests.items():
                others[name], replies[name] = draw.answer(others[name], request)
            if k == step:
                replies[VICTIM] = junk
            requests = server.send(replies)
        assert len(requests) == 11  # one value may be missing
        assert step == 1 or VICTIM not in requests


def test_a_reply_of_the_wrong_kind_drops_its_sender():
    server, states = drawing(FED), entrants(FED)
    requests, replies = next(server), {}
    for name, request in requests.items():
        states[name], replies[name] = draw.answer(states[name], request)
    address = messages.Address(draw.in_attempt(states[VICTIM].context, 0), 1, "reply", "commit 1", VICTIM)
    replies[VICTIM] = send(FED.identities[VICTIM], address, messages.Commitment(b"short"))
    assert VICTIM not in server.send(replies)


def test_going_on_without_the_silent_would_let_three_colluders_choose_among_eight():
    """Why missing values are counted: the same values with any subset of the last three, hashed without strikes."""
    values = [crypto.new_secret() for _ in range(8)]
    found = set()
    for kept in product([True, False], repeat=3):
        found.add(
            hashlib.sha256(b"".join(values[:5] + [v for v, k in zip(values[5:], kept, strict=True) if k])).digest()
        )
    assert len(found) == 8


# every check of a draw is asked, and is what stops its attack


RULES = {"tries_left": 0, "takes_part": 1, "enough_members": 1, "own_value_counted": 1, "in_cohort": 2,
         "enough_signers": 2, "certified": 2, "few_missing": 3, "values_fit": 3}  # fmt: skip


@pytest.mark.parametrize("rule", RULES)
def test_a_client_refuses_where_a_rule_says_no(rule, monkeypatch):
    server, states = drawing(FED), entrants(FED)
    requests = next(server)
    for _ in range(RULES[rule]):
        replies = {}
        for name, request in requests.items():
            states[name], replies[name] = draw.answer(states[name], request)
        requests = server.send(replies)
    monkeypatch.setattr(rules, rule, lambda *_: False)
    for name, request in requests.items():
        with pytest.raises(SecureAggregationError, match="nothing is sent"):
            draw.answer(states[name], request)


def test_without_checking_values_the_server_chooses_the_cohort(monkeypatch):
    """It tries values for one colluder until all four are drawn: once in 277 tries; 10,000 without are 1 in 10^15."""
    states, commitments = begun(FED)
    states, signatures = signed(FED, states, commitments)
    state = states[VICTIM]
    state, _ = draw.answer(state, revealing(state, certificate_of(FED, state, signatures, commitments)))
    values = {name: states[name].value for name in NAMES}
    known = {"attempt": 0, "terms": FED.terms, "known": FED.registry, "round": 1}
    claim = draw.claim_of(draw.in_attempt(state.context, 0), state.members, state.root, **known)
    for number in range(10_000):
        chosen = joined({**values, COLLUDERS[0]: number.to_bytes(32, "big")})
        if set(COLLUDERS) <= draw.result(FED.terms, FED.registry, claim.digest, ALL, chosen).cohort:
            break
    request = settling(state, chosen)
    with pytest.raises(SecureAggregationError, match="nobody committed to"):
        draw.answer(state, request)
    monkeypatch.setattr(rules, "values_fit", lambda *_: True)
    assert set(COLLUDERS) <= draw.answer(state, request)[0].drawn.cohort


def test_without_counting_members_the_server_draws_its_own(monkeypatch):
    states, commitments = begun(FED)
    few = {name: commitments[name] for name in [*COLLUDERS, *HONEST[:7]]}
    monkeypatch.setattr(rules, "enough_members", lambda *_: True)
    states, _ = signed(FED, states, few, [VICTIM])
    drawn = draw.result(FED.terms, FED.registry, bytes(32), to_set(few, FED.registry), b"")
    assert drawn.cohort == set(few)  # a third colludes, not a tenth


def test_without_its_own_commitment_a_client_decides_nothing(monkeypatch):
    """The server has put values of its own under all names: it knows the result, and may try again, before it asks."""
    states, commitments = begun(FED)
    forged = {name: commitments[name] if name in COLLUDERS else bytes(32) for name in NAMES}
    with pytest.raises(SecureAggregationError, match="its commitment is not in the list"):
        signed(FED, states, forged)
    monkeypatch.setattr(rules, "own_value_counted", lambda *_: True)
    states, signatures = signed(FED, states, forged)
    shown = certificate_of(FED, states[VICTIM], signatures, forged)
    draw.answer(states[VICTIM], revealing(states[VICTIM], shown))


# colluders that were not drawn


def certified_round(fed):
    """A victim in a cohort by lot before `unmask`, and what the server needs to lie to it."""
    drawn = run(drawing(fed), entrants(fed)).drawn
    known = {"terms": fed.terms, "registry": fed.registry, "round": 1, "ranker": RANKER}
    victim = min(drawn.cohort)
    state = join(victim, fed.identities[victim], np.zeros(fed.terms.length, "<u4"), **known, drawn=drawn)
    return drawn, msgspec.structs.replace(state, view=bytes(32), survivors=to_set(drawn.cohort, fed.registry))


def test_signatures_of_clients_that_were_not_drawn_do_not_count(monkeypatch):
    """Colluders outside of a cohort by lot are not among those that its sizes count. 29 others sign what the server
    likes, which is more than any claim needs; without the check the certificate holds."""
    fed = FED
    drawn, state = certified_round(fed)
    digest = messages.agreement(state.view, state.survivors)
    outside = sorted(set(fed.identities) - drawn.cohort)
    address = {name: messages.Address(state.context, 1, "reply", "agree", name) for name in outside}
    signatures = {name: messages.signature_of(send(fed.identities[name], address[name], digest)) for name in outside}
    claim = claims.Claim("the same survivors", digest.digest, state.context, 1, "agree", fed.registry, drawn.cohort,
                         guaranteed(fed.terms, fed.registry), fed.terms.failure)  # fmt: skip
    shown = claims.show(claim, signatures)
    assert "not asked" in claims.refusal(claim, shown)
    opening = messages.Opening(shown, [])
    request = send(fed.server, messages.Address(state.context, 1, "request", "unmask", state.id), opening)
    with pytest.raises(SecureAggregationError, match="were not asked"):
        answer_round(msgspec.structs.replace(state, done=4), request)
    monkeypatch.setattr(rules, "in_cohort", lambda *_: True)
    assert not claims.refusal(claim, shown)
