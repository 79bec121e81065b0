"""The measurement of secure aggregation says what it promises."""

from foltr.lab.bench.secagg import measure_secagg


def test_a_small_round_is_measured():
    (found,) = measure_secagg(sizes=(20,)).values()
    assert (found["neighbours"], found["threshold"]) == (19, 11)  # 2 corrupt ones: 2 x 11 > 19 + 2
    assert min(found[name] for name in ("seconds", "cpu_seconds", "client_ms", "up_kb", "down_kb")) > 0
