"""What several rounds tell, with noise and without: figures against played attacks, and the words about them."""

import math
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import ndtr

from foltr.errors import SpecError
from foltr.federation.deployment import (
    CIRCLES,
    CORRELATIONS,
    DEPLOYED,
    MEASURED,
    circle_words,
    explained,
    open_promises,
    several_rounds,
)
from foltr.rng import stream
from foltr.secagg.terms import Terms, new_federation

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "explanation-privacy.md").read_text("utf-8")


def epsilon_of(mu, delta):
    def excess(target):
        return ndtr(mu / 2 - target / mu) - math.exp(target) * ndtr(-mu / 2 - target / mu) - delta

    if excess(700.0) > 0:
        return math.inf
    return brentq(excess, 0.0, 700.0) if excess(0.0) > 0 else 0.0


@pytest.mark.parametrize("members", CIRCLES)
@pytest.mark.parametrize("correlation", CORRELATIONS)
def test_the_share_that_a_difference_explains_is_that_of_a_played_attack(members, correlation):
    """40,000 coordinates; the estimate's correlation with the new update, squared, has a standard error below .005."""
    draws = stream(7, purpose="data", round=members, client=int(100 * correlation))
    drawn = draws.normal(40_000 * (2 * members - 1)).reshape(2 * members - 1, 40_000)
    victim, before, fresh = drawn[0], drawn[1:members], drawn[members:]
    after = correlation * before + math.sqrt(1 - correlation**2) * fresh
    estimate = (after.sum(axis=0) + victim) - correlation * before.sum(axis=0)
    played = np.corrcoef(estimate, victim)[0, 1] ** 2
    assert explained(members - 1, correlation=correlation) == pytest.approx(played, abs=0.02)
    assert explained(members - 1, correlation=correlation) == pytest.approx(
        1 / (1 + (members - 1) * (1 - correlation**2))
    )


def test_more_sums_colluders_and_steadier_updates_never_explain_less():
    for correlation in CORRELATIONS:
        one = explained(9, correlation=correlation)
        assert explained(9, correlation=correlation, before=5, after=5) >= one - 1e-9
        assert explained(8, correlation=correlation) >= one - 1e-9
    shares = [explained(9, correlation=correlation) for correlation in CORRELATIONS]
    assert shares == sorted(shares)


def test_while_a_circle_stays_the_same_its_sums_explain_one_share_of_each_update():
    for members in CIRCLES:
        assert explained(members - 1, correlation=0.99, before=0, after=5) == pytest.approx(1 / members)


def test_open_promises_follow_from_the_noise_of_both_operators():
    for row in open_promises(parameters=46, delta=1e-5, missing=0.1):
        for level, epsilon in ((1 / 2, row.usable), (1 / 8, row.unnoticed)):
            multiplier = level * row.fewest / math.sqrt(2 * 46)
            exact = epsilon_of(math.sqrt(row.rounds) / multiplier, 1e-5)
            assert epsilon == (pytest.approx(exact, rel=1e-6) if exact <= 4 else None)


def test_the_tables_of_the_documentation_are_the_computed_ones():
    rows = {(row.members, row.rounds): row for row in open_promises(parameters=46, delta=1e-5, missing=0.1)}
    lines = PAGE.split("usable epsilon with two operators")[1].splitlines()[2:9]
    assert len(lines) == 7
    for line in lines:
        members, sums, rounds, *cells = [cell.strip() for cell in line.strip("|").split("|")]
        row = rows[int(members.replace(",", "")), int(rounds)]
        assert int(sums.split()[0].replace(",", "")) == row.fewest
        for cell, epsilon in zip(cells, (row.usable, row.unnoticed), strict=True):
            assert cell == "none" if epsilon is None else float(cell) == pytest.approx(epsilon, rel=0.03)
    lines = PAGE.split("| circle of |")[1].splitlines()[2:5]
    for members, line in zip(CIRCLES, lines, strict=True):
        first, *cells = [cell.strip() for cell in line.strip("|").split("|")]
        assert int(first) == members
        shares = [explained(members - 1, correlation=correlation) for correlation in CORRELATIONS]
        assert cells == [f"{share:.0%}".replace("%", " %") for share in shares]


def test_words_of_a_federation_with_noise_state_everything_that_an_epsilon_needs():
    terms = Terms(new_federation(), 46, bits=64, fraction=32, noise_multiplier=8.7)
    said = " ".join(several_rounds(terms, members=100, rounds=53, delta=1e-6))
    for part in ("53 rounds together 3.99", "delta 1e-06", "one operator with any number of members", "unit: one node",
                 "replaced by zero", f"epsilon {epsilon_of(1 / 8.7, 1e-6):.2g}"):  # fmt: skip
        assert part in said


@pytest.mark.parametrize(("members", "share"), [(5, "93%"), (10, "85%"), (20, "73%")])
def test_words_of_a_circle_say_what_a_change_of_members_shows(members, share):
    terms = Terms(new_federation(), 46, bits=64, fraction=32, dropouts=0.0)
    said = several_rounds(terms, members=members, rounds=52, delta=1e-6)
    assert said == circle_words(members)
    assert f"with {members} members it explains {share} of the update" in said[1]
    assert "No epsilon is promised" in said[0]
    assert "subtract their own updates" in said[2]


def test_the_documentation_uses_the_same_words_and_says_what_is_deployed():
    text = " ".join(PAGE.split())
    changes = "if one member alone learned something new in between, the change is what that member learned"
    joins = "Where the circle changes by one member between two sums, their difference is that member's update"
    for sentence in (changes, joins):
        assert sentence in text
        assert any(sentence in said for said in circle_words(5))
    for kind in ("open", "circle"):
        command = DEPLOYED[kind].split("`")[1]
        assert f"`{command}`" in PAGE
    assert "no command deploys" in DEPLOYED["server"]
    assert "one server, which no command deploys" in PAGE
    assert MEASURED in CORRELATIONS


def test_impossible_questions_are_refused():
    for wrong in ({"others": -1, "correlation": 0.5}, {"others": 3, "correlation": 1.5}):
        with pytest.raises(SpecError, match="use 0 others or more"):
            explained(**wrong)
    with pytest.raises(SpecError, match="at least two"):
        circle_words(1)
