"""One of two aggregators in a round: an immutable state, and functions from a state to the next one and a message.

    accept      checks that a client's share opens and keeps it sealed; a bad one is refused, and drops its sender only
    listing     signed: whose shares are here, with the digest of what each client signed, and a commitment to a coin
    agree       signed, after the other's listing: the clients that both hold the same contribution of, and the coin
    half        signed, after the other's agreement: the sums of those clients' shares, with this aggregator's noise

A client that only one of the two has, or of which they have different contributions, is struck at both. The coins of
both give the seed of the groups; they are committed to before either list is known, and opened afterwards. A coin
follows from the secret of the round: an aggregator that is started again has the same one.

An aggregator opens one half in a round and none of an earlier round: two halves whose clients differ by one would cost
that client a second release that its ledger does not know of. `Memory` is the durable part of the state. Whoever calls
`half` must store the new memory before the message leaves; asked again for the newest round, it sends the same bytes.

Noise is drawn by the caller's function, since mechanisms stand above this package.

Differs from the paper: nothing that `two_servers` does not say.
"""

from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import ClassVar, NamedTuple, TypeAlias

import msgspec
import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from foltr.errors import SecureAggregationError, SpecError
from foltr.secagg import crypto, ring
from foltr.secagg.crypto import HidesSecrets, label
from foltr.secagg.messages import Body
from foltr.secagg.terms import from_set, to_set
from foltr.secagg.two_servers import (
    DIGEST,
    PROTOCOL,
    At,
    Bytes32,
    Half,
    Kind,
    Struct,
    TwoServers,
    Window,
    box_key,
    box_label,
    checked_part,
    context,
    groups_of,
    max_listing,
    min_clients,
    sign,
    verified,
)
from foltr.types import Array

Noise: TypeAlias = Callable[[int], Array]  # so many draws of the full noise, int64 steps of the ring


class Memory(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Memory of an aggregator, which never forgets. Stored before a half leaves."""

    federation: str
    highest: int = 0  # newest round of which a half was opened
    half: bytes = b""  # of that round
    rankers: tuple[bytes, ...] = ()  # digests of those that have a sum without noise


class Secrets(NamedTuple):
    """An aggregator's private keys in a round."""

    identity: Ed25519PrivateKey
    sealing: bytes  # X25519, of this round only

    def __repr__(self) -> str:
        return "Secrets(...)"


class Aggregating(HidesSecrets, msgspec.Struct, frozen=True, kw_only=True):
    """One aggregator in one round; what it has not reached is empty."""

    index: int  # 0 gets vectors, 1 gets seeds
    secrets: Secrets
    window: Window
    context: bytes
    coin: bytes  # secret until `agree`
    sealed: dict[int, tuple[bytes, bytes]] = {}  # by client: its ephemeral key and its share as it came
    digests: dict[int, bytes] = {}  # of what each client signed
    listing: bytes = b""  # own, signed: no share is accepted any more
    members: bytes = b""  # the clients that both have, as a set
    other_commitment: bytes = b""  # to the other's coin

    shown: ClassVar[tuple[str, ...]] = ("index", "round")

    @property
    def round(self) -> int:
        return self.window.round

    @property
    def setup(self) -> TwoServers:
        return self.window.setup


class Listing(Body, frozen=True):
    members: bytes  # as a set
    digests: bytes  # of their contributions, in the order of the registry
    commitment: Bytes32  # to the coin


class Agreement(Body, frozen=True):
    members: bytes  # as a set
    coin: Bytes32


def begin(index: int, secrets: Secrets, memory: Memory, *, window: Window) -> Aggregating:
    """An aggregator at the beginning of a round that is newer than all whose sums it opened."""
    setup = window.setup
    public = (secrets.identity.public_key().public_bytes_raw(), crypto.public_of(crypto.agreement_key(secrets.sealing)))
    if public != (setup.operators[index], window.keys[index]):
        raise SpecError(f"these are not the keys of aggregator {index} that the federation agreed on")
    if memory.federation != setup.terms.federation:
        raise SpecError(f"the memory of federation {memory.federation!r}, not of {setup.terms.federation!r}")
    require_new(memory, window.round, index)
    now = context(window)
    coin = crypto.hkdf(secrets.sealing, info=label(PROTOCOL, "coin", now, index))
    return Aggregating(index=index, secrets=secrets, window=window, context=now, coin=coin)


def accept(state: Aggregating, client: int, part: bytes) -> Aggregating:
    """With the share of one more client; one that is not valid raises and leaves the state as it is."""
    return _with(state, {client: _checked(state, client, part)})


def accept_all(state: Aggregating, contributions: Mapping[int, bytes]) -> tuple[Aggregating, dict[int, str]]:
    """With the shares of all clients whose parts are valid; of the others what is wrong with them."""
    found, refused = {}, {}
    for client, part in contributions.items():
        try:
            found[client] = _checked(state, client, part)
        except SecureAggregationError as problem:
            refused[client] = str(problem)
    return _with(state, found), refused


def _with(state: Aggregating, found: Mapping[int, tuple[bytes, bytes, bytes]]) -> Aggregating:
    return msgspec.structs.replace(
        state,
        sealed=state.sealed | {client: (ephemeral, sealed) for client, (ephemeral, sealed, _) in found.items()},
        digests=state.digests | {client: digest for client, (_, _, digest) in found.items()},
    )


def _checked(state: Aggregating, client: int, part: bytes) -> tuple[bytes, bytes, bytes]:
    """The ephemeral key, the sealed share and the digest of a part whose share can be opened."""
    if state.listing:
        raise SecureAggregationError(f"contribution of client {client}: the list of round {state.round} is closed")
    claim, digest, sealed = checked_part(
        part, client, state.index, setup=state.setup, context=state.context, round=state.round
    )
    if state.digests.get(client, digest) != digest:
        raise SecureAggregationError(f"client {client} sent two different contributions in round {state.round}")
    _opened(state, client, claim.ephemeral, sealed)
    return claim.ephemeral, sealed, digest


def _opened(state: Aggregating, client: int, ephemeral: bytes, sealed: bytes) -> bytes:
    """A share in the clear, of the length that it must have; it is kept nowhere."""
    shared = crypto.agree(crypto.agreement_key(state.secrets.sealing), ephemeral)
    key = box_key(shared, state.context, client, state.index, ephemeral, state.window.keys[state.index])
    plain, terms = crypto.decrypt(key, sealed, box_label(state.context, client)), state.setup.terms
    expected = crypto.SECRET if state.index else terms.length * terms.bits // 8
    if len(plain) != expected:
        raise SecureAggregationError(f"client {client} sealed a share of {len(plain)} bytes, expected {expected}")
    return plain


def share(state: Aggregating, client: int) -> Array:
    """A client's share, [P] of the ring: opened anew at every call."""
    plain, terms = _opened(state, client, *state.sealed[client]), state.setup.terms
    if state.index:
        return crypto.self_mask(plain, terms.length, terms.bits)
    return np.frombuffer(plain, ring.dtype(terms.bits))


def listing(state: Aggregating) -> tuple[Aggregating, bytes]:
    """Closes the round for clients. Asked again, the same list."""
    if not state.listing:
        order = [client for client in state.setup.registry.clients if client in state.digests]
        body = Listing(
            to_set(order, state.setup.registry), b"".join(state.digests[client] for client in order),
            _commitment(state.context, state.index, state.coin),
        )  # fmt: skip
        state = msgspec.structs.replace(state, listing=_send(state, "listing", body))
    return state, state.listing


def agree(state: Aggregating, other: bytes) -> tuple[Aggregating, bytes]:
    """The clients of whom both aggregators have the same contribution; too few end the round."""
    if not state.listing:
        raise SecureAggregationError("the own list must be sent before that of the other aggregator is read")
    if state.members:
        raise SecureAggregationError(f"aggregator {state.index} has agreed on the clients of round {state.round}")
    body = _receive(state, "listing", other, Listing)
    theirs = _digests(body, state.setup)
    both = [client for client, digest in state.digests.items() if theirs.get(client) == digest]
    _enough(state, len(both))
    state = msgspec.structs.replace(state, members=to_set(both, state.setup.registry), other_commitment=body.commitment)
    return state, _send(state, "agreement", Agreement(state.members, state.coin))


def half(state: Aggregating, other: bytes, memory: Memory, noise: Noise | None) -> tuple[Memory, bytes]:
    """The signed sums, and the memory that must be stored before they leave.

    `noise` is required exactly where the terms have a noise_multiplier.
    """
    require_new(memory, state.round, state.index)
    if not state.members:
        raise SecureAggregationError("there is no half before both aggregators agreed on the clients")
    if not state.setup.terms.noise_multiplier and state.window.ranker in memory.rankers:
        raise SecureAggregationError(
            f"aggregator {state.index} has opened a sum for this ranker; without noise a second one would show the "
            f"difference of the two, so round {state.round} has no sum"
        )
    body = _receive(state, "agreement", other, Agreement)
    if body.members != state.members:
        raise SecureAggregationError(
            f"the aggregators do not agree on the clients of round {state.round}; nothing is opened"
        )
    if not crypto.same(_commitment(state.context, 1 - state.index, body.coin), state.other_commitment):
        raise SecureAggregationError("the other aggregator opened another coin than it committed to")
    coins = (state.coin, body.coin) if state.index == 0 else (body.coin, state.coin)
    seed = sha256(label(state.context, "groups", state.members, *coins)).digest()
    totals = _summed(state, seed)
    totals = totals + _drawn(state, noise, totals.size).astype(totals.dtype).reshape(totals.shape)  # wraps: the ring
    message = _send(state, "half", Half(state.members, seed, totals.tobytes()))
    rankers = memory.rankers if noise is not None else (*memory.rankers, state.window.ranker)
    return Memory(memory.federation, state.round, message, rankers), message


def _summed(state: Aggregating, seed: bytes) -> Array:
    """[groups, P]"""
    sums = [
        np.sum([share(state, client) for client in group], axis=0, dtype=ring.dtype(state.setup.terms.bits))
        for group in groups_of(state.members, seed, state.setup)
    ]
    return np.stack(sums)


def _drawn(state: Aggregating, noise: Noise | None, size: int) -> Array:
    if (noise is not None) != (state.setup.terms.noise_multiplier > 0):
        raise SpecError(
            f"noise_multiplier={state.setup.terms.noise_multiplier:g}: an aggregator draws noise exactly where "
            f"the terms of the federation state some"
        )
    drawn = np.zeros(size, np.int64) if noise is None else np.asarray(noise(size))
    if drawn.shape != (size,) or drawn.dtype != np.int64:
        raise SpecError(f"noise of {drawn.shape} {drawn.dtype}; use {size} integers of 64 bits, one for each number")
    return drawn


def _digests(body: Listing, setup: TwoServers) -> dict[int, bytes]:
    places = np.flatnonzero(from_set(body.members, setup.registry)).tolist()
    if len(body.digests) != DIGEST * len(places):
        raise SecureAggregationError(f"a list of {len(places)} clients with {len(body.digests)} bytes of digests")
    each = [body.digests[k : k + DIGEST] for k in range(0, len(body.digests), DIGEST)]
    return {setup.registry.clients[place]: digest for place, digest in zip(places, each, strict=True)}


def _commitment(context: bytes, index: int, coin: bytes) -> bytes:
    return sha256(label(context, "coin", index, coin)).digest()


def require_new(memory: Memory, round: int, index: int) -> None:
    """Refuses a round that is not newer than the newest one whose half was opened."""
    if round <= memory.highest:
        raise SecureAggregationError(
            f"aggregator {index} has opened its half of round {memory.highest}; a sum of round {round} is refused"
        )


def _enough(state: Aggregating, found: int) -> None:
    wanted = min_clients(state.setup)
    if found < wanted:
        raise SecureAggregationError(
            f"both aggregators have the contributions of {found} clients, at least {wanted} are needed; no sum"
        )


def _send(state: Aggregating, kind: Kind, body: Body) -> bytes:
    return sign(state.secrets.identity, At(state.context, state.round, kind, state.index), body)


def _receive(state: Aggregating, kind: Kind, data: bytes, body: type[Struct]) -> Struct:
    other = 1 - state.index
    signer, limit = state.setup.operators[other], max_listing(state.setup)
    return verified(data, At(state.context, state.round, kind, other), signer, body, limit=limit)
