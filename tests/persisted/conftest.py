"""The parties of `before/` are built with the small federations of the tests of secure aggregation and of silos."""

import sys
from pathlib import Path

_TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(_TESTS / folder) for folder in ("secagg", "silo")]
