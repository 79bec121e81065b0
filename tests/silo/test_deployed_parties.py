"""Three parties as they would be deployed: everything from files, bytes between them, and a restart in the middle."""

import numpy as np
import pytest
from silos import TEXTS, counts

from foltr.errors import DataError, PrivacyError
from foltr.privacy.ledger import spent
from foltr.silo.allowance import Limits, open_allowance
from foltr.silo.group_files import create_identity, encode_group, open_delivered, read_identity
from foltr.silo.index import build_index
from foltr.silo.keys import group_plan, make_group, public
from foltr.silo.owners import answer, serve_releases, with_statistics
from foltr.silo.protocol import Target, ask_counts, ask_statistics, ask_top, make_asker
from foltr.silo.releases import release_to_file, statistics_to_file
from foltr.silo.sketches import family
from foltr.silo.statistics import look_up, release_statistics

NAMES = [f"{number}.txt" for number in range(len(TEXTS))]
ENTRIES = len(TEXTS)


@pytest.fixture
def parties(tmp_path):
    """Folders with identities, the agreed plan, and the group as the server carries it."""
    folders = [tmp_path / name for name in ("north", "south", "west")]
    for folder in folders:
        folder.mkdir()
        create_identity(folder / "identity")
    keys = [public(read_identity(folder / "identity")) for folder in folders]  # exchanged without the server
    plan = group_plan("clinics", keys[0], keys)
    return folders, plan, encode_group(make_group(plan, read_identity(folders[0] / "identity"), epoch=1))


def opened(folder, plan, group):
    return open_delivered(group, read_identity(folder / "identity"), plan, folder / "epochs.json")


def owner_from(folder, plan, group, texts=TEXTS):
    """The owner as its process finds it when it starts."""
    member = opened(folder, plan, group)
    functions = family(member.key)
    words, documents = counts(texts)
    exact = build_index(documents, words, functions, top=3)
    releases = release_to_file(folder / "releases.json", exact, NAMES, epsilon=1.0, budget=2.0)
    limits = Limits(entries=2 * ENTRIES, total=3 * ENTRIES)
    allowance = open_allowance(folder / "allowances.json", limits, member, now=lambda: 0.0)
    table = statistics_to_file(
        folder / "statistics", lambda: release_statistics(documents, words, functions, noise="noisy", epsilon=0.5)
    )
    return with_statistics(serve_releases(member, releases, allowance=allowance), table)


def carried(query, owner):
    """What the server does: bytes there, bytes back."""
    owner, reply = answer(owner, next(query))
    with pytest.raises(StopIteration) as finished:
        query.send(reply)
    return owner, finished.value.value


def test_a_restart_changes_no_answer_and_forgets_nothing(parties):
    (north, south, _), plan, group = parties
    owner = owner_from(south, plan, group)
    member = opened(north, plan, group)
    asker, target = make_asker(member, family(member.key)), Target(owner.membership.place)
    every = np.arange(len(TEXTS))
    recorded = next(ask_counts(asker, target, "fever", every))
    owner, first = carried(ask_counts(asker, target, "cough", every), owner)
    owner, statistics = carried(ask_statistics(asker, target), owner)
    assert spent(owner.ledger).epsilon == pytest.approx(1.5, rel=0.01)  # answers 1, statistics .5

    restarted = owner_from(south, plan, group)
    with pytest.raises(DataError, match="not above its last one"):
        answer(restarted, recorded)  # an earlier number than those it has answered
    restarted, again = carried(ask_counts(asker, target, "cough", every), restarted)
    assert np.array_equal(first.estimates, again.estimates)
    restarted, told = carried(ask_statistics(asker, target), restarted)
    assert np.array_equal(statistics.document_frequency, told.document_frequency)
    assert look_up(told, ["fever"], family(member.key)).documents == len(TEXTS)
    with pytest.raises(PrivacyError, match="has 0 left"):
        carried(ask_top(asker, target, "cough", top=2), restarted)


def test_an_edit_is_charged_and_the_budget_ends_it(parties):
    (_, south, _), plan, group = parties
    edited, twice = ([*TEXTS[:4], text] for text in ("aspirin", "rash"))
    owner_from(south, plan, group)
    assert owner_from(south, plan, group, edited).ledger.counts[:, 0].tolist() == [1, 1, 1, 1, 2]
    with pytest.raises(PrivacyError, match=r"4\.txt: release 3 of epsilon 1"):
        owner_from(south, plan, group, twice)
