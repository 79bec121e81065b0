"""From masked vectors and opened shares to the sum of the survivors' vectors.

Source: Bonawitz et al. 2017, figure 4. Of a client whose vector arrived the self mask is reconstructed; of one that
shared its secrets and then dropped out, the mask key, and with it the masks that its neighbours added.

Differs from the paper: every opened share is checked against its owner's commitment, and every secret against the key
or commitment it belongs to, so that the sum is exact or there is none. A share that does not fit is left out and named.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from foltr.errors import SecureAggregationError
from foltr.secagg import crypto, messages, ring, shamir
from foltr.secagg.terms import Terms
from foltr.types import Array


class Report(NamedTuple):
    """A client, or the server, found something of another unusable; one of the two is at fault."""

    by: int
    about: int
    what: str


class Opened(NamedTuple):
    """The server's state after shares are opened."""

    terms: Terms
    context: bytes
    threshold: int
    around: Mapping[int, tuple[int, ...]]  # neighbours of each client
    places: Mapping[int, Mapping[int, int]]  # of each neighbour in that order
    keys: Mapping[int, messages.Keys]
    shares: Mapping[int, messages.Shares]  # of those who take part
    vectors: Mapping[int, Array]  # of those who survive
    proofs: Mapping[int, list[bytes]]  # of those who survive, for each neighbour; empty where there is no mask
    revealed: Mapping[int, messages.Revealed]
    reports: list[Report]


def unmasked(opened: Opened) -> Array:
    """The exact sum of the survivors' vectors. [P]"""
    needed = [owner for owner in opened.shares if owner in opened.vectors or _masked_with(opened, owner)]
    secrets = {owner: _secret(opened, owner) for owner in needed}  # all of them, before anything is summed
    total = np.zeros(opened.terms.length, ring.dtype(opened.terms.bits))
    for owner, secret in secrets.items():
        if owner in opened.vectors:
            total += opened.vectors[owner] - crypto.self_mask(secret, opened.terms.length, opened.terms.bits)
        else:
            total += _left_behind(opened, owner, secret)
    return total


def _left_behind(opened: Opened, owner: int, secret: bytes) -> Array:
    """[P] the masks that a client shares with its surviving neighbours, with the sign that it would have added."""
    keys = {other: opened.keys[other].mask for other in _masked_with(opened, owner)}
    terms = opened.terms
    return crypto.pairwise_mask(secret, owner, keys, length=terms.length, bits=terms.bits, context=opened.context)


def _masked_with(opened: Opened, owner: int) -> list[int]:
    return [
        other
        for other in opened.around[owner]
        if other in opened.vectors and opened.proofs[other][opened.places[other][owner]]
    ]


def _secret(opened: Opened, owner: int) -> bytes:
    """A client's self mask if it survived, else its mask key."""
    purpose = "seed" if owner in opened.vectors else "mask"
    shares: dict[int, bytes] = {}
    for place, recipient in enumerate(opened.around[owner]):
        if recipient in opened.revealed and len(shares) < opened.threshold:
            share = opened.revealed[recipient].shares[opened.places[recipient][owner]]
            if _committed(opened, owner, recipient, place, purpose, share):
                shares[place] = share
            else:
                what = f"a share of its {purpose} secret is not the one committed to" if share else "its proof"
                opened.reports.append(Report(recipient, owner, what))
    if len(shares) < opened.threshold:
        found = f"{len(shares)} usable shares of client {owner} were opened, {opened.threshold} are needed; no sum"
        raise SecureAggregationError(found + named(opened.reports))
    secret = shamir.combine(shares)
    if not _belongs(opened, owner, purpose, secret):
        raise SecureAggregationError(f"client {owner} shared a {purpose} secret that is not its own; no sum")
    return secret


def _committed(opened: Opened, owner: int, recipient: int, place: int, purpose: str, share: bytes) -> bool:
    """Whether the share that a neighbour opened is the one that the owner committed to."""
    both, half = opened.shares[owner].commitments[place], crypto.COMMITMENT
    expected = both[:half] if purpose == "mask" else both[half:]
    return crypto.commitment(opened.context, owner, recipient, purpose, share) == expected


def _belongs(opened: Opened, owner: int, purpose: str, secret: bytes) -> bool:
    if purpose == "mask":
        return crypto.public_of(crypto.agreement_key(secret)) == opened.keys[owner].mask
    return crypto.seed_commitment(opened.context, owner, secret) == opened.shares[owner].seed


def named(reports: list[Report]) -> str:
    """For an error: the first reports."""
    some = "; ".join(f"client {one.by} reports client {one.about}: {one.what}" for one in reports[:3])
    return f" ({some})" if some else ""
