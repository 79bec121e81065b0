"""Maximum a posteriori weights from clicks: a softmax of the click against its rivals, and a prior at the model sent.

A click c of an interaction is compared with the displayed documents without a click and with a random sample of the
candidates that were not displayed; a sampled one of N candidates counts N / sample times, so that the sample stands
for all of them. With s(w) the scores of weights w and a_i the weight of rival i, the client minimises the convex

    sum over clicks of log(1 + sum_i a_i exp(s_i(w) - s_c(w))) + 1/2 sum_j lambda_j (w_j - start_j)^2

by Newton's method; lambda > 0 makes the minimum unique. Lists are greedy: no exploration, no correction for positions.
`prior` is lambda of all parameters but those in `history`, which count what the person opened and learn faster.

People differ in how often they click by mistake, which shrinks or stretches all weights alike and changes no order: the
start is first multiplied by the factor that fits the clicks best, and the result divided by it, so that only changes of
direction are learned. The same search again and again brings clicks, but no knowledge of other searches: callers leave
repetitions out (`node.learning.teaching`).

A ranker that is not linear is linearised at the model sent: scores change by their gradient there.

Differs from a published method: it is none; softmax of a choice (McFadden 1974) with a Gaussian prior and sampled
rivals. Clicks above the last one get no special part: pairs with skipped documents learn to reverse a good list.
"""

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, ClassVar, NamedTuple

import msgspec
import numpy as np

from foltr.clipping import clipped_to
from foltr.errors import SpecError
from foltr.metrics import order
from foltr.rankers.linear import Linear
from foltr.rng import Stream, stream
from foltr.types import Array, Interaction, Model, Updates

_MAX_STEPS, _SMALLEST_STEP = 50, 1e-8
_SUFFICIENT = 1e-4  # share of the predicted decrease that a step must reach (Armijo)
_TOLERANCE = 1e-14  # relative Newton decrement at the minimum
_SHARPNESS_PRIOR, _FLATTEST, _SHARPEST = 5.0, 0.2, 3.0  # of the common factor: lambda around 1, and its limits

Positive = Annotated[float, msgspec.Meta(gt=0)]
Count = Annotated[int, msgspec.Meta(ge=1)]


class Comparison(NamedTuple):
    """One click against its rivals: the margin of rival i at weights w is differences[i] @ w + offsets[i]."""

    differences: Array  # [m, P] gradient of the rival's score minus that of the clicked document
    offsets: Array  # [m] logarithm of the rival's weight, plus what the gradients leave out of a score


class SoftmaxState(NamedTuple):
    """The state of a client between two steps."""

    start: Array  # [P] the model that it was sent
    parameters: Array  # [P] of the last fit
    comparisons: tuple[Comparison, ...]  # one a click
    draws: Stream  # of the sampled rivals
    step: int
    interactions: int


class SoftmaxMap(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="softmax"):
    prior: Positive = 20.0  # lambda
    history_prior: Positive = 5.0  # lambda of the parameters in `history`
    history: tuple[Annotated[int, msgspec.Meta(ge=0)], ...] = ()  # of a linear ranker: features
    unshown: Annotated[int, msgspec.Meta(ge=0)] = 20  # candidates sampled of those that were not displayed
    refit_every: Count = 10  # clicks
    min_clicks: Count = 1  # nothing is learned from fewer
    clip: Positive | None = None  # L2 norm of the update
    server_learning_rate: Positive = 1.0  # factor of the mean update

    message: ClassVar[str] = "delta"
    server_optimizer: ClassVar[str] = "add"

    def client_init(self, model: Model, *, client: int, interactions: int) -> SoftmaxState:
        start = np.asarray(model.parameters, dtype=np.float64)
        draws = stream(model.seed, round=model.version + 1, client=client, purpose="choice")
        return SoftmaxState(start, start, (), draws, 0, interactions)

    def rank(
        self, state: SoftmaxState, features: Array, k: int, draws: Any, *, ranker: Any  # noqa: ARG002
    ) -> tuple[Array, Array]:  # fmt: skip
        """The list of the last fit, best first, and its scores."""
        scores = ranker.score(state.parameters, features)
        return order(scores)[:k], scores

    def client_step(
        self, state: SoftmaxState, interaction: Interaction, *, ranker: Any, mechanism: Any, noise: Any  # noqa: ARG002
    ) -> SoftmaxState:  # fmt: skip
        draws = _at(state.draws, state.step)
        found = (*state.comparisons, *compare(interaction, draws, self.unshown, ranker=ranker, parameters=state.start))
        before, state = len(state.comparisons), state._replace(comparisons=found, step=state.step + 1)
        last = state.step == state.interactions
        due = last or len(found) // self.refit_every > before // self.refit_every
        if not due or len(found) < self.min_clicks:
            return state
        guess = None if last else state.parameters  # what is sent does not depend on refits on the way, to the bit
        prior = self.priors(len(state.start))
        fitted = posterior_mode(found, state.start, prior, guess=guess)
        return state._replace(parameters=mechanism.project(fitted))

    def client_final(self, state: SoftmaxState) -> Array:
        delta = state.parameters - state.start
        return delta if self.clip is None else clipped_to(delta, clip=self.clip)[0]

    def decode(self, updates: Updates, *, seed: int, parameters: int) -> Array:  # noqa: ARG002
        """[n, P] deltas are sent as they are."""
        return updates.values

    def priors(self, parameters: int) -> Array:
        """[P] lambda of every parameter."""
        if self.history and max(self.history) >= parameters:
            raise SpecError(f"learner.history names parameter {max(self.history)}; there are 0 to {parameters - 1}")
        prior = np.full(parameters, self.prior)
        prior[list(self.history)] = self.history_prior
        return prior


def fit(
    interactions: Iterable[Interaction], start: Array, prior: Array | float, *, unshown: int = 20, seed: int = 0
) -> Array:
    """[d] the weights of a linear ranker that a log of interactions speaks for; `start` without a click."""
    draws = stream(seed, purpose="choice")
    every = (compare(one, _at(draws, step), unshown) for step, one in enumerate(interactions))
    return posterior_mode([one for comparisons in every for one in comparisons], start, prior)


def _at(draws: Stream, step: int) -> Stream:
    """Where the draws of an interaction begin: no list has 2^20 candidates."""
    return draws.skip(step << 20)


def compare(
    interaction: Interaction, draws: Stream, unshown: int, *, ranker: Any = None, parameters: Array | None = None
) -> list[Comparison]:
    """Every click of an interaction against its rivals. `ranker` and `parameters`: where scores are not linear."""
    ranking, clicks = np.asarray(interaction.ranking), np.asarray(interaction.clicks, dtype=bool)
    if not clicks.any() or len(interaction.features) < 2:
        return []
    sampled, weight = sample_unshown(len(interaction.features), ranking, draws, unshown)
    skipped = ranking[~clicks]
    rivals = np.concatenate([skipped, sampled])
    log_weights = np.repeat([0.0, np.log(weight)], [len(skipped), len(sampled)])
    documents = np.concatenate([ranking[clicks], rivals])
    gradients, rest = _linearised(interaction.features[documents], ranker, parameters)
    clicked = int(clicks.sum())
    if not len(rivals) or not np.isfinite(gradients).all():
        return []
    return [
        Comparison(gradients[clicked:] - gradients[c], log_weights + rest[clicked:] - rest[c]) for c in range(clicked)
    ]


def sample_unshown(candidates: int, ranking: Array, draws: Stream, size: int) -> tuple[Array, float]:
    """A random sample of the candidates that were not displayed, and how many of them each stands for."""
    hidden = np.ones(candidates, dtype=bool)
    hidden[ranking] = False
    unshown = np.flatnonzero(hidden)
    if len(unshown) <= size or size == 0:
        return (unshown if size else unshown[:0]), 1.0
    chosen = np.argpartition(draws.uniform(len(unshown)), size - 1)[:size]
    return unshown[np.sort(chosen)], len(unshown) / size


def _linearised(features: Array, ranker: Any, parameters: Array | None) -> tuple[Array, Array]:
    """Gradients [n, P] of the scores, and what of the scores at `parameters` they leave out [n]."""
    given = np.asarray(features, dtype=np.float64)
    if ranker is None or parameters is None or isinstance(ranker, Linear):
        return given, np.zeros(len(given))
    gradients = np.stack([ranker.gradient(parameters, row[None], np.ones(1)) for row in given])
    return gradients, ranker.score(parameters, given) - gradients @ parameters


def posterior_mode(
    comparisons: Sequence[Comparison], start: Array, prior: Array | float, *, guess: Array | None = None
) -> Array:
    """[P] the weights that the clicks speak for, in the units of the start. `guess`, such as the last fit, saves
    steps and does not change the result: the minimum is unique."""
    start = np.asarray(start, dtype=np.float64)
    factor = sharpness(comparisons, start)
    near = None if guess is None else factor * guess
    return minimise(comparisons, factor * start, prior, guess=near) / factor


def sharpness(comparisons: Sequence[Comparison], start: Array) -> float:
    """The factor of the start weights that fits the clicks best: below 1 where clicks are noisier than the start."""
    along = [Comparison((one.differences @ start)[:, None], one.offsets) for one in comparisons]
    factor = float(minimise(along, np.ones(1), _SHARPNESS_PRIOR)[0])
    return min(max(factor, _FLATTEST), _SHARPEST) if np.isfinite(factor) else 1.0


def minimise(
    comparisons: Sequence[Comparison], start: Array, prior: Array | float, *, guess: Array | None = None
) -> Array:
    """[P] the weights with the smallest loss and penalty, by Newton steps that are halved until the sum falls; from
    `guess` on where it is given."""
    start = np.asarray(start, dtype=np.float64)
    weights = start.copy() if guess is None or not np.isfinite(guess).all() else np.array(guess, dtype=np.float64)
    if not comparisons:
        return start.copy()
    problem = _stacked(comparisons, start, prior)
    with np.errstate(over="ignore", invalid="ignore"):  # a step too far is halved; weights that are no numbers stay
        value = objective(problem, weights)
        for _ in range(_MAX_STEPS):
            gradient, hessian = derivatives(problem, weights)
            step = np.linalg.solve(hessian, gradient)
            decrement = float(gradient @ step)
            if decrement <= _TOLERANCE * (1.0 + value):
                return weights - step  # the last step squares the error that is left
            if not decrement > 0:
                break
            size = 1.0
            while not (lower := objective(problem, weights - size * step)) <= value - _SUFFICIENT * size * decrement:
                size /= 2
                if size < _SMALLEST_STEP:
                    return weights
            weights, value = weights - size * step, lower
    return weights


class Problem(NamedTuple):
    """All comparisons as arrays, and the prior."""

    differences: Array  # [rivals, P]
    offsets: Array  # [rivals]
    first: Array  # [comparisons] where the rivals of each begin
    lengths: Array  # [comparisons]
    start: Array  # [P]
    prior: Array  # [P]


def _stacked(comparisons: Sequence[Comparison], start: Array, prior: Array | float) -> Problem:
    lengths = np.array([len(one.offsets) for one in comparisons])
    first = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    differences = np.concatenate([one.differences for one in comparisons])
    offsets = np.concatenate([one.offsets for one in comparisons])
    return Problem(differences, offsets, first, lengths, start, np.broadcast_to(prior, start.shape))


def objective(problem: Problem, weights: Array) -> float:
    """The negative log posterior, up to a constant."""
    losses, _ = _losses(problem, weights)
    return float(losses.sum() + 0.5 * (problem.prior * (weights - problem.start) ** 2).sum())


def derivatives(problem: Problem, weights: Array) -> tuple[Array, Array]:
    """Gradient [P] and Hessian [P, P] of `objective`."""
    _, chances = _losses(problem, weights)
    means = np.add.reduceat(problem.differences * chances[:, None], problem.first, axis=0)  # [comparisons, P]
    roots = problem.differences * np.sqrt(chances)[:, None]  # a matrix times its own transpose costs half
    gradient = means.sum(axis=0) + problem.prior * (weights - problem.start)
    return gradient, roots.T @ roots - means.T @ means + np.diag(problem.prior)


def _losses(problem: Problem, weights: Array) -> tuple[Array, Array]:
    """-log chance of each click [comparisons], and the chance of every rival [rivals]."""
    margins = problem.differences @ weights + problem.offsets
    largest = np.maximum(np.maximum.reduceat(margins, problem.first), 0.0)  # of the click itself: 0
    shifted = np.exp(margins - np.repeat(largest, problem.lengths))
    totals = np.exp(-largest) + np.add.reduceat(shifted, problem.first)
    return largest + np.log(totals), shifted / np.repeat(totals, problem.lengths)
