"""The search for a state that breaks a promise of two operators, over everything that an adversary can do.

secrecy     without noise: every combination of vectors that the sums determine has `fewest` clients or more of each
            registry that its nodes accepted, colluders counted, and vectors of one ranker only
            with noise: no combination is free of B's noise
charges     a node is charged at least once for each sum that its vector is in, and never twice for a round
lateness    with an honest coordinator, nobody outside makes a node pay for a closed round or refuse a later one
theft       whoever steals B's disk reads no vector of a round whose half is stored
"""

from collections import deque
from functools import cache
from itertools import combinations
from typing import NamedTuple

from operator_machine import Context, State, World, begin, fewest, successors


class Search(NamedTuple):
    states: int
    sums: int  # states in which a sum came out
    broken: str  # promise that does not hold; empty: none
    trace: tuple[str, ...]  # what the adversary did


def search(world: World, most: int = 2_000_000) -> Search:
    """Every state that the adversary can reach, the fewest actions first; stops at a broken promise."""
    first = begin(world)
    came_from: dict[State, tuple[State, str] | None] = {first: None}
    waiting, sums = deque([first]), 0
    while waiting:
        state = waiting.popleft()
        sums += bool(state.sums)
        problem = broken(world, state)
        if problem:
            return Search(len(came_from), sums, problem, _trace(came_from, state))
        for action, after in successors(world, state):
            after = canonical(world, after)
            if after not in came_from:
                if len(came_from) >= most:
                    raise AssertionError(f"more than {most:,} states")
                came_from[after] = (state, action)
                waiting.append(after)
    return Search(len(came_from), sums, "", ())


def canonical(world: World, state: State) -> State:
    """Nodes that stand in the same registries are alike; the smallest of their orders stands for all."""
    if world.honest_coordinator:
        return state
    groups = [range(world.founders), range(world.founders, world.honest)]
    order = [client for group in groups for client in sorted(group, key=lambda client: _key(state, client))]
    place = {client: position for position, client in enumerate(order)}
    operator = state.operator._replace(
        closed=tuple((round, frozenset(place[one] for one in present), context)
                     for round, present, context in state.operator.closed)
    )  # fmt: skip
    sums = frozenset(
        result._replace(contributions=frozenset((place[one], sent) for one, sent in result.contributions))
        for result in state.sums
    )
    return state._replace(nodes=tuple(state.nodes[client] for client in order), operator=operator, sums=sums)


def _key(state: State, client: int) -> tuple:
    node = state.nodes[client]
    listed = tuple(client in present for _, present, _ in state.operator.closed)
    summed = sorted((result.round, result.forged, *sorted(map(str, result.contributions)))
                    for result in state.sums if any(one == client for one, _ in result.contributions))  # fmt: skip
    return (node.highest, node.stored or (), sorted(node.sent), node.charged, node.stuck, listed, len(summed))


def broken(world: World, state: State) -> str:
    """The promise that a state breaks; empty where all hold."""
    return _secrecy(world, state) or _charges(state) or _lateness(state) or _theft(world, state)


def _secrecy(world: World, state: State) -> str:
    if world.noise and world.rules.adds_noise:
        return ""  # every half has noise of its own, so no combination of them is free of noise
    if world.noise and state.sums:
        return "a sum without the noise that was promised"
    for result in state.sums:
        if len({sent.ranker for _, sent in result.contributions}) > 1:
            return "vectors of two rankers in one sum"
        for _, sent in result.contributions:
            if len(result.contributions) + world.colluders < fewest(world, sent.registry):
                return "fewer clients in a sum than a node was promised"
    smallest = min((fewest(world, sent.registry) for one in state.sums for _, sent in one.contributions), default=0)
    rows = frozenset(
        frozenset((client, 0 if world.steady else sent.ranker) for client, sent in one.contributions)
        for one in state.sums
    )
    if rows and smallest_support(rows) + world.colluders < smallest:
        return "a combination of fewer vectors than promised"
    return ""


@cache
def smallest_support(rows: frozenset[frozenset[tuple[int, int]]]) -> int:
    """Fewest vectors in a combination of sums that is not zero: rows of zeros and ones over the rationals."""
    symbols = sorted(frozenset().union(*rows))
    matrix = [[int(symbol in row) for symbol in symbols] for row in rows]
    whole = _rank(matrix)
    for size in range(1, len(symbols) + 1):
        for left in combinations(range(len(symbols)), len(symbols) - size):  # columns that a combination makes zero
            if _rank([[row[column] for column in left] for row in matrix]) < whole:
                return size
    raise AssertionError("some combination is not zero")


def _rank(matrix: list[list[int]]) -> int:
    """Rank by elimination with integers."""
    rows, rank = [list(row) for row in matrix], 0
    for column in range(len(rows[0]) if rows else 0):
        pivot = next((row for row in rows[rank:] if row[column]), None)
        if pivot is None:
            continue
        rows.remove(pivot)
        rows.insert(rank, pivot)
        for row in rows[rank + 1 :]:
            if row[column]:
                factor, by = row[column], pivot[column]
                row[:] = [by * value - factor * other for value, other in zip(row, pivot, strict=True)]
        rank += 1
    return rank


def _charges(state: State) -> str:
    for client, node in enumerate(state.nodes):
        if len(set(node.charged)) < len(node.charged):
            return "a node is charged twice for one round"
        if len(node.charged) < sum(any(one == client for one, _ in result.contributions) for result in state.sums):
            return "a node is in more sums than it was charged for"
    return ""


def _lateness(state: State) -> str:
    if state.late:
        return "a node is charged for a closed round"
    return "a node refuses every later round" if any(node.stuck for node in state.nodes) else ""


def _theft(world: World, state: State) -> str:
    """Steals B's disk now: every share that was sealed under a key on it opens."""
    summed = {result.round for result in state.sums}
    readable = {sent.round for node in state.nodes for sent in node.sent}
    if world.rules.keys_of_rounds:
        readable -= state.operator.erased
    return "a thief of B's disk reads vectors of a finished round" if readable & summed else ""


def _trace(came_from: dict[State, tuple[State, str] | None], state: State) -> tuple[str, ...]:
    actions = []
    while (step := came_from[state]) is not None:
        state, action = step
        actions.append(action)
    return tuple(reversed(actions))


__all__ = ["Context", "Search", "broken", "search", "smallest_support"]
