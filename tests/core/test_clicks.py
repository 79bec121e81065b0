"""Simulated users: their tables, how often they click what, and what is refused."""

import itertools

import msgspec
import numpy as np
import pytest
from by_hand import fit, pattern_probability, patterns, read_only
from hypothesis import given
from hypothesis import strategies as st

from foltr._kernels.cohort import Candidates, ClickTables, click_list
from foltr._kernels.workspace import workspace_for
from foltr.clicks import USERS, ClickModel, ClickTable, Users, click_model, clicks_on
from foltr.errors import SpecError
from foltr.rng import stream

# the tables as printed: P(click | grade) / P(stop | click, grade), grade 0 first
PRINTED = """
perfect        0 1               / 0 0
perfect        0 .5 1            / 0 0 0
perfect        0 .2 .4 .8 1      / 0 0 0 0 0
navigational   .05 .95           / .2 .9
navigational   .05 .5 .95        / .2 .5 .9
navigational   .05 .3 .5 .7 .95  / .2 .3 .5 .7 .9
informational  .3 .7             / .1 .5
informational  .4 .7 .9          / .1 .3 .5
informational  .4 .6 .7 .8 .9    / .1 .2 .3 .4 .5
poison         1 0               / 0 0
poison         1 .5 0            / 0 0 0
poison         1 .8 .4 .2 0      / 0 0 0 0 0
"""


def printed():
    for line in PRINTED.strip().splitlines():
        name, *numbers = line.split()
        cut = numbers.index("/")
        yield name, [float(n) for n in numbers[:cut]], [float(n) for n in numbers[cut + 1 :]]


def compiled_clicks(grades, users, draws):
    """Clicks of the kernel on a list that shows the documents of these grades in another order of storage."""
    k = len(grades)
    stored = np.array([9, *reversed(grades)], dtype=np.int8)  # a document of another query comes first
    workspace = workspace_for(k, k, 0, 1)
    workspace.ranking[:], workspace.clicks[:] = np.arange(k)[::-1], True
    tables = ClickTables(np.stack([np.full_like(users.click, np.nan), users.click]), np.stack([users.stop, users.stop]))
    at = np.uint64(draws.start), np.uint64(draws.stride)
    click_list(read_only(stored), Candidates(0, 1, k, k), tables, 1, at, draws.position, workspace)
    return workspace.clicks


@pytest.mark.parametrize(("name", "click", "stop"), list(printed()), ids=lambda value: str(value))
def test_tables_are_the_printed_ones(name, click, stop):
    users = click_model(Users(name, k=10), grades=len(click))
    assert users.click.tolist() == [click] * 10  # a cascade user clicks alike at every rank
    assert users.stop.tolist() == stop


def test_there_are_no_other_tables():
    assert {(name, grades) for name in USERS for grades in USERS[name]} == {(n, len(c)) for n, c, _ in printed()}


@pytest.mark.parametrize("eta", [0, 0.5, 1, 1.5, 2])
def test_position_users_click_less_the_lower_and_never_stop(eta):
    users = click_model(Users("perfect", model="position", eta=eta, k=4), grades=3)
    for rank, (grade, chance) in itertools.product((1, 2, 3, 4), enumerate([0, 0.5, 1])):
        assert users.click[rank - 1, grade] == pytest.approx(chance / rank**eta)
    assert users.stop.tolist() == [0, 0, 0]


LIST = [0, 2, 1, 0, 2]


@pytest.mark.parametrize(
    ("users", "grades"),
    [
        (Users("perfect", k=5), LIST),
        (Users("navigational", k=5), LIST),
        (Users("informational", k=5), LIST),
        (Users("poison", k=5), LIST),
        (Users("informational", k=5), [2, 1]),  # a list shorter than what is shown
        (Users("informational", model="position", eta=1.0, k=5), LIST),
        (Users("perfect", model="position", eta=0.5, k=5), LIST),
        (Users(ClickTable((0.3, 0.6, 0.8), (0.5, 0.0, 1.0)), k=5), LIST),
    ],
    ids=str,
)
def test_patterns_of_clicks_come_as_often_as_the_model_says(users, grades):
    model = click_model(users, grades=3)
    expected = {
        pattern: pattern_probability(pattern, grades, model.click, model.stop) for pattern in patterns(len(grades))
    }
    assert sum(expected.values()) == pytest.approx(1)
    draws = stream(31, purpose="clicks")
    seen = [tuple(compiled_clicks(grades, model, draws.skip(10 * i)).tolist()) for i in range(10_000)]
    assert fit(seen, expected) > 1e-3  # false alarm 1 in 1,000 for each of the eight


@given(
    grades=st.lists(st.integers(0, 2), min_size=1, max_size=10),
    chances=st.lists(st.floats(0, 1), min_size=30, max_size=30),
    stops=st.lists(st.floats(0, 1), min_size=3, max_size=3),
    client=st.integers(0, 10**6),
    position=st.integers(0, 10**6),
)
def test_both_simulations_click_the_same(grades, chances, stops, client, position):
    users = ClickModel(np.array(chances).reshape(10, 3), np.array(stops))
    draws = stream(1, client=client, purpose="clicks").skip(position)
    slow = clicks_on(np.array(grades), users, draws.uniform(2 * len(grades)))
    assert slow.tolist() == compiled_clicks(grades, users, draws).tolist()


def test_clicks_by_eye():
    users = click_model(Users("navigational", k=4), grades=3)  # click .05 .5 .95, stop .2 .5 .9
    #                   grade 0 at .05  grade 1 below .5, goes on   grade 2 below .95, stops   never read
    uniforms = np.array([0.05, 0.00, 0.49, 0.50, 0.94, 0.89, 0.00, 0.00])
    assert clicks_on(np.array([0, 1, 2, 2]), users, uniforms).tolist() == [False, True, True, False]


def test_a_user_never_stops_at_what_was_not_clicked():
    always_stops = ClickModel(np.tile([0.0, 1.0], (3, 1)), np.array([1.0, 1.0]))
    assert clicks_on(np.array([0, 0, 1]), always_stops, np.zeros(6)).tolist() == [False, False, True]
    assert clicks_on(np.array([1, 1, 1]), always_stops, np.zeros(6)).tolist() == [True, False, False]


def test_a_table_of_ones_own():
    users = click_model(Users(ClickTable((0.1, 0.2, 0.3, 0.4), (0.5, 0.6, 0.7, 0.8)), k=2), grades=4)
    assert users.click.tolist() == [[0.1, 0.2, 0.3, 0.4]] * 2
    assert users.stop.tolist() == [0.5, 0.6, 0.7, 0.8]


def test_a_table_for_more_grades_serves_a_collection_of_fewer():
    users = click_model(Users(ClickTable((0.1, 0.2, 0.3), (0.4, 0.5, 0.6)), k=1), grades=2)
    assert (users.click.tolist(), users.stop.tolist()) == ([[0.1, 0.2]], [0.4, 0.5])


def test_a_table_for_fewer_grades_is_refused():
    users = Users(ClickTable((0.1, 0.2), (0.3, 0.4)))
    with pytest.raises(SpecError, match=r"users\.clicks: the table has 2 grades, the collection 3 \(labels up to 2\)"):
        click_model(users, grades=3)


def test_a_named_table_that_does_not_exist_for_the_grades_says_what_to_write():
    with pytest.raises(SpecError, match=r"'perfect' is defined for 2, 3, 5 grades, the collection has 4; give a table"):
        click_model(Users("perfect"), grades=4)


@pytest.mark.parametrize(("click", "stop"), [((0.1, 0.2), (0.1,)), ((0.1,), (0.1,)), ((), ())])
def test_a_table_with_gaps_is_refused(click, stop):
    with pytest.raises(ValueError, match=f"got {len(click)} click and {len(stop)} stop values"):
        ClickTable(click, stop)


@pytest.mark.parametrize("wrong", [-0.1, 1.1, float("nan"), "often"])
@pytest.mark.parametrize("where", ["click", "stop"])
def test_what_is_no_probability_is_refused_and_named(where, wrong):
    table = {"click": [0.1, 0.9], "stop": [0.1, 0.9], where: [0.1, wrong]}
    with pytest.raises(msgspec.ValidationError, match=where):
        msgspec.convert({"clicks": table}, Users)


def test_unknown_users_and_models_list_the_known_ones():
    with pytest.raises(ValueError, match="no users 'hasty'; there are perfect, navigational, informational, poison"):
        Users("hasty")
    with pytest.raises(ValueError, match="no click model 'dbn'; there are cascade, position"):
        Users(model="dbn")
