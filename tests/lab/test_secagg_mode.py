"""`secagg.mode`: one server or two, from the spec to the result, and which mechanisms go with which."""

import math
from typing import ClassVar

import msgspec
import numpy as np
import pytest

import foltr
from foltr import registry
from foltr.clipping import clipped_to
from foltr.errors import SpecError
from foltr.federation.releases import protection_of
from foltr.lab.runs.single import run_setting
from foltr.lab.simulation.population import load
from foltr.lab.spec.parse import labels, plan, setting
from foltr.lab.spec.setting import resolved, stored
from foltr.privacy.events import Event, noise_by_servers
from foltr.privacy.noise import gaussian_share
from foltr.rng import stream

CLIENTS, SEED = 6, 3
MODES = ("one-server", "two-servers")


def spec(mode=None, kind="gaussian", federation=None, **tables):
    shape = {"clients": CLIENTS, "interactions": 3, "rounds": 2, **(federation or {})}
    content = {"data": {"name": "synthetic-mq2007@60", "folds": 1}, "federation": shape, "privacy": {"kind": kind}}
    return content | ({"secagg": {"mode": mode}} if mode else {}) | tables


def trained(content):
    one = setting(content)
    *_, result = run_setting(one, load(one.data, 1), SEED)
    return result.parameters


# --- the key ----------------------------------------------------------------------------------------------------------


def test_one_server_is_the_default():
    assert setting(spec()) == setting(spec("one-server"))
    assert setting(spec()).secagg.mode == "one-server"


def test_a_stored_setting_keeps_its_mode():
    one = setting(spec("two-servers"))
    assert resolved(one)["secagg"] == {"mode": "two-servers"}
    assert stored(resolved(one)) == one


def test_the_mode_is_swept_like_other_keys():
    found = plan(spec() | {"sweep": {"secagg.mode": list(MODES), "privacy.epsilon": [1.0, 4.0]}}).settings
    assert [(one.secagg.mode, one.privacy.epsilon) for one in found] == [
        ("one-server", 1.0), ("one-server", 4.0), ("two-servers", 1.0), ("two-servers", 4.0),
    ]  # fmt: skip
    assert [one["secagg.mode"] for one in labels(found)] == [*MODES[:1] * 2, *MODES[1:] * 2]


def test_set_of_the_mode_wins_over_its_sweep():
    (one,) = plan(spec() | {"sweep": {"secagg.mode": list(MODES)}}, ["secagg.mode=two-servers"]).settings
    assert one.secagg.mode == "two-servers"


SAYS_2 = 'privacy.servers is now called secagg.mode and names a mode; use secagg.mode = "two-servers" for 2'
TINY = 'data = { name = "synthetic-mq2007@60" }\n'


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        (TINY + 'privacy = { kind = "gaussian", servers = 2 }\n', []),
        (TINY + 'privacy = { kind = "gaussian" }\nsweep = { "privacy.servers" = [1, 2] }\n', []),
        (TINY + 'privacy = { kind = "laplace" }\n', ["--set", "privacy.servers=1"]),
    ],
    ids=["in its table", "swept", "by --set"],
)
def test_the_old_key_ends_with_exit_code_2_and_the_new_name(text, arguments, command, tmp_path):
    path = tmp_path / "old.toml"
    path.write_text(text)
    answer = command("run", path, *arguments)
    assert (answer.code, answer.out) == (2, "")
    assert SAYS_2 in answer.err


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (spec("three-servers"), "secagg.mode: invalid enum value 'three-servers'; there are one-server, two-servers"),
        (spec(secagg={"servers": 2}), "secagg.servers: no such key; known keys are mode"),
        (spec("two-servers", "none"), 'privacy.kind = "none" works with "one-server" only; use that mode'),
        (spec("two-servers", "fpdgd"), 'privacy.kind = "fpdgd" works with "one-server" only; use that mode'),
        (spec("two-servers", "laplace"), 'privacy.kind = "laplace" works with "one-server" only; use that mode'),
        (spec("two-servers", "randomized-response", learner={"kind": "foltr-es"}),
         'privacy.kind = "randomized-response" works with "one-server" only; use that mode'),
        (spec("two-servers", audit={"messages": 4}), "no single message is seen by anybody; leave out audit"),
        (spec("two-servers", "none") | {"federation": {"kind": "central"}}, "secagg is about clients"),
    ],
    ids=["unknown mode", "unknown key", "none", "fpdgd", "laplace", "response", "audit", "central"],
)  # fmt: skip
def test_a_mode_that_cannot_be_is_refused(content, says):
    with pytest.raises(SpecError) as refusal:
        setting(content)
    assert says in str(refusal.value)


# --- runs -------------------------------------------------------------------------------------------------------------


def test_both_modes_run_to_a_result_and_a_card(tmp_path, monkeypatch):
    monkeypatch.setenv("FOLTR_CACHE", str(tmp_path / "cache"))
    content = spec() | {"name": "modes", "sweep": {"secagg.mode": list(MODES)}}
    found = foltr.run(content, out=tmp_path / "runs")
    assert [one.label for one in found.run.manifest.settings] == [{"secagg.mode": mode} for mode in MODES]
    with np.load(found.run.dir / "ranker.npz") as arrays:
        one, two = arrays["setting_0"], arrays["setting_1"]
    assert np.isfinite([one, two]).all()
    assert not np.array_equal(one, two)
    cards = [" ".join(record.privacy["sentences"]) for record in found.run.manifest.settings]
    assert 'with one server (secagg.mode = "one-server")' in cards[0]
    assert 'with two servers (secagg.mode = "two-servers")' in cards[1]


# --- mechanisms of others ---------------------------------------------------------------------------------------------

CLIP, SIGMA = 100.0, 50.0  # no update reaches the clip
ENOUGH = Event("gaussian", "l2", CLIP, "l2", SIGMA)


class Plain(msgspec.Struct, frozen=True, tag_field="kind", tag="plain-noise"):
    """Written before there were modes: its event does not look at the context, and it declares nothing."""

    acts_on: ClassVar[str] = "delta"

    def init_state(self):
        return None

    def project(self, parameters):
        return parameters

    def event(self, context):
        return msgspec.structs.replace(ENOUGH, noise_contributors=CLIENTS, present=CLIENTS)

    def protect(self, values, state, event, draws):
        share = gaussian_share(draws, len(values), stddev=event.noise, noise_contributors=event.noise_contributors)
        return clipped_to(values, clip=CLIP, norm="l2")[0] + share

    def next_state(self, state, extra, context):
        return state


class Careless(Plain, frozen=True, tag_field="kind", tag="careless"):
    """Declares two servers, and still states noise of clients."""

    secagg_modes: ClassVar[tuple[str, ...]] = MODES


class Careful(Plain, frozen=True, tag_field="kind", tag="careful"):
    secagg_modes: ClassVar[tuple[str, ...]] = MODES

    def event(self, context):
        return noise_by_servers(ENOUGH) if context.secagg_mode == "two-servers" else Plain.event(self, context)

    def protect(self, values, state, event, draws):
        if event.noise_by == "servers":
            return clipped_to(values, clip=CLIP, norm="l2")[0]
        return Plain.protect(self, values, state, event, draws)


class Appending(Careful, frozen=True, tag_field="kind", tag="appending"):
    """Tells its norm beside the update, as an adaptive clip does, and no server adds noise to that."""

    def protect(self, values, state, event, draws):
        return np.append(Careful.protect(self, values, state, event, draws), np.linalg.norm(values))


class NotANumber(msgspec.Struct, frozen=True, tag_field="kind", tag="not-a-number"):
    needs: ClassVar[frozenset[str]] = frozenset({"updates"})
    num_attackers: int = 2
    knowledge: str = "partial"

    def craft(self, view):
        return np.full((view.num_attackers, view.deltas.shape[1]), np.nan)


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    """Known for one test; slots of their own, so that nothing stays."""
    for slot, *kinds in (("mechanism", Plain, Careless, Careful, Appending), ("attack", NotANumber)):
        monkeypatch.setitem(registry.SLOTS, slot, dict(registry.SLOTS[slot]))
        for kind in kinds:
            foltr.register(slot, kind)


def noise_of(sources, stddev):
    """What the streams of these numbers add to the mean of the first round."""
    return stddev * sum(stream(SEED, round=1, client=one, purpose="noise").normal(46) for one in sources) / CLIENTS


def test_a_mechanism_that_knows_no_modes_runs_with_one_server():
    one_round = {"rounds": 1}
    noisy, plain = (trained(spec(kind=kind, federation=one_round)) for kind in ("plain-noise", "none"))
    assert noisy - noise_of(range(CLIENTS), SIGMA / math.sqrt(CLIENTS)) == pytest.approx(plain, abs=1e-9)


def test_a_mechanism_that_knows_no_modes_is_refused_with_two_servers():
    with pytest.raises(
        SpecError, match=r'secagg\.mode = "two-servers": privacy\.kind = "plain-noise" works with "one-'
    ):
        setting(spec("two-servers", "plain-noise"))


def test_a_mechanism_that_leaves_the_noise_to_two_servers_runs_with_them():
    """Each server's noise is whole, and clients add none."""
    one_round = {"rounds": 1}
    noisy = trained(spec("two-servers", "careful", one_round))
    plain = trained(spec(kind="none", federation=one_round))
    assert noisy - noise_of(range(CLIENTS, CLIENTS + 2), SIGMA) == pytest.approx(plain, abs=1e-9)


def test_a_declared_mode_that_the_event_does_not_keep_to_is_refused():
    with pytest.raises(SpecError, match=r'"careless" states an event that does not fit secagg\.mode = "two-servers"'):
        setting(spec("two-servers", "careless"))
    assert np.isfinite(trained(spec("one-server", "careless"))).all()


def test_an_event_that_counts_the_noise_of_both_servers_is_refused(monkeypatch):
    """One of them may be the adversary, who subtracts its own: epsilon would be stated for too much noise."""
    both = msgspec.structs.replace(noise_by_servers(ENOUGH), present=2)
    monkeypatch.setattr(Careful, "event", lambda self, context: both)
    with pytest.raises(SpecError, match=r'"careful" states an event that does not fit secagg\.mode = "two-servers"'):
        setting(spec("two-servers", "careful"))


def test_values_beside_the_update_that_two_servers_add_no_noise_to_are_refused():
    with pytest.raises(SpecError, match="Appending appends 1 values to an update, to which two servers add no noise"):
        trained(spec("two-servers", "appending"))
    assert np.isfinite(trained(spec("one-server", "appending"))).all()


@pytest.mark.parametrize("groups", [1, 2])
def test_an_attacker_whose_row_is_left_out_takes_no_noise_of_the_servers_with_it(groups):
    """Rows that are not finite are left out of a mean; the noise of the servers is in the mean of the others."""
    shape = {"rounds": 1, "groups": groups, "num_byzantine": 0}
    noisy, plain = (
        trained(spec(mode, kind, shape, attack={"kind": "not-a-number"}))
        for mode, kind in (("two-servers", "careful"), ("one-server", "none"))
    )
    assert np.isfinite(noisy).all()
    assert np.abs(noisy - plain).max() > SIGMA / CLIENTS / 100


def test_noise_that_nobody_would_add_is_refused(monkeypatch):
    monkeypatch.setattr(Plain, "event", lambda self, context: noise_by_servers(ENOUGH))
    with pytest.raises(SpecError, match=r'does not fit secagg\.mode = "one-server", where clients add the noise'):
        protection_of(Plain(), clients=CLIENTS, cohort=None, max_rounds=1, parameters=46)


@pytest.mark.parametrize(
    ("federation", "says"),
    [
        ({"aggregator": "krum", "num_byzantine": 1}, "needs single updates, which secure aggregation hides"),
        ({"interactions": [1, 3]}, "sums with equal weights"),
        ({"mode": "buffered", "buffer": 4, "staleness": "polynomial"}, "federation.staleness: unequal weights"),
    ],
    ids=["single updates", "unequal weights", "staleness"],
)
def test_two_servers_see_sums_with_equal_weights_whatever_the_mechanism(federation, says):
    with pytest.raises(SpecError, match=says):
        setting(spec("two-servers", "careful", federation))
    setting(spec("one-server", "careful", federation))
