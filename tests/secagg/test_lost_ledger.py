"""Ledger and witness both deleted: what a node stored of its rounds tells, and nothing is released unseen."""

import shutil

import numpy as np
import pytest
from small_nodes import VICTIM, node, round_with
from small_two_servers import federation

from foltr.errors import FoltrError, PrivacyError
from foltr.federation import two_servers
from foltr.federation.membership import Member
from foltr.federation.participant import end_if_late, end_round
from foltr.privacy.ledger_file import open_ledger
from foltr.privacy.ledger_repair import accept_ledger


def ledger_files(victim):
    return {"path": victim.storage.folder / "ledger", "witness": victim.storage.witness / "ledger"}


def delete_ledger(victim):
    for file in ledger_files(victim).values():
        file.unlink()


def test_a_node_that_took_part_refuses_a_new_ledger_until_the_person_decides(tmp_path):
    victim = node(tmp_path, budget=9.0)
    victim.join()
    _, _, requests = round_with(victim, "mask")
    victim.answer(requests[VICTIM])
    end_round(victim.storage)  # also after its secrets are erased
    lost = victim.ledger.identity
    delete_ledger(victim)
    again = node(tmp_path, budget=9.0)
    with pytest.raises(PrivacyError, match=f"took part in rounds with another ledger.* --accept {lost}"):
        again.join(round=2)
    accept_ledger(**ledger_files(victim), identity=lost)
    again.join(round=2)
    end_round(victim.storage)
    node(tmp_path, budget=9.0).join(round=3)


@pytest.mark.parametrize("stage", ["advertise", "share", "mask", "agree"])
def test_a_ledger_that_is_deleted_in_the_middle_of_a_round_ends_its_answers(tmp_path, stage):
    victim = node(tmp_path)
    victim.join()
    _, _, requests = round_with(victim, stage)
    delete_ledger(victim)
    with pytest.raises(PrivacyError, match="another ledger"):
        node(tmp_path).answer(requests[VICTIM])


def test_a_node_that_lost_its_whole_witness_folder_still_knows(tmp_path):
    """The state file names round and ledger in clear."""
    victim = node(tmp_path)
    victim.join()
    round_with(victim, "share")
    shutil.rmtree(victim.storage.witness)
    (victim.storage.folder / "ledger").unlink()
    again = node(tmp_path)
    with pytest.raises(FoltrError, match=r"the witness of .*round\.state is missing"):
        again.join(round=2)
    assert end_if_late(again.member, storage=again.storage)
    with pytest.raises(PrivacyError, match=f"--accept {victim.ledger.identity}"):
        again.join(round=2)


def test_a_node_of_two_operators_refuses_a_new_ledger_until_the_person_decides(tmp_path):
    fed = federation(7, noise_multiplier=3.0)
    files = {"path": tmp_path / "state" / "ledger", "witness": tmp_path / "elsewhere" / "ledger"}

    def sent(round):
        ledger = open_ledger(**files, delta=1e-5, budget=9.0)
        return two_servers.contribute_once(
            np.ones(5), Member(VICTIM, fed.identities[VICTIM], fed.setup.terms, fed.setup.registry),
            window=fed.window(round), path=tmp_path / "state" / "contribution", ledger=ledger,
        )  # fmt: skip

    first, lost = sent(1), open_ledger(**files, delta=1e-5, budget=9.0).identity
    for file in files.values():
        file.unlink()
    assert sent(1) == first  # the stored bytes: no second release
    with pytest.raises(PrivacyError, match=f"took part in rounds with another ledger.* --accept {lost}"):
        sent(2)
    accept_ledger(**files, identity=lost)
    sent(2)
