"""S4's setting on real data: what the paper found, what it missed, and what a sum of 100 clients leaves of both."""

import pytest

from foltr.lab.audit.click_guessing import guessing, training
from foltr.lab.runs.single import run_setting
from foltr.lab.simulation.population import load
from foltr.lab.spec.parse import plan

pytestmark = [pytest.mark.data, pytest.mark.slow]

# S4 Table 4, MQ2007: precision and recall of least squares
PUBLISHED = {"perfect": (0.80, 0.93), "navigational": (0.63, 0.94), "informational": (0.77, 0.94)}
MESSAGES = 1000


def setting(clicks, **audit):
    return plan(
        {
            "data": {"name": "mq2007", "normalize": "zscore"},
            "learner": {"negatives": "all-shown"},
            "users": {"clicks": clicks},
            "federation": {"clients": 1000, "interactions": 4, "rounds": 200},
            "privacy": {"kind": "fpdgd", "epsilon": 1.2, "sensitivity": 3.0},
            "audit": {"messages": MESSAGES, **audit},
        }
    ).settings[0]


_trained = {}


@pytest.fixture
def trained(real_data):
    """A fold and the ranker that perfect users trained on it; trained once."""
    assert real_data.is_dir()
    if not _trained:
        make_setting = training(setting("perfect"))
        fold = load(make_setting.data, 1)
        *_, single = run_setting(make_setting, fold, 1)
        _trained["fold"] = fold, single.parameters
    return _trained["fold"]


@pytest.mark.parametrize("clicks", PUBLISHED)
def test_one_message_gives_its_clicks_away(clicks, trained):
    found = guessing(setting(clicks), *trained, 1)
    precision, recall = PUBLISHED[clicks]
    assert found["precision, least squares"] == pytest.approx(precision, abs=0.05)
    assert found["recall, least squares"] == pytest.approx(recall, abs=0.05)
    assert found["precision, least absolute"] > 0.9
    assert found["recall, least absolute"] > 0.9


@pytest.mark.parametrize("clicks", PUBLISHED)
def test_a_sum_of_100_clients_with_their_noise_tells_no_more_than_chance(clicks, trained):
    found = guessing(setting(clicks, sum=100, noise_contributors=100), *trained, 1)
    for attack in ("least squares", "least absolute"):
        assert found[f"precision, {attack}"] == pytest.approx(found["precision, random"], abs=0.03)
        assert found[f"recall, {attack}"] == pytest.approx(found[f"guessed, {attack}"], abs=0.03)
