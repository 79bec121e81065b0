"""What one release is worth: a frozen event that a mechanism returns with every update it lets out.

An event states what the noise is, which difference between neighbours it must hide and in which norm, which norm was
really enforced, whose noise it is, and against whom it holds. It says nothing of epsilon: `accounting` does.

Units: `user`, all that one person ever did; `interaction`, one search with its clicks; `word`, one term of a text.
Neighbours: `remove`, one unit is there or not; `replace`, one unit is another.
Adversaries: `recipients`, the other clients and whoever gets the ranker; `server`, who sees what clients send.
An adversary that an event does not name sees through it: its epsilon is infinite.
"""

from typing import Annotated, Literal

import msgspec

Mechanism = Literal["gaussian", "discrete-gaussian", "laplace", "randomized-response", "fpdgd"]
Norm = Literal["l1", "l2", "outcome"]
Unit = Literal["user", "interaction", "word"]
Neighbours = Literal["remove", "replace"]
Adversary = Literal["recipients", "server"]

EVERYBODY: tuple[Adversary, ...] = ("recipients", "server")
RECIPIENTS: tuple[Adversary, ...] = ("recipients",)
Positive = Annotated[float, msgspec.Meta(gt=0)]
Count = Annotated[int, msgspec.Meta(ge=1)]


class Event(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One release. Noise is that of all `expected` shares together."""

    mechanism: Mechanism
    norm: Norm  # in which `bound` is stated
    bound: Positive  # largest difference between neighbours
    clipped: Norm  # in which differences are really bounded
    noise: Positive  # standard deviation, scale of Laplace noise, or the chance of a truthful answer
    unit: Unit = "user"
    neighbours: Neighbours = "remove"
    against: tuple[Adversary, ...] = EVERYBODY
    expected: Count = 1  # holders of noise that the noise was sized for
    present: Annotated[int, msgspec.Meta(ge=0)] = 1  # holders whose noise is in the release
    parameters: Count = 1
    outcomes: Annotated[int, msgspec.Meta(ge=0)] = 0  # a randomised response chooses among


def with_present(event: Event, present: int) -> Event:
    """The same release with the noise of fewer or more holders in it."""
    return msgspec.structs.replace(event, present=present)


def one_share(event: Event) -> Event:
    """What the server sees of one message where sums are not secure: its bound, and the noise of one share only."""
    return msgspec.structs.replace(event, present=1, against=EVERYBODY)
