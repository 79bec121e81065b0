"""The certificate that more than half of the honest clients signed one claim, in a sample of their signatures.

Source: Micali, Reyzin, Vlachos, Wahby and Zeldovich, "Compact certificates of collective knowledge" (2021): signatures
are committed to, then a hash of the commitment chooses which of them are shown. A claim is a graph and its survivors.
Each client signs one claim in a round, at `agree`. Before it opens a share, it is sent for its own claim

    signers      G, a set of clients whose signatures the server says it has
    tags         for each i of G one byte: the first of SHA-256(context, claim, i, signature of i)
    signatures   of m members of G, drawn by a hash of (context, claim, G, tags)

and checks that G has `needed` members or more, that the signatures of all drawn signers hold for its claim, and that
they fit their tags. Clients compute m and the draw themselves.

Let N be the clients of the cohort, C the colluders among them at most, and v = C + floor((N - C) / 2). A claim that at
most half of the N - C honest clients sign has at most v signers, all colluders counted. (With fewer colluders than C
the same v allows more honest signers, and two claims with more than v signers each still share an honest one.)

Claim: for such a claim no client opens a share, except with probability `failure` for each hash that is evaluated.
Proof, with SHA-256 as a random oracle. A try is one evaluation of the challenge, for one claim, G and tags; the server
makes it offline and before it can know the sample. At that moment let V be the honest clients that have signed this
claim. The sample is uniform in G and independent of V. Let r of the drawn ones be neither in V nor colluders. The try
leads to a certificate only if all r sign this claim afterwards, with signatures that fit tags that are fixed by then.
Nobody can compute a signature of an honest client before it signs, nor change one into another (Ed25519 is strongly
unforgeable where S >= L is refused, as OpenSSL does); so each tag fits with probability 2^-8, whoever is asked later
and in whatever order. |V| + C <= v, so at least |G| - v of G are such that r counts them, and the try succeeds with
probability

    p(m) = sum over r of P(hypergeometric(|G|, |G| - v, m) = r) 2^(-8 r)      at most.

m is the smallest number with p(m) <= `failure`. With m = v + 1 a sample cannot consist of v signers: no probability is
left, and m is never larger; in cohorts of up to 100 it is always so. A client's own signature counts like any other.

Therefore every claim for which some honest client opens a share was signed by more than half of the honest clients of
the cohort. Each signs once, so there is one such claim in a round, whatever members, graphs and survivors the server
named to whom. The count is over the cohort and not over the members of a claim: two claims with different members
could each have more than half of their own.

Differs from the paper: one byte for each signer in place of a Merkle tree, because a federation is small; all signers
have the same weight; the sample is drawn without replacement and its size is exact.
"""

from bisect import bisect_left
from fractions import Fraction
from functools import lru_cache
from hashlib import sha256
from math import comb

import numpy as np

from foltr.secagg.crypto import hkdf, label, masks
from foltr.secagg.graph import COMPLETE
from foltr.secagg.guarantee import Guarantee

_TAG_BITS = 8


def needed(sizes: Guarantee) -> int:
    """v + 1: of all claims of a round, one at most can have so many signers."""
    return sizes.colluders + (sizes.cohort - sizes.colluders) // 2 + 1


@lru_cache(maxsize=1024)
def samples(signers: int, sizes: Guarantee, *, failure: float) -> int:
    """m, from numbers that the client has itself and the number of signers. Fewer signers than `needed` have no
    certificate, whatever m."""
    valid, allowed = needed(sizes) - 1, Fraction(failure)

    def suffices(number: int) -> bool:  # once it does, more samples suffice as well
        return number > valid or (number <= signers and chance(signers, valid, number) <= allowed)

    return bisect_left(range(valid + 2), True, lo=valid + 1 if sizes.cohort <= COMPLETE else 1, key=suffices)


def chance(signers: int, valid: int, number: int) -> Fraction:
    """p(m): the chance of one try, of which `valid` signers at most can be confirmed without luck."""
    valid = min(valid, signers)
    others, first = signers - valid, max(0, number - valid)
    term = comb(others, first) * comb(valid, number - first)
    total, last = 0, min(number, others)
    for r in range(first, last + 1):
        total = (total << _TAG_BITS) + term
        term = term * (others - r) * (number - r) // ((r + 1) * (valid - number + r + 1))
    return Fraction(total, comb(signers, number) << _TAG_BITS * last)


def tag(context: bytes, claim: bytes, client: int, signature: bytes) -> bytes:
    """One byte that commits to a signature."""
    return sha256(label("certificate tag", context, claim, client, signature)).digest()[:1]


def draw(context: bytes, claim: bytes, signers: bytes, tags: bytes, number: int) -> list[int]:
    """Whose signatures are shown: places among the signers, which are as many as the tags; sorted. Two of the 64-bit
    keys are equal in one of 2^45 draws among 1,000; then the first place goes first, and nobody gains a choice."""
    challenge = sha256(label("certificate challenge", context, claim, signers, tags)).digest()
    order = np.argsort(masks([hkdf(challenge, info=b"certificate")], len(tags), 64)[0], kind="stable")
    return sorted(order[:number].tolist())
