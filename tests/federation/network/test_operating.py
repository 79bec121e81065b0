"""Operating a federation over weeks: absences, changing members, going back, backups."""

import msgspec
import numpy as np
import pytest
from machines import START, Machines, charter, public

from foltr.errors import InputError, Refused, SecureAggregationError, SpecError
from foltr.federation.announcement import Announcement, announce
from foltr.federation.network import enrolment, folders, rounds, second, shared_ranker, wire
from foltr.federation.network.certificates import AUTHORITY_KEY, days_left
from foltr.federation.network.charter import DAY, Settings
from foltr.federation.network.desk import in_memory
from foltr.federation.network.planning import Requirements, plan
from foltr.privacy.events import Event
from foltr.privacy.ledger import closed_epsilon
from foltr.privacy.ledger_file import open_ledger
from foltr.secagg.crypto import new_identity

START_VALUES = np.array([1.0, 0.5, 0.25])
START_VALUES = np.array([1.0, 0.5, 0.25])
OPEN = {"noise_multiplier": 1.0, "quorum": 0.6}


@pytest.fixture
def machines(tmp_path, silent_operators):
    made = Machines(tmp_path, **OPEN)
    made.begin()
    yield made
    made.desk.store.close()


def everybody(machines, nodes=range(5)):
    for k in nodes:
        machines.sync(k)


def mean(machines, nodes=range(5)):
    return np.mean([machines.updates[k] for k in nodes], axis=0)


def test_windows_go_on_while_the_second_operator_is_away_and_its_sums_come_later(machines):
    window = machines.charter.terms.stage_seconds
    for _ in range(2):  # two days without the second operator
        everybody(machines)
        machines.clock.now += window
        rounds.advance(machines.desk, machines.clock())
        machines.clock.now += window / 10
        rounds.advance(machines.desk, machines.clock())
    assert machines.states() == {1: "closed", 2: "closed", 3: "announced"}
    second.work(machines.second)
    assert shared_ranker.newest_shared(machines.desk).version == 0  # within a window a ranker stays: others still wake
    with pytest.raises(SecureAggregationError, match="this node pauses"):
        machines.sync(0)
    machines.finish()
    assert [machines.states()[round] for round in (1, 2, 3)] == ["published", "published", "failed"]
    np.testing.assert_allclose(machines.parameters(), START_VALUES + 2 * mean(machines), atol=1e-8)
    everybody(machines)  # and the nodes follow
    machines.finish()
    assert machines.states()[4] == "published"


def test_no_round_is_announced_without_keys_of_the_second_operator(machines):
    for _ in range(12):  # nobody comes: a failed round uses its number and its keys
        machines.clock.now += 1.2 * machines.charter.terms.stage_seconds
        rounds.advance(machines.desk, machines.clock())
        rounds.advance(machines.desk, machines.clock())
    assert max(machines.states()) <= 8  # it left seven keys and the one of the first round
    assert rounds.open_round(machines.desk) is None


def test_a_member_that_joins_later_takes_part_and_all_others_follow_the_new_registry(machines):
    everybody(machines)
    machines.finish()
    machines.node_keys.append(new_identity())
    machines.updates[5] = np.array([0.1, 0.1, 0.1])
    machines.invite(5)
    machines.join(5)
    everybody(machines, range(1, 5))  # node 0 sleeps through this round
    machines.finish()
    machines.finish()  # nobody came; the registry was countersigned between the rounds
    assert enrolment.effective(machines.desk) == 2
    machines.accept(5)
    everybody(machines, range(6))
    machines.finish()
    newest = max(round for round, state in machines.states().items() if state == "published")
    included = machines.desk.store.value("SELECT included FROM rounds WHERE round = ?", newest)
    assert len(included) == 7  # an array of six members
    for k in range(6):
        machines.sync(k, "version")
        np.testing.assert_array_equal(np.frombuffer(machines.adopted[k].values), machines.parameters())


def test_members_that_were_not_seen_for_two_weeks_are_not_in_the_next_registry(machines):
    for _ in range(16):
        everybody(machines, range(4))
        machines.finish()
    assert sorted(enrolment.known(machines.desk, enrolment.effective(machines.desk)).clients) == [1, 2, 3, 4]
    post = in_memory(machines.desk, public(machines.node_keys[4]), machines.clock)
    current = wire.decode(post("announcement", wire.encode(wire.SyncRequest(0, 0))), wire.Current)
    assert (current.standing, current.announcement) == ("dormant", b"")
    everybody(machines, range(4))
    machines.finish()
    machines.finish()
    assert 5 in enrolment.known(machines.desk, enrolment.effective(machines.desk)).clients  # it was seen again


def test_an_earlier_ranker_returns_as_a_new_version_with_a_reason(machines):
    for _ in range(2):
        everybody(machines)
        machines.finish()
    with pytest.raises(InputError, match="cannot return"):
        shared_ranker.go_back(machines.desk, 17, "too far", machines.clock())
    shared_ranker.go_back(machines.desk, 1, "results were worse", machines.clock())
    assert shared_ranker.newest_shared(machines.desk).version == 2  # a window is open
    everybody(machines)
    machines.finish()
    assert shared_ranker.newest_shared(machines.desk).version == 4
    np.testing.assert_allclose(machines.parameters(), START_VALUES + mean(machines), atol=1e-8)
    for k in range(5):
        machines.sync(k, "version")
        np.testing.assert_array_equal(np.frombuffer(machines.adopted[k].values), machines.parameters())


def test_a_rehearsal_runs_a_whole_round_charges_nothing_and_changes_nothing(machines):
    everybody(machines)
    rounds.rehearse(machines.desk, machines.clock())
    machines.finish()
    before, charged = machines.parameters(), [charges(machines, k) for k in range(5)]
    everybody(machines)
    everybody(machines)  # asked again, the same bytes
    machines.finish()
    assert machines.states()[2] == "published"
    np.testing.assert_array_equal(machines.parameters(), before)
    assert [charges(machines, k) for k in range(5)] == charged == [1] * 5
    everybody(machines)
    machines.finish()
    np.testing.assert_allclose(machines.parameters(), START_VALUES + 2 * mean(machines), atol=1e-8)


def test_zeros_of_a_rehearsal_are_never_summed_with_updates(machines):
    """A coordinator that announces one round as both would read the only update in the sum."""
    rounds.rehearse(machines.desk, machines.clock())
    machines.finish()  # round 1 has nobody; round 2 is the rehearsal
    ranker = shared_ranker.newest_ranker(machines.desk)
    statements = msgspec.msgpack.decode(rounds.announcement_of(machines.desk, 2), type=Announcement).statements
    real = announce("round", ranker, federation=machines.charter.terms.federation, round=2,
                    identity=machines.desk.identity, statements=statements)  # fmt: skip
    everybody(machines, range(1, 5))
    machines.desk.store.execute("UPDATE rounds SET announcement = ? WHERE round = 2", real)
    with pytest.raises(Refused, match="signature is not its sender's in this federation and round"):
        machines.sync(0)


def charges(machines, k):
    ledger = open_ledger(machines.home(k) / "data" / "ledger", delta=1e-5, budget=1e6,
                         witness=machines.home(k) / "config" / "ledger")  # fmt: skip
    return ledger.charges_after(machines.charter.terms.federation, 0)


def test_a_node_learns_why_it_was_not_in_a_sum(machines):
    everybody(machines, range(4))
    machines.finish()
    for k, (sent, included, reason) in {
        0: (True, True, ""),
        4: (False, False, "no contribution arrived in time"),
    }.items():
        body = in_memory(machines.desk, public(machines.node_keys[k]), machines.clock)(
            "rounds", wire.encode(wire.RoundsRequest())
        )
        fate = wire.decode(body, wire.Fates).rounds[-1]
        assert (fate.round, fate.sent, fate.included, fate.reason) == (1, sent, included, reason)


def test_a_contribution_whose_question_was_answered_before_the_end_is_still_taken(machines):
    everybody(machines, range(4))
    machines.clock.now = START + machines.charter.terms.stage_seconds - 1
    held = {}

    def post(endpoint, body):
        if endpoint == "contribute":
            machines.clock.now += 30  # the window ended in between
            rounds.advance(machines.desk, machines.clock())
        held[endpoint] = body
        return machines.post(machines.node_keys[4])(endpoint, body)

    assert machines.sync(4, post=post).round == 1
    machines.finish()
    assert len(machines.desk.store.value("SELECT included FROM rounds WHERE round = 1")) == 6


def test_a_restored_coordinator_uses_no_number_or_key_of_a_round_twice(tmp_path):
    folder, settings = tmp_path / "coordinator", Settings("Team", "https://127.0.0.1:1")
    desk = folders.create(folder, charter(**OPEN), settings, START)
    machines = Machines(tmp_path / "all", settings=settings, **OPEN)
    machines.desk.store.close()
    machines.desk, machines.charter = desk, desk.charter
    machines.keys |= {"coordinator": desk.identity, "first": desk.operator}
    machines.begin()
    everybody(machines)
    machines.finish()
    folders.backup(folder, tmp_path / "backup.tar", machines.clock())
    assert (tmp_path / "backup.tar").stat().st_mode & 0o777 == 0o600
    everybody(machines)
    machines.finish()
    machines.sync(0, "version")
    used = max(machines.states())
    desk.store.close()
    other = tmp_path / "restored"
    following = folders.restore(other, tmp_path / "backup.tar", machines.clock())
    assert following > used + 7
    assert not list((other / "witness").rglob("*.key"))
    with pytest.raises(InputError, match="not empty"):
        folders.restore(other, tmp_path / "backup.tar", machines.clock())
    machines.desk = folders.open_desk(other)
    with pytest.raises(Refused, match="restored from a backup"):  # nodes have a version that the backup lacks
        machines.sync(0)
    machines.desk.store.close()


def test_keys_and_settings_of_a_new_coordinator_are_private_and_never_overwritten(tmp_path):
    folder, settings = tmp_path / "coordinator", Settings("Team", "https://example.org:8490")
    folders.create(folder, charter(**OPEN), settings, START).store.close()
    for path in folder.iterdir():
        assert path.stat().st_mode & 0o077 == 0, path
    before = (folder / AUTHORITY_KEY).read_bytes()
    with pytest.raises(InputError, match="there is a coordinator here"):
        folders.create(folder, charter(**OPEN), settings, START)
    assert (folder / AUTHORITY_KEY).read_bytes() == before
    certificate, _ = folders.certificate_files(folder, settings, START + 380 * DAY)  # it would end in 17 days
    assert days_left(folder / certificate, START + 380 * DAY) > 390


def test_a_plan_for_a_year_keeps_the_budget_and_says_when_it_ends():
    for hours in (None, 168.0):
        required = Requirements("open", 1000, 4.0, 1e-6, 364, 0.5, hours)
        planned = plan(required, length=15, clip=0.5, now=START)
        days = max(planned.interval_days, planned.terms.stage_seconds / DAY)
        event = Event("gaussian", "l2", 1.0, "l2", planned.terms.noise_multiplier)
        assert closed_epsilon({event: int(364 / days)}, 1e-6, "malicious") <= 4.0
        assert any("the budget lasts until" in line for line in planned.words)
    with pytest.raises(SpecError, match="drowns"):
        plan(Requirements("open", 5, 4.0, 1e-6, 364, 0.5, None), length=15, clip=0.5, now=START)
    circle = plan(Requirements("circle", 5, 4.0, 1e-6, 364, 0.5, None), length=15, clip=0.5, now=START)
    assert (circle.terms.noise_multiplier, circle.terms.quorum, circle.terms.dropouts) == (0, 0, 0)


def test_rounds_keep_their_distance(tmp_path, silent_operators):
    settings = Settings("test", "https://127.0.0.1:1", interval_days=30.0)
    machines = Machines(tmp_path, settings=settings, **OPEN)
    machines.begin()
    everybody(machines)
    opened = [machines.clock()]
    for _ in range(62):
        machines.clock.now += DAY
        for _ in range(9):  # keys that were left for rounds long before have ended; fresh ones are asked for
            rounds.advance(machines.desk, machines.clock())
            second.work(machines.second)
        current = rounds.open_round(machines.desk)
        if current is not None and current.opened not in opened:
            opened.append(current.opened)
            everybody(machines)
    assert np.diff(opened).tolist() == [30 * DAY, 30 * DAY]
    assert shared_ranker.newest_shared(machines.desk).version >= 2
    machines.desk.store.close()
