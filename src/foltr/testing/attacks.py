"""The contract of attacks (see `lab.attacks.attack`), run on a class."""

from collections.abc import Iterator
from typing import Any, get_args

import numpy as np

from foltr import registry
from foltr.lab.attacks.attack import AttackView, Knowledge
from foltr.rng import stream
from foltr.testing.laws import copies, demand, demand_unchanged
from foltr.types import Array

_CLIENTS = (3, 10, 13)
_NEEDS = {"updates", "clicks"}


def check_attack(kind: type, **parameters: Any) -> None:
    """Raises AssertionError if `kind(**parameters)` violates a property of attacks; names it and the input."""
    for view in _views():
        attack = kind(num_attackers=view.num_attackers, knowledge=view.knowledge, **parameters)
        _check_traits(attack, view)
        _crafts_finite_rows(attack, view)
        _inputs_stay(attack, view)
        _is_repeatable(attack, view)
        _looks_at_what_it_may(attack, view)
        _bears_degenerate_rounds(attack, view)


def _views() -> Iterator[AttackView]:
    """Every number of attackers below half, every aggregator, both kinds of knowledge."""
    for n in _CLIENTS:
        for num_attackers in range((n + 1) // 2):
            for aggregator in registry.names("aggregator"):
                for knowledge in get_args(Knowledge):
                    draws = stream(n, round=num_attackers, purpose="choice")
                    model = draws.normal(5)
                    deltas = 0.5 * draws.skip(10).normal(5) + draws.skip(20).normal(n * 5).reshape(n, 5)
                    yield AttackView(deltas, model, num_attackers, aggregator, knowledge, draws.skip(1000))


def _check_traits(attack: Any, view: AttackView) -> None:
    needs = getattr(attack, "needs", None)
    known = isinstance(needs, frozenset) and needs <= _NEEDS
    _demand(known, f"needs = {needs!r}: a frozenset of {sorted(_NEEDS)}", attack, view)
    _demand(attack.num_attackers == view.num_attackers, "num_attackers is not stored as given", attack, view)


def _crafts_finite_rows(attack: Any, view: AttackView) -> None:
    crafted = _craft(attack, view)
    _demand(bool(np.isfinite(crafted).all()), f"what is crafted is not finite: {crafted}", attack, view)


def _inputs_stay(attack: Any, view: AttackView) -> None:
    given = {"deltas": view.deltas, "model": view.model}
    before = copies(given)
    crafted = _craft(attack, view)
    demand_unchanged(before, given, attack, "craft")
    _demand(not np.shares_memory(crafted, view.deltas), "what is crafted is a view of the deltas", attack, view)


def _is_repeatable(attack: Any, view: AttackView) -> None:
    """All randomness comes from view.draws."""
    _demand(np.array_equal(_craft(attack, view), _craft(attack, view)), "the same view gives two results", attack, view)


def _looks_at_what_it_may(attack: Any, view: AttackView) -> None:
    if view.knowledge == "full":
        return
    deltas = view.deltas.copy()
    deltas[view.num_attackers :] = 5.0 - 2.0 * deltas[view.num_attackers :]
    same = np.array_equal(_craft(attack, view), _craft(attack, view._replace(deltas=deltas)))
    _demand(same, "with partial knowledge the rows of others matter", attack, view)


def _bears_degenerate_rounds(attack: Any, view: AttackView) -> None:
    """All deltas zero, or all equal."""
    for row in (np.zeros_like(view.model), view.deltas[0]):
        _crafts_finite_rows(attack, view._replace(deltas=np.tile(row, (len(view.deltas), 1))))


def _craft(attack: Any, view: AttackView) -> Array:
    """The attackers' rows and nobody else's."""
    crafted = attack.craft(view)
    shape, expected = getattr(crafted, "shape", None), (view.num_attackers, len(view.model))
    _demand(shape == expected, f"what is crafted has the shape {shape}, not {expected}", attack, view)
    rows: Array = crafted
    return rows


def _demand(holds: bool, words: str, attack: Any, view: AttackView) -> None:
    demand(holds, attack, words, clients=len(view.deltas), **view._asdict())
