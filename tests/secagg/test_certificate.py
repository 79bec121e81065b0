"""The certificate of signatures: its sizes against slow versions, and real clients against a server that forges one."""

from fractions import Fraction
from itertools import combinations

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_rounds import (
    answers,
    asked,
    certificate_of,
    content,
    federation,
    plain_sum,
    run,
    said,
    signature_of,
    sizes,
    until,
)

from foltr.errors import SecureAggregationError
from foltr.secagg import certificate, crypto, messages
from foltr.secagg.client import answer
from foltr.secagg.guarantee import Guarantee, guarantee
from foltr.secagg.terms import set_of, shape_of, to_set

FED = federation(120, length=2)  # 38 neighbours each, 12 colluders, 67 signers needed
ME = 10
NAMES = tuple(FED.identities)
changed = msgspec.structs.replace


# --- how many signatures ----------------------------------------------------------------------------------------------


@given(signers=st.integers(1, 9), data=st.data())
def test_the_chance_of_a_try_is_that_of_all_samples(signers, data):
    valid, number = data.draw(st.integers(0, 9)), data.draw(st.integers(1, signers))
    ways = [sum(one >= valid for one in way) for way in combinations(range(signers), number)]
    assert certificate.chance(signers, valid, number) == sum(Fraction(1, 256**r) for r in ways) / len(ways)


@given(cohort=st.integers(101, 140), colluders=st.integers(1, 40), bits=st.integers(1, 90), data=st.data())
def test_samples_are_as_few_as_the_odds_allow(cohort, colluders, bits, data):
    """Against trying 1, 2, 3, ..."""
    some = Guarantee(cohort, cohort, colluders, cohort - colluders)
    most = certificate.needed(some)
    signers = data.draw(st.integers(1, cohort))
    slow = 1
    while slow < most and (slow > signers or certificate.chance(signers, most - 1, slow) > 2.0**-bits):
        slow += 1
    assert certificate.samples(signers, some, failure=2.0**-bits) == slow


@pytest.mark.parametrize(
    ("registered", "signers", "needed", "shown"),
    [
        (3, 3, 3, 3),
        (10, 9, 6, 6),
        (100, 90, 56, 56),
        (1000, 1000, 551, 88),
        (1000, 900, 551, 105),
        (1000, 700, 551, 194),
        (1000, 551, 551, 551),
        (10_000, 5000, 3001, 108),
        (10_000, 4500, 3001, 135),
    ],
)
def test_the_figures_of_the_documentation(registered, signers, needed, shown):
    found = guarantee(registered, dropouts=0.1, corrupt=0.1)
    assert certificate.needed(found) == needed
    assert certificate.samples(signers, found, failure=2**-80) == shown


@pytest.mark.parametrize("registered", range(3, 101))
def test_up_to_a_hundred_clients_nothing_is_left_to_chance(registered):
    """So many signatures are shown that two claims would need more honest signers than there are."""
    found = guarantee(registered, dropouts=0.0, corrupt=0.1)
    shown = certificate.samples(registered, found, failure=0.5)
    assert 2 * (shown - found.colluders) > registered - found.colluders
    assert shown <= found.min_clients


# --- which signatures -------------------------------------------------------------------------------------------------


def test_the_draw_is_even():
    """Each of 60 signers is in 1,200 draws of 20 with probability 1/3: 6 standard deviations allowed, inputs fixed."""
    times = np.zeros(60)
    for number in range(1200):
        places = certificate.draw(b"context", b"claim", b"set", number.to_bytes(60, "big"), 20)
        assert len(set(places)) == 20
        assert places == sorted(places)
        times[places] += 1
    assert np.abs(times - 400).max() < 6 * np.sqrt(1200 * (1 / 3) * (2 / 3))


def test_the_draw_depends_on_all_that_is_claimed():
    parts = (b"context", b"claim", b"set", bytes(300))
    others = (b"another", b"another", b"another", bytes(299) + b"\1")
    draws = [certificate.draw(*parts[:k], others[k], *parts[k + 1 :], 100) for k in range(4)]
    assert len({tuple(one) for one in [certificate.draw(*parts, 100), *draws]}) == 5  # by chance once in 10^80


def test_a_tag_depends_on_all_that_it_commits_to():
    """Of 256 signatures, clients, claims and contexts each, tags take many values: fewer than 130 once in 10^6."""
    for k in range(4):
        seen = set()
        for number in range(256):
            parts = [b"context", b"claim", 7, b"signature"]
            parts[k] = number if k == 2 else number.to_bytes(2, "big")
            seen.add(certificate.tag(*parts))
        assert len(seen) > 130


def test_a_signature_cannot_be_changed_into_another_one():
    """A second valid signature would be a second chance to fit a tag: S + L in place of S is refused."""
    identity = crypto.new_identity()
    public, signature = identity.public_key().public_bytes_raw(), identity.sign(b"claim")
    order = 2**252 + 27742317777372353535851937790883648493
    larger = (int.from_bytes(signature[32:], "little") + order).to_bytes(32, "little")
    assert crypto.signed_by(public, signature, b"claim")
    assert not crypto.signed_by(public, signature[:32] + larger, b"claim")


# --- a server that forges ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def opening():
    """The state of one client before `unmask`, the honest request, and all signatures on its claim."""
    _, states, requests = until(FED, "agree")
    signatures = {client: signature_of(reply) for client, reply in answers(states, requests).items()}
    proofs = [b""] * len(states[ME].neighbours)
    return states[ME], messages.Opening(certificate_of(states[ME], signatures), proofs), signatures


def refused(opening, says, **changes):
    state, body, _ = opening
    shown = changed(body.certificate, **changes)
    with pytest.raises(SecureAggregationError, match=says):
        answer(state, asked(FED, "unmask", ME, changed(body, certificate=shown)))


def sampled(opening, shown):
    """The clients whose signatures a certificate must show."""
    state = opening[0]
    signers = sorted(set_of(shown.signers, FED.registry))
    claim = messages.agreement(state.view, state.survivors).digest
    number = certificate.samples(len(signers), state.sizes, failure=state.terms.failure)
    return [signers[k] for k in certificate.draw(state.context, claim, shown.signers, shown.tags, number)]


def test_an_honest_certificate_is_accepted(opening):
    state, body, _ = opening
    assert answer(state, asked(FED, "unmask", ME, body))[0].done == 5
    assert len(body.certificate.signatures) == 64 * len(sampled(opening, body.certificate))
    assert len(sampled(opening, body.certificate)) < certificate.needed(state.sizes) == 67


@pytest.mark.parametrize("place", [0, 17, -1])
def test_one_wrong_sampled_signature_opens_nothing(opening, place):
    shown = opening[1].certificate
    each = [shown.signatures[k : k + 64] for k in range(0, len(shown.signatures), 64)]
    each[place] = bytes(64)
    refused(opening, rf"{len(each) - 1} of {len(each)} sampled", signatures=b"".join(each))


def test_a_signature_shown_twice_opens_nothing(opening):
    shown = opening[1].certificate
    refused(opening, "sampled", signatures=shown.signatures[:64] + shown.signatures[:-64])


def test_one_wrong_tag_opens_nothing(opening):
    """The sample is that of the wrong tags, all signatures are true, and one of them does not fit."""
    _, body, signatures = opening
    for place, tag in enumerate(body.certificate.tags):
        tags = body.certificate.tags[:place] + bytes([tag ^ 1]) + body.certificate.tags[place + 1 :]
        drawn = sampled(opening, changed(body.certificate, tags=tags))
        if NAMES[place] in drawn:
            break
    shown = b"".join(signatures[client] for client in drawn)
    refused(opening, f"{len(drawn) - 1} of {len(drawn)} sampled", tags=tags, signatures=shown)


def test_signatures_on_another_claim_open_nothing(opening):
    """All of them true, on a set of survivors with one client less."""
    state, _, _ = opening
    other = messages.agreement(state.view, to_set(NAMES[:-1], FED.registry))
    signatures = {client: signature_of(said(FED, "agree", client, other)) for client in NAMES}
    refused(opening, "^client 10: 0 of", **msgspec.structs.asdict(certificate_of(state, signatures)))


@pytest.mark.parametrize("signers", [0, 1, 66])
def test_too_few_signers_open_nothing_though_all_signatures_are_true(opening, signers):
    state, _, signatures = opening
    some = {client: signatures[client] for client in NAMES[:signers]}
    says = f"{signers} clients signed the same survivors, at least 67"
    refused(opening, says, **msgspec.structs.asdict(certificate_of(state, some)))


def test_the_fewest_signers_are_enough_and_all_of_their_signatures_are_shown(opening):
    state, body, signatures = opening
    shown = certificate_of(state, {client: signatures[client] for client in NAMES[:67]})
    assert len(shown.signatures) == 64 * 67
    request = asked(FED, "unmask", ME, changed(body, certificate=shown))
    assert answer(state, request)[0].done == 5
    assert len(request) <= state.most_bytes


def test_a_changed_set_opens_nothing(opening):
    shown = opening[1].certificate
    less = to_set(NAMES[1:], FED.registry)
    refused(opening, "120 tags, expected 119", signers=less)
    refused(opening, "bytes of signatures, expected|sampled", signers=less, tags=shown.tags[1:])
    refused(opening, "does not fit the registry", signers=shown.signers + b"\0")


def test_a_sample_of_the_servers_choice_opens_nothing(opening):
    _, body, signatures = opening
    drawn = sampled(opening, body.certificate)
    chosen = [*NAMES[: len(drawn)]]
    assert chosen != drawn
    refused(opening, "sampled", signatures=b"".join(signatures[client] for client in chosen))
    refused(opening, "bytes of signatures", signatures=body.certificate.signatures[:-64])
    refused(opening, "0 bytes of signatures", signatures=b"")


def test_signatures_of_neighbours_open_nothing(opening):
    """Neighbours on a circle are neighbours of each other: an arc could sign what the rest never sees."""
    state, _, signatures = opening
    near = {client: signatures[client] for client in state.neighbours}
    refused(opening, "38 clients signed", **msgspec.structs.asdict(certificate_of(state, near)))


# --- rounds -----------------------------------------------------------------------------------------------------------


def test_all_clients_are_sent_the_same_certificate():
    _, _, requests = until(FED, "unmask")
    shown = {content(request, messages.Opening).certificate for request in requests.values()}
    assert len(shown) == 1


@pytest.mark.parametrize("stage", messages.STAGES)
def test_a_wide_round_with_dropouts_is_exact(stage):
    assert shape_of(FED.terms, sizes(FED), 120).degree == 38
    later = "unmask" if stage == "agree" else "agree"
    found = run(FED, drop={stage: set(NAMES[:6]), later: set(NAMES[6:9])})
    gone = 0 if stage in ("agree", "unmask") else 6
    assert found.included == NAMES[gone:]
    np.testing.assert_array_equal(found.total, plain_sum(FED, NAMES[gone:]))


def test_without_enough_signers_the_server_says_so():
    server, states, requests = until(FED, "agree")
    replies = answers(states, requests)
    with pytest.raises(SecureAggregationError, match="66 clients signed the survivors, at least 67 are needed; no sum"):
        server.send(dict(list(replies.items())[:66]))
