"""Claims of a paper, decided on runs made by hand."""

import msgspec
import polars as pl
import pytest
from figure_runs import CURVE, SCHEMA, final, run_of, users

from foltr.lab.figures.claims import claims
from foltr.lab.records import Claim


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
    evidence = "0.5000 against 0.4000 (+0.1000 ± 0.0100, 2 folds)"  # differences of .09 and .11
    assert decided == Claim("careful users teach better", holds, evidence, metric="offline_ndcg@10")


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
    (decided,) = claims(run, greater(), ["yahoo"])
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


def test_a_claim_without_its_settings_says_whether_they_were_left_out_or_are_missing(tmp_path):
    run = run_of(tmp_path, (users("perfect"), final(0.5)))
    chosen = run._replace(manifest=msgspec.structs.replace(run.manifest, chosen="--only users.clicks=perfect"))
    (undecided,) = claims(chosen, greater(), [])
    assert (undecided.holds, undecided.evidence) == (None, "left out by --only users.clicks=perfect")
    (undecided,) = claims(run, greater(), ["yahoo"])
    assert undecided.evidence == "yahoo is not on this machine"
