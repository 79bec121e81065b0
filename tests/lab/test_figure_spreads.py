"""Claims about differences, spreads and variation, decided on runs made by hand."""

import polars as pl
import pytest
from figure_runs import CURVE, SCHEMA, final, run_of, users

from foltr.lab.figures.claims import claims

METRIC = "offline_ndcg@10"


def decided(run, kind, left="perfect", right="poison", **claim):
    sides = {"left": {"users.clicks": left}, "right": {"users.clicks": right}}
    (found,) = claims(run, {"claim": [{"text": "x", "id": "x", "kind": kind, "metric": METRIC, **sides, **claim}]})
    assert found.id == "x"
    return found


def test_only_a_significant_lead_counts(tmp_path):
    def run(*numbers):
        return run_of(tmp_path, (users("perfect"), final(*numbers)), (users("poison"), final(0.5, 0.5)))

    # differences .1 and .3: t = .2 / .1 = 2 with one degree of freedom, p = .295
    assert decided(run(0.6, 0.8), "never-clearly-greater").holds is True
    # differences .19 and .21: t = 20, p = .032
    assert decided(run(0.69, 0.71), "never-clearly-greater").holds is False
    assert decided(run(0.3, 0.3), "never-clearly-greater").holds is True
    assert decided(run(0.6), "never-clearly-greater").holds is None


def test_a_difference_is_compared_with_that_of_another_pair(tmp_path):
    run = run_of(
        tmp_path,
        (users("perfect"), final(0.6)),
        (users("navigational"), final(0.55)),
        (users("informational"), final(0.4)),
    )
    others = {"other_left": {"users.clicks": "perfect"}, "other_right": {"users.clicks": "navigational"}}
    found = decided(run, "larger-difference", "navigational", "informational", **others)
    assert (found.holds, found.evidence) == (True, "+0.1500 against +0.0500")
    back = {"other_left": {"users.clicks": "navigational"}, "other_right": {"users.clicks": "informational"}}
    assert decided(run, "larger-difference", "perfect", "navigational", **back).holds is False


def test_a_difference_is_compared_with_that_of_another_place(tmp_path):
    run = run_of(tmp_path, (users("perfect"), {(1, 1): [0.9] * 100}), (users("poison"), {(1, 1): CURVE}))
    assert decided(run, "larger-difference", at="fifth", other_at="last_tenth").holds is True
    assert decided(run, "larger-difference", at="last_tenth", other_at="fifth").holds is False


def test_the_spread_of_means_is_that_of_each_group(tmp_path):
    levels = {"perfect": (0.5, 0.52), "poison": (0.4, 0.5)}
    settings = [
        (users(name, privacy={"epsilon": level}), final(value))
        for name, values in levels.items()
        for level, value in enumerate(values)
    ]
    found = decided(run_of(tmp_path, *settings), "less-spread", by=["data.name"])
    assert (found.holds, found.evidence) == (True, "mq2007: 0.0200 against 0.1000")
    assert decided(run_of(tmp_path, *settings), "less-spread", "poison", "perfect", by=["data.name"]).holds is False


def test_variation_is_the_standard_deviation_over_runs(tmp_path):
    run = run_of(tmp_path, (users("perfect"), final(0.4, 0.6)), (users("poison"), final(0.5, 0.52)))
    assert decided(run, "more-variable").holds is True
    assert decided(run, "more-variable", "poison", "perfect").holds is False
    assert (
        decided(run_of(tmp_path, (users("perfect"), final(0.4)), (users("poison"), final(0.5))), "more-variable").holds
        is None
    )


@pytest.mark.parametrize(
    ("kind", "since", "margin", "holds"),
    [
        ("rises", "first", 0.9, True),  # from .01 to a mean of .955 in the last tenth
        ("rises", "first", 0.95, False),
        ("rises", "fifth", 0.7, True),  # from .2
        ("rises", "fifth", 0.8, False),
        ("never-rises", "fifth", 0.8, True),
        ("never-rises", "first", 0.9, False),
    ],
)
def test_a_curve_rises_from_the_first_round_or_the_fifth_of_the_run(tmp_path, kind, since, margin, holds):
    run = run_of(tmp_path, (users("perfect"), {(1, 1): CURVE}))
    assert decided(run, kind, since=since, margin=margin).holds is holds


@pytest.mark.parametrize(("gains", "holds"), [((0.05, 0.01), True), ((0.01, 0.05), False)])
def test_the_weakest_party_is_compared_with_the_strongest(tmp_path, gains, holds):
    run = run_of(tmp_path, (users("perfect"), final(0.5)))
    numbers = {"Local of 1": 0.3, "Local of 2": 0.4, "gain of 1": gains[0], "gain of 2": gains[1]}
    rows = [(0, 1, 1, 2, name, value) for name, value in numbers.items()]
    more = pl.DataFrame(rows, schema=SCHEMA, orient="row").with_columns(client=pl.lit(""))
    names = {"metric": "Local of {party}", "gain": "gain of {party}", "parties": 2}
    found = decided(run._replace(rows=pl.concat([run.rows, more])), "weakest-gains-most", **names)
    assert found.holds is holds
    assert f"{gains[0]:+.4f} against {gains[1]:+.4f}" in found.evidence


def test_the_lead_of_the_weakest_party_has_a_standard_error_over_the_runs(tmp_path):
    """The weakest party is another one in every run: leads of .04, .06 and .08, standard error .02 / sqrt(3)."""
    run = run_of(tmp_path, (users("perfect"), final(0.5, 0.5, 0.5)))
    of_runs = [(0.3, 0.4, 0.05, 0.01), (0.4, 0.3, 0.01, 0.07), (0.3, 0.4, 0.09, 0.01)]
    names = ("Local of 1", "Local of 2", "gain of 1", "gain of 2")
    rows = [
        (0, 1, seed, 2, name, value)
        for seed, numbers in enumerate(of_runs, start=1)
        for name, value in zip(names, numbers, strict=True)
    ]
    more = pl.DataFrame(rows, schema=SCHEMA, orient="row").with_columns(client=pl.lit(""))
    claim = {"metric": "Local of {party}", "gain": "gain of {party}", "parties": 2}
    found = decided(run._replace(rows=pl.concat([run.rows, more])), "weakest-gains-most", **claim)
    assert found.holds
    assert "+0.0700 against +0.0100 (+0.0600 ± 0.0115, 3 runs)" in found.evidence
