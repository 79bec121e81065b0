"""A minority that forges a certificate: measured over many tries at `failure` = 2^-6, beside the bound of the proof.

120 clients of which 12 collude, so that a claim of a minority has 66 valid signers at most. Signatures are random bytes
here; sizes, tags and draws are those of the code. Seeds are fixed; a rate that is as computed lies 5 standard
deviations off once in 3 million times.
"""

from fractions import Fraction
from math import comb, sqrt

import numpy as np
import pytest
from small_rounds import answers, asked, certificate_of, federation, said, signature_of, until

from foltr.errors import SecureAggregationError
from foltr.rng import stream
from foltr.secagg import certificate, messages
from foltr.secagg.client import answer
from foltr.secagg.guarantee import guarantee

FAILURE = 2**-6
SIZES = guarantee(120, dropouts=0.1, corrupt=0.1)
HALF = 54  # of the 108 honest ones
TRIES = 20_000


def signature(client, try_number=0):
    return b"%d signed in %d" % (client, try_number)


def forged(signers, before, later, tries=TRIES, binding=True):
    """In how many tries a minority has a certificate that names so many signers. 12 colluders and `before` honest
    clients have signed; the tags of the others are guesses. If at most `later` of them are sampled, the server asks
    them to sign; it has won if their signatures fit. `binding`: whether tags are checked."""
    valid = 12 + before
    true = b"".join(certificate.tag(b"context", b"claim", client, signature(client)) for client in range(valid))
    guesses = stream(5, purpose="attack").integers(256, tries * (signers - valid)).astype(np.uint8)
    number, won = certificate.samples(signers, SIZES, failure=FAILURE), 0
    for k, guess in enumerate(guesses.reshape(tries, -1)):
        tags = true + guess.tobytes()
        places = certificate.draw(b"context", b"claim", b"set", tags, number)
        others = [place for place in places if place >= valid]
        if len(others) <= later:
            fits = (
                certificate.tag(b"context", b"claim", one, signature(one, k)) == tags[one : one + 1] for one in others
            )
            won += not binding or all(fits)
    return won


def computed(signers, before, later):
    """The same, in numbers: at most `later` sampled ones have not signed, and their tags fit by luck."""
    valid, number = 12 + before, certificate.samples(signers, SIZES, failure=FAILURE)
    ways = [
        comb(signers - valid, r) * comb(valid, number - r) * Fraction(1, 256**r) for r in range(min(later, number) + 1)
    ]
    return float(sum(ways) / comb(signers, number))


def within(count, rate, tries=TRIES):
    return abs(count - tries * rate) < 5 * sqrt(tries * rate * (1 - rate)) + 1


@pytest.mark.parametrize("signers", [120, 100, 90])
def test_guessed_tags_win_as_often_as_the_bound_says(signers):
    """The best strategy: half of the honest have signed before, nobody is asked later. The bound is within 5 %."""
    bound = certificate.chance(signers, 12 + HALF, certificate.samples(signers, SIZES, failure=FAILURE))
    rate = computed(signers, HALF, 0)
    assert within(forged(signers, HALF, 0), rate)
    assert 0.95 * bound < rate <= bound <= FAILURE


@pytest.mark.parametrize("later", [1, 2, 10])
def test_asking_the_sampled_ones_after_the_draw_wins_less(later):
    bound = certificate.chance(120, 12 + HALF, certificate.samples(120, SIZES, failure=FAILURE))
    rate = computed(120, HALF - later, later)
    assert rate < bound
    assert within(forged(120, HALF - later, later), rate)


def test_without_tags_asking_after_the_draw_would_always_win():
    """7 signatures are sampled; 10 clients may be asked afterwards."""
    assert certificate.samples(120, SIZES, failure=FAILURE) == 7
    assert forged(120, HALF - 10, 10, tries=200, binding=False) == 200


def test_naming_fewer_signers_gains_nothing():
    """For each number of signers, before and later: the sample grows as the set shrinks."""
    rates = [computed(signers, HALF - later, later) for signers in range(67, 121) for later in (0, 1, 3)]
    assert max(rates) <= FAILURE
    assert max(rates) > 0.95 * FAILURE


@pytest.mark.parametrize(("failure", "tries", "wins"), [(FAILURE, 2000, True), (2**-80, 100, False)])
def test_a_minority_of_real_clients_by_many_tries(failure, tries, wins):
    """Half of the honest clients and all colluders sign; the server guesses the other tags until the sample has only
    true signatures. `failure` counts tries: at 2^-6 about 75 are needed (2,000 fail once in 10^11), at 2^-80 it stays
    closed."""
    fed = federation(120, length=1, failure=failure)
    names = sorted(fed.identities)
    _, states, requests = until(fed, "agree")
    replies = answers(states, requests)
    me = names[12]
    state = states[me]
    claim = messages.agreement(state.view, state.survivors)
    true = {client: signature_of(replies[client]) for client in names[12 : 12 + HALF]}
    true |= {client: signature_of(said(fed, "agree", client, claim)) for client in names[:12]}
    requests = (asked(fed, "unmask", me, guessed(state, true, names, k)) for k in range(tries))
    assert any(opens(state, request) for request in requests) == wins


def guessed(state, true, names, try_number):
    """A certificate that names everybody; the signatures of the others, and so their tags, are made up."""
    others = {client: signature(client, try_number).ljust(64) for client in names if client not in true}
    return messages.Opening(certificate_of(state, true | others), [b""] * len(state.neighbours))


def opens(state, request):
    try:
        return answer(state, request)[0].done == len(messages.STAGES)
    except SecureAggregationError:
        return False
