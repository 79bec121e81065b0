"""Sizes count from the largest registry that a node took part with, whatever files are lost or restored."""

import shutil

import msgspec
import pytest
from small_members import NODES, public, small
from test_joining import announcement, take_part

from foltr.errors import FoltrError, PrivacyError
from foltr.federation.member import respond, resume
from foltr.federation.policy import HISTORY, Guarded
from foltr.privacy.ledger_file import open_ledger
from foltr.privacy.ledger_repair import repair_ledger
from foltr.secagg.terms import registry

pytestmark = pytest.mark.usefixtures("silent_operators")

NODE = 2


@pytest.fixture
def fed(tmp_path):
    """A node whose own limit is a sum of three, so that nothing but its memory refuses a smaller registry."""
    fed = small(tmp_path)
    fed.side(NODE)
    guarded = Guarded(tmp_path / f"node-{NODE}" / "state")
    policy = guarded.load()
    guarded.save(msgspec.structs.replace(policy, limits=msgspec.structs.replace(policy.limits, min_clients=3)))
    return fed


def shrunk(fed, members=NODES - 1):
    kept = dict(list(fed.identities.items())[:members])
    known = registry(public(fed.server), {client: public(identity) for client, identity in kept.items()})
    return fed._replace(registry=known, identities=kept)


def refuses_a_smaller_registry(fed, round=2):
    smaller = shrunk(fed)
    with pytest.raises(PrivacyError, match="the fewest in a sum is 3, this node's policy says at least 4"):
        respond(smaller.side(NODE), announcement(smaller, round))


def take_part_again(fed, round):
    """After the person resumed the node, which would pause after two rounds without a version."""
    resume(fed.side(NODE))
    return take_part(fed, fed.side(NODE), announcement(fed, round))


def test_a_node_that_never_took_part_takes_the_smaller_registry(fed):
    smaller = shrunk(fed)
    assert take_part(smaller, smaller.side(NODE), announcement(smaller, 1))


def test_a_lost_history_forgets_no_size(fed):
    take_part(fed, fed.side(NODE), announcement(fed, 1))
    refuses_a_smaller_registry(fed)
    (fed.folder / f"node-{NODE}" / "state" / HISTORY).unlink()
    refuses_a_smaller_registry(fed)
    take_part(fed, fed.side(NODE), announcement(fed, 2))


def test_a_history_from_before_the_federation_grew_forgets_no_size(fed):
    smaller, path = shrunk(fed), fed.folder / f"node-{NODE}" / "state" / HISTORY
    take_part(smaller, smaller.side(NODE), announcement(smaller, 1))
    earlier = path.read_bytes()
    take_part(fed, fed.side(NODE), announcement(fed, 2))
    path.write_bytes(earlier)
    refuses_a_smaller_registry(fed, 3)


def test_any_one_file_that_is_deleted_or_restored_lets_no_smaller_registry_in(fed):
    """Every file of the node in turn: gone, or as it was before the larger registry; the policy is the person's own."""
    smaller, home = shrunk(fed), fed.folder / f"node-{NODE}"
    take_part(smaller, smaller.side(NODE), announcement(smaller, 1))
    shutil.copytree(home, fed.folder / "before")
    take_part(fed, fed.side(NODE), announcement(fed, 2))
    shutil.copytree(home, fed.folder / "after")
    paths = [path.relative_to(home) for path in home.rglob("*") if path.is_file() and path.name != "policy.json"]
    assert len(paths) >= 5
    for path in paths:
        for older in (None, fed.folder / "before" / path):
            shutil.rmtree(home)
            shutil.copytree(fed.folder / "after", home)
            if older is None:
                (home / path).unlink()
            elif older.exists():
                shutil.copy(older, home / path)
            with pytest.raises(FoltrError):
                take_part_again(smaller, 3)


def test_a_repaired_ledger_keeps_the_sizes_of_its_witness(fed):
    take_part(fed, fed.side(NODE), announcement(fed, 1))
    home = fed.folder / f"node-{NODE}"
    (home / "data" / "ledger").unlink()
    (home / "state" / HISTORY).unlink()
    repair_ledger(home / "data" / "ledger", witness=home / "state" / "ledger")
    ledger = open_ledger(home / "data" / "ledger", delta=1e-5, budget=None, witness=home / "state" / "ledger")
    assert ledger.largest_registry(fed.terms.federation) == NODES
    refuses_a_smaller_registry(fed)
