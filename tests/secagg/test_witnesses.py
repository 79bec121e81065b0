"""Signatures on the survivors from members drawn apart from the circle, in real rounds with a sparse graph."""

import msgspec
import numpy as np
import pytest
from small_rounds import asked, content, federation, plain_sum, run, until

from foltr.errors import SecureAggregationError
from foltr.secagg import messages
from foltr.secagg.client import answer
from foltr.secagg.messages import guaranteed, shape_of, witnesses
from foltr.secagg.witnesses import quorum_for

WIDE = federation(120, length=2)
ME = 10


def wanted(state):
    members = messages.set_of(state.members, state.registry)
    return witnesses(
        state.terms, state.sizes, members, state.neighbours, state.threshold, view=state.view, client=state.id
    )


def test_a_round_with_drawn_witnesses_is_exact():
    names = list(WIDE.identities)
    found = run(WIDE, drop={"mask": set(names[:5]), "agree": set(names[5:8])})
    assert found.included == tuple(names[5:])
    np.testing.assert_array_equal(found.total, plain_sum(WIDE, names[5:]))


def test_one_signature_less_opens_nothing():
    _, states, requests = until(WIDE, "unmask")
    body = content(requests[ME], messages.Agreements)
    needed = wanted(states[ME]).needed
    assert sum(map(bool, body.signatures)) == needed
    answer(states[ME], requests[ME])
    first = next(place for place, one in enumerate(body.signatures) if one)
    fewer = [b"" if place == first else one for place, one in enumerate(body.signatures)]
    with pytest.raises(SecureAggregationError, match=f"{needed - 1} witnesses signed the survivors, at least {needed}"):
        answer(states[ME], asked(WIDE, "unmask", ME, msgspec.structs.replace(body, signatures=fewer)))


def test_signatures_of_an_arc_around_a_client_are_not_enough():
    """Of its witnesses only those count that are there, however many neighbours have signed."""
    _, states, requests = until(WIDE, "unmask")
    body, asked_for = content(requests[ME], messages.Agreements), wanted(states[ME]).clients
    near = [one if name in states[ME].neighbours else b"" for name, one in zip(asked_for, body.signatures, strict=True)]
    with pytest.raises(SecureAggregationError, match="witnesses signed the survivors"):
        answer(states[ME], asked(WIDE, "unmask", ME, msgspec.structs.replace(body, signatures=near)))


def test_witnesses_differ_between_clients_and_graphs_and_are_no_choice_of_the_server():
    _, states, _ = until(WIDE, "unmask")
    drawn = {name: wanted(state).clients for name, state in states.items()}
    sizes = guaranteed(WIDE.terms, WIDE.registry)
    quorum = quorum_for(120, sizes, shape_of(WIDE.terms, sizes, 120), failure=WIDE.terms.failure)
    assert all(len(clients) == quorum.number and name not in clients for name, clients in drawn.items())
    assert len(set(drawn.values())) == 120
    other = msgspec.structs.replace(states[ME], view=bytes(32))
    assert wanted(other).clients != drawn[ME]


def test_where_all_are_neighbours_they_are_the_witnesses():
    small = federation(6, length=1)
    _, states, _ = until(small, "unmask")
    assert all(wanted(state) == (state.neighbours, state.threshold) for state in states.values())
