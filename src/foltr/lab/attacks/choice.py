"""Which attack a run has, who makes it, and how it gets into the rounds.

Attackers are the first clients. Those that poison clicks train honestly on clicks of the poison table (S2 section
5.2.2); all others click like everybody and replace what they send.

Differs from the paper: nothing.
"""

from typing import Annotated, Literal

import msgspec

from foltr.errors import SpecError
from foltr.federation.round import Tamper
from foltr.lab.attacks import ATTACKS, check_attack
from foltr.rng import stream
from foltr.types import Array

POISON = "poison"  # also the name of the click table


class AttackChoice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    by: str = "none"
    attackers: Annotated[int, msgspec.Meta(ge=0)] = 0
    knowledge: Literal["full", "partial"] = "partial"

    def __post_init__(self) -> None:
        known = ("none", POISON, *ATTACKS)
        if self.by not in known:
            raise ValueError(f"by: no attack {self.by!r}; there are {', '.join(known)}")


def check(choice: AttackChoice, clients: int) -> None:
    """Refuses what cannot be, before anything is computed."""
    if choice.by == "none":
        if choice.attackers:
            raise SpecError(f"attack.attackers = {choice.attackers} without an attack; say attack.by, or leave it out")
        return
    check_attack("lie" if choice.by == POISON else choice.by, clients, choice.attackers)


def tamper_of(choice: AttackChoice, *, rule: str, seed: int) -> Tamper | None:
    """What attackers make of the updates of a round; None if they send what they trained."""
    if choice.by in ("none", POISON) or choice.attackers == 0:
        return None
    craft = ATTACKS[choice.by]

    def tamper(models: Array, clients: Array, start: Array, round: int) -> Array:
        taking_part = int(clients.searchsorted(choice.attackers))  # clients come in rising order
        draws = stream(seed, round=round, purpose="attack")
        return craft(models, start, attackers=taking_part, rule=rule, knowledge=choice.knowledge, draws=draws)

    return tamper
