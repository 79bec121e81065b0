"""Which attack a run has, who makes it, and how it gets into the rounds.

Attackers are the first clients. Those that poison clicks train honestly on clicks of the poison table (S2 section
5.2.2); all others click like everybody and replace what they send.

Differs from the paper: nothing.
"""

from typing import Annotated, Literal

import msgspec

from foltr.errors import SpecError
from foltr.federation.round import Transform
from foltr.lab.attacks import ATTACKS, check_attack
from foltr.rng import stream
from foltr.types import Array

POISON = "poison"  # also the name of the click table


class AttackChoice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    kind: str = "none"
    num_attackers: Annotated[int, msgspec.Meta(ge=0)] = 0
    knowledge: Literal["full", "partial"] = "partial"

    def __post_init__(self) -> None:
        known = ("none", POISON, *ATTACKS)
        if self.kind not in known:
            raise ValueError(f"kind: no attack {self.kind!r}; there are {', '.join(known)}")


def check(choice: AttackChoice, clients: int) -> None:
    """Refuses what cannot be, before anything is computed."""
    if choice.kind == "none":
        if choice.num_attackers:
            raise SpecError(
                f"attack.num_attackers = {choice.num_attackers} without an attack; say attack.kind, or leave it out"
            )
        return
    check_attack("lie" if choice.kind == POISON else choice.kind, clients, choice.num_attackers)


def transform_of(choice: AttackChoice, *, rule: str, seed: int) -> Transform | None:
    """What attackers make of the updates of a round; None if they send what they trained."""
    if choice.kind in ("none", POISON) or choice.num_attackers == 0:
        return None
    craft = ATTACKS[choice.kind]

    def transform(models: Array, clients: Array, start: Array, round: int) -> Array:
        taking_part = int(clients.searchsorted(choice.num_attackers))  # clients come in rising order
        draws = stream(seed, round=round, purpose="attack")
        return craft(models, start, attackers=taking_part, rule=rule, knowledge=choice.knowledge, draws=draws)

    return transform
