"""A node's own policy: what an invitation or a coordinator cannot change, and what a round is compared with."""

import re
import stat

import msgspec
import pytest

from foltr.errors import PrivacyError, SpecError, StorageError
from foltr.federation.policy import (
    HISTORY,
    WEEK,
    Guarded,
    History,
    Limits,
    Policy,
    accept,
    admit,
    changed,
    check_setup,
    effective,
    loosened,
    note_round,
    tightened,
    weekly_epsilon,
)  # fmt: skip
from foltr.privacy.calibration import gaussian_epsilon
from foltr.secagg.crypto import new_identity
from foltr.secagg.terms import Terms, new_federation, registry

FEDERATION = new_federation()
OPERATORS = tuple(new_identity().public_key().public_bytes_raw() for _ in range(2))
SERVER = new_identity().public_key().public_bytes_raw()
KEYS = [new_identity().public_key().public_bytes_raw() for _ in range(60)]
NOW = 1_800_000_000.0
DAY = 86_400.0


def members(count):
    return registry(SERVER, dict(enumerate(KEYS[:count])))


def terms(**other):
    return Terms(FEDERATION, 4, **{"bits": 64, "fraction": 24, "noise_multiplier": 5.0} | other)


def accepted(**other):
    return accept(Policy(), FEDERATION, OPERATORS, **other)


NEVER_SEEN = History()


def check(policy=None, history=NEVER_SEEN, count=20, operators=OPERATORS, now=NOW, **other):
    return check_setup(policy or accepted(), history, terms(**other), members(count), operators, now)


def test_usual_terms_are_accepted_with_one_server_and_with_two():
    check()
    check(operators=None)


@pytest.mark.parametrize(
    ("reason", "other"),
    [
        ("noise_multiplier is 0.001", {"noise_multiplier": 0.001}),
        ("corrupt is 0,", {"corrupt": 0.0}),
        ("failure is 0.5", {"failure": 0.5}),
        ("the fewest in a sum is 4", {"count": 4, "dropouts": 0.0}),
    ],
)
def test_each_limit_refuses_by_name(reason, other):
    with pytest.raises(PrivacyError, match=reason):
        check(**other)


def test_all_reasons_are_said_at_once():
    """The terms that a node joined at epsilon 504,264 before it had a policy."""
    with pytest.raises(PrivacyError) as refused:
        check(corrupt=0.0, failure=0.5, noise_multiplier=0.001)
    assert all(name in str(refused.value) for name in ("corrupt", "failure", "noise_multiplier"))


def test_noise_that_one_round_makes_too_dear_is_refused():
    policy = msgspec.structs.replace(accepted(), limits=Limits(epsilon=0.5))
    epsilon = gaussian_epsilon(1 / 5.0, Limits().delta)
    with pytest.raises(PrivacyError, match=re.escape(f"one round costs epsilon {epsilon:.3g}")):
        check(policy)


def test_a_federation_that_nobody_accepted_is_refused():
    with pytest.raises(PrivacyError, match="was never accepted"):
        check(Policy())


def test_operators_are_those_that_were_accepted():
    other = (OPERATORS[0], KEYS[0])
    with pytest.raises(PrivacyError, match="operators are not those"):
        check(operators=other)
    with pytest.raises(PrivacyError, match="other operators"):
        accept(accepted(), FEDERATION, other)


def test_an_invitation_tightens_and_never_loosens():
    loose = Limits(epsilon=500, delta=0.5, noise_multiplier=0, min_clients=3, corrupt=0, failure=0.5,
                   rounds_per_week=900, growth_per_week=9)  # fmt: skip
    assert effective(accepted(invited=loose), FEDERATION) == Limits()
    tight = Limits(epsilon=1, delta=1e-9, noise_multiplier=9, min_clients=15, corrupt=0.3, failure=2**-60,
                   rounds_per_week=1, growth_per_week=0)  # fmt: skip
    assert effective(accepted(invited=tight), FEDERATION) == tight
    again = accept(accepted(invited=tight), FEDERATION, OPERATORS, invited=loose)
    assert effective(again, FEDERATION) == tight
    assert set(loosened(Limits(), loose)) == set(Limits.__struct_fields__)
    assert loosened(Limits(), tight) == ()
    assert tightened(loose, tight) == tight == tightened(tight, loose)


def test_a_limit_that_the_person_loosens_holds_in_federations_that_were_accepted_before():
    policy = msgspec.structs.replace(accepted(), limits=Limits(min_clients=3))
    check(policy, count=4, dropouts=0.0)


def test_without_noise_only_a_closed_circle_takes_part():
    circle = accepted(circle=members(6))
    check(circle, count=6, noise_multiplier=0.0, dropouts=0.0)
    for reason, other in (
        ("needs all members", {"dropouts": 0.2}),
        ("must be confirmed", {"count": 7}),
        ("two operators", {"operators": None}),
    ):
        with pytest.raises(PrivacyError, match=reason):
            check(circle, **{"count": 6, "noise_multiplier": 0.0, "dropouts": 0.0} | other)
    with pytest.raises(PrivacyError, match="must be confirmed"):
        check(count=6, noise_multiplier=0.0, dropouts=0.0)


def test_a_federation_cannot_shrink_around_one_member():
    with pytest.raises(PrivacyError, match="the fewest in a sum is 9, this node's policy says at least 36"):
        check(history=History(largest=40), count=10)
    check(history=History(largest=40), count=40)


def test_a_registry_grows_by_half_in_a_week_and_by_five_at_least():
    week = History(20, ((NOW - 9 * DAY, 20), (NOW - 2 * DAY, 25)))
    check(history=week, count=30)
    with pytest.raises(PrivacyError, match=r"grew from 20 to 31 members within a week, .* allows 30"):
        check(history=week, count=31)
    check(history=History(5, ((NOW - DAY, 5),)), count=10)
    with pytest.raises(PrivacyError, match="allows 10"):
        check(history=History(5, ((NOW - DAY, 5),)), count=11)


def test_growth_counts_from_the_size_a_week_ago_however_it_is_split(tmp_path):
    guarded = Guarded(tmp_path)
    guarded.save(accepted())
    for days, count in ((0, 10), (1, 12), (2, 14)):
        note_round(guarded, terms(), members(count), NOW + days * DAY, round=days)
    with pytest.raises(PrivacyError, match="grew from 10 to 16"):
        admit(guarded, terms(), members(16), OPERATORS, NOW + 3 * DAY)
    admit(guarded, terms(), members(16), OPERATORS, NOW + 8 * DAY)


def test_rounds_of_a_week_are_bounded_and_a_clock_that_goes_back_gains_none(tmp_path):
    guarded = Guarded(tmp_path)
    guarded.save(msgspec.structs.replace(accepted(), limits=Limits(rounds_per_week=2)))
    for day in range(2):
        admit(guarded, terms(), members(20), OPERATORS, NOW + day * DAY)
        note_round(guarded, terms(), members(20), NOW + day * DAY, round=day)
    for now in (NOW + 2 * DAY, NOW - 400 * DAY):
        with pytest.raises(PrivacyError, match="2 rounds within seven days, and its policy allows 2"):
            admit(guarded, terms(), members(20), OPERATORS, now)
    admit(guarded, terms(), members(20), OPERATORS, NOW + WEEK)


def test_both_files_are_for_their_owner_only_and_a_damaged_one_joins_nothing(tmp_path):
    guarded = Guarded(tmp_path / "federation")
    assert guarded.load() == Policy()
    guarded.save(accepted())
    note_round(guarded, terms(), members(20), NOW, round=1)
    for path in (guarded.path, guarded.folder / HISTORY):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert guarded.load() == accepted()
    guarded.path.write_bytes(b"\xff{}")
    with pytest.raises(StorageError, match="no round is joined"):
        admit(guarded, terms(), members(20), OPERATORS, NOW)


@pytest.mark.parametrize("content", [b'{"limits": {"epsilom": 1}}', b'{"limits": {"epsilon": 0}}', b"[]"])
def test_a_misspelt_or_impossible_policy_is_refused(tmp_path, content):
    Guarded(tmp_path).path.write_bytes(content)
    with pytest.raises(StorageError, match=r"policy\.json"):
        Guarded(tmp_path).load()


@pytest.mark.parametrize("setting", ["epsilom=3", "epsilon", "epsilon=", "epsilon=-1", "epsilon=inf", "epsilon=nan"])
def test_a_change_that_is_no_limit_is_refused(setting):
    with pytest.raises(SpecError):
        changed(Limits(), [setting])


def test_the_epsilon_that_is_shown_is_that_of_gaussian_noise():
    limits = Limits(noise_multiplier=3.0, rounds_per_week=2)
    assert weekly_epsilon(limits, 8) == pytest.approx(gaussian_epsilon(16**0.5 / 3.0, limits.delta))
