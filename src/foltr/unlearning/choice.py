"""Whether and how a run forgets: one table of a spec."""

from typing import Annotated, Literal

import msgspec

Count = Annotated[int, msgspec.Meta(ge=1)]


class Unlearning(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The leavers had sent -z times the models that they trained."""

    method: Literal["none", "retrain", "calibrated", "logs", "shards", "statistics"] = "none"
    forget_clients: Annotated[tuple[int, ...], msgspec.Meta(min_length=1)] = (0,)
    z: Annotated[float, msgspec.Meta(gt=0)] = 2.0
    keep_every: Count = 10
    local_steps: Count = 3
    shards: Count = 5  # shards
    ridge: Annotated[float, msgspec.Meta(gt=0)] = 10.0
