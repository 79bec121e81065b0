"""Decisions of a client about a request: one function for each check, over numbers and sets, without cryptography.

`client` computes the arguments (which signatures hold, which shares open, which root a path leads to) and refuses the
request where a function says False. A model of the protocol calls the same functions, so that what is checked is what
runs; a mutant replaces one of them.

    share    takes_part, in_cohort, enough_members, own_keys_counted, usable_keys, enough_neighbours
    mask     enough_neighbours
    agree    survives, survivors_took_part, survivors_are_held, enough_survivors, enough_surviving_neighbours
    unmask   enough_signers, certified, may_open, share_to_open
    draw     tries_left, takes_part, enough_members, own_value_counted, enough_signers, certified,
             few_missing, values_fit

A neighbour whose key or share is unusable is treated as absent: no share for it, no mask with it. The server could have
said so itself, so it gains nothing by damaging a message; if such a neighbour is among the survivors, the client signs
nothing (`survivors_are_held`).
"""

from collections.abc import Collection, Mapping, Sequence, Set
from typing import Literal

Secret = Literal["seed", "mask"]


# share: who takes part


def takes_part(me: int, members: Set[int]) -> bool:
    """The client itself is among the members."""
    return me in members


def in_cohort(members: Set[int], cohort: Set[int]) -> bool:
    """Only clients whose turn it is take part."""
    return members <= cohort


def enough_members(members: int, min_clients: int) -> bool:
    return members >= min_clients


def own_keys_counted(root: bytes, computed: bytes) -> bool:
    """The client's own keys are in the tree that orders the circle, so nobody knew the order before it sent them."""
    return root == computed


def usable_keys(own: Sequence[bytes], keys: Mapping[int, Sequence[bytes]]) -> set[int]:
    """The neighbours whose keys are their own: a key under two names is used for neither."""
    owners: dict[bytes, set[int]] = {}
    for other, both in keys.items():
        for key in both:
            owners.setdefault(key, set()).add(other)
    stolen = {other for key, several in owners.items() if key in own or len(several) > 1 for other in several}
    return {other for other, both in keys.items() if other not in stolen and len(set(both)) == len(both)}


def enough_neighbours(neighbours: int, threshold: int) -> bool:
    """So many neighbours hold shares of the client, or it of theirs, that secrets can be found again and masks hide."""
    return neighbours >= threshold


# agree: who survives


def survives(me: int, survivors: Set[int]) -> bool:
    """The client sent its vector, so its mask key must not be opened."""
    return me in survivors


def survivors_took_part(survivors: Set[int], members: Set[int]) -> bool:
    return survivors <= members


def survivors_are_held(surviving_neighbours: Set[int], held: Collection[int]) -> bool:
    """The client masked its vector with every neighbour that survives."""
    return all(other in held for other in surviving_neighbours)


def enough_survivors(survivors: int, min_clients: int) -> bool:
    return survivors >= min_clients


def enough_surviving_neighbours(surviving_neighbours: int, threshold: int) -> bool:
    return surviving_neighbours >= threshold


# unmask: what is opened


def enough_signers(signers: int, needed: int) -> bool:
    """So many are said to have signed the same graph and survivors that no other claim of a round can have as many."""
    return signers >= needed


def certified(sampled: Set[int], confirmed: Set[int]) -> bool:
    """Every sampled signer is confirmed: its signature holds for this claim and fits its tag."""
    return sampled <= confirmed


def may_open(other: int, surviving_neighbours: Set[int], proved: Set[int]) -> bool:
    """A survivor's self mask is opened only if it proved that it still hides behind the mask with this client."""
    return other not in surviving_neighbours or other in proved


def share_to_open(other: int, surviving_neighbours: Set[int]) -> Secret:
    """Of a neighbour one secret, never both: both would reveal its vector."""
    return "seed" if other in surviving_neighbours else "mask"


# draw: who is asked at all


def tries_left(attempt: int, attempts: int) -> bool:
    """Each repetition of a draw lets the server look at one more result."""
    return 0 <= attempt < attempts


def own_value_counted(root: bytes, computed: bytes) -> bool:
    """The client's own commitment is in the list, so nobody knows the result before it opens its value."""
    return root == computed


def few_missing(missing: int, allowed: int) -> bool:
    """Each set of values that is left out is one more result for the server to choose from."""
    return missing <= allowed


def values_fit(root: bytes, computed: bytes) -> bool:
    """All values are those that were committed to; with one of his own choice the server would choose the result."""
    return root == computed
