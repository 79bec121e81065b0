"""From masked vectors and opened shares to the sum: the masks that do not cancel are taken away.

Source: Bonawitz et al. 2017, figure 4, round 4. Of a client whose vector arrived the self mask is found again; of one
that shared its secrets and then dropped out, the mask key, and with it the masks that its neighbours added in vain.

Differs from the paper: see `server`.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from foltr.errors import SecureAggregationError
from foltr.secagg import crypto as primitives
from foltr.secagg import masking, messages, ring, shamir
from foltr.secagg.terms import Terms
from foltr.types import Array


class Opened(NamedTuple):
    """What the server has when the shares are open."""

    terms: Terms
    context: bytes
    threshold: int
    around: Mapping[int, tuple[int, ...]]  # neighbours of each client
    places: Mapping[int, Mapping[int, int]]  # of each neighbour in that order
    keys: Mapping[int, messages.Keys]
    shares: Mapping[int, messages.Shares]  # of those who take part
    vectors: Mapping[int, Array]  # of those who survive
    revealed: Mapping[int, messages.Revealed]


def unmasked(opened: Opened) -> Array:
    """The exact sum of the survivors' vectors. [P]"""
    secrets = {owner: _secret(opened, owner) for owner in opened.shares}  # all of them, before anything is summed
    total = np.zeros(opened.terms.length, ring.dtype(opened.terms.bits))
    for owner, secret in secrets.items():
        if owner in opened.vectors:
            total += opened.vectors[owner] - masking.own(secret, opened.terms)
        else:
            total += _left_behind(opened, owner, secret)
    return total


def _left_behind(opened: Opened, owner: int, secret: bytes) -> Array:
    """What a client would have added against the masks of its surviving neighbours. [P]"""
    keys = {other: opened.keys[other].mask for other in opened.around[owner] if other in opened.vectors}
    return masking.pairwise(secret, owner, keys, opened.terms, opened.context)


def _secret(opened: Opened, owner: int) -> bytes:
    """A client's self mask if it survived, else its mask key."""
    purpose = "seed" if owner in opened.vectors else "mask"
    shares: dict[int, bytes] = {}
    for place, holder in enumerate(opened.around[owner]):
        if holder in opened.revealed and len(shares) < opened.threshold:
            shares[place] = _checked(opened, owner, holder, place, purpose)
    if len(shares) < opened.threshold:
        raise SecureAggregationError(
            f"{len(shares)} neighbours opened their shares of client {owner}, {opened.threshold} are needed; no sum"
        )
    secret = shamir.combine(shares)
    if not _belongs(opened, owner, purpose, secret):
        raise SecureAggregationError(f"client {owner} shared a {purpose} secret that is not its own; no sum")
    return secret


def _checked(opened: Opened, owner: int, holder: int, place: int, purpose: str) -> bytes:
    """The share that a holder opened, if it is the one that the owner committed to."""
    share = opened.revealed[holder].shares[opened.places[holder][owner]]
    both, half = opened.shares[owner].commitments[place], primitives.COMMITMENT
    expected = both[:half] if purpose == "mask" else both[half:]
    if primitives.commitment(opened.context, owner, holder, purpose, share) != expected:
        raise SecureAggregationError(
            f"client {holder} opened a share of client {owner} that is not the one committed to; "
            f"one of the two lied, and there is no sum"
        )
    return share


def _belongs(opened: Opened, owner: int, purpose: str, secret: bytes) -> bool:
    if purpose == "mask":
        return primitives.public_of(primitives.agreement_key(secret)) == opened.keys[owner].mask
    return masking.seed_commitment(opened.context, owner, secret) == opened.shares[owner].seed
