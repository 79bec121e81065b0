"""An attack as the transform of a federation's rounds."""

import numpy as np

from foltr.errors import SpecError
from foltr.federation.round import Transform
from foltr.lab.attacks.view import Attack, AttackView
from foltr.registry import kind_name
from foltr.rng import stream
from foltr.types import Array, Updates


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
