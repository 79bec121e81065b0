"""From signed halves to the shared ranker: the server's step, which every node of two operators computes for itself.

A version is published with the halves of the sums behind it. Both operators signed them, for one round and one ranker,
so nobody can put another ranker in its place: a node adds up the halves, takes the step and refuses any other result.

    Step with sums      parameters + server_learning_rate x (sum of the means of these rounds)
    Step back           the parameters of an earlier version, under a higher number, with a reason that is signed

A coordinator can leave out a sum, as it can let a round fail. Nodes that were shown different versions are in no common
sum, because the digest of the ranker is in every signature of a round. A sum that honest clients cannot have made is
refused.
"""

from collections.abc import Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import Annotated

import msgspec
import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from foltr.errors import SecureAggregationError
from foltr.federation.announcement import Ranker
from foltr.federation.two_servers import ring_of
from foltr.secagg import crypto, ring
from foltr.secagg.crypto import label
from foltr.secagg.terms import Registry, Terms
from foltr.secagg.two_servers import Bytes32, GroupSums, Pair, TwoServers, Window, combine
from foltr.types import Array

PROTOCOL = "foltr-step"
VERSION = 1
MOST_STEPS = 366  # in one message: a year of daily rounds
MOST_BACK = 10  # versions that a node keeps to go back to
_MOST_SUMS = 14  # in one step: rounds that waited for an operator
_LONGEST_REASON = 200  # characters
_OVERHEAD = 1024  # bytes of a sum beside its vectors and sets
EMPTY: Mapping[int, Registry] = MappingProxyType({})
Reason = Annotated[str, msgspec.Meta(max_length=_LONGEST_REASON)]


class SignedSum(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The sum of one round, as both operators signed it."""

    round: int
    ranker: Bytes32  # digest of the ranker that the round began with
    keys: tuple[Bytes32, Bytes32]
    halves: Pair
    registry: int = 0  # number of the registry of the round; 0: the federation has one only


class Step(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    version: int  # after the step
    sums: tuple[SignedSum, ...] = ()
    back_to: int = -1  # version whose parameters return; then there are no sums
    reason: Reason = ""
    signature: bytes = b""  # of the coordinator, under a step back


class SharedRanker(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The shared ranker as a node computed it."""

    version: int
    round: int  # newest round whose sum is in it
    values: bytes  # [P] float64, little-endian
    earlier: tuple[tuple[int, bytes], ...] = ()  # versions and values before it, oldest first
    reason: str = ""  # of the newest step back
    resumed: int = 0  # the person lets the node go on after this round


def first_shared(start: Ranker, since: int) -> SharedRanker:
    """The ranker that a node was invited with."""
    return SharedRanker(start.version, since, start.values)


def mean_of(sums: GroupSums, setup: TwoServers) -> tuple[Array, list[int]]:
    """[P] the mean of a round, and the clients in it; a sum that honest clients cannot have made is refused."""
    if sums.beyond.any():
        raise SecureAggregationError("a sum that honest nodes cannot have sent is not applied")
    included = sorted(client for group in sums.members for client in group)
    return ring.decode(sums.totals.sum(axis=0, dtype=sums.totals.dtype), ring_of(setup)) / len(included), included


def delta_of(
    signed: tuple[SignedSum, ...], setup: TwoServers, registries: Mapping[int, Registry] = EMPTY
) -> tuple[Array, list[int]]:
    """[P] what the server steps by, and the clients behind it. `registries`: of the sums, by number, where the
    federation has had several."""
    delta, included = np.zeros(setup.terms.length), set[int]()
    for total in signed:
        then = setup._replace(registry=registries.get(total.registry, setup.registry))
        mean, clients = mean_of(combine(total.halves, window=Window(then, total.round, total.ranker, total.keys)), then)
        delta, included = delta + mean, included | set(clients)
    return delta, sorted(included)


def step_back(identity: Ed25519PrivateKey, *, federation: str, version: int, back_to: int, reason: str) -> Step:
    """A new version with the parameters of an earlier one."""
    return Step(version, (), back_to, reason, identity.sign(_signed(federation, version, back_to, reason)))


def advanced(
    shared: SharedRanker, steps: tuple[Step, ...], *, setup: TwoServers, server_learning_rate: float,
    registries: Mapping[int, Registry] = EMPTY,
) -> SharedRanker:  # fmt: skip
    """The shared ranker after these steps; those that a node has taken are left out."""
    for step in steps:
        if step.version > shared.version:
            back = step.back_to >= 0
            shared = (
                _back(shared, step, setup) if back else _forth(shared, step, setup, server_learning_rate, registries)
            )
    return shared


def _forth(
    shared: SharedRanker, step: Step, setup: TwoServers, server_learning_rate: float,
    registries: Mapping[int, Registry],
) -> SharedRanker:  # fmt: skip
    rounds = [one.round for one in step.sums]
    rising = all(earlier < later for earlier, later in pairwise([shared.round, *rounds]))
    if not 1 <= len(rounds) <= _MOST_SUMS or not rising:
        raise SecureAggregationError(
            f"version {step.version} has the sums of rounds {rounds} after round {shared.round}; each counts once"
        )
    delta, _ = delta_of(step.sums, setup, registries)
    values = np.frombuffer(shared.values, "<f8") + server_learning_rate * delta
    return _with(shared, step.version, values.astype("<f8").tobytes(), round=rounds[-1])


def _back(shared: SharedRanker, step: Step, setup: TwoServers) -> SharedRanker:
    signed = _signed(setup.terms.federation, step.version, step.back_to, step.reason)
    if step.sums or not crypto.signed_by(setup.registry.server, step.signature, signed):
        raise SecureAggregationError(f"version {step.version}: the coordinator did not sign this step back")
    if not step.reason.strip() or not step.reason.isprintable():
        raise SecureAggregationError(f"version {step.version}: a step back needs a reason in one line of text")
    values = [values for version, values in shared.earlier if version <= step.back_to]
    if not values:
        raise SecureAggregationError(
            f"version {step.version} goes back to version {step.back_to}; this node goes back {MOST_BACK} at most"
        )
    return _with(shared, step.version, values[-1], reason=step.reason)


def _with(shared: SharedRanker, version: int, values: bytes, **changes: int | str) -> SharedRanker:
    earlier = (*shared.earlier, (shared.version, shared.values))[-MOST_BACK:]
    return msgspec.structs.replace(shared, version=version, values=values, earlier=earlier, **changes)


def max_steps_bytes(terms: Terms, registry: Registry) -> int:
    """Bytes of the longest list of steps that is decoded."""
    half = terms.length * terms.bits // 8 + len(registry.clients) // 8
    return MOST_STEPS * (2 * half + _OVERHEAD)


def _signed(federation: str, version: int, back_to: int, reason: str) -> bytes:
    return label(PROTOCOL, VERSION, federation, version, back_to, reason)
