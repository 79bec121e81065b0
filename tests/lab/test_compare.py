"""What a run says about a paper, on runs made by hand: verdicts, and pairs of methods with their signs."""

import math

import msgspec
import pytest
from figure_runs import CURVE, final, run_of, users

from foltr.lab.figures.compare import _mark, comparisons, find, judge, values, verdicts

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
    (table,) = comparisons(run, figure)
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


def test_holm_multiplies_by_the_rows_that_are_left_and_stops_at_one(tmp_path):
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
def test_signs_are_filled_below_one_percent_and_open_below_five(p, difference, mark):
    assert _mark(difference, p) == mark


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
    (row,) = compared(run, against())
    # differences 3 and 4: t = 3.5 / .5 = 7 with one degree of freedom
    assert (row.runs, row.pairs, row.unit) == (2, 2, "folds")
    assert (row.left, row.right, row.difference) == (6.0, 2.5, 3.5)
    assert row.p == pytest.approx(1 - 2 * math.atan(7) / math.pi)


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
    assert comparisons(run, against(gone)) == []
