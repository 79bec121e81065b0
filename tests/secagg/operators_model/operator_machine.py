"""The protocol of two operators as a machine of states: what an adversary may do next, and what the honest answer.

The adversary plays the coordinator, one operator (A) and all colluding members. It carries every message, so it drops,
delays, repeats and shows different things to different nodes; it restores folders of nodes and of the honest operator
(B) from backups. Honest are B and the other nodes. The second operator as adversary, with an honest coordinator, can do
less: it only answers.

    announce     a node is told a round, a ranker and a registry; it contributes, or refuses
    restore      a node's folder, or that of B, becomes an old copy; witnesses stay
    close        B lists a round: the adversary chooses whose parts reach B
    open         B opens its half: the adversary's list chooses among those that B listed
    forge        a message without the coordinator's signature reaches a node

A share is uniform, so what A gets of a contribution tells nothing until B's half of the same clients comes out. B's
half less A's shares is the sum of the vectors (and B's noise). The vector of a node is a symbol for each ranker, or one
symbol for all of them (`steady`). Signatures and sealing are perfect; what they cover is `Rules`.

Left out, because another choice tells the adversary no less: contributions that reach A alone, colluders that stay
away, several lists of A in a round (B reads one), and announcements that no node accepts.
"""

from collections.abc import Iterator
from itertools import chain, combinations
from typing import NamedTuple


class Rules(NamedTuple):
    """The checks of honest parties; a mutant leaves one out."""

    newer_round: bool = True  # a node contributes once in a round, and rounds rise
    node_witness: bool = True  # a node that is restored knows its highest round from the ledger's witness
    signature_first: bool = True  # nothing changes on a node before the coordinator's signature holds
    asks_open: bool = True  # a node asks whether the round is open before it is charged
    client_signature: bool = True  # B takes parts that their client signed
    covers_ranker: bool = True  # contexts cover the ranker
    covers_registry: bool = True  # contexts cover the registry, from which the smallest sum follows
    enough_clients: bool = True  # B opens sums of `fewest` clients or more
    one_half: bool = True  # B opens one half of a round
    operator_witness: bool = True  # no backup has B's witnesses and keys: a restored B knows what it opened
    adds_noise: bool = True  # B adds its noise to its half
    closed_circle: bool = True  # without noise a sum has all members
    one_sum_of_a_ranker: bool = True  # without noise B opens one sum for each ranker
    keys_of_rounds: bool = True  # shares are sealed under the key of one round
    erases_keys: bool = True  # B erases a key when the half of its round is stored


class World(NamedTuple):
    """A small federation. Registry 0 has the first `founders` honest nodes, registry 1 all of them."""

    honest: int
    colluders: int
    founders: int
    dropouts: int  # members that may be missing in a sum
    noise: bool
    rounds: int
    rankers: int
    steady: bool = False  # a node's vector is the same for all rankers: nothing new was learned
    honest_coordinator: bool = False  # the adversary is an outsider who repeats and forges
    rules: Rules = Rules()


class Context(NamedTuple):
    """What a contribution is bound to."""

    round: int
    ranker: int
    registry: int


class Node(NamedTuple):
    highest: int = 0  # round that was charged, as its witness says
    stored: Context | None = None  # the newest contribution in its folder
    sent: frozenset[Context] = frozenset()  # contributions that exist
    charged: tuple[int, ...] = ()  # rounds, as often as they were charged
    stuck: bool = False  # a forged number keeps the node from every later round


class Sum(NamedTuple):
    """A sum that came out: vectors of honest nodes."""

    round: int
    contributions: frozenset[tuple[int, Context]]
    forged: int  # honest clients whose part the adversary made


class Operator(NamedTuple):
    """The honest operator B."""

    closed: tuple[tuple[int, frozenset[int], Context], ...] = ()  # (round, clients, context) of its lists
    opened: frozenset[int] = frozenset()  # rounds, as B remembers them
    rankers: frozenset[int] = frozenset()  # of which B opened a sum
    erased: frozenset[int] = frozenset()  # rounds whose key is gone


class State(NamedTuple):
    nodes: tuple[Node, ...]
    operator: Operator = Operator()
    sums: frozenset[Sum] = frozenset()
    late: bool = False  # a node was charged for a round that an honest coordinator had closed


def begin(world: World) -> State:
    return State((Node(),) * world.honest)


def members(world: World, registry: int) -> range:
    return range(world.honest if registry else world.founders)


def fewest(world: World, registry: int) -> int:
    """Clients in every sum, colluders included."""
    return len(members(world, registry)) + world.colluders - world.dropouts


def successors(world: World, state: State) -> Iterator[tuple[str, State]]:
    """Every action of the adversary that changes something, with its name."""
    yield from _announcements(world, state)
    yield from _restores(world, state)
    yield from _closings(world, state)
    yield from _openings(world, state)
    yield from _forgeries(world, state)


def _announcements(world: World, state: State) -> Iterator[tuple[str, State]]:
    for client, node in enumerate(state.nodes):
        for context in contexts(world):
            if client not in members(world, context.registry):
                continue
            after = contributed(world, node, context, closed=_is_closed(state, context.round))
            if after != node:
                late = _is_closed(state, context.round) and world.honest_coordinator and after.charged != node.charged
                yield (
                    f"announce {context} to {client}",
                    _with_node(state, client, after)._replace(late=state.late or late),
                )


def contexts(world: World) -> Iterator[Context]:
    for round in range(1, world.rounds + 1):
        for ranker in range(world.rankers):
            for registry in range(1 if world.founders == world.honest else 2):
                if not world.honest_coordinator or (ranker, registry) == (0, 0):
                    yield Context(round, ranker, registry)


def contributed(world: World, node: Node, context: Context, *, closed: bool) -> Node:
    """The node after an announcement; the same where it refuses, or sends its stored bytes."""
    rules = world.rules
    if node.stuck or node.stored == context:
        return node
    if rules.newer_round and context.round <= max(node.highest, node.stored.round if node.stored else 0):
        return node
    if world.honest_coordinator and rules.asks_open and closed:
        return node
    return Node(context.round, context, node.sent | {context}, tuple(sorted((*node.charged, context.round))))


def _restores(world: World, state: State) -> Iterator[tuple[str, State]]:
    for client, node in enumerate(state.nodes):
        if node.stored is not None:
            highest = node.highest if world.rules.node_witness else 0
            yield f"restore {client}", _with_node(state, client, node._replace(stored=None, highest=highest))
    if state.operator.closed and not world.rules.operator_witness:
        yield "restore B", state._replace(operator=Operator())


def _closings(world: World, state: State) -> Iterator[tuple[str, State]]:
    """B closes a round with the parts that the adversary brings; more parts are chosen from when the half opens."""
    for context in contexts(world):
        if _is_closed(state, context.round) or context.round in state.operator.erased:
            continue
        present = frozenset(
            client for client in members(world, context.registry)
            if not world.rules.client_signature
            or any(_fits(world, sent, context) for sent in state.nodes[client].sent)
        )  # fmt: skip
        if len(present) + world.colluders >= (fewest(world, context.registry) if world.rules.enough_clients else 1):
            closed = (*state.operator.closed, (context.round, present, context))
            yield (
                f"close {context} with {sorted(present)}",
                state._replace(operator=state.operator._replace(closed=tuple(sorted(closed, key=lambda one: one[0])))),
            )


def _openings(world: World, state: State) -> Iterator[tuple[str, State]]:
    for _, present, context in state.operator.closed:
        for chosen in _subsets(present):
            if may_open(world, state.operator, context, chosen):
                for contributions, forged in _contents(world, state, context, chosen):
                    after = opened(world, state.operator, context)
                    result = Sum(context.round, contributions, forged)
                    if after != state.operator or result not in state.sums:
                        yield (
                            f"open {context} of {sorted(chosen)}",
                            state._replace(operator=after, sums=state.sums | {result}),
                        )


def may_open(world: World, operator: Operator, context: Context, chosen: frozenset[int]) -> bool:
    rules, all_members = world.rules, frozenset(members(world, context.registry))
    return bool(
        (not rules.one_half or context.round not in operator.opened)
        and (not rules.enough_clients or len(chosen) + world.colluders >= fewest(world, context.registry))
        and (world.noise or not rules.closed_circle or chosen == all_members)
        and (world.noise or not rules.one_sum_of_a_ranker or context.ranker not in operator.rankers)
    )


def opened(world: World, operator: Operator, context: Context) -> Operator:
    erased = operator.erased | {context.round} if world.rules.erases_keys else operator.erased
    return operator._replace(
        opened=operator.opened | {context.round}, rankers=operator.rankers | {context.ranker}, erased=erased
    )


def _contents(
    world: World, state: State, context: Context, chosen: frozenset[int]
) -> Iterator[tuple[frozenset[tuple[int, Context]], int]]:
    """Whose contributions are in a sum: of each client one that fits, or one that the adversary made."""
    choices = [[]]
    for client in sorted(chosen):
        fitting = [(client, sent) for sent in state.nodes[client].sent if _fits(world, sent, context)]
        made = [None] if not world.rules.client_signature else []
        choices = [[*before, one] for before in choices for one in [*fitting, *made]]
    for choice in choices:
        real = frozenset(one for one in choice if one is not None)
        if real:
            yield real, len(choice) - len(real)


def _fits(world: World, sent: Context, context: Context) -> bool:
    return (
        sent.round == context.round
        and (sent.ranker == context.ranker or not world.rules.covers_ranker)
        and (sent.registry == context.registry or not world.rules.covers_registry)
    )


def _forgeries(world: World, state: State) -> Iterator[tuple[str, State]]:
    if not world.rules.signature_first:
        for client, node in enumerate(state.nodes):
            if not node.stuck:
                yield f"forge a round to {client}", _with_node(state, client, node._replace(stuck=True))


def _is_closed(state: State, round: int) -> bool:
    return any(closed == round for closed, _, _ in state.operator.closed) or round in state.operator.opened


def _with_node(state: State, client: int, node: Node) -> State:
    return state._replace(nodes=(*state.nodes[:client], node, *state.nodes[client + 1 :]))


def _subsets(clients: frozenset[int]) -> Iterator[frozenset[int]]:
    ordered = sorted(clients)
    yield from map(frozenset, chain.from_iterable(combinations(ordered, size) for size in range(1, len(ordered) + 1)))
