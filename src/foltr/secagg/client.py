"""The client's side of a round: `join` returns an immutable state, `answer` the next state and a reply.

Sources: Bonawitz et al. 2017, figure 4; Bell et al. 2020. A client sends

    y = x + PRG(seed) + sum over neighbours of +-PRG(agreement of the two mask keys)      modulo 2^bits

and gives each neighbour a share of `seed` and of its mask key. It trusts no request: `rules` has its decisions. Who may
be a member, how many must be, the neighbours and the threshold follow from the registry, the terms and a hash of all
keys of the round. It opens one kind of share of each neighbour, after it has seen that more than half of the honest
clients signed the same graph and survivors (`certificate`). A neighbour whose key or share is unusable counts as
absent, and the signed reply says so: an empty entry where the server had sent one. `federation.participant` stores
states; nothing else may answer a stage twice.

Differs from the paper: the request to open names no shares; which kind is opened follows from the signed set alone. A
client opens the self mask of a neighbour only if that proves that it masked with the client: otherwise a server could
tell the neighbour that those who will open it are absent, and leave it with hardly any mask. A client signs no set with
a neighbour in it that it did not mask with. Shares follow from the client's secrets and the graph.
"""

from collections.abc import Callable, Set
from contextlib import suppress
from typing import Any, ClassVar

import msgspec
import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from foltr.errors import SecureAggregationError, SpecError
from foltr.secagg import claims, crypto, graph, messages, ring, rules, shamir
from foltr.secagg.claims import Claim
from foltr.secagg.crypto import HidesSecrets
from foltr.secagg.guarantee import Guarantee
from foltr.secagg.messages import REQUESTS, STAGES, Address, Direction, Stage
from foltr.secagg.terms import (
    Drawn,
    Registry,
    Terms,
    cohort_of,
    context,
    from_set,
    guaranteed,
    most_bytes,
    require_registered,
    set_of,
    shape_of,
)
from foltr.types import Array


class Client(HidesSecrets, msgspec.Struct, frozen=True, kw_only=True):
    """One client in one round; what a stage has not reached is empty."""

    id: int
    identity: Ed25519PrivateKey
    terms: Terms
    registry: Registry
    round: int
    context: bytes
    sizes: Guarantee  # derived from the registry
    cohort: frozenset[int]  # whose turn it is
    most_bytes: int  # of a request
    vector: Array  # [P] of the ring
    done: int = 0  # stages answered
    channel: bytes = b""  # secret
    mask: bytes = b""  # secret
    seed: bytes = b""  # secret
    advert: bytes = b""  # own signed keys
    threshold: int = 0
    members: bytes = b""  # who takes part, as a set
    neighbours: tuple[int, ...] = ()
    mask_keys: dict[int, bytes] = {}  # of neighbours
    shared: dict[int, bytes] = {}  # secrets of the channels
    held: dict[int, bytes] = {}  # both shares of each neighbour that takes part
    view: bytes = b""  # the graph as the server described it
    survivors: bytes = b""  # the set that was signed

    shown: ClassVar[tuple[str, ...]] = ("id", "round", "done")


def join(
    id: int, identity: Ed25519PrivateKey, vector: Array, *, terms: Terms, registry: Registry, round: int, ranker: bytes,
    drawn: Drawn | None = None,
) -> Client:  # fmt: skip
    """A client at the beginning of a round; `vector` comes from `privacy.release`, `ranker` is the SHA-256 digest of
    the ranker that the update is relative to. `drawn`: by the client itself, where cohorts are drawn by lot."""
    if vector.shape != (terms.length,) or vector.dtype != ring.dtype(terms.bits):
        raise SpecError(f"a vector of {vector.shape} {vector.dtype}; use {terms.length} values of {terms.bits} bits")
    require_registered(id, identity, registry)
    sizes = guaranteed(terms, registry)
    if id not in (cohort := cohort_of(terms, registry, round, drawn)):
        raise SpecError(f"it is not the turn of client {id} in round {round}; join the next one")
    return Client(
        id=id,
        identity=identity,
        terms=terms,
        registry=registry,
        round=round,
        context=context(terms, registry, round, ranker, drawn.seed if drawn else b""),
        sizes=sizes,
        cohort=cohort,
        most_bytes=most_bytes(terms, sizes, len(registry.clients)),
        vector=vector,
    )


def answer(state: Client, request: bytes) -> tuple[Client, bytes]:
    """The state after a request, and the reply; a request that may not be answered raises."""
    if state.done == len(STAGES):
        raise SecureAggregationError(
            f"client {state.id} has answered every stage of round {state.round}; begin another"
        )
    stage = STAGES[state.done]
    if len(request) > state.most_bytes:
        raise SecureAggregationError(
            f"client {state.id}: a request of {len(request)} bytes; {state.most_bytes} at most"
        )
    body = messages.receive(request, _address(state, "request", stage), state.registry.server, REQUESTS[stage])
    state, reply = _HANDLERS[stage](state, body)
    sent = messages.send(state.identity, _address(state, "reply", stage), reply)
    changes: dict[str, Any] = {"advert": sent} if stage == "advertise" else {}
    return msgspec.structs.replace(state, done=state.done + 1, **changes), sent


def _address(state: Client, direction: Direction, stage: Stage, client: int | None = None) -> Address:
    return Address(state.context, state.round, direction, stage, state.id if client is None else client)


def _require(state: Client, holds: bool, what: str) -> None:
    if not holds:
        raise SecureAggregationError(f"client {state.id}: {what}; nothing is sent")


# --- advertise, share -----------------------------------------------------------------------------------------------


def _advertise(state: Client, _: messages.Start) -> tuple[Client, messages.Keys]:
    state = msgspec.structs.replace(
        state, channel=crypto.new_secret(), mask=crypto.new_secret(), seed=crypto.new_secret()
    )
    return state, _own_keys(state)


def _own_keys(state: Client) -> messages.Keys:
    return messages.Keys(*(crypto.public_of(crypto.agreement_key(secret)) for secret in (state.channel, state.mask)))


def _share(state: Client, body: messages.Neighbourhood) -> tuple[Client, messages.Shares]:
    threshold, neighbours = _neighbours(state, body)
    _as_many(state, len(body.keys), len(neighbours), "keys")
    keys = _usable(state, dict(zip(neighbours, body.keys, strict=True)))
    shared = _agreements(state, keys)
    _require(
        state,
        rules.enough_neighbours(len(shared), threshold),
        f"{len(shared)} neighbours have usable keys, at least {threshold} are needed",
    )
    state = msgspec.structs.replace(
        state,
        threshold=threshold,
        members=body.members,
        view=messages.view(body.members, body.root),
        neighbours=neighbours,
        mask_keys={other: keys[other].mask for other in shared},
        shared=shared,
    )
    return state, _sealed_shares(state)


def _neighbours(state: Client, body: messages.Neighbourhood) -> tuple[int, tuple[int, ...]]:
    """The threshold and the neighbours, computed and not taken from the request."""
    known, sizes = state.registry, state.sizes
    places = np.flatnonzero(from_set(body.members, known))  # [members] in the registry
    members = set_of(body.members, known)
    _require(state, rules.takes_part(state.id, members), "it is asked for shares but is not among those who take part")
    _require(state, rules.in_cohort(members, state.cohort), "clients take part whose turn it is not")
    enough = rules.enough_members(len(members), sizes.min_clients)
    _require(state, enough, f"{len(members)} clients take part, at least {sizes.min_clients} are needed")
    place = int(np.searchsorted(places, known.places[state.id]))
    root = graph.merkle_root(graph.merkle_leaf(state.advert), place, len(places), body.path)
    _require(state, rules.own_keys_counted(body.root, root), "its keys are not among those that order the circle")
    shape = shape_of(state.terms, sizes, len(places))
    around = graph.neighbours(messages.view(body.members, body.root), len(places), shape.degree, place)
    return shape.threshold, tuple(known.clients[places[other]] for other in around)


def _usable(state: Client, signed: dict[int, bytes]) -> dict[int, messages.Keys]:
    """The keys that are signed by their neighbour and belong to nobody else; the others count as absent."""
    found: dict[int, messages.Keys] = {}
    for other, one in signed.items():
        address = _address(state, "reply", "advertise", other)
        keys = messages.keys_of(one, address, state.registry.keys[other])
        if keys is not None:
            found[other] = keys
    own = msgspec.structs.astuple(_own_keys(state))
    usable = rules.usable_keys(own, {other: msgspec.structs.astuple(key) for other, key in found.items()})
    return {other: key for other, key in found.items() if other in usable}


def _agreements(state: Client, keys: dict[int, messages.Keys]) -> dict[int, bytes]:
    """The secrets of the channels; a key that agrees with everybody is not used."""
    private, found = crypto.agreement_key(state.channel), {}
    for other, key in keys.items():
        if crypto.usable(key.mask):
            with suppress(SecureAggregationError):
                found[other] = crypto.extract(crypto.agree(private, key.channel))
    return found


def _sealed_shares(state: Client) -> messages.Shares:
    """The polynomials follow from the client's secrets and the graph, and so do the sealing keys: whoever answers
    twice seals the same shares under the same keys, or other shares under other keys."""
    num_shares, drawn = len(state.neighbours), crypto.hkdf(state.channel, info=state.context + state.view)
    of_mask = shamir.share(state.mask, state.threshold, num_shares, crypto.stream(drawn, b"mask"))
    of_seed = shamir.share(state.seed, state.threshold, num_shares, crypto.stream(drawn, b"seed"))
    sealed, commitments = [], []
    for other, mask, seed in zip(state.neighbours, of_mask, of_seed, strict=True):
        if other in state.shared:
            key = crypto.derive(state.shared[other], state.view, state.id, other, "shares")
            sealed.append(crypto.encrypt(key, mask + seed, state.context))
        else:
            sealed.append(b"")  # tells the server, signed, that this neighbour's keys cannot be used
        commitments.append(
            crypto.commitment(state.context, state.id, other, "mask", mask)
            + crypto.commitment(state.context, state.id, other, "seed", seed)
        )
    return messages.Shares(sealed, crypto.seed_commitment(state.context, state.id, state.seed), commitments)


# --- mask -------------------------------------------------------------------------------------------------------------


def _mask(state: Client, body: messages.Deliveries) -> tuple[Client, messages.Masked]:
    _as_many(state, len(body.sealed), len(state.neighbours), "sealed shares")
    held = {}
    for other, sealed in zip(state.neighbours, body.sealed, strict=True):
        opened = _open_shares(state, other, sealed) if sealed and other in state.shared else None
        if opened is not None:
            held[other] = opened
    enough = rules.enough_neighbours(len(held), state.threshold)
    _require(state, enough, f"{len(held)} neighbours take part, at least {state.threshold} are needed")
    keys = {other: state.mask_keys[other] for other in held}
    terms = state.terms
    masked = state.vector + crypto.self_mask(state.seed, terms.length, terms.bits)
    masked += crypto.pairwise_mask(
        state.mask, state.id, keys, length=terms.length, bits=terms.bits, context=state.context
    )
    proofs = [_proof(state, state.id, other) if other in held else b"" for other in state.neighbours]
    return msgspec.structs.replace(state, held=held), messages.Masked(masked.tobytes(), proofs)


def _open_shares(state: Client, other: int, sealed: bytes) -> bytes | None:
    """Both shares of a neighbour; None where they do not open, and the neighbour counts as absent."""
    key = crypto.derive(state.shared[other], state.view, other, state.id, "shares")
    try:
        both = crypto.decrypt(key, sealed, state.context)
    except SecureAggregationError:
        return None
    return both if len(both) == 2 * shamir.SHARE else None


def _proof(state: Client, sender: int, receiver: int) -> bytes:
    other = sender if receiver == state.id else receiver
    return crypto.proof(state.shared[other], state.context, sender, receiver)


# --- agree, unmask ----------------------------------------------------------------------------------------------------


def _agree(state: Client, body: messages.Survivors) -> tuple[Client, messages.Agreement]:
    survivors, members = set_of(body.members, state.registry), set_of(state.members, state.registry)
    around = survivors.intersection(state.neighbours)
    least, threshold = state.sizes.min_clients, state.threshold
    _require(state, rules.survives(state.id, survivors), "it sent its vector but is not among the survivors")
    shared = rules.survivors_took_part(survivors, members) and rules.survivors_are_held(around, state.held)
    _require(state, shared, "among the survivors are clients that shared nothing with it")
    enough = rules.enough_survivors(len(survivors), least)
    _require(state, enough, f"{len(survivors)} clients survive, at least {least} are needed")
    enough = rules.enough_surviving_neighbours(len(around), threshold)
    _require(state, enough, f"{len(around)} neighbours survive, at least {threshold} are needed")
    return msgspec.structs.replace(state, survivors=body.members), messages.agreement(state.view, body.members)


def _unmask(state: Client, body: messages.Opening) -> tuple[Client, messages.Revealed]:
    _as_many(state, len(body.proofs), len(state.neighbours), "proofs")
    _check_certificate(state, body.certificate)
    around = set_of(state.survivors, state.registry).intersection(state.neighbours)
    proofs = dict(zip(state.neighbours, body.proofs, strict=True))
    proved = {other for other in around if crypto.same(proofs[other], _proof(state, other, state.id))}
    return state, messages.Revealed([_revealed(state, other, around, proved) for other in state.neighbours])


def _check_certificate(state: Client, shown: messages.Certificate) -> None:
    """More than half of the honest clients saw the same graph and the same survivors."""
    digest = messages.agreement(state.view, state.survivors).digest
    claim = Claim(
        "the same survivors", digest, state.context, state.round, "agree", state.registry, state.cohort, state.sizes,
        state.terms.failure,
    )  # fmt: skip
    problem = claims.refusal(claim, shown)
    _require(state, not problem, problem)


def _revealed(state: Client, other: int, around: Set[int], proved: Set[int]) -> bytes:
    """The share of a neighbour that may be opened, if there is one."""
    if other not in state.held or not rules.may_open(other, around, proved):
        return b""
    mask, seed = state.held[other][: shamir.SHARE], state.held[other][shamir.SHARE :]
    return seed if rules.share_to_open(other, around) == "seed" else mask


def _as_many(state: Client, found: int, expected: int, what: str) -> None:
    if found != expected:
        raise SecureAggregationError(f"client {state.id} was sent {found} {what}, expected {expected}")


_HANDLERS: dict[Stage, Callable[[Client, Any], tuple[Client, messages.Body]]] = {
    "advertise": _advertise,
    "share": _share,
    "mask": _mask,
    "agree": _agree,
    "unmask": _unmask,
}
