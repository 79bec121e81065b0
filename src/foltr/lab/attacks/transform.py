"""All attacks by name, and how one gets into the rounds of a federation."""

from typing import TypeAlias

import msgspec
import numpy as np

from foltr.errors import SpecError
from foltr.federation.round import Transform
from foltr.lab.attacks.fang import Fang
from foltr.lab.attacks.lie import Lie
from foltr.lab.attacks.min_max import MinMax, MinMaxUnit
from foltr.lab.attacks.plain import NoAttack, Poison, Replacement, SignFlip
from foltr.lab.attacks.view import Attack, AttackView
from foltr.rng import stream
from foltr.types import Array

AttackKind: TypeAlias = NoAttack | Poison | Lie | Fang | SignFlip | Replacement | MinMax | MinMaxUnit

ATTACKS: dict[str, type[msgspec.Struct]] = {
    "none": NoAttack,
    "poison": Poison,
    "lie": Lie,
    "fang": Fang,
    "sign_flip": SignFlip,
    "replacement": Replacement,
    "min_max": MinMax,
    "min_max_unit": MinMaxUnit,
}


def check_attack(attack: Attack, clients: int) -> None:
    """Refuses attackers without an attack, and as many as half of the clients."""
    if not attack.needs and attack.num_attackers:
        raise SpecError(
            f"attack.num_attackers = {attack.num_attackers} without an attack; say attack.kind, or leave it out"
        )
    most = (clients - 1) // 2
    if not 0 <= attack.num_attackers <= most:
        raise SpecError(
            f"attack {msgspec.to_builtins(attack)['kind']!r}: {attack.num_attackers} attackers among {clients} "
            f"clients; attackers are fewer than half: use 0 to {most}"
        )


def transform_of(attack: Attack, *, aggregator: str, seed: int) -> Transform | None:
    """What attackers make of the deltas of a round; None if they send what they trained."""
    if "updates" not in attack.needs or attack.num_attackers == 0:
        return None

    def transform(deltas: Array, clients: Array, model: Array, round: int) -> Array:
        present = int(clients.searchsorted(attack.num_attackers))  # clients come in rising order
        sent = np.array(deltas, dtype=np.float64)
        if present:
            draws = stream(seed, round=round, purpose="attack")
            sent[:present] = attack.craft(AttackView(deltas, model, present, aggregator, attack.knowledge, draws))
        return sent

    return transform
