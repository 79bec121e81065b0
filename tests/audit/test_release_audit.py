"""Every fault is caught, in the lab's mechanism and in the deployed release; honest ones pass with the stated odds."""

import hashlib
import io
import json
import math
from functools import partial

import numpy as np
import pytest
from rich.console import Console
from scipy.stats import chi2

from foltr.lab.audit import noise as noise_tests
from foltr.lab.audit import release_audit
from foltr.lab.audit.noise import acceptance_odds, check_noise, draws_needed, in_two_copies
from foltr.lab.audit.privacy_audit import audit_tables
from foltr.lab.audit.release_audit import audit_path, audit_releases, deployed_path, lab_path, two_servers_path
from foltr.lab.simulation.protection import protect_rows
from foltr.privacy import noise, release
from foltr.privacy.mechanisms import Gaussian
from foltr.rng import stream

FIXED, ADAPTIVE = Gaussian(), Gaussian(adaptive=0.5)
MULTIPLIER = 4.0
REAL = noise.noise_in_ring


def failed(make, **more):
    found = audit_path(make, MULTIPLIER, **more)
    assert found["passed"] == (not any(not check["passed"] for check in found["checks"]))
    return {check["what"] for check in found["checks"] if not check["passed"]}


def counted(name):
    """Bits of a hashed counter: the same at every run."""
    blocks, pool, left = iter(range(10**9)), 0, 0

    def bits(size):
        nonlocal pool, left
        while left < size:
            digest = hashlib.shake_256(f"{name} {next(blocks)}".encode()).digest(64)
            pool, left = pool << 512 | int.from_bytes(digest, "big"), left + 512
        left -= size
        drawn, pool = pool >> left, pool & ((1 << left) - 1)
        return drawn

    return bits


# --- the deployed release, with quick noise from a stream so that every audit is the same -----------------------------


def quick_noise(factor=1.0, only_first=False, reuse=1, seed=1):
    """Rounded normal numbers in place of the exact sampler; at half a million steps nobody sees the difference."""
    calls = iter(range(10**9))
    normals = stream(seed, purpose="noise").normal(4 * 120_000).reshape(-1, 4)

    def draw(encoded, *, variance, noise_contributors):
        call = next(calls)
        number = call // (2 * reuse) * 2 + call % 2  # `reuse`: each of two clients draws the same again
        drawn = factor * math.sqrt(variance / noise_contributors) * normals[number]
        if only_first:
            drawn = np.append(math.sqrt(encoded.size) * drawn[:1], np.zeros(encoded.size - 1))
        return encoded + np.rint(drawn).astype(np.int64).astype(encoded.dtype)

    return draw


def wrong_clip(factor):
    def sent(update, *, clip, multiplier, guarantee, ring):
        return release.release(
            update, clip=clip * factor, multiplier=multiplier / factor, guarantee=guarantee, ring=ring
        )

    return sent


def wrong_norm(update, *, clip, multiplier, guarantee, ring):
    """Every coordinate is clipped by itself."""
    limited = np.clip(update, -clip, clip)
    longer = max(float(np.linalg.norm(limited)), clip)
    return release.release(limited, clip=longer, multiplier=multiplier * clip / longer, guarantee=guarantee, ring=ring)


MU = {"mu, one coordinate", "mu, all coordinates"}
RING_FAULTS = {
    "none": ({}, {}, set()),
    "half of the noise": ({"factor": 0.5}, {}, {*MU, "variance", "variance of each coordinate", "shape"}),
    "10 % missing noise": ({"factor": 0.9}, {}, {*MU, "variance", "variance of each coordinate", "shape"}),
    "noise on the wrong coordinate only": (
        {"only_first": True}, {}, {"mu, one coordinate", "variance of each coordinate", "shape"},
    ),
    "noise in two releases": ({"reuse": 2}, {}, {"independence", "reuse"}),
    "a clip 10 % too long": ({}, {"release": wrong_clip(1.1)}, MU),
    "a clip in another norm": ({}, {"release": wrong_norm}, {"mu, all coordinates"}),
    "one share too few": ({}, {"shares": release_audit.SHARES - 1}, {*MU, "variance", "variance of each coordinate"}),
}  # fmt: skip


@pytest.mark.parametrize("fault", RING_FAULTS)
def test_a_fault_of_the_deployed_release_is_caught(fault, monkeypatch):
    """The noise of all of them follows from a seed, which is a fault by itself and always caught."""
    drawing, more, expected = RING_FAULTS[fault]
    monkeypatch.setattr(release, "noise_in_ring", quick_noise(**drawing))
    caught = failed(partial(deployed_path, **more))
    assert "replay" in caught
    assert expected <= caught
    if fault == "none":
        assert caught == {"replay"}


def test_the_deployed_release_passes(monkeypatch):
    """The exact sampler on fixed bits, so that the stated odds of a false alarm (1 in 100) are drawn once for all."""
    monkeypatch.setattr(release, "noise_in_ring", partial(REAL, bits=counted("deployed")))
    assert failed(deployed_path) == {"replay"}  # the bits are fixed


def test_the_deployed_release_with_two_servers_passes_and_half_of_its_noise_does_not(monkeypatch):
    quick = quick_noise(seed=5)

    def from_stream(length, *, clip, multiplier, ring):
        variance = (multiplier * clip * 2**ring.fraction) ** 2
        return quick(np.zeros(length, np.int64), variance=variance, noise_contributors=1)

    assert failed(partial(two_servers_path, noise=from_stream)) == {"replay"}

    def halved(length, *, multiplier, **more):
        return from_stream(length, multiplier=multiplier / 2, **more)

    assert {*MU, "variance"} <= failed(partial(two_servers_path, noise=halved))


@pytest.mark.parametrize("make", [deployed_path, two_servers_path])
def test_copies_of_a_deployed_client_draw_other_noise(make):
    """As after a restored backup; the operating system's numbers are not in the copy."""
    assert noise_tests.check_replay(make(MULTIPLIER).replay()).passed


def test_noise_from_a_seed_and_a_counter_is_the_same_in_every_copy():
    numbers = iter(range(10**9))

    def draw():
        return stream(7, client=next(numbers), purpose="noise").normal(4)

    first, second = draw(), draw()
    assert not np.array_equal(first, second)  # within one process nothing is seen
    assert np.array_equal(*in_two_copies(draw))


# --- the lab's mechanism ----------------------------------------------------------------------------------------------


def mutant(change):
    """`protect_rows` with its noise, or its messages, changed."""

    def protect(mechanism, rows, clients, terms, *, seed, round):
        plain = rows.copy()
        sent = protect_rows(mechanism, rows, clients, terms, seed=seed, round=round)
        return change(plain, sent)

    return protect


def zero_is_within(plain, sent):
    """A zeroed client says that its norm was within the clip, as it once did."""
    sent[(plain == 0).all(axis=1), -1] += 0.5
    return sent


def scaled(part):
    """Noise of zero updates scaled; others have a clipped update of norm 1 in them, which stays."""

    def change(plain, sent):
        norms = np.linalg.norm(plain, axis=1, keepdims=True)
        clean = np.zeros_like(sent)
        clean[:, : plain.shape[1]] = plain / np.maximum(norms, 1)
        if sent.shape[1] > plain.shape[1]:
            clean[:, -1] = np.where(norms[:, 0] == 0, 0, np.where(norms[:, 0] <= 1, 0.5, -0.5))
        return clean + part(sent - clean)

    return change


def only_bit_halved(drawn):
    drawn[:, -1] *= 0.5
    return drawn


def reused(drawn):
    drawn[2::4], drawn[3::4] = drawn[0::4][: len(drawn[2::4])], drawn[1::4][: len(drawn[3::4])]
    return drawn


LAB_FAULTS = {
    "half of the noise": (FIXED, scaled(lambda drawn: 0.5 * drawn), {*MU, "variance"}),
    "10 % missing noise": (FIXED, scaled(lambda drawn: 0.9 * drawn), {*MU, "variance"}),
    "noise in two releases": (FIXED, scaled(reused), {"independence", "reuse"}),
    "a bit for those who are zeroed out": (ADAPTIVE, zero_is_within, {"mu, one coordinate"}),
    "half of the noise on the bit": (
        ADAPTIVE, scaled(only_bit_halved), {"mu, one coordinate", "variance of each coordinate", "variance"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", LAB_FAULTS)
def test_a_fault_of_the_labs_mechanism_is_caught(fault):
    mechanism, change, expected = LAB_FAULTS[fault]
    assert expected <= failed(lambda z: lab_path(mechanism, z, seed=2, protect=mutant(change)))


@pytest.mark.parametrize("mechanism", [FIXED, ADAPTIVE], ids=["fixed clip", "adaptive clip"])
def test_the_labs_mechanism_passes_and_its_noise_is_said_to_be_simulated(mechanism):
    found = audit_path(lambda z: lab_path(mechanism, z, seed=3), MULTIPLIER)
    assert found["passed"]
    assert "can be subtracted: a lab run's output is no release" in found["verdict"]
    assert found["false_alarm"] < 0.015
    assert np.array_equal(*lab_path(mechanism, MULTIPLIER, seed=3).replay())


# --- noise by itself --------------------------------------------------------------------------------------------------


def test_as_many_numbers_are_drawn_as_two_percent_need():
    needed = draws_needed(0.02, 1e-3)
    assert needed == pytest.approx(2 * (3.2905 / 0.02) ** 2, rel=0.01)  # the normal approximation
    inside = chi2.cdf(1.02 * needed, needed) - chi2.cdf(0.98 * needed, needed)
    assert 1 - inside <= 1e-3 < 1.001e-3
    assert acceptance_odds(1.0, needed) == pytest.approx(inside)
    assert acceptance_odds(math.sqrt(0.96), needed) == pytest.approx(1e-3 / 2, rel=0.35)  # twice as far away
    assert acceptance_odds(0.9, needed) < 1e-12


def test_the_variance_of_right_noise_is_refuted_as_rarely_as_computed():
    """2,000 audits at odds of 5 %: within four standard errors."""
    draws = draws_needed(0.1, 0.05)
    noises = stream(4, purpose="noise").normal(2000 * draws).reshape(2000, draws)
    outside = (np.abs(np.square(noises).mean(axis=1) - 1) > 0.1).mean()
    assert abs(outside - 0.05) < 4 * math.sqrt(0.05 * 0.95 / 2000)


def of(noise_, step=1e-12):
    return {check.what for check in check_noise(noise_, step=step) if not check.passed}


def test_noise_of_the_right_variance_can_still_be_wrong():
    right = stream(9, purpose="noise").normal(54_400).reshape(-1, 4)
    assert of(right) == set()
    assert of(np.repeat(right[:, :1], 4, axis=1)) >= {"independence"}  # one number for all coordinates
    rare = np.where(stream(8, purpose="choice").uniform(right.size).reshape(right.shape) < 0.5, 0.0, math.sqrt(2))
    assert "shape" in of(right * rare)  # half of the numbers are released as they are
    late = right.copy()
    late[1:] = (right[1:] - right[:-1]) / math.sqrt(2)  # noise that cancels in the sum of all releases
    assert of(late) == {"independence"}


def test_one_share_of_many_is_seen_up_to_25_contributors():
    """h - 1 of h shares: the variance is 1/h too small; 2 % are overlooked half of the time, 4 % are not."""
    needed = draws_needed()
    assert acceptance_odds(math.sqrt(24 / 25), needed) < 1e-3
    assert 0.4 < acceptance_odds(math.sqrt(49 / 50), needed) < 0.6


# --- for people -------------------------------------------------------------------------------------------------------


def test_the_audit_of_a_setting_says_everything_in_80_columns(make_setting, monkeypatch):
    monkeypatch.setattr(release, "noise_in_ring", quick_noise(factor=0.5))
    setting = make_setting(privacy={"kind": "gaussian", "epsilon": 4.0})
    found = audit_releases(setting, 46, seed=1)
    assert [(one["path"], one["passed"]) for one in found] == [
        ("clients of the lab", True), ("deployed clients, one server", False),
    ]  # fmt: skip
    json.dumps(found, allow_nan=False)
    one = {"label": {}, "data": {"name": "x", "note": "y"}, "fold": 1, "seed": 1, "guessing": [], "epsilon": []}
    shown = io.StringIO()
    for table in audit_tables({"settings": [one | {"releases": found}]}):
        Console(file=shown, width=80).print(table)
    words = " ".join(shown.getvalue().split())
    assert max(map(len, shown.getvalue().splitlines())) <= 80
    assert "…" not in words
    for phrase in ("Adversary: sees the sum", "Unit: user (one node)", "Adjacency: zero-out", "2,400 of each dataset",
                   "Odds that an honest implementation fails: 0.0", "Verdict: nothing contradicts the claim",
                   "Verdict: refuted: mu, one coordinate", "same noise", "REFUTED"):  # fmt: skip
        assert phrase in words


def test_two_servers_are_audited_and_other_noise_is_not(make_setting, monkeypatch):
    called = []
    monkeypatch.setattr(release_audit, "audit_path", lambda make, multiplier, **_: called.append((make, multiplier)))
    audit_releases(make_setting(privacy={"kind": "gaussian"}, secagg={"mode": "two-servers"}), 46, seed=1)
    audit_releases(make_setting(privacy={"kind": "gaussian"}), 46, seed=1)
    assert called[0] == (two_servers_path, pytest.approx(called[2][1]))
    assert audit_releases(make_setting(privacy={"kind": "laplace"}), 46, seed=1) == []
