"""The contract of aggregators, which combine the updates of a round into one delta, and FedAvg.

An aggregator is a frozen struct that is called with (values [n, P], weights [n], *, num_byzantine) and returns [P].
Values are deltas: what each client would add to the model that the round began with. Weights are the interactions
behind each; `num_byzantine` is the number of attackers among the n clients that the aggregator tolerates. Rows with
NaN or infinity are left out (`finite_rows`); when no row is left, the result is the zero vector. Aggregators are total:
with more attackers than `check_num_byzantine` admits they still return a defined result, without the guarantee.
`foltr.testing.check_aggregator` tests this contract.

Source of FedAvg: McMahan et al. 2017. `robust`, `krum` and `geometric_median` name theirs.

Sums run over the clients in their order, never in an order that depends on threads. This module needs NumPy only.

Differs from the paper: nothing.
"""

from collections.abc import Callable
from typing import Any, ClassVar, Literal, Protocol

import msgspec
import numpy as np

from foltr import registry
from foltr.errors import SpecError
from foltr.types import Array

_COLUMNS = 4096


class Aggregator(Protocol):
    """Members that every aggregator has. Optional traits:

    `translation_equivariant = True`: adding one vector to all values adds it to the result;
    `is_weighted_mean = True`: the result is `weighted_mean`, for which the lab has a kernel;
    `has_ties(n, num_byzantine)`: clients tie by construction, so that their order decides the result;
    `requirement`: the condition behind max_byzantine, for error messages.
    """

    sees: ClassVar[Literal["sum", "single"]]  # "sum": needs only the weighted sum, which secure aggregation provides

    def __call__(self, values: Array, weights: Array, *, num_byzantine: int) -> Array: ...

    def max_byzantine(self, n: int) -> int:
        """The largest number of attackers that it tolerates among n clients; negative if n is too small."""
        ...


class FedAvg(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="fedavg"):
    """Mean of the deltas, weighted by the interactions behind each."""

    sees: ClassVar[Literal["sum", "single"]] = "sum"
    translation_equivariant: ClassVar[bool] = True
    is_weighted_mean: ClassVar[bool] = True

    def __call__(self, values: Array, weights: Array, *, num_byzantine: int) -> Array:  # noqa: ARG002
        return weighted_mean(values, weights)

    def max_byzantine(self, n: int) -> int:
        return minority(n)


def aggregator_kind(name: str) -> Any:
    """The class of an aggregator; a wrong name lists the right ones."""
    return registry.kind("aggregator", name)


def check_num_byzantine(aggregator: Aggregator, clients: int, num_byzantine: int) -> None:
    """Refuses more attackers than the aggregator tolerates among this many clients."""
    name, limit = msgspec.to_builtins(aggregator)["kind"], aggregator.max_byzantine(clients)
    if limit < 0:
        raise SpecError(
            f"aggregator {name!r} cannot work with {clients} clients; use at least 3, or aggregator 'fedavg'"
        )
    if not 0 <= num_byzantine <= limit:
        raise SpecError(
            f"aggregator {name!r} with {clients} clients cannot assume {num_byzantine} attackers "
            f"(it needs {getattr(aggregator, 'requirement', 'm < n / 2')}); use 0 to {limit}, or more clients"
        )


def minority(n: int) -> int:
    """The largest minority of n clients."""
    return (n - 1) // 2


def weighted_mean(values: Array, weights: Array) -> Array:
    """[P] mean of the finite rows of values [n, P]; zero where nothing has weight."""
    total = weighted_sum(values, weights)
    if len(values) == 0 or not np.isfinite(total).all():  # a row is not finite, or the sum overflows
        values, weights, _ = finite_rows(values, weights, 0)
        total = weighted_sum(values, weights)
    together = float(np.add.reduce(weights))
    return total / together if together else np.zeros(values.shape[1])


def weighted_sum(values: Array, weights: Array) -> Array:
    """[P] sum of weights [n] times values [n, P]."""
    factors, total = np.asarray(weights, dtype=np.float64)[:, None], np.empty(values.shape[1])
    with np.errstate(over="ignore", invalid="ignore"):
        # row after row, as the kernel of the lab adds: equal to the bit; column blocks bound the memory of the products
        for first in range(0, len(total), _COLUMNS):
            part = slice(first, first + _COLUMNS)
            np.add.reduce(factors * values[:, part], axis=0, out=total[part])
    return total


def finite_rows(
    values: Array, weights: Array, num_byzantine: int, all_finite: Callable[[Array], bool] | None = None
) -> tuple[Array, Array, int]:
    """Finite rows [k, P] with their weights [k], and how many attackers may be among them.

    A row with NaN or infinity is left out as if that client had not taken part, and one attacker less is assumed,
    since no honest client sends it. `check_num_byzantine` still holds: as long as no more rows are left out than
    attackers were assumed, n - 1 clients with m - 1 attackers satisfy the bound that n clients with m did.
    `all_finite` answers the usual case faster: a kernel, where there is one.
    """
    rows = np.ascontiguousarray(values, dtype=np.float64)
    if all_finite is not None and all_finite(rows):
        return rows, weights, num_byzantine
    finite = np.asarray(np.isfinite(rows).all(axis=1))
    left_out = len(rows) - int(np.count_nonzero(finite))
    return rows[finite], np.asarray(weights)[finite], max(0, num_byzantine - left_out)
