"""Trends: the final value along one number, and levels where there is none."""

from pathlib import Path

import polars as pl
import pytest

from foltr.records import Run
from foltr.reporting.curves import curve_svg
from foltr.reporting.trend import groups


def a_run(epsilons):
    settings = [
        {
            "index": index,
            "label": {"users.clicks": "perfect", "part": "honest" if epsilon != "infinite" else "no privacy"},
            "privacy": {"run": {"epsilon": epsilon}},
            "data": {"name": "made up"},
            "rounds": 1,
            "runs": 2,
        }
        for index, epsilon in enumerate(epsilons)
    ]
    rows = pl.DataFrame(
        [
            {"setting": index, "fold": fold, "seed": 1, "round": 1, "metric": "offline_ndcg@10", "value": index + fold}
            for index in range(len(epsilons))
            for fold in (1, 2)
        ],
        schema_overrides={"value": pl.Float64},
    )
    figure = {
        "metric": "offline_ndcg@10",
        "metrics": ["offline_ndcg@10"],
        "columns": "users.clicks",
        "lines": ["part"],
        "trend": {"x": "privacy.run.epsilon", "name": "epsilon", "log": True},
    }
    return Run(Path(), {"settings": settings, "figure": figure}, rows)


def test_points_come_in_the_order_of_their_number_and_the_infinite_is_a_level():
    found = groups(a_run([4.0, 1.0, "infinite"]), "offline_ndcg@10", "privacy.run.epsilon", "users.clicks", ["part"])
    honest, without = found["perfect"]
    assert [(x, mean) for x, mean, _ in honest.points] == [(1.0, 2.5), (4.0, 1.5)]
    assert honest.level is None
    assert (without.points, without.level) == ([], 3.5)


def test_the_drawing_names_its_axis_and_lines():
    pytest.importorskip("matplotlib")
    svg = curve_svg(a_run([0.5, 2.0, "infinite"]), "offline_ndcg@10")
    for words in ("epsilon", "honest", "no privacy", "Point: mean over 2 runs"):
        assert words in svg
