"""Scoring functions over one flat parameter vector, and the distribution they put on rankings."""

from foltr.rankers.linear import Linear
from foltr.rankers.mlp import Mlp

RankerKind = Linear | Mlp

__all__ = ["Linear", "Mlp", "RankerKind"]
