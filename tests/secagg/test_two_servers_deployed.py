"""A node of two operators: what is charged and on the disk before its message leaves, and the noise in a sum."""

import math

import numpy as np
import pytest
from small_operators import operators, run
from small_two_servers import RANKER, contributions, federation, plain_sum

from foltr.errors import PrivacyError, SecureAggregationError, StorageError
from foltr.federation import two_servers as deployed
from foltr.federation.membership import Member
from foltr.privacy import ledger as ledgers
from foltr.privacy.calibration import noise_multiplier
from foltr.privacy.events import EVERYBODY
from foltr.privacy.ledger_file import open_ledger
from foltr.privacy.release import release_to_servers
from foltr.secagg.guarantee import guarantee
from foltr.secagg.ring import decode
from foltr.secagg.two_in_process import run_round


class Ledger:
    """Charges a round once, as a node's ledger does."""

    def __init__(self, limit=10):
        self.charged, self.limit = [], limit

    identity = "one"

    def require(self, identity, *, path):
        assert identity in ("", self.identity)

    def charge(self, event, *, federation, round, **_):
        if len(self.charged) == self.limit or any(round <= one for _, _, one in self.charged):
            raise PrivacyError("refused")
        self.charged.append((event, federation, round))

    def highest_round(self, federation):
        return max((round for _, name, round in self.charged if name == federation), default=-1)


NOISY = federation(7, noise_multiplier=3.0)


def sent(path, ledger, fed=NOISY, round=1, ranker=RANKER, update=None):
    update = np.ones(5) if update is None else update
    return deployed.contribute_once(
        update, Member(10, fed.identities[10], fed.setup.terms, fed.setup.registry), window=fed.window(round, ranker),
        path=path, ledger=ledger,
    )  # fmt: skip


def test_a_client_is_charged_once_and_sends_the_same_bytes_again(tmp_path):
    ledger, path = Ledger(), tmp_path / "sent"
    first = sent(path, ledger)
    assert sent(path, ledger, update=np.zeros(5)) == first  # another vector in the round would be a second release
    assert sent(path, ledger, round=2) != first
    assert [(federation, round) for _, federation, round in ledger.charged] == [
        (NOISY.setup.terms.federation, 1), (NOISY.setup.terms.federation, 2)
    ]  # fmt: skip


def test_an_older_round_or_another_ranker_of_the_round_is_refused(tmp_path):
    ledger, path = Ledger(), tmp_path / "sent"
    sent(path, ledger, round=5)
    for wrong in ({"round": 4}, {"round": 5, "ranker": bytes(32)}):
        with pytest.raises(SecureAggregationError, match="has sent its update of round 5"):
            sent(path, ledger, **wrong)
    with pytest.raises(StorageError, match="one file for each federation"):
        sent(path, ledger, fed=federation(7, noise_multiplier=3.0), round=6)
    assert len(ledger.charged) == 1


def test_nothing_leaves_or_is_stored_without_a_charge(tmp_path):
    with pytest.raises(PrivacyError):
        sent(tmp_path / "sent", Ledger(limit=0))
    assert not (tmp_path / "sent").exists()


def test_a_crash_after_the_charge_costs_the_round(tmp_path, monkeypatch):
    """The power fails before the message is stored: it never left, and the round is not charged a second time."""
    ledger, path = Ledger(), tmp_path / "sent"
    with monkeypatch.context() as failing:
        failing.setattr(deployed, "write_durably", lambda *_: (_ for _ in ()).throw(OSError("power")))
        with pytest.raises(OSError, match="power"):
            sent(path, ledger)
    with pytest.raises(PrivacyError, match="refused"):
        sent(path, ledger)
    assert sent(path, ledger, round=2)
    assert len(ledger.charged) == 2


def test_the_ledger_of_a_node_admits_the_planned_rounds_and_refuses_one_more(tmp_path):
    """Epsilon 1 at delta 1e-5 for three releases; a lost file of sent messages does not free a charged round."""
    fed = federation(7, noise_multiplier=noise_multiplier(1.0, 1e-5, 3))
    ledger = open_ledger(
        tmp_path / "state" / "ledger", delta=1e-5, budget=1.0, witness=tmp_path / "elsewhere" / "ledger"
    )
    path = tmp_path / "sent"
    for round in (1, 2):
        sent(path, ledger, fed=fed, round=round)
    path.unlink()
    with pytest.raises(PrivacyError, match="already answered in round 2"):
        sent(path, ledger, fed=fed, round=2)
    sent(path, ledger, fed=fed, round=3)
    with pytest.raises(PrivacyError):
        sent(path, ledger, fed=fed, round=4)


def test_a_damaged_file_stops_everything(tmp_path):
    (tmp_path / "sent").write_bytes(b"\xff")
    with pytest.raises(StorageError, match="nothing is sent"):
        sent(tmp_path / "sent", Ledger())


def test_both_noises_of_the_operating_system_are_in_a_sum(tmp_path):
    """2,000 numbers: chi-square against twice the variance; a false alarm once in 10^6 (4.9 deviations)."""
    fed = federation(3, length=2000, noise_multiplier=2.0, dropouts=0.0)
    rows = dict.fromkeys(fed.identities, np.zeros(2000, np.uint32))
    total = run(fed, operators(fed, tmp_path), rows=rows)[2].totals[0]
    values = decode(total, deployed.ring_of(fed.setup))
    assert np.square(values).sum() / (2 * 2.0**2) == pytest.approx(2000, abs=4.9 * math.sqrt(4000))


def test_no_noise_where_the_terms_have_none():
    fed = federation(7)
    assert deployed.noise_of(fed.setup) is None
    found = run_round(contributions(fed), fed.secrets(), window=fed.window())
    assert np.array_equal(found.sums.totals[0], plain_sum(fed, fed.identities))


# what a release is worth


def test_the_event_is_the_full_noise_of_one_aggregator_against_everybody():
    """Two noises are in the sum, one counts: the other may be known."""
    ring = deployed.ring_of(NOISY.setup)
    _, event = release_to_servers(np.ones(5), clip=1.0, multiplier=3.0, ring=ring)
    assert event.against == EVERYBODY
    assert event.bound == 2**16
    assert event.colluders == 0
    assert event.noise * math.sqrt(event.present / event.noise_contributors) == pytest.approx(3 * 2**16, rel=1e-9)


def test_epsilon_depends_on_no_number_of_clients():
    """The same event with 3 and with 50 registered, whoever drops out; one server needs honest survivors."""
    rings = [deployed.ring_of(federation(clients).setup) for clients in (3, 50)]
    events = {release_to_servers(np.ones(5), clip=1.0, multiplier=3.0, ring=ring)[1] for ring in rings}
    assert len(events) == 1


def test_the_noise_of_a_target_admits_as_many_releases_as_planned():
    multiplier = noise_multiplier(1.0, 1e-5, 20)
    _, event = release_to_servers(np.ones(46), clip=1.0, multiplier=multiplier, ring=deployed.ring_of(NOISY.setup))
    ledger, user = ledgers.begin(1, delta=1e-5, budget=1.0), np.zeros(1, np.int64)
    assert ledgers.admits(ledger, event, user, 20)
    assert not ledgers.admits(ledger, event, user, 21)


def test_the_price_is_1_26_times_the_noise_of_one_server():
    """1,000 clients, 10 % and 10 %: shares sized for 800 honest, all 1,000 present; two servers have two noises."""
    sizes = guarantee(1000, dropouts=0.1, corrupt=0.1)
    one_server = math.sqrt(sizes.cohort / sizes.honest)
    assert math.sqrt(2) / one_server == pytest.approx(1.265, abs=1e-3)
