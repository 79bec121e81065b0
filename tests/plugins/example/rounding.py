"""A mechanism: deltas are rounded to a grid. It hides little, and states no guarantee."""

from typing import ClassVar

import msgspec
import numpy as np

import foltr


class Rounding(msgspec.Struct, frozen=True, tag_field="kind", tag="rounding"):
    step: float = 0.001

    acts_on: ClassVar[str] = "delta"

    def init_state(self):
        return None

    def project(self, parameters):
        return parameters

    def event(self, context):
        return None  # no guarantee is known: the card says so

    def protect(self, values, state, event, draws):
        return np.round(values / self.step) * self.step

    def next_state(self, state, extra, context):
        return state


foltr.register("mechanism", Rounding)
