"""What attackers send instead of their honest updates. Poisoned clicks have no place here: they are clicks."""

from foltr.errors import SpecError
from foltr.lab.attacks.fang import fang
from foltr.lab.attacks.known import Attack, Knowledge
from foltr.lab.attacks.lie import lie
from foltr.lab.attacks.min_max import min_max, min_max_unit
from foltr.lab.attacks.plain import replacement, sign_flip

__all__ = ["ATTACKS", "Attack", "Knowledge", "check_attack"]

ATTACKS: dict[str, Attack] = {
    "lie": lie,
    "fang": fang,
    "sign_flip": sign_flip,
    "replacement": replacement,
    "min_max": min_max,
    "min_max_unit": min_max_unit,
}


def check_attack(name: str, clients: int, attackers: int) -> None:
    """Refuses what cannot be, before anything is computed."""
    if name not in ATTACKS:
        raise SpecError(f"no attack {name!r}; there are {', '.join(ATTACKS)}")
    most = (clients - 1) // 2
    if not 0 <= attackers <= most:
        raise SpecError(
            f"attack {name!r}: {attackers} attackers among {clients} clients; attackers are fewer than half: "
            f"use 0 to {most}"
        )
