"""An attack: all attackers send the delta of the first one, three times as long."""

from typing import ClassVar

import msgspec
import numpy as np

import foltr


class Copycat(msgspec.Struct, frozen=True, tag_field="kind", tag="copycat"):
    num_attackers: int = 0
    knowledge: str = "partial"

    needs: ClassVar[frozenset] = frozenset({"updates"})

    def craft(self, view):
        return np.tile(3.0 * view.deltas[0], (view.num_attackers, 1))


foltr.register("attack", Copycat)
