"""The contract of attacks: what attackers may look at, and what an attack is. NumPy only.

Attackers are the first clients. An attack is a frozen struct whose `craft` returns what they send in a round. Deltas
are relative to the round's model, as aggregators get them; an attack that is defined on models adds `view.model` and
subtracts it again. `foltr.testing.check_attack` tests the contract.
"""

from typing import ClassVar, Literal, NamedTuple, Protocol, TypeAlias

from foltr.rng import Stream
from foltr.types import Array

Knowledge: TypeAlias = Literal["full", "partial"]


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
