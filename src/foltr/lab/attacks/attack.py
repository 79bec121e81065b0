"""The contract of attacks, and an attack as the transform of a federation's rounds. NumPy only.

Attackers are the first clients. An attack is a frozen struct whose `craft` returns what they send in a round. Deltas
are relative to the round's model, as aggregators get them; an attack that is defined on models adds `view.model` and
subtracts it again. `foltr.testing.check_attack` tests the contract.
"""

from typing import Annotated, ClassVar, Literal, NamedTuple, Protocol, TypeAlias

import msgspec
import numpy as np

from foltr.errors import SpecError
from foltr.federation.engine import Transform
from foltr.registry import kind_name
from foltr.rng import Stream, stream
from foltr.types import Array, Updates

Knowledge: TypeAlias = Literal["full", "partial"]
NumAttackers: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]


class AttackView(NamedTuple):
    """The view of attackers when they craft their rows. With partial knowledge they use their own rows only."""

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
    rows = np.empty((view.num_attackers, len(row)))
    rows[:] = row
    return rows


def check_num_attackers(attack: Attack, clients: int) -> None:
    """Refuses attackers without an attack, and as many as half of the clients."""
    if not attack.needs and attack.num_attackers:
        raise SpecError(
            f"attack.num_attackers = {attack.num_attackers} without an attack; say attack.kind, or leave it out"
        )
    limit = (clients - 1) // 2
    if not 0 <= attack.num_attackers <= limit:
        raise SpecError(
            f"attack {kind_name(type(attack))!r}: {attack.num_attackers} attackers among {clients} clients; "
            f"attackers are fewer than half: use 0 to {limit}"
        )


def transform_of(attack: Attack, *, aggregator: str, seed: int) -> Transform | None:
    """The transform that replaces the attackers' deltas; None if they send what they trained."""
    if "updates" not in attack.needs or attack.num_attackers == 0:
        return None

    def transform(updates: Updates, model: Array, round: int) -> Updates:
        present = int(updates.clients.searchsorted(attack.num_attackers))  # clients come in rising order
        sent = np.array(updates.values, dtype=np.float64)
        if present:
            draws = stream(seed, round=round, purpose="attack")
            view = AttackView(updates.values, model, present, aggregator, attack.knowledge, draws)
            sent[:present] = attack.craft(view)
        return updates._replace(values=sent)

    return transform
