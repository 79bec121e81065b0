"""Claims that clients sign, and the certificate that more than half of the honest ones signed the same.

`show` is the server's side, from the signatures that it was sent; `refusal` is the client's, and says what is missing.
A claim is a 32-byte digest that each client signs at one stage of a round or draw, once. `certificate` has the proof.

Differs from the paper: as `certificate` says.
"""

from collections.abc import Mapping
from typing import NamedTuple

from foltr.secagg import certificate, rules
from foltr.secagg.crypto import SIGNATURE
from foltr.secagg.guarantee import Guarantee
from foltr.secagg.messages import Address, Agreement, AnyStage, Certificate, vouches
from foltr.secagg.terms import Registry, set_of, to_set


class Claim(NamedTuple):
    """Statements that are signed, where, and by whom."""

    what: str  # in words
    digest: bytes
    context: bytes
    round: int
    stage: AnyStage
    registry: Registry
    cohort: frozenset[int]  # only their signatures count: of a cohort by lot, colluders outside are not among `sizes`
    sizes: Guarantee
    failure: float


def show(claim: Claim, signatures: Mapping[int, bytes]) -> Certificate:
    """Of all who signed, sorted: the more signers, the fewer signatures are shown."""
    each, signers = list(signatures.values()), to_set(signatures, claim.registry)
    tags = b"".join(certificate.tag(claim.context, claim.digest, *one) for one in signatures.items())
    number = certificate.samples(len(each), claim.sizes, failure=claim.failure)
    places = certificate.draw(claim.context, claim.digest, signers, tags, number)
    return Certificate(signers, tags, b"".join(each[place] for place in places))


def refusal(claim: Claim, shown: Certificate) -> str:
    """Why the certificate does not prove the claim; empty where it does."""
    signers, needed = sorted(set_of(shown.signers, claim.registry)), certificate.needed(claim.sizes)
    if not rules.in_cohort(set(signers), claim.cohort):
        return f"among those who signed {claim.what} are clients that were not asked"
    if not rules.enough_signers(len(signers), needed):
        return f"{len(signers)} clients signed {claim.what}, at least {needed} are needed"
    if len(shown.tags) != len(signers):
        return f"it was sent {len(shown.tags)} tags, expected {len(signers)}"
    number = certificate.samples(len(signers), claim.sizes, failure=claim.failure)
    places = certificate.draw(claim.context, claim.digest, shown.signers, shown.tags, number)
    if len(shown.signatures) != len(places) * SIGNATURE:
        return f"it was sent {len(shown.signatures)} bytes of signatures, expected {len(places)} signatures"
    tags = {signers[place]: shown.tags[place : place + 1] for place in places}
    confirmed = _confirmed(claim, tags, shown.signatures)
    if not rules.certified(tags.keys(), confirmed):
        return f"{len(confirmed)} of {len(tags)} sampled signatures are on {claim.what} and fit their tags"
    return ""


def _confirmed(claim: Claim, tags: Mapping[int, bytes], signatures: bytes) -> set[int]:
    """The sampled signers whose signature is on the claim and is the one that the tag was computed from."""
    found, size, body = set(), SIGNATURE, Agreement(claim.digest)
    for place, (client, tag) in enumerate(tags.items()):
        one = signatures[place * size : (place + 1) * size]
        address = Address(claim.context, claim.round, "reply", claim.stage, client)
        fits = certificate.tag(claim.context, claim.digest, client, one) == tag
        if fits and vouches(one, address, claim.registry.keys[client], body):
            found.add(client)
    return found
