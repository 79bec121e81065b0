"""What the tests of draws share: entrants, an in-memory draw, and requests that a lying server signs."""

from small_rounds import RANKER

from foltr.errors import SecureAggregationError
from foltr.secagg import claims
from foltr.secagg.lot import draw
from foltr.secagg.lot.draw_server import draw_cohort
from foltr.secagg.messages import Address, draw_stage, send, signature_of
from foltr.secagg.terms import to_set

STAGES = ("commit", "close", "reveal", "settle")


def entrants(fed, round=1):
    known = {"terms": fed.terms, "registry": fed.registry, "round": round, "ranker": RANKER}
    return {name: draw.enter(name, identity, **known) for name, identity in fed.identities.items()}


def drawing(fed, round=1, clients=None):
    return draw_cohort(
        fed.identities if clients is None else clients, terms=fed.terms, registry=fed.registry, identity=fed.server,
        round=round, ranker=RANKER,
    )  # fmt: skip


def run(server, states, drop=None):
    """What the server's side returns. `drop`: names by (attempt, stage), silent from then on; states move on."""
    silent, step, requests = set(), 0, next(server)
    while True:
        silent |= set((drop or {}).get(divmod(step, 3), ()))  # an attempt that fails has three stages
        replies = {}
        for client, request in requests.items():
            if client not in silent:
                try:
                    states[client], replies[client] = draw.answer(states[client], request)
                except SecureAggregationError:
                    silent.add(client)
        try:
            requests = server.send(replies)
        except StopIteration as finished:
            return finished.value
        step += 1


def asked(fed, state, stage, body, attempt=None):
    """A request that a server which breaks the rules signs."""
    attempt = state.attempt if attempt is None else attempt
    context = draw.in_attempt(state.context, attempt)
    return send(fed.server, Address(context, state.round, "request", draw_stage(stage, attempt), state.id), body)


def begun(fed, states=None, attempt=0):
    """All have committed: the states, and the commitments as the server has them."""
    states, found = dict(states or entrants(fed)), {}
    for name, state in states.items():
        states[name], reply = draw.answer(state, asked(fed, state, "commit", draw.messages.Start(), attempt))
        found[name] = draw.commitment(draw.in_attempt(state.context, attempt), name, states[name].value)
        del reply
    return states, found


def closing(fed, state, commitments):
    """The list of commitments as it is shown to one client."""
    levels, names = draw.tree(commitments), sorted(commitments)
    members = to_set(commitments, fed.registry)
    path = draw.graph.merkle_path(levels, names.index(state.id)) if state.id in commitments else b""
    return asked(fed, state, "close", draw.messages.Closed(members, levels[-1][0], path))


def signed(fed, states, commitments, names=None):
    """Those names sign this list: the states, and their signatures."""
    states, found = dict(states), {}
    for name in sorted(commitments if names is None else names):
        states[name], reply = draw.answer(states[name], closing(fed, states[name], commitments))
        found[name] = signature_of(reply)
    return states, found


def certificate_of(fed, state, signatures, commitments):
    members, root = to_set(commitments, fed.registry), draw.tree(commitments)[-1][0]
    now = draw.in_attempt(state.context, state.attempt)
    known = {"terms": fed.terms, "known": fed.registry, "round": state.round}
    claim = draw.claim_of(now, members, root, attempt=state.attempt, **known)
    return claims.show(claim, dict(sorted(signatures.items())))
