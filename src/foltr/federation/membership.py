"""A node as a member of a federation, and where it stores what it must not forget or be able to go back to.

The state of a round and that of a draw are sealed (`witnessed`): `folder/NAME.state`, with its witness
`witness/NAME.head` in a folder that is not backed up with the other. The number of a state is its round.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeAlias

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from foltr.errors import SecureAggregationError
from foltr.files import private_folders
from foltr.secagg.terms import Registry, Terms
from foltr.witnessed import Place, checked

Clock: TypeAlias = Callable[[], float]  # seconds since 1970


class Member(NamedTuple):
    """A node's knowledge of its federation, from elsewhere than the server."""

    id: int
    identity: Ed25519PrivateKey
    terms: Terms
    registry: Registry
    since: int = 0  # newest round of the federation when the node was invited

    def __repr__(self) -> str:
        return f"Member(id={self.id}, federation={self.terms.federation!r})"  # no secret reaches a log


MOST_AHEAD = 366  # rounds that a node may have missed: a year of daily ones


def require_near(member: Member, round: int, highest: int) -> None:
    """Refuses a round far beyond the newest that this node knows of: joined once, no other would be above it."""
    newest = max(highest, member.since)
    if round > newest + MOST_AHEAD:
        raise SecureAggregationError(
            f"round {round} of federation {member.terms.federation}: the newest round that this node knows of is "
            f"{newest}, and at most {MOST_AHEAD} can have been missed; ask for a new invitation"
        )


class Storage(NamedTuple):
    folder: Path
    witness: Path  # another folder, not backed up and restored with the first


def round_place(storage: Storage) -> Place:
    return _place(storage, "round")


def draw_place(storage: Storage) -> Place:
    return _place(storage, "draw")


def _place(storage: Storage, name: str) -> Place:
    remedy = f"end it (`participant.end_round`), then this {name} is lost and the node takes part in the next one"
    return Place(storage.folder / f"{name}.state", storage.witness / f"{name}.head", name, remedy)


def prepare(storage: Storage) -> None:
    """Makes both folders; refuses one for both, and a witness inside of the other folder."""
    checked(round_place(storage))
    for folder in storage:
        private_folders(folder)
