"""The measured comparison runs, and its rows say what was measured."""

from foltr.experiments.silo_speed import NAIVE, growth_rows, head_to_head
from foltr.experiments.silo_tasks import made_up
from foltr.silo.rtk_sketch import VARIANTS


def test_a_small_comparison_measures_everybody():
    rows = head_to_head(smoke=True)
    assert [row["what"] for row in rows] == [*VARIANTS, *NAIVE, *NAIVE]
    assert all(row["query_ms"] > 0 and row["documents"] == 300 for row in rows)
    assert rows[3]["sent_bytes"] == 300 * 30 * 8


def test_space_grows_with_top_and_rows_but_hardly_with_documents():
    rows = list(growth_rows(smoke=True))
    kept = {name: [row["kept_bytes"] for row in rows if row["vary"] == name] for name in ("documents", "K", "z")}
    assert max(kept["documents"]) < 1.01 * min(kept["documents"])
    assert kept["K"][2] > 5 * kept["K"][0]
    assert 4.9 < kept["z"][2] / kept["z"][0] < 5.1


def test_made_up_documents_are_long_varied_and_repeat_their_words():
    task = made_up(20, asked=5)
    different = [len(set(task.documents.terms[a:b].tolist())) for a, b in zip(
        task.documents.offsets, task.documents.offsets[1:], strict=False)]  # fmt: skip
    assert set(task.documents.lengths) == {1000}
    assert all(300 < number < 600 for number in different)
    assert set(task.asked) <= set(task.documents.terms)
