"""The masks of a vector: what its owner adds, and what the server takes away once it may.

Source: Bonawitz et al. 2017.

Differs from the paper: nothing.
"""

from collections.abc import Mapping

import numpy as np

from foltr.secagg import crypto as primitives
from foltr.secagg import ring
from foltr.secagg.terms import Terms
from foltr.types import Array


def own(seed: bytes, terms: Terms) -> Array:
    """The mask that only a client itself knows. [P]"""
    return primitives.masks([seed], terms.length, terms.bits)[0]


def pairwise(secret: bytes, me: int, keys: Mapping[int, bytes], terms: Terms, context: bytes) -> Array:
    """The sum of the masks that a client has with these others: what one of two adds, the other takes away. [P]"""
    private = primitives.agreement_key(secret)
    seeds = [
        primitives.derive(primitives.agree(private, key), context, min(me, other), max(me, other), "mask")
        for other, key in keys.items()
    ]
    each = primitives.masks(seeds, terms.length, terms.bits)  # [others, P]
    added = np.array([me < other for other in keys], bool)
    wrap = ring.dtype(terms.bits)
    return each[added].sum(axis=0, dtype=wrap) - each[~added].sum(axis=0, dtype=wrap)


def seed_commitment(context: bytes, owner: int, seed: bytes) -> bytes:
    return primitives.commitment(context, owner, owner, "whole seed", seed)
