"""A chapter by one command: its figures in their order, one page; what cannot be made here is named and left out."""

import json
import tomllib

import pytest

from foltr.lab.figures import figures
from foltr.lab.spec.setting import flat, resolved

MISSING = ["mslr-web10k", "yahoo", "istella-s"]


def test_a_chapter_is_its_figures_in_the_order_of_their_numbers():
    assert figures.chosen_ids("unlearning") == [
        "unlearning/fig6.2", "unlearning/fig6.3", "unlearning/table6.2", "unlearning/exact"
    ]  # fmt: skip
    assert figures.chosen_ids("poisoning/")[:3] == ["poisoning/fig5.2", "poisoning/fig5.3", "poisoning/fig5.4"]
    assert figures.chosen_ids("poisoning")[-3:] == ["poisoning/fig5.11", "poisoning/grid", "poisoning/neural"]
    assert figures.chosen_ids("fpdgd/table2") == ["fpdgd/table2"]


def test_a_figure_like_another_has_its_settings_on_other_data():
    like, model = (figures.plan_of(figures.read_figure(f"poisoning/fig{number}")).settings for number in ("5.6", "5.5"))
    assert {one.data.name for one in like} == {"yahoo"}
    assert 2 * len(like) == len(model)


@pytest.mark.parametrize(
    "name", [one for one in figures.figure_ids() if "like" in tomllib.loads(figures.read_figure(one).text)]
)
def test_a_figure_like_another_keeps_every_claim_and_asks_it_of_its_own_data(name):
    like = figures.read_figure(name)
    made_from = tomllib.loads(like.text)
    model = figures.read_figure(made_from["like"])
    claims = like.content["claim"]
    assert [one["kind"] for one in claims] == [one["kind"] for one in model.content["claim"]]
    asked = [one[side].get("data.name") for one in claims for side in ("left", "right") if side in one]
    assert {data for data in asked if data} <= set(made_from["data"])  # None: a claim about all collections
    settings = [flat(resolved(one)) for one in figures.plan_of(like).settings]
    for claim in claims:
        for side in ("left", "right"):
            where = claim.get(side, {})
            assert any(all(one.get(key) == value for key, value in where.items()) for one in settings), claim["text"]


def test_a_claim_that_moves_to_another_collection_says_for_which_it_was_stated():
    texts = [one["text"] for one in figures.read_figure("poisoning/fig5.6").content["claim"]]
    assert len(texts) == len(figures.read_figure("poisoning/fig5.5").content["claim"]) > 4
    assert (
        "With informational users Krum does not help on yahoo, for any share of attackers (stated for mq2007)" in texts
    )


@pytest.mark.slow
@pytest.mark.usefixtures("real_data")
def test_a_chapter_makes_one_page_of_all_its_figures(command, tmp_path, real_data, monkeypatch):
    monkeypatch.setenv("FOLTR_DATA", str(real_data))
    out = tmp_path / "runs"
    answer = command(
        "reproduce", "unlearning", "--quick", "--only", "users.clicks=navigational", "--out", out, "--json"
    )
    assert answer.code == 0, answer.err
    reported = json.loads(answer.out)
    assert [one["id"] for one in reported] == figures.chosen_ids("unlearning")
    assert reported[0]["missing"] == MISSING
    calibrated = reported[1]["results"][0]["metrics"]
    assert 0 < calibrated["residual"]["mean"] < 3
    exact = {one["setting"].get("unlearning.method"): one["metrics"] for one in reported[3]["results"]}
    assert exact["shards"]["residual"]["mean"] == 0.0
    assert exact["statistics"]["residual"]["mean"] < 1e-6
    page = (out / "unlearning.html").read_text()
    assert page.count("<section") == 4
    assert "quick form" in page
