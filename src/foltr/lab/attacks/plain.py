"""Attacks that need to know nothing of others: the step turned round, and the model turned round and enlarged.

Sources: sign flipping as in Li et al. 2019 (RSA); replacement as in S2 section 6.4, where the client that is to be
forgotten sends -z times its local model, z = 2.

Differs from the paper: sign flipping turns the step from the round's start, as a flipped gradient would, not the
model; its factor is 1.
"""

from foltr.lab.attacks.known import Knowledge, with_rows
from foltr.rng import Stream
from foltr.types import Array

REPLACEMENT = 2.0  # z


def sign_flip(
    honest: Array,
    start: Array,
    *,
    attackers: int,
    rule: str,  # noqa: ARG001
    knowledge: Knowledge,  # noqa: ARG001
    draws: Stream,  # noqa: ARG001
) -> Array:
    """Every attacker goes as far as it honestly would, the other way."""
    return with_rows(honest, attackers, 2.0 * start - honest[:attackers])


def replacement(
    honest: Array,
    start: Array,  # noqa: ARG001
    *,
    attackers: int,
    rule: str,  # noqa: ARG001
    knowledge: Knowledge,  # noqa: ARG001
    draws: Stream,  # noqa: ARG001
) -> Array:
    """Every attacker sends -2 times its whole model."""
    return with_rows(honest, attackers, -REPLACEMENT * honest[:attackers])
