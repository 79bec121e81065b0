"""The decisions of an honest client in the model: the functions of `foltr.secagg.rules`, on what the client knows.

Sets are bits of client numbers. What a client derives by cryptography is formal here:

    context(ranker)         what keys and signatures are bound to; different contexts do not understand each other
    claim(...)              what a signature at `agree` covers
    sealing(...)            what the key of a sealed share is bound to, besides the two clients and their keys

Results are remembered: a mutant clears them (`forget`). The rules are looked up at each call, so that a mutant which
replaces one in `foltr.secagg.rules` changes the model and the real client alike.
"""

from functools import cache

from foltr.secagg import rules
from foltr.secagg.certificate import samples
from foltr.secagg.guarantee import Guarantee

STAGES = {"advertise": 0, "share": 1, "mask": 2, "agree": 3, "unmask": 4}


def members_of(bits: int) -> frozenset[int]:
    return frozenset(place for place in range(bits.bit_length()) if bits >> place & 1)


def answers_again(stage: str) -> bool:
    """Whether a client that is restored to before a stage answers it a second time."""
    return in_order(STAGES[stage], STAGES[stage] + 1)


def in_order(stage: int, answered: int) -> bool:
    """No stage is answered twice: kept by `client.answer` for a state, and by `federation.participant` for a node."""
    return stage == answered


@cache
def shares(client: int, members: int, everybody: int, min_clients: int) -> bool:
    named = members_of(members)
    return (
        rules.takes_part(client, named)
        and rules.in_cohort(named, members_of(everybody))
        and rules.enough_members(len(named), min_clients)
    )


@cache
def masks(held: int, threshold: int) -> bool:
    return rules.enough_neighbours(held.bit_count(), threshold)


@cache
def agrees(
    client: int, members: int, neighbours: int, held: int, survivors: int, sizes: Guarantee, threshold: int
) -> bool:
    named, around = members_of(survivors), members_of(survivors & neighbours)
    return (
        rules.survives(client, named)
        and rules.survivors_took_part(named, members_of(members))
        and rules.survivors_are_held(around, members_of(held))
        and rules.enough_survivors(len(named), sizes.min_clients)
        and rules.enough_surviving_neighbours(len(around), threshold)
    )


@cache
def unmasks(signed: int, everybody: int, needed: int) -> bool:
    """The server may name those who signed or anybody else as signers; the sample is the best for it, `needed` clients
    of whom as many as possible signed."""
    for named in (signed, everybody):
        sampled = sorted(members_of(named), key=lambda client: not signed >> client & 1)[:needed]
        if rules.enough_signers(named.bit_count(), needed) and rules.certified(set(sampled), members_of(signed)):
            return True
    return False


@cache
def opened(around: int, held: int, proved: int) -> tuple[int, int]:
    """Of whom the self mask and of whom the mask key is opened, as bits."""
    survivors, seeds, keys = members_of(around), 0, 0
    for other in members_of(held):
        if rules.may_open(other, survivors, members_of(proved & around)):
            kinds = rules.share_to_open(other, survivors)
            seeds |= ("seed" in kinds) << other
            keys |= ("mask" in kinds) << other
    return seeds, keys


def context(ranker: int) -> int:
    return ranker


def claim(context: int, members: int, root: int, survivors: int) -> tuple[int, ...]:
    return (context, members, root, survivors)


def sealing(context: int, members: int, root: int) -> tuple[int, ...]:
    return (context, members, root)


def forget() -> None:
    for remembered in (shares, masks, agrees, unmasks, opened, samples):
        remembered.cache_clear()
