"""Scores and gradients of rankers, over the documents of one search; as `foltr.rankers` computes them.

The type of the ranker's record picks the code when a kernel is compiled, so a linear ranker compiles no network.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numba.extending import overload

from foltr._kernels.compile import CALLEE_OPTIONS, callee, inlined, kernel
from foltr._kernels.simd import add_rows, dots, unit_sums
from foltr._kernels.simd.elementary import sigmoid
from foltr._kernels.simd.lanes import ROWS, UNITS
from foltr._kernels.workspace import Workspace
from foltr.types import Array


class LinearRanker(NamedTuple):
    features: int


class SigmoidMlp(NamedTuple):
    """One hidden layer; parameters: weights (hidden x features), biases (hidden), output (hidden)."""

    hidden: int


class ReluMlp(NamedTuple):
    """A ranker with a hidden layer of rectified linear units."""

    hidden: int


RankerRecord: TypeAlias = LinearRanker | SigmoidMlp | ReluMlp


def ranker_record(ranker: Any, features: int) -> RankerRecord:
    """The record of a kind of `foltr.rankers`, which says by its fields whether it is a network."""
    if not hasattr(ranker, "hidden"):
        return LinearRanker(features)
    return ReluMlp(ranker.hidden) if ranker.activation == "relu" else SigmoidMlp(ranker.hidden)


def hidden_units(ranker: RankerRecord) -> int:
    return 0 if isinstance(ranker, LinearRanker) else ranker.hidden


def _by_ranker(choices: dict[type, Callable[..., Any]]) -> Callable[..., Any]:
    """A function for kernels whose code is chosen at compile time by the type of the ranker among its arguments.

    All choices take the same arguments.
    """

    def chosen(*arguments: Any) -> Any:  # noqa: ARG001
        raise TypeError("to be called by kernels")

    @overload(chosen, jit_options=CALLEE_OPTIONS, strict=False)  # type: ignore[untyped-decorator]
    def choose(*types: Any) -> Callable[..., Any]:
        (kind,) = (one.instance_class for one in types if getattr(one, "instance_class", None) in choices)
        return choices[kind]

    return chosen


@inlined
def rows_at(first: int, document: int, count: int, width: int) -> tuple[int, int, int, int]:
    """Where the features of ROWS documents begin; past the last document it is repeated."""
    at, more = (first + document) * width, count - 1 - document
    return at, at + min(1, more) * width, at + min(2, more) * width, at + min(3, more) * width


@inlined
def whole_units(units: int) -> int:
    """As many units or more, to a multiple of UNITS."""
    return (units + UNITS - 1) // UNITS * UNITS


def _score_linear(
    features: Array, first: int, count: int, theta: Array, ranker: LinearRanker, workspace: Workspace
) -> None:
    width = ranker.features
    flat = features.reshape(-1)
    single = workspace.single[:width]
    for j in range(width):
        single[j] = theta[j]
    for document in range(0, count, ROWS):
        dots(flat, rows_at(first, document, count, width), single, workspace.scores, document)


def _activate_sigmoid(units: Array, biases: Array, ranker: SigmoidMlp) -> None:
    for h in range(ranker.hidden):
        units[h] = sigmoid(units[h] + biases[h])


def _activate_relu(units: Array, biases: Array, ranker: ReluMlp) -> None:
    for h in range(ranker.hidden):
        units[h] = max(units[h] + biases[h], 0.0)


def _sigmoid_slope(unit: float, ranker: SigmoidMlp) -> float:  # noqa: ARG001
    return unit * (1.0 - unit)


def _relu_slope(unit: float, ranker: ReluMlp) -> float:  # noqa: ARG001
    return float(np.float64(unit > 0.0))


_activate = _by_ranker({SigmoidMlp: _activate_sigmoid, ReluMlp: _activate_relu})
_slope = _by_ranker({SigmoidMlp: _sigmoid_slope, ReluMlp: _relu_slope})


def _score_mlp(
    features: Array, first: int, count: int, theta: Array, ranker: SigmoidMlp | ReluMlp, workspace: Workspace
) -> None:
    """Stores the outputs of the units of the whole list: the gradient needs those of the displayed documents."""
    width, hidden, every = features.shape[1], ranker.hidden, whole_units(ranker.hidden)
    transpose(theta, hidden, width, every, workspace.transposed)
    flat, upper = features.reshape(-1), theta[width * hidden :]
    for document in range(0, count, ROWS):
        rows = rows_at(first, document, count, width)
        for unit in range(0, every, UNITS):
            unit_sums(flat, rows, width, workspace.transposed, every, unit, workspace.units, document * every)
        units = workspace.units[document * every :]
        for row in range(ROWS):
            own = units[row * every : row * every + hidden]
            _activate(own, upper, ranker)
            total = 0.0
            for h in range(hidden):
                total += own[h] * upper[hidden + h]
            workspace.scores[document + row] = total


@callee
def transpose(theta: Array, hidden: int, width: int, every: int, transposed: Array) -> None:
    """Weights by feature instead of by unit, as float32; some units at a time, so that whole cache lines are used."""
    for block in range(0, hidden, UNITS):
        for j in range(width):
            for h in range(block, min(block + UNITS, hidden)):
                transposed[j * every + h] = theta[h * width + j]


def _add_linear_gradient(
    features: Array, count: int, theta: Array, ranker: LinearRanker, workspace: Workspace, out: Array  # noqa: ARG001
) -> None:  # fmt: skip
    add_rows(features.reshape(-1), workspace.rows, workspace.steps, count, out)


def _add_mlp_gradient(
    features: Array, count: int, theta: Array, ranker: SigmoidMlp | ReluMlp, workspace: Workspace, out: Array
) -> None:
    width, hidden, every = features.shape[1], ranker.hidden, whole_units(ranker.hidden)
    flat, output = features.reshape(-1), theta[(width + 1) * hidden :]
    for h in range(hidden):
        for_bias, for_output = 0.0, 0.0
        for rank in range(count):
            unit = workspace.units[workspace.ranking[rank] * every + h]
            workspace.signal[rank] = workspace.steps[rank] * output[h] * _slope(unit, ranker)
            for_bias += workspace.signal[rank]
            for_output += workspace.steps[rank] * unit
        add_rows(flat, workspace.rows, workspace.signal, count, out[h * width : (h + 1) * width])
        out[width * hidden + h] += for_bias
        out[(width + 1) * hidden + h] += for_output


_score = _by_ranker({LinearRanker: _score_linear, SigmoidMlp: _score_mlp, ReluMlp: _score_mlp})
_add_gradient = _by_ranker(
    {LinearRanker: _add_linear_gradient, SigmoidMlp: _add_mlp_gradient, ReluMlp: _add_mlp_gradient}
)


@callee
def score_list(
    features: Array, first: int, count: int, theta: Array, ranker: RankerRecord, workspace: Workspace
) -> None:
    """Fills the scores of documents first .. first + count, and the outputs of their hidden units if there are any."""
    _score(features, first, count, theta, ranker, workspace)


@callee
def add_gradient(
    features: Array, count: int, theta: Array, ranker: RankerRecord, workspace: Workspace, out: Array
) -> None:
    """out += gradient of sum(steps * score) at theta, by which the list was scored; `out` may be theta.

    Of the first `count` ranks, whose features begin at `workspace.rows`.
    """
    _add_gradient(features, count, theta, ranker, workspace, out)


@kernel
def dot_products(features: Array, offsets: Array, order: Array, theta: Array, scores: Array) -> float:
    """A pass over lists that only scores them: what memory allows, for the benchmark of training."""
    total = 0.0
    for k in range(order.size):
        first = offsets[order[k]]
        count = offsets[order[k] + 1] - first
        for document in range(count):
            row = features[first + document]
            score = 0.0
            for j in range(row.size):
                score += np.float64(row[j]) * theta[j]
            scores[document] = score
        total += scores[0]
    return total
