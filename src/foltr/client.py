"""The client: from interactions to the update that it sends. NumPy only.

A simulated client and a deployed one run this function. They differ in the source of interactions (simulated
users who see each new list, or a click log) and in the source of noise (an addressed stream, or the operating system).
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

from foltr.types import Array, Interaction, Model, Update

# (features [n, d], k, draws) -> ranking [k], scores [n]: the list that the client's current model shows
Rank: TypeAlias = Callable[[Array, int, Any], tuple[Array, Array]]
# purpose ("noise", "privatise") -> a stream of random numbers: `foltr.rng.Stream` or `privacy.noise.SystemStream`
Noise: TypeAlias = Callable[[str], Any]


class Searches(NamedTuple):
    """Simulated searches: each displays the list of the local model after the previous steps."""

    number: int
    search: Callable[[int, Rank], Interaction]  # (step, rank) -> the displayed list and its clicks


def local_update(
    model: Model, interactions: Sequence[Interaction] | Searches, *, learner: Any, mechanism: Any, noise: Noise,
    client: int = 0, event: Any = None,
) -> Update:  # fmt: skip
    """The update that a client sends after learning from its interactions, protected by the mechanism.

    `event` is the privacy event of the release, as `mechanism.event` states it for the whole federation; the caller
    has asked the ledger for admission.
    """
    count = interactions.number if isinstance(interactions, Searches) else len(interactions)
    state = learner.client_init(model, client=client, interactions=count)
    for step in range(count):
        interaction = _interaction(interactions, step, state, learner, model)
        state = learner.client_step(state, interaction, ranker=model.ranker, mechanism=mechanism, noise=noise)
    values = learner.client_final(state)
    if mechanism.acts_on == "delta":
        values = mechanism.protect(values, model.mechanism_state, event, noise("noise"))
    weight = 1.0 if getattr(mechanism, "equal_weights", False) else float(count)
    return Update(values, weight, client, model.version, event)


def _interaction(
    interactions: Sequence[Interaction] | Searches, step: int, state: Any, learner: Any, model: Model
) -> Interaction:
    if not isinstance(interactions, Searches):
        return interactions[step]

    def rank(features: Array, k: int, draws: Any) -> tuple[Array, Array]:
        return learner.rank(state, features, k, draws, ranker=model.ranker)

    return interactions.search(step, rank)
