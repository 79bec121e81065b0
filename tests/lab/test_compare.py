"""What a run says about a paper, on runs made by hand: verdicts, claims, and pairs of methods with their signs."""

import math

import msgspec
import polars as pl
import pytest

from foltr.lab.figures.claims import claims
from foltr.lab.figures.compare import comparisons, find, judge, values, verdicts
from foltr.lab.records import Claim, Manifest, Run
from foltr.lab.reporting.significance import paired_t

SCHEMA = {
    "setting": pl.Int32,
    "fold": pl.Int32,
    "seed": pl.Int64,
    "round": pl.Int64,
    "metric": pl.String,
    "value": pl.Float64,
}
DATA = {"name": "mq2007", "note": "85 % sample"}


def run_of(tmp_path, *settings, **manifest):
    """settings: (resolved, {(fold, seed): [value of round 1, 2, ...]}) of online_max_rr, and offline nDCG likewise."""
    rows, listed = [], []
    for index, (resolved, curves) in enumerate(settings):
        rounds = max(len(curve) for curve in curves.values())
        listed.append({"index": index, "resolved": resolved, "rounds": rounds, "data": DATA})
        for (fold, seed), curve in curves.items():
            for round, value in enumerate(curve, 1):
                for metric in ("online_max_rr", "online_ndcg@10", "discounted_online_ndcg", "offline_ndcg@10"):
                    rows.append((index, fold, seed, round, metric, float(value)))
    rows = pl.DataFrame(rows, schema=SCHEMA, orient="row")
    about = msgspec.convert({"settings": listed, **manifest}, Manifest)
    return Run(tmp_path, about, rows.with_columns(client=pl.lit("")))


def users(name, **more):
    return {"data": {"name": "mq2007"}, "users": {"clicks": name}, "part": "", **more}


def final(*numbers):
    """Runs that end at these numbers, one a fold."""
    return {(fold, 1): [0.0, number] for fold, number in enumerate(numbers, 1)}


# --- verdicts -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ours", "published", "tolerance", "verdict"),
    [
        (304.0, 300.0, "4 %", "reproduced"),
        (311.9, 300.0, "4 %", "reproduced"),  # 4 % of 300 is 12
        (312.3, 300.0, "4 %", "off by +4.1 %"),
        (288.1, 300.0, "4 %", "reproduced"),
        (287.4, 300.0, "4 %", "off by -4.2 %"),
        (300.0, 300.0, "0 %", "reproduced"),
        (0.419, 0.410, "0.01", "reproduced"),
        (0.420, 0.410, "0.01", "reproduced"),  # the edge itself, whatever binary fractions make of it
        (0.400, 0.410, ".01", "reproduced"),
        (0.4205, 0.410, "0.01", "off by +0.0105"),
        (0.3895, 0.410, "0.01", "off by -0.0205"),
    ],
)
def test_a_number_is_judged_by_a_share_or_by_a_distance(ours, published, tolerance, verdict):
    assert judge(ours, published, tolerance) == verdict


def expected(**changes):
    return {
        "expected": [
            {
                "source": "the paper",
                "where": {"data.name": "mq2007"},
                "metric": "offline_ndcg@10",
                "at": "final",
                "tolerance": "0.02",
                "by": ["users.clicks"],
                "rows": [["perfect", 0.5], ["poison", 0.3]],
                **changes,
            }
        ]
    }


def test_every_published_number_gets_a_verdict_with_mean_sd_and_runs(tmp_path):
    run = run_of(tmp_path, (users("perfect"), final(0.50, 0.52, 0.54)), (users("poison"), final(0.26, 0.26, 0.26)))
    one, two = verdicts(run, expected(), [])
    assert one.what == "mq2007, perfect: offline_ndcg@10"
    assert one.published == 0.5
    assert one.ours == pytest.approx(0.52)
    assert one.sd == pytest.approx(0.02)
    assert one.runs == 3
    assert one.data == "mq2007 (85 % sample)"
    assert one.verdict == "reproduced"
    assert two.verdict == "off by -0.0400"
    assert two.sd == 0.0


def test_the_quick_form_is_shown_but_not_judged(tmp_path):
    run = run_of(tmp_path, (users("perfect"), final(0.5)), (users("poison"), final(0.9)), quick=True)
    assert [row.verdict for row in verdicts(run, expected(), [])] == ["quick form: not judged"] * 2
    assert [row.ours for row in verdicts(run, expected(), [])] == [0.5, 0.9]


def test_numbers_on_data_that_is_not_here_say_so(tmp_path):
    run = run_of(tmp_path, (users("perfect"), final(0.5)))
    block = expected(where={"data.name": "yahoo"})
    assert [row.verdict for row in verdicts(run, block, ["yahoo"])] == ["data missing"] * 2
    assert [(row.ours, row.sd, row.runs) for row in verdicts(run, block, ["yahoo"])] == [(None, None, 0)] * 2


def test_numbers_of_settings_that_were_left_out_are_not_listed(tmp_path):
    run = run_of(tmp_path, (users("perfect"), final(0.5)))
    assert [row.what for row in verdicts(run, expected(), [])] == ["mq2007, perfect: offline_ndcg@10"]


CURVE = [t / 100 for t in range(1, 101)]  # the value of round t is t / 100


@pytest.mark.parametrize(
    ("at", "value"),
    [
        ("first", 0.01),
        ("fifth", 0.20),  # rounds 18 .. 22, the twentieth of the run around round 20
        ("last_tenth", 0.955),  # rounds 91 .. 100
        ("all", 0.505),  # the mean of a whole run
    ],
)
def test_a_number_can_be_read_off_a_curve_in_several_places(tmp_path, at, value):
    run = run_of(tmp_path, (users("perfect"), {(1, 1): CURVE, (2, 1): CURVE}))
    found = values(run, run.manifest.settings[0], "online_max_rr", at)
    assert list(found.numbers) == pytest.approx([value, value])
    assert found.runs == [(1, 1), (2, 1)]


def test_the_final_value_is_that_of_the_last_round(tmp_path):
    run = run_of(tmp_path, (users("perfect"), {(1, 1): CURVE}))
    assert values(run, run.manifest.settings[0], "offline_ndcg@10", "final").mean == 1.0


def test_a_place_on_the_curve_is_named_in_the_verdict(tmp_path):
    run = run_of(tmp_path, (users("perfect"), {(1, 1): CURVE}))
    block = expected(at="last_tenth", metric="online_max_rr", rows=[["perfect", 0.96]])
    (row,) = verdicts(run, block, [])
    assert row.what == "mq2007, perfect: online_max_rr last tenth"
    assert row.verdict == "reproduced"


def test_settings_are_found_by_any_of_their_keys(tmp_path):
    run = run_of(
        tmp_path,
        (users("perfect", privacy={"kind": "fpdgd", "epsilon": 1.2}), final(0.5)),
        (users("perfect", privacy={"kind": "none"}), final(0.6)),
    )
    assert [one.index for one in find(run, {"privacy.epsilon": 1.2})] == [0]
    assert [one.index for one in find(run, {"users.clicks": "perfect"})] == [0, 1]
    assert find(run, {"users.clicks": "perfect", "privacy.epsilon": 2.3}) == []
    assert find(run, {"no.such.key": 1}) == []


# --- claims ---------------------------------------------------------------------------------------------------------


def greater(**changes):
    claim = {
        "text": "careful users teach better",
        "kind": "greater",
        "metric": "offline_ndcg@10",
        "left": {"users.clicks": "perfect"},
        "right": {"users.clicks": "poison"},
        **changes,
    }
    return {"claim": [claim]}


@pytest.mark.parametrize(("margin", "holds"), [(0.0, True), (0.09, True), (0.11, False), (-0.2, True)])
def test_greater_holds_beyond_its_margin(tmp_path, margin, holds):
    run = run_of(tmp_path, (users("perfect"), final(0.4, 0.6)), (users("poison"), final(0.31, 0.49)))
    (decided,) = claims(run, greater(margin=margin))
    evidence = "0.5000 against 0.4000 (+0.1000 ± 0.0100)"  # differences of .09 and .11
    assert decided == Claim("careful users teach better", holds, evidence)


def test_settings_with_other_runs_have_no_difference_by_run(tmp_path):
    run = run_of(tmp_path, (users("perfect"), final(0.4, 0.6)), (users("poison"), final(0.4)))
    (decided,) = claims(run, greater())
    assert decided.evidence == "0.5000 against 0.4000"


def test_equal_is_not_greater(tmp_path):
    run = run_of(tmp_path, (users("perfect"), final(0.5)), (users("poison"), final(0.5)))
    assert claims(run, greater())[0].holds is False


def test_greater_compares_settings_that_agree_on_the_other_keys(tmp_path):
    run = run_of(
        tmp_path,
        (users("perfect", ranker={"kind": "linear"}), final(0.5)),
        (users("perfect", ranker={"kind": "mlp"}), final(0.7)),
        (users("poison", ranker={"kind": "linear"}), final(0.6)),
        (users("poison", ranker={"kind": "mlp"}), final(0.6)),
    )
    (decided,) = claims(run, greater(by=["ranker.kind"]))
    assert decided.holds is False
    assert decided.evidence == "1 of 2: linear: 0.5000 against 0.6000; mlp: 0.7000 against 0.6000"


def test_most_cases_are_more_than_half(tmp_path):
    kinds = ("linear", "mlp", "tree")
    run = run_of(
        tmp_path,
        *((users("perfect", ranker={"kind": kind}), final(0.5)) for kind in kinds),
        *((users("poison", ranker={"kind": kind}), final(0.4 if kind != "tree" else 0.6)) for kind in kinds),
    )
    assert claims(run, greater(by=["ranker.kind"]))[0].holds is False
    assert claims(run, greater(by=["ranker.kind"], majority=True))[0].holds is True


def test_a_decidedwithout_its_data_is_not_decided(tmp_path):
    run = run_of(tmp_path, (users("perfect"), final(0.5)))
    (decided,) = claims(run, greater())
    assert decided.holds is None
    assert "not on this machine" in decided.evidence


def test_the_quick_form_decides_no_claim(tmp_path):
    run = run_of(tmp_path, (users("perfect"), final(0.5)), (users("poison"), final(0.4)), quick=True)
    assert claims(run, greater())[0].holds is None


@pytest.mark.parametrize(("kind", "margin", "holds"), [
    ("close", 0.11, True), ("close", 0.09, False), ("never-greater", 0.11, True), ("never-greater", 0.09, False),
])  # fmt: skip
def test_claims_of_no_difference_hold_within_their_margin(tmp_path, kind, margin, holds):
    run = run_of(tmp_path, (users("perfect"), final(0.5)), (users("poison"), final(0.4)))
    assert claims(run, greater(kind=kind, margin=margin))[0].holds is holds


def test_lower_is_not_close_and_never_greater(tmp_path):
    run = run_of(tmp_path, (users("perfect"), final(0.2)), (users("poison"), final(0.4)))
    assert claims(run, greater(kind="close", margin=0.1))[0].holds is False
    assert claims(run, greater(kind="never-greater"))[0].holds is True


def test_falling_along_a_key_goes_by_its_values_and_not_by_the_order_of_settings(tmp_path):
    amounts = {3: 0.2, 1: 0.4, 2: 0.3}
    falling = [(users("perfect", attack={"num_attackers": m}), final(mean)) for m, mean in amounts.items()]
    level = [(users("poison", attack={"num_attackers": m}), final(0.4)) for m in amounts]
    claim = {"text": "more harm", "kind": "falls-along", "metric": "offline_ndcg@10", "along": "attack.num_attackers"}
    claim |= {"left": {}, "by": ["users.clicks"]}
    (decided,) = claims(run_of(tmp_path, *falling, *level), {"claim": [claim]})
    assert decided.holds is False
    assert decided.evidence == "1 of 2: perfect: 0.4000 > 0.3000 > 0.2000; poison: 0.4000, 0.4000, 0.4000"
    assert claims(run_of(tmp_path, *falling), {"claim": [claim]})[0].holds is True


@pytest.mark.parametrize(("margin", "holds"), [(0.0, False), (0.11, True)])
def test_rising_along_a_key_may_step_back_by_its_margin(tmp_path, margin, holds):
    amounts = {1: 0.2, 2: 0.4, 3: 0.3}
    steps = [(users("perfect", attack={"num_attackers": m}), final(mean)) for m, mean in amounts.items()]
    claim = {"text": "helps", "kind": "rises-along", "metric": "offline_ndcg@10", "along": "attack.num_attackers"}
    claim |= {"left": {}, "by": ["users.clicks"], "margin": margin}
    assert claims(run_of(tmp_path, *steps), {"claim": [claim]})[0].holds is holds
    assert claims(run_of(tmp_path, *steps[1:]), {"claim": [claim]})[0].holds is False  # ends lower than it began


@pytest.mark.parametrize(("margin", "holds"), [(0.2, True), (0.19, False)])
def test_a_ratio_is_stated_as_a_fraction(tmp_path, margin, holds):
    run = run_of(tmp_path, (users("perfect"), final(0.1)), (users("poison"), final(0.5)))
    (decided,) = claims(run, greater(kind="ratio", margin=margin))
    assert decided.holds is holds
    assert decided.evidence == "0.1000 against 0.5000: 1 / 5.0"


@pytest.mark.parametrize(("kind", "margin", "holds"), [
    ("above-own", 0.09, True), ("above-own", 0.11, False), ("near-own", 0.11, True), ("near-own", 0.09, False),
    ("below", 0.6, True), ("below", 0.5, False),
])  # fmt: skip
def test_claims_about_further_numbers_of_the_same_runs(tmp_path, kind, margin, holds):
    run = run_of(tmp_path, (users("perfect"), final(0.5, 0.3)))
    attacked = pl.DataFrame([(0, 1, 1, 2, "attacked", 0.4), (0, 2, 1, 2, "attacked", 0.2)], schema=SCHEMA, orient="row")
    run = run._replace(rows=pl.concat([run.rows, attacked.with_columns(client=pl.lit(""))]))
    claim = {"text": "recovers", "kind": kind, "metric": "offline_ndcg@10", "than": "attacked", "margin": margin}
    (decided,) = claims(run, {"claim": [claim | {"left": {}, "by": ["users.clicks"]}]})
    assert decided.holds is holds  # means .4 and .3; the highest single run is .5
    assert decided.evidence.startswith("perfect: ")


@pytest.mark.parametrize(("curve", "holds"), [(CURVE, False), (CURVE[::-1], True)], ids=["rising", "falling"])
def test_falls_compares_the_end_with_a_fifth_of_the_run(tmp_path, curve, holds):
    run = run_of(tmp_path, (users("perfect"), {(1, 1): curve}))
    claim = {"text": "it falls", "kind": "falls", "metric": "online_max_rr", "left": {}, "by": ["users.clicks"]}
    (decided,) = claims(run, {"claim": [claim]})
    assert decided.holds is holds
    early, late = (0.2, 0.955) if not holds else (0.81, 0.055)
    assert decided.evidence == f"perfect: {early:.4f} after a fifth, {late:.4f} in the last tenth"


@pytest.mark.parametrize(("factors", "spread", "holds"), [((1.02, 1.03), 0.015, True), ((1.02, 1.04), 0.015, False)])
def test_one_common_factor_is_judged_by_the_spread_of_the_ratios(tmp_path, factors, spread, holds):
    found = [("S0", 200.0, 200.0 * factor) for factor in factors] + [("S1", 1.0, 9.0), ("S0", 1.0, None)]
    listed = [{"what": "", "verdict": "", "source": name, "published": p, "ours": ours} for name, p, ours in found]
    run = run_of(tmp_path, (users("perfect"), final(0.5)), verdicts=listed)
    claim = {"text": "one factor", "kind": "common-factor", "source": "S0", "spread": spread}
    (decided,) = claims(run, {"claim": [claim]})
    assert decided.holds is holds
    assert f"ratios {factors[0]:.4f} to {factors[1]:.4f}" in decided.evidence
    assert f"spread {100 * (factors[1] / factors[0] - 1):.2f} %" in decided.evidence


def test_a_common_factor_of_no_numbers_is_not_decided(tmp_path):
    run = run_of(tmp_path, (users("perfect"), final(0.5)), verdicts=[])
    claim = {"text": "one factor", "kind": "common-factor", "source": "S0", "spread": 0.1}
    assert claims(run, {"claim": [claim]})[0].holds is None


# --- two methods side by side ---------------------------------------------------------------------------------------


def against(*rows):
    block = {
        "title": "A against B",
        "metric": "offline_ndcg@10",
        "left": {"users.clicks": "perfect"},
        "right": {"users.clicks": "poison"},
        "rows": [{"name": "all", "left": {}, "right": {}, **row} for row in rows or ({},)],
    }
    return {"comparison": [block]}


def compared(run, figure):
    (table,) = comparisons(run, figure, paired_t)
    return table.rows


def two(tmp_path, left, right, **manifest):
    return run_of(tmp_path, (users("perfect"), final(*left)), (users("poison"), final(*right)), **manifest)


# differences 1, 2, 3: t = 2 / (1 / sqrt 3) = 3.46, two degrees of freedom, p = 1 - t / sqrt(t^2 + 2) = .0742
LEFT, RIGHT, P = (5, 6, 7), (4, 4, 4), 1 - 12**0.5 / 14**0.5


def test_a_pair_of_methods_has_means_difference_and_p(tmp_path):
    (row,) = compared(two(tmp_path, LEFT, RIGHT), against())
    assert (row.setting, row.left, row.right, row.difference, row.runs) == ("all", 6, 4, 2, 3)
    assert row.p == pytest.approx(P)
    assert row.corrected_p == pytest.approx(P)
    assert row.mark == ""


def test_bonferroni_multiplies_by_the_number_of_rows_and_stops_at_one(tmp_path):
    run = two(tmp_path, LEFT, RIGHT)
    assert [row.corrected_p for row in compared(run, against({}, {}, {}))] == pytest.approx([3 * P] * 3)
    assert compared(run, against(*[{}] * 20))[0].corrected_p == 1.0


@pytest.mark.parametrize(
    ("p", "difference", "mark"),
    [
        (0.009, +1, "▲"),
        (0.011, +1, "△"),
        (0.049, +1, "△"),
        (0.051, +1, ""),
        (0.009, -1, "▼"),
        (0.011, -1, "▽"),
        (0.051, -1, ""),
    ],
)
def test_signs_are_filled_below_one_percent_and_open_below_five(tmp_path, p, difference, mark):
    run = two(tmp_path, (2 + difference,) * 3, (2, 2, 2))
    (table,) = comparisons(run, against(), lambda _left, _right: (0.0, p))
    assert table.rows[0].mark == mark


@pytest.mark.parametrize(
    ("published", "note"),
    [("▲", ""), ("▼", "published: ▼"), ("", "published: no significant difference"), (None, "")],
)
def test_a_sign_that_differs_from_the_published_one_is_named(tmp_path, published, note):
    run = two(tmp_path, (5, 6, 7), (1, 2, 3))  # every pair differs by 4
    row = {} if published is None else {"published_mark": published}
    (row,) = compared(run, against(row))
    assert row.mark == "▲"
    assert row.published_mark == published
    assert row.note == note


def test_runs_are_paired_by_fold_and_seed_whatever_else_each_side_has(tmp_path):
    """Only (1, 1) and (2, 1) are on both sides; the other runs would turn the result round."""
    run = run_of(
        tmp_path,
        (users("perfect"), {(1, 1): [0, 5], (1, 2): [0, -90], (2, 1): [0, 7], (2, 2): [0, -90]}),
        (users("poison"), {(2, 1): [0, 3], (1, 1): [0, 2], (3, 1): [0, 80]}),
    )
    seen = []

    def test(left, right):
        seen.append((list(left), list(right)))
        return 0.0, 0.001

    (table,) = comparisons(run, against(), test)
    assert seen == [([5.0, 7.0], [2.0, 3.0])]
    (row,) = table.rows
    assert (row.runs, row.left, row.right, row.difference, row.mark) == (2, 6.0, 2.5, 3.5, "▲")


@pytest.mark.parametrize("other", [{(1, 1): [0, 4.0]}, {(2, 1): [0, 4.0]}], ids=["one pair", "no pair"])
def test_too_few_pairs_are_no_test(tmp_path, other):
    run = run_of(tmp_path, (users("perfect"), {(1, 1): [0, 5.0]}), (users("poison"), other))
    (row,) = compared(run, against())
    assert (row.p, row.corrected_p, row.mark) == (None, None, "")
    assert (row.left, row.right) == (5.0, 4.0)
    assert not any(isinstance(value, float) and math.isnan(value) for value in msgspec.structs.astuple(row))


def test_rows_without_their_data_are_left_out_and_so_are_tables_without_rows(tmp_path):
    run = two(tmp_path, (5, 6), (1, 2))
    gone = {"name": "elsewhere", "left": {"data.name": "yahoo"}}
    assert [row.setting for row in compared(run, against({}, gone))] == ["all"]
    assert comparisons(run, against(gone), paired_t) == []
