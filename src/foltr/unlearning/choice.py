"""Whether and how a run forgets: one table of a spec."""

from typing import Annotated, Literal

import msgspec

Count = Annotated[int, msgspec.Meta(ge=1)]


class Forgetting(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The leavers had sent -z times the models that they trained."""

    way: Literal["none", "retrain", "calibrated", "logs", "shards", "statistics"] = "none"
    leavers: Annotated[tuple[int, ...], msgspec.Meta(min_length=1)] = (0,)
    z: Annotated[float, msgspec.Meta(gt=0)] = 2.0
    keep_every: Count = 10
    local_steps: Count = 3
    parts: Count = 5  # shards
    ridge: Annotated[float, msgspec.Meta(gt=0)] = 10.0
