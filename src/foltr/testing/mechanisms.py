"""The contract of mechanisms (see `privacy.mechanisms`), run on a class.

A suite cannot tell whether noise is large enough for what an event states. It tells whether the event can be accounted
for, and whether there is any noise behind it.
"""

import itertools
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple, get_args

import numpy as np

from foltr.errors import PrivacyError, SpecError
from foltr.federation.releases import release_event, secagg_modes
from foltr.privacy.events import Event, check_composable
from foltr.privacy.mechanisms import ReleaseContext, SecAggMode
from foltr.privacy.noise import SystemStream
from foltr.rng import Stream, stream
from foltr.testing.laws import array_of, attempt, copies, demand, demand_unchanged
from foltr.types import Array

_ACTS_ON = ("delta", "outcome", "nothing")
_MODES = get_args(SecAggMode)
_SIZES = (1, 5, 46)  # parameters
_OUTCOMES = (2, 11, 1024)
_TRIES = 20


class Case(NamedTuple):
    context: ReleaseContext
    event: Event | None
    values: Array  # [P]
    draws: Stream


def check_mechanism(kind: type, **parameters: Any) -> None:
    """Raises AssertionError if `kind(**parameters)` breaks a law of mechanisms; says which, and with what."""
    mechanism = kind(**parameters)
    acts_on = getattr(mechanism, "acts_on", None)
    demand(acts_on in _ACTS_ON, mechanism, f"acts_on = {acts_on!r}; use one of {', '.join(_ACTS_ON)}")
    modes = secagg_modes(mechanism)
    demand({*modes} <= {*_MODES}, mechanism, f"secagg_modes = {modes!r}; use some of {', '.join(_MODES)}")
    for case in _cases(mechanism):
        _projects_parameters(mechanism, case)
        if acts_on == "outcome":
            _protects_outcomes(mechanism, case.context.outcomes)
        else:
            _protects_values(mechanism, case)
            _is_repeatable(mechanism, case)
            _appends_as_much_to_every_delta(mechanism, case)
            _adds_the_noise_it_states(mechanism, case)
            _leaves_the_noise_to_two_servers(mechanism, case)
            _goes_on_from_its_next_state(mechanism, case)


def _cases(mechanism: Any) -> Iterator[Case]:
    """Federations of one and of ten, in every mode that the mechanism declares; deltas short and long."""
    for mode, size in itertools.product(secagg_modes(mechanism), _SIZES):
        for participants, outcomes in zip((1, 10, 10), _OUTCOMES, strict=True):
            context = ReleaseContext(participants, 3, size, outcomes, secagg_mode=mode)
            try:
                event = _event(mechanism, context)
            except SpecError:
                if mode == "one-server":
                    raise
                return  # a kind may refuse two servers with some of its parameters
            for scale in (0.0, 0.01, 10.0):
                draws = stream(size, round=participants, purpose="noise")
                yield Case(context, event, scale * draws.skip(10**6).normal(size), draws)


def _event(mechanism: Any, context: ReleaseContext) -> Event | None:
    """The event that the mechanism states, and states again."""
    event, again = mechanism.event(context), mechanism.event(context)
    demand(event is None or isinstance(event, Event), mechanism, f"event returns {event!r}, no Event", context=context)
    demand(event == again, mechanism, "event gives two results for one federation", context=context)
    try:
        release_event(mechanism, context)
    except SpecError as problem:
        demand(False, mechanism, f"the event does not fit the mode: {problem}", context=context)
    if event is not None:
        try:
            check_composable([event])
        except PrivacyError as problem:
            demand(False, mechanism, f"the event cannot be accounted for: {problem}", context=context)
    return event


def _projects_parameters(mechanism: Any, case: Case) -> None:
    before = case.values.copy()
    once, again = (
        array_of(mechanism.project(case.values), case.values.shape, "project", mechanism, values=case.values)
        for _ in range(2)
    )
    demand_unchanged({"values": before}, {"values": case.values}, mechanism, "project")
    demand(np.array_equal(once, again), mechanism, "project gives two results", values=case.values)


def _protects_values(mechanism: Any, case: Case) -> None:
    """With addressed numbers and with those of the operating system."""
    given = {"values": case.values}
    before, state = copies(given), mechanism.init_state()
    _protect(mechanism, case, state)
    demand_unchanged(before, given, mechanism, "protect")
    attempt(mechanism, "protect must work with SystemStream", lambda: _protect(mechanism, case, state, SystemStream()))


def _is_repeatable(mechanism: Any, case: Case) -> None:
    """All randomness comes from the draws."""
    once, again = (_protect(mechanism, case, mechanism.init_state()) for _ in range(2))
    demand(np.array_equal(once, again), mechanism, "the same draws give two results", values=case.values)


def _appends_as_much_to_every_delta(mechanism: Any, case: Case) -> None:
    """The server adds up what comes after the delta."""
    state = mechanism.init_state()
    extra = len(_protect(mechanism, case, state)) - len(case.values)
    other = case._replace(values=np.zeros(len(case.values) + 2))
    other_extra = len(_protect(mechanism, other, state)) - len(other.values)
    law = f"protect appends {extra} values to a delta of {len(case.values)} and {other_extra} to one of two more"
    demand(extra == other_extra, mechanism, law, values=case.values)


def _adds_the_noise_it_states(mechanism: Any, case: Case) -> None:
    """One contributor's share of noise is never nothing, so two streams do not give the same values."""
    if case.event is None or mechanism.acts_on != "delta" or case.event.noise_contributors > 1:
        return
    state = mechanism.init_state()
    one, other = (_protect(mechanism, case, state, case.draws.skip(step)) for step in (0, 10**5))
    law = "the event states noise, but other draws give the same values"
    demand(not np.array_equal(one, other), mechanism, law, event=case.event, values=case.values)


def _leaves_the_noise_to_two_servers(mechanism: Any, case: Case) -> None:
    """Noise of clients beside that of the servers would be accounted for by nobody. Without noise of its own, a message
    shows whether it is clipped to the bound, and servers add noise to nothing but the update."""
    if case.context.secagg_mode == "one-server" or case.event is None:
        return
    state = mechanism.init_state()
    one, other = (_protect(mechanism, case, state, case.draws.skip(step)) for step in (0, 10**5))
    law = "two servers add the noise, but other draws give other values"
    demand(np.array_equal(one, other), mechanism, law, event=case.event, values=case.values)
    norm, extra = float(np.linalg.norm(one)), len(one) - len(case.values)
    law = f"two servers add noise to the update alone, but protect appends {extra} values"
    demand(extra == 0, mechanism, law, event=case.event, values=case.values)
    law = f"two servers add noise for a bound of {case.event.bound:g}, but protected values have an L2 norm of {norm:g}"
    demand(norm <= case.event.bound * (1 + 1e-9), mechanism, law, event=case.event, values=case.values)


def _goes_on_from_its_next_state(mechanism: Any, case: Case) -> None:
    """Clients are told the next state; the one before still means what it meant."""
    state = mechanism.init_state()
    before = _protect(mechanism, case, state)
    extra = case.context.participants * before[len(case.values) :]
    following, again = (mechanism.next_state(state, extra, case.context) for _ in range(2))
    after = _protect(mechanism, case, state)
    demand(np.array_equal(before, after), mechanism, "next_state changes the state it is given", extra=extra)
    one, other = (_protect(mechanism, case, found) for found in (following, again))
    demand(np.array_equal(one, other), mechanism, "next_state gives two results", extra=extra)
    demand(one.shape == before.shape, mechanism, "protect gives another shape under the next state", extra=extra)


def _protects_outcomes(mechanism: Any, outcomes: int) -> None:
    """An outcome stays an outcome: a whole number below how many there are."""
    for outcome in range(0, outcomes, max(1, outcomes // 5)):
        for attempted in range(_TRIES):
            draws, given = stream(attempted, purpose="privatise"), {"outcome": outcome, "outcomes": outcomes}
            reported, again = (mechanism.protect(outcome, outcomes, None, draws) for _ in range(2))
            demand(reported == again, mechanism, "the same draws give two results", **given)
            fresh = attempt(
                mechanism, "protect must work with SystemStream",
                partial(mechanism.protect, outcome, outcomes, None, SystemStream()), **given,
            )  # fmt: skip
            for found in (reported, fresh):
                known = isinstance(found, int | np.integer) and bool(0 <= found < outcomes)
                demand(known, mechanism, f"protect gives {found!r}, no outcome below {outcomes}", **given)


def _protect(mechanism: Any, case: Case, state: Any, draws: Any = None) -> Array:
    """The values as they leave: as many as were given, or more."""
    found = mechanism.protect(case.values, state, case.event, case.draws if draws is None else draws)
    shape, size = np.shape(found), len(case.values)
    length = len(found) if len(shape) == 1 else 0
    law = f"protect gives the shape {shape}; keep the {size} values and append to them at most"
    demand(length >= size, mechanism, law, values=case.values)
    return array_of(found, (length,), "protect", mechanism, values=case.values)
