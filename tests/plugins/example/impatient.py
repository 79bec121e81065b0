"""A click model: people click on the first relevant document, and look at three at most."""

import msgspec
import numpy as np

import foltr
from foltr.clicks import ClickModel


class Impatient(msgspec.Struct, frozen=True, tag_field="kind", tag="impatient"):
    def click_model(self, k, grades):
        return ClickModel(np.zeros((k, grades)), np.zeros(grades), function=self.clicks)

    def clicks(self, grades, uniforms):
        """Which of the displayed documents, given by their grades, are clicked; `uniforms` are random, two a rank."""
        clicked = np.zeros(len(grades), dtype=bool)
        relevant = np.flatnonzero(grades[:3] > 0)
        clicked[relevant[:1]] = True
        return clicked


foltr.register("click_model", Impatient)
