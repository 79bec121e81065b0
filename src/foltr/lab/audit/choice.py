"""Whether and how the clicks behind messages are guessed: one table of a spec."""

from typing import Annotated

import msgspec

from foltr.clicks import USERS

Count = Annotated[int, msgspec.Meta(ge=1)]


class Audit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Messages from the trained ranker by the setting's users; 0 messages: no audit."""

    messages: Annotated[int, msgspec.Meta(ge=0)] = 0
    queries: Count = 1  # of one message
    sum: Count = 1  # messages that the server sees only as their sum
    holders: Count | None = None  # whom the messages' noise is sized for; None: all who take part in a round
    trained_by: str = "perfect"  # the users who trained the ranker, whoever sends the messages

    def __post_init__(self) -> None:
        if self.trained_by not in USERS:
            raise ValueError(f"trained_by: no users {self.trained_by!r}; there are {', '.join(USERS)}")
        if self.messages % self.sum:
            raise ValueError(
                f"messages: {self.messages} messages do not make whole sums of {self.sum}; use a multiple of {self.sum}"
            )
