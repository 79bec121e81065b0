"""The claim that a number is above a margin."""

import msgspec
import numpy as np
import polars as pl

from foltr.lab.figures.claims import CLAIMS
from foltr.lab.records import Manifest, Run


def test_a_mean_is_above_its_margin_or_not(tmp_path):
    setting = {
        "index": 0, "resolved": {"users": {"clicks": "perfect"}}, "rounds": 1, "data": {"name": "x", "note": "y"},
    }  # fmt: skip
    columns = {"setting": np.zeros(2, np.int32), "fold": [1, 2], "seed": [1, 1], "round": [1, 1]}
    rows = pl.DataFrame(columns | {"metric": ["precision, least absolute"] * 2, "value": [0.8, 1.0]})
    run = Run(tmp_path, msgspec.convert({"settings": [setting]}, Manifest), rows.with_columns(client=pl.lit("")))
    claim = {"metric": "precision, least absolute", "left": {}, "by": ["users.clicks"]}
    assert CLAIMS["above"](run, claim | {"margin": 0.85}) == (True, "perfect: 0.9000")
    assert CLAIMS["above"](run, claim | {"margin": 0.95})[0] is False
