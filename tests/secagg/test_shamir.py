"""Shares give the secret back from the threshold on, and tell nothing below it."""

from collections import Counter
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare
from small_rounds import counted

from foltr.errors import SecureAggregationError, SpecError
from foltr.secagg import shamir


def slow_combine(shares):
    """Lagrange's formula, word by word, with integers."""
    words = {holder + 1: read(one) for holder, one in shares.items()}
    secret = []
    for word in range(shamir.WORDS):
        total = 0
        for point, values in words.items():
            above, below = 1, 1
            for other in words:
                if other != point:
                    above, below = above * other, below * (other - point)
            total += values[word] * above * pow(below, -1, shamir.PRIME)
        secret.append(total % shamir.PRIME)
    return b"".join(word.to_bytes(2, "little") for word in secret)


def read(share):
    low = np.frombuffer(share, "<u2", shamir.WORDS).tolist()
    full = f"{int.from_bytes(share[-2:], 'big'):016b}"
    return [value + 65536 * int(bit) for value, bit in zip(low, full, strict=True)]


@given(secret=st.binary(min_size=32, max_size=32), data=st.data())
def test_any_threshold_of_shares_gives_the_secret(secret, data):
    num_shares = data.draw(st.integers(1, 40))
    threshold = data.draw(st.integers(1, num_shares))
    shares = shamir.share(secret, threshold, num_shares)
    who = data.draw(st.permutations(range(num_shares)))[:threshold]
    chosen = {holder: shares[holder] for holder in who}
    assert shamir.combine(chosen) == slow_combine(chosen) == secret


def test_hundreds_of_shares_are_exact():
    secret = b"\xff" * 32
    shares = shamir.share(secret, 700, 1000)
    assert shamir.combine({holder: shares[holder] for holder in range(300, 1000)}) == secret


def test_the_largest_value_of_the_field_survives_the_journey():
    values = np.array([[65536, 0, 65535] + [1] * 13], np.uint32)
    (share,) = shamir._as_bytes(values)
    assert len(share) == shamir.SHARE
    assert read(share) == shamir._from_bytes([share])[0].tolist() == values[0].tolist()


def test_one_share_too_few_gives_something_else():
    shares = shamir.share(b"s" * 32, 3, 5)
    with suppress(SecureAggregationError):  # raised where the wrong value is none that a secret has
        assert shamir.combine({0: shares[0], 4: shares[4]}) != b"s" * 32


def test_a_share_below_the_threshold_is_uniform(monkeypatch):  # false alarm 1 in 1,000, bytes fixed
    """Whatever the secret: 16 words of 1,000 sharings, in 64 bins of equal size (65537 = 64 x 1024 + 1)."""
    counted(monkeypatch, 0)
    words = [value for _ in range(1000) for value in read(shamir.share(bytes(32), 2, 2)[0])]
    counts = Counter(value * 64 // shamir.PRIME for value in words)
    assert chisquare([counts[k] for k in range(64)]).pvalue > 1e-3


def test_two_sharings_of_one_secret_have_nothing_in_common():
    first, second = (shamir.share(b"s" * 32, 2, 3) for _ in range(2))
    assert not set(first) & set(second)


@pytest.mark.parametrize(("threshold", "num_shares"), [(0, 3), (4, 3), (2, 5000)])
def test_a_threshold_that_cannot_be_is_refused(threshold, num_shares):
    with pytest.raises(SpecError, match="use 1 <= threshold"):
        shamir.share(bytes(32), threshold, num_shares)


def test_a_secret_of_another_size_is_refused():
    with pytest.raises(SpecError, match="use 32"):
        shamir.share(bytes(16), 1, 1)


def test_a_share_of_another_size_is_refused():
    with pytest.raises(SecureAggregationError, match="34 bytes"):
        shamir.combine({0: bytes(33)})
