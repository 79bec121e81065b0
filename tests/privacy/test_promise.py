"""What a federation of a size can promise; expected figures from the formula of Gaussian noise, written with scipy."""

import json
import math
import subprocess
import sys
from pathlib import Path

import pytest
from scipy.optimize import brentq
from scipy.special import ndtr

from foltr.errors import SpecError
from foltr.lab.runs import planner
from foltr.privacy.promise import LARGEST_EPSILON, check_promised, promise, promises, words

DELTA = 1e-5


def epsilon_of(mu):
    def excess(target):
        return ndtr(mu / 2 - target / mu) - math.exp(target) * ndtr(-mu / 2 - target / mu) - DELTA

    return brentq(excess, 0.0, 700.0) if excess(0.0) > 0 else 0.0


def at_noise(level, survivors, honest, releases, parameters=46):
    """The epsilon at which noise of norm sqrt(P) z / sqrt(survivors honest) clips is this share of the clip."""
    z = level * math.sqrt(survivors * honest / parameters)
    return epsilon_of(math.sqrt(releases) / z)


# nodes, (fewest messages, colluders, honest), releases, epsilon with noise of half a clip, with an eighth
SIZES = [
    (20, (18, 2, 16), 1, 3.4, None),
    (100, (90, 10, 80), 5, 1.37, None),
    (100, (90, 10, 80), 20, 3.0, None),
    (1000, (900, 100, 800), 20, 0.24, 1.07),
    (10_000, (4500, 1000, 3500), 20, 0.044, 0.20),
]


@pytest.mark.parametrize(("clients", "sizes", "releases", "usable", "unnoticed"), SIZES)
def test_what_a_federation_of_this_size_can_promise(clients, sizes, releases, usable, unnoticed):
    found = promise(clients, releases)
    assert (found.sizes.min_clients, found.sizes.colluders, found.sizes.honest) == sizes
    assert found.usable == pytest.approx(at_noise(1 / 2, sizes[0], sizes[2], releases), rel=1e-6)
    assert found.usable == pytest.approx(usable, rel=0.02)
    assert (found.unnoticed is None) == (unnoticed is None)
    if unnoticed is not None:
        assert found.unnoticed == pytest.approx(at_noise(1 / 8, sizes[0], sizes[2], releases), rel=1e-6)
        assert found.unnoticed == pytest.approx(unnoticed, rel=0.02)


@pytest.mark.parametrize(
    ("clients", "releases", "present", "fewest", "stated"),
    [(20, 1, 3.19, 3.38, 3.0), (100, 5, 1.30, 1.37, 1.3), (100, 20, 2.81, 2.98, 3.0)],
)
def test_promises_with_everybody_present_and_with_the_fewest(clients, releases, present, fewest, stated):
    """A reviewer's round figures lie between the noise on the mean of all and on that of `min_clients`, or 6 % below.

    The printed table uses the fewest: a promise counts on nobody's presence.
    """
    sizes = promise(clients, releases).sizes
    found = [at_noise(1 / 2, n, sizes.honest, releases) for n in (clients, sizes.min_clients)]
    assert found == [pytest.approx(present, abs=0.006), pytest.approx(fewest, abs=0.006)]
    assert found[1] == pytest.approx(promise(clients, releases).usable, rel=1e-6)
    assert 0.94 * found[0] < stated < found[1] * 1.01


@pytest.mark.parametrize(
    ("clients", "epsilon", "releases", "noise"),
    [(20, 3.0, 1, 0.56), (100, 1.3, 5, 0.53), (100, 3.0, 20, 0.50), (1000, 1.0, 20, 0.13), (10_000, 0.25, 20, 0.10)],
)
def test_round_promises_and_their_noise_over_the_clip(clients, epsilon, releases, noise):
    """About 3 for one release of 20 nodes; 1.3 for five and 3 for twenty of 100; 1 of 1,000; .25 of 10,000."""
    sizes = promise(clients, releases).sizes
    level = brentq(lambda one: at_noise(one, sizes.min_clients, sizes.honest, releases) - epsilon, 0.02, 2)
    assert level == pytest.approx(noise, abs=0.006)
    assert level < 0.6


def test_five_nodes_have_sums_and_no_epsilon():
    found = promise(5, 1)
    assert (found.sizes.min_clients, found.sizes.honest) == (4, 3)
    assert at_noise(1 / 2, 4, 3, 1) > 20 > LARGEST_EPSILON
    assert (found.usable, found.unnoticed) == (None, None)
    assert words(found) == "sums of 4 or more (3 with the help of one node) and no epsilon."


@pytest.mark.parametrize("clients", [3, 4, 5, 10])
def test_the_planner_refuses_an_epsilon_to_a_handful_of_nodes(clients):
    with pytest.raises(SpecError, match=r"and no epsilon\. The noise of one release drowns 46 parameters"):
        planner.prepare(planner.Target(clients, 1.0, DELTA, 1, data="synthetic-mq2007@60"))


def test_nothing_is_planned_below_three():
    for clients in (1, 2):
        with pytest.raises(SpecError, match="at least three clients"):
            planner.prepare(planner.Target(clients, 1.0, DELTA, 1))
        with pytest.raises(SpecError, match="at least three clients"):
            promise(clients, 1)


def test_more_nodes_promise_more_and_more_releases_less():
    table = {(one.clients, one.releases): one.usable or math.inf for one in promises()}
    for (clients, releases), epsilon in table.items():
        for (more, fewer), other in table.items():
            if more >= clients and fewer <= releases:
                assert other <= epsilon
    check_promised(20, parameters=46, delta=DELTA, dropouts=0.1, corrupt=0.1)


def test_the_table_of_the_documentation_is_the_computed_one():
    page = (Path(__file__).parents[2] / "docs" / "explanation-privacy.md").read_text("utf-8")
    rows = [line.strip("|").split("|") for line in page.split("smallest usable epsilon")[1].splitlines()[2:8]]
    assert len(rows) == 6
    for nodes, sums, helped, releases, usable, unnoticed in [[cell.strip() for cell in row] for row in rows]:
        found = promise(int(nodes.split()[0].replace(",", "")), int(releases))
        sizes = [int(cell.split()[0].replace(",", "")) for cell in (sums, helped)]
        assert sizes == [found.sizes.min_clients, found.sizes.honest]
        for cell, value in ((usable, found.usable), (unnoticed, found.unnoticed)):
            assert cell.startswith("none") if value is None else float(cell) == pytest.approx(value, rel=0.03)


def test_the_command_prints_the_table_with_unit_adjacency_adversary_and_delta():
    done = subprocess.run([sys.executable, "-m", "foltr", "privacy", "promise"], capture_output=True, text=True)
    said = " ".join(done.stdout.split())
    for part in ("one node", "zero-out", "malicious server", "Delta 1e-05", "none none", "10,000 4,500 1,000 3,500"):
        assert part in said
    done = subprocess.run(
        [sys.executable, "-m", "foltr", "privacy", "promise", "--json"], capture_output=True, text=True
    )
    assert [one["usable"] for one in json.loads(done.stdout)["promises"][:3]] == [None] * 3
