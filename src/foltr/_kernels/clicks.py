"""Clicks on a displayed list, from the same uniform numbers as `foltr.clicks.clicks_on`.

Rank r of an interaction uses two numbers: the first decides the click, the second whether the user stops after it.
"""

from foltr._kernels.cohort import Candidates, ClickTables
from foltr._kernels.compile import callee
from foltr._kernels.rng import Stream, uniform_at
from foltr._kernels.workspace import Workspace
from foltr.types import Array


@callee
def click_list(
    labels: Array, listed: Candidates, users: ClickTables, user: int, stream: Stream, position: int,
    workspace: Workspace,
) -> None:  # fmt: skip
    """Fills the clicks of a user on the documents listed.first + ranking[0 .. k]."""
    click, stop = users.click[user], users.stop[user]
    looking = True
    for rank in range(listed.k):  # without a branch on the draws, which no processor predicts
        grade = labels[listed.first + workspace.ranking[rank]]
        clicked = looking & (uniform_at(stream[0], stream[1], position + 2 * rank) < click[rank, grade])
        workspace.clicks[rank] = clicked
        looking &= not (clicked & (uniform_at(stream[0], stream[1], position + 2 * rank + 1) < stop[grade]))
