"""Attacks that use only the attacker's own update: none, poisoned clicks, sign flipping of any length, replacement.

Sources: poisoned clicks as in S2 section 5.2.2; sign flipping as in Li et al. 2019 (RSA); replacement as in S2 section
6.4, where the client that is to be forgotten sends -z times its local model, z = 2.

Differs from the paper: sign flipping negates the delta, as a flipped gradient would, not the model; its factor is 1.
"""

from typing import Annotated, ClassVar

import msgspec
import numpy as np

from foltr.lab.attacks.attack import AttackView, Knowledge, NumAttackers, own_deltas
from foltr.types import Array

REPLACEMENT = 2.0  # z


class NoAttack(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="none"):
    """Every client sends what it trained."""

    needs: ClassVar[frozenset[str]] = frozenset()
    num_attackers: NumAttackers = 0  # the first clients
    knowledge: Knowledge = "partial"

    def craft(self, view: AttackView) -> Array:
        return own_deltas(view)


class Poison(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="poison"):
    """Attackers click by the poison table, then train and send honestly."""

    needs: ClassVar[frozenset[str]] = frozenset({"clicks"})
    click_table: ClassVar[str] = "poison"
    num_attackers: NumAttackers = 0  # the first clients
    knowledge: Knowledge = "partial"

    def craft(self, view: AttackView) -> Array:
        return own_deltas(view)


class SignFlip(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="sign_flip"):
    """Every attacker sends its delta negated."""

    needs: ClassVar[frozenset[str]] = frozenset({"updates"})
    num_attackers: NumAttackers = 0  # the first clients
    knowledge: Knowledge = "partial"

    def craft(self, view: AttackView) -> Array:
        return -own_deltas(view)


class Unbounded(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="unbounded"):
    """Every attacker sends its delta negated, with a length of its choice: where sums are secret, nobody sees it."""

    needs: ClassVar[frozenset[str]] = frozenset({"updates"})
    num_attackers: NumAttackers = 0  # the first clients
    knowledge: Knowledge = "partial"
    length: Annotated[float, msgspec.Meta(gt=0)] = 1000.0  # L2 norm of what is sent

    def craft(self, view: AttackView) -> Array:
        own = own_deltas(view)
        norms = np.linalg.norm(own, axis=1, keepdims=True)
        return -self.length * own / np.maximum(norms, np.finfo(float).tiny)


class Replacement(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="replacement"):
    """Every attacker sends -2 times its local model."""

    needs: ClassVar[frozenset[str]] = frozenset({"updates"})
    num_attackers: NumAttackers = 0  # the first clients
    knowledge: Knowledge = "partial"

    def craft(self, view: AttackView) -> Array:
        return -REPLACEMENT * (view.model + own_deltas(view)) - view.model
