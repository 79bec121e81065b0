"""Privacy attacks on the messages of clients.

    click_guessing  five ways to guess clicks from one message, and how good the guesses are (S4)
    membership      was this client in the sum?
    epsilon         a lower bound on epsilon from repeated trials with two neighbouring datasets, which are as
                    far apart as the clipping of each mechanism allows
    gaussian        refutes a claimed mu: error rates of tests below the trade-off curve
    noise           variance, shape, independence, reuse and replay of released noise
    release_audit   both on the lab's mechanism, the adaptive bit and the deployed releases
    messages        messages of clients as the server gets them
    privacy_audit   all of this for a finished run

Attacks are pure functions of arrays. The success of an attack is a lower bound on the leak. `Audit` is
the table of a spec that asks for click guessing in every run.
"""

from typing import Annotated

import msgspec

from foltr.clicks import USERS

Count = Annotated[int, msgspec.Meta(ge=1)]


class Audit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Messages from the trained ranker by the setting's users; 0 messages: no audit."""

    messages: Annotated[int, msgspec.Meta(ge=0)] = 0
    queries: Count = 1  # of one message
    sum: Count = 1  # messages that the server sees only as their sum
    noise_contributors: Count | None = None  # that the noise is sized for; None: all clients of a round
    trained_by: str = "perfect"  # the users who trained the ranker, whoever sends the messages

    def __post_init__(self) -> None:
        if self.trained_by not in USERS:
            raise ValueError(f"trained_by: no users {self.trained_by!r}; there are {', '.join(USERS)}")
        if self.messages % self.sum:
            raise ValueError(
                f"messages: {self.messages} messages do not make whole sums of {self.sum}; use a multiple of {self.sum}"
            )
