"""The client's side of a round: `join` returns an immutable state, `answer` the next state and a reply.

Sources: Bonawitz et al. 2017, figure 4; Bell et al. 2020. A client sends

    y = x + PRG(seed) + sum over neighbours of +-PRG(agreement of the two mask keys)      modulo 2^bits

and gives each neighbour a share of `seed` and of its mask key. It trusts no request: it refuses one of another round,
one out of order or repeated, keys that are not signed by those whom the graph makes its neighbours, a key under two
names, too few neighbours or survivors, and it opens one kind of share of each neighbour only, after a threshold of
neighbours has signed the same set of survivors. Whoever stores a state must replace it before the reply leaves.

Differs from the paper: the request to open names no shares; which kind is opened follows from the signed set alone. A
client opens the self mask of a neighbour only if that proves that it masked with the client: otherwise a server could
tell the neighbour that those who will open it are absent, and leave it with hardly any mask.

These checks are not a proof: the protocol is claimed against an honest-but-curious server only.
"""

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from foltr.errors import SecureAggregationError, SpecError
from foltr.secagg import crypto, graph, messages, ring, shamir
from foltr.secagg.guarantee import Guarantee
from foltr.secagg.messages import (
    REQUESTS,
    STAGES,
    Address,
    Direction,
    Registry,
    Stage,
    Terms,
    context,
    from_set,
    guaranteed,
    shape_of,
)
from foltr.types import Array


class Client(msgspec.Struct, frozen=True, kw_only=True):
    """One client in one round; what a stage has not reached is empty."""

    id: int
    identity: Ed25519PrivateKey
    terms: Terms
    registry: Registry
    round: int
    context: bytes
    sizes: Guarantee  # derived from the registry
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

    def __repr__(self) -> str:
        return f"Client(id={self.id}, round={self.round}, done={self.done})"  # no secret reaches a log


def join(
    id: int, identity: Ed25519PrivateKey, vector: Array, *, terms: Terms, registry: Registry, round: int, ranker: bytes
) -> Client:
    """A client at the beginning of a round; `vector` comes from `privacy.release`, `ranker` is the SHA-256 digest of
    the ranker that the update is relative to."""
    if vector.shape != (terms.length,) or vector.dtype != ring.dtype(terms.bits):
        raise SpecError(f"a vector of {vector.shape} {vector.dtype}; use {terms.length} values of {terms.bits} bits")
    if registry.keys.get(id) != identity.public_key().public_bytes_raw():
        raise SpecError(f"client {id} is not in the registry with this identity; register its public key first")
    return Client(
        id=id,
        identity=identity,
        terms=terms,
        registry=registry,
        round=round,
        context=context(terms, registry, round, ranker),
        sizes=guaranteed(terms, registry),
        vector=vector,
    )


def answer(state: Client, request: bytes) -> tuple[Client, bytes]:
    """The state after a request, and the reply; a request that may not be answered raises."""
    if state.done == len(STAGES):
        raise SecureAggregationError(
            f"client {state.id} has answered every stage of round {state.round}; begin another"
        )
    stage = STAGES[state.done]
    body = messages.receive(request, _address(state, "request", stage), state.registry.server, REQUESTS[stage])
    state, reply = _HANDLERS[stage](state, body)
    sent = messages.send(state.identity, _address(state, "reply", stage), reply)
    changes: dict[str, Any] = {"advert": sent} if stage == "advertise" else {}
    return msgspec.structs.replace(state, done=state.done + 1, **changes), sent


def _address(state: Client, direction: Direction, stage: Stage, client: int | None = None) -> Address:
    return Address(state.context, state.round, direction, stage, state.id if client is None else client)


def _advertise(state: Client, _: messages.Start) -> tuple[Client, messages.Keys]:
    state = msgspec.structs.replace(
        state, channel=crypto.new_secret(), mask=crypto.new_secret(), seed=crypto.new_secret()
    )
    return state, _own_keys(state)


def _own_keys(state: Client) -> messages.Keys:
    return messages.Keys(*(crypto.public_of(crypto.agreement_key(secret)) for secret in (state.channel, state.mask)))


def _share(state: Client, body: messages.Neighbourhood) -> tuple[Client, messages.Shares]:
    threshold, neighbours = _neighbours(state, body)
    keys = _neighbours_keys(state, neighbours, body.keys)
    private = crypto.agreement_key(state.channel)
    state = msgspec.structs.replace(
        state,
        threshold=threshold,
        members=body.members,
        view=messages.view(body.members, body.root),
        neighbours=neighbours,
        mask_keys={other: key.mask for other, key in keys.items()},
        shared={other: crypto.agree(private, key.channel) for other, key in keys.items()},
    )
    return state, _sealed_shares(state)


def _neighbours(state: Client, body: messages.Neighbourhood) -> tuple[int, tuple[int, ...]]:
    """The threshold and the neighbours, computed and not taken from the request."""
    known = state.registry
    flags = from_set(body.members, known)
    members = np.flatnonzero(flags)  # [clients] places in the registry
    _at_least(state, len(members), state.sizes.min_clients, "clients take part")
    if not flags[known.places[state.id]]:
        raise SecureAggregationError(f"client {state.id} is asked for shares but is not among those who take part")
    place = int(np.searchsorted(members, known.places[state.id]))
    if graph.merkle_root(graph.merkle_leaf(state.advert), place, len(members), body.path) != body.root:
        raise SecureAggregationError(f"the keys of client {state.id} are not among those that order the circle")
    shape = shape_of(state.terms, state.sizes, len(members))
    around = graph.neighbours(messages.view(body.members, body.root), len(members), shape.degree, place)
    return shape.threshold, tuple(known.clients[members[other]] for other in around)


def _neighbours_keys(state: Client, neighbours: tuple[int, ...], adverts: list[bytes]) -> dict[int, messages.Keys]:
    """Every key is signed by its neighbour and belongs to nobody else."""
    if len(adverts) != len(neighbours):
        raise SecureAggregationError(f"client {state.id} was sent {len(adverts)} keys, expected {len(neighbours)}")
    found: dict[int, messages.Keys] = {}
    seen = set(msgspec.structs.astuple(_own_keys(state)))
    for other, advert in zip(neighbours, adverts, strict=True):
        address = _address(state, "reply", "advertise", other)
        found[other] = messages.receive(advert, address, state.registry.keys[other], messages.Keys)
        for key in msgspec.structs.astuple(found[other]):
            if key in seen:
                raise SecureAggregationError(f"client {state.id} sees a key of client {other} a second time")
            seen.add(key)
    return found


def _sealed_shares(state: Client) -> messages.Shares:
    num_shares = len(state.neighbours)
    of_mask = shamir.share(state.mask, state.threshold, num_shares)
    of_seed = shamir.share(state.seed, state.threshold, num_shares)
    sealed, commitments = [], []
    for other, mask, seed in zip(state.neighbours, of_mask, of_seed, strict=True):
        key = crypto.derive(state.shared[other], state.context, state.id, other, "shares")
        sealed.append(crypto.encrypt(key, mask + seed, state.context))
        commitments.append(
            crypto.commitment(state.context, state.id, other, "mask", mask)
            + crypto.commitment(state.context, state.id, other, "seed", seed)
        )
    return messages.Shares(sealed, crypto.seed_commitment(state.context, state.id, state.seed), commitments)


def _mask(state: Client, body: messages.Deliveries) -> tuple[Client, messages.Masked]:
    _as_many(state, len(body.sealed), "sealed shares")
    sent = zip(state.neighbours, body.sealed, strict=True)
    held = {other: _open_shares(state, other, sealed) for other, sealed in sent if sealed}
    _at_least(state, len(held), state.threshold, "neighbours take part")
    keys = {other: state.mask_keys[other] for other in held}
    terms = state.terms
    masked = state.vector + crypto.self_mask(state.seed, terms.length, terms.bits)
    masked += crypto.pairwise_mask(
        state.mask, state.id, keys, length=terms.length, bits=terms.bits, context=state.context
    )
    proofs = [_proof(state, state.id, other) if other in held else b"" for other in state.neighbours]
    return msgspec.structs.replace(state, held=held), messages.Masked(masked.tobytes(), proofs)


def _proof(state: Client, sender: int, receiver: int) -> bytes:
    other = sender if receiver == state.id else receiver
    return crypto.proof(state.shared[other], state.context, sender, receiver)


def _open_shares(state: Client, other: int, sealed: bytes) -> bytes:
    key = crypto.derive(state.shared[other], state.context, other, state.id, "shares")
    try:
        both = crypto.decrypt(key, sealed, state.context)
    except SecureAggregationError as problem:
        raise SecureAggregationError(f"client {state.id}, shares from client {other}: {problem}") from None
    if len(both) != 2 * shamir.SHARE:
        raise SecureAggregationError(f"client {state.id}: client {other} sealed {len(both)} bytes, not two shares")
    return both


def _agree(state: Client, body: messages.Survivors) -> tuple[Client, messages.Agreement]:
    survivors = from_set(body.members, state.registry)
    around = _surviving(state, body.members)
    if not survivors[state.registry.places[state.id]]:
        raise SecureAggregationError(f"client {state.id} sent its vector but is not among the survivors")
    if (survivors & ~from_set(state.members, state.registry)).any() or not around <= state.held.keys():
        raise SecureAggregationError(f"client {state.id}: among the survivors are clients that shared nothing")
    _at_least(state, int(survivors.sum()), state.sizes.min_clients, "clients survive")
    _at_least(state, len(around), state.threshold, "neighbours survive")
    return msgspec.structs.replace(state, survivors=body.members), messages.agreement(state.view, body.members)


def _surviving(state: Client, members: bytes) -> set[int]:
    """The client's neighbours in a set."""
    flags, places = from_set(members, state.registry), state.registry.places
    return {other for other in state.neighbours if flags[places[other]]}


def _unmask(state: Client, body: messages.Agreements) -> tuple[Client, messages.Revealed]:
    _check_signatures(state, body.signatures)
    around = _surviving(state, state.survivors)
    _check_proofs(state, body.proofs, around)
    return state, messages.Revealed([_revealed(state, other, other in around) for other in state.neighbours])


def _check_signatures(state: Client, signatures: list[bytes]) -> None:
    """A threshold of neighbours saw the same graph and the same survivors."""
    _as_many(state, len(signatures), "signatures")
    expected, signed = messages.agreement(state.view, state.survivors), 0
    for other, signature in zip(state.neighbours, signatures, strict=True):
        if signature:
            address = _address(state, "reply", "agree", other)
            if not messages.vouches(signature, address, state.registry.keys[other], expected):
                raise SecureAggregationError(f"client {other} did not sign the survivors that client {state.id} signed")
            signed += 1
    _at_least(state, signed, state.threshold, "neighbours signed the survivors")


def _check_proofs(state: Client, proofs: list[bytes], around: set[int]) -> None:
    """Each neighbour whose self mask is to be opened still hides behind the mask it has with this client."""
    _as_many(state, len(proofs), "proofs")
    for other, proof in zip(state.neighbours, proofs, strict=True):
        if other in around and not crypto.same(proof, _proof(state, other, state.id)):
            raise SecureAggregationError(
                f"client {other} did not prove that it masked its vector with client {state.id}"
            )


def _revealed(state: Client, other: int, survived: bool) -> bytes:
    """One of a neighbour's two shares, never both: both would reveal its vector."""
    both = state.held.get(other, b"")
    return both[shamir.SHARE :] if survived else both[: shamir.SHARE]


def _as_many(state: Client, found: int, what: str) -> None:
    if found != len(state.neighbours):
        raise SecureAggregationError(
            f"client {state.id} was sent {found} {what}, expected {len(state.neighbours)}: one for each neighbour"
        )


def _at_least(state: Client, found: int, wanted: int, what: str) -> None:
    if found < wanted:
        raise SecureAggregationError(
            f"client {state.id}: {found} {what}, at least {wanted} are needed; nothing is sent"
        )


_HANDLERS: dict[Stage, Callable[[Client, Any], tuple[Client, messages.Body]]] = {
    "advertise": _advertise,
    "share": _share,
    "mask": _mask,
    "agree": _agree,
    "unmask": _unmask,
}
