"""The contract of attacks: what attackers may look at, and what an attack is. NumPy only.

Attackers are the first clients. An attack is a frozen struct whose `craft` returns what they send in a round. Deltas
are relative to the round's model, as aggregators get them; an attack that is defined on models adds `view.model` and
subtracts it again. `foltr.testing.check_attack` tests the contract.
"""

from typing import Annotated, ClassVar, Literal, NamedTuple, Protocol, TypeAlias

import msgspec
import numpy as np

from foltr.rng import Stream
from foltr.types import Array

Knowledge: TypeAlias = Literal["full", "partial"]
NumAttackers: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]


class AttackView(NamedTuple):
    """What attackers may look at when they craft their rows. With partial knowledge they use their own rows only."""

    deltas: Array  # [n, P] what every client would have sent; attackers are the first rows
    model: Array  # [P] the round's start
    num_attackers: int  # that take part in this round
    aggregator: str  # name of the aggregator in use
    knowledge: Knowledge
    draws: Stream


class Attack(Protocol):
    """`needs`: "updates" where attackers replace what they send, "clicks" where they click by a table of their own."""

    needs: ClassVar[frozenset[str]]

    @property
    def num_attackers(self) -> int: ...

    @property
    def knowledge(self) -> Knowledge: ...

    def craft(self, view: AttackView) -> Array:
        """[num_attackers, P] deltas of the attackers only."""
        ...


def own_deltas(view: AttackView) -> Array:
    """[num_attackers, P] what the attackers would have sent."""
    return view.deltas[: view.num_attackers].copy()


def known_deltas(view: AttackView) -> Array:
    """[k, P] Full: everybody's honest delta. Partial: the attackers' own."""
    known = view.deltas if view.knowledge == "full" else view.deltas[: view.num_attackers]
    return np.ascontiguousarray(known, dtype=np.float64)


def same_for_all(view: AttackView, row: Array) -> Array:
    """[num_attackers, P] every attacker sends the same row [P]."""
    return np.tile(row, (view.num_attackers, 1))
