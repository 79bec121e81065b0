"""The deployed client: asked twice, restored, crashed, or in a round that failed."""

import shutil
import stat

import msgspec
import numpy as np
import pytest
from small_nodes import FED, VICTIM, node, round_with
from small_rounds import asked, content, federation, members, server_of, until

from foltr.errors import FoltrError, PrivacyError, SecureAggregationError, SpecError
from foltr.federation import participant
from foltr.federation.membership import round_place
from foltr.federation.participant import Storage, end_round
from foltr.secagg import client as bare
from foltr.secagg import crypto, messages, ring
from foltr.secagg.in_process import run_in_memory
from foltr.secagg.messages import STAGES
from foltr.secagg.terms import to_set
from foltr.witnessed import head, load


def test_a_round_of_nodes_sums_noisy_vectors_and_charges_each_once(tmp_path):
    nodes = {name: node(tmp_path, name) for name in FED.identities}
    for one in nodes.values():
        one.join()
    server = server_of(FED)
    requests, found = next(server), None
    while found is None:
        try:
            requests = server.send({name: nodes[name].answer(request) for name, request in requests.items()})
        except StopIteration as finished:
            found = finished.value
    total = ring.decode(found.total, ring.Ring(5))
    assert np.abs(total - 0.5 * np.ones(6)).max() < 8 * 4 * np.sqrt(5 / 3)  # 8 deviations of the noise of 5 shares
    assert (total != 0.5).all()
    for one in nodes.values():
        assert sum(one.ledger.counts().values()) == 1
        assert one.ledger.highest_round(FED.terms.federation) == 1


@pytest.mark.parametrize("stage", STAGES)
def test_the_same_request_gets_the_same_bytes_and_another_one_nothing(tmp_path, stage):
    victim = node(tmp_path)
    victim.join()
    _, _, requests = round_with(victim, stage)
    first = victim.answer(requests[VICTIM])
    again = node(tmp_path)  # a new process
    assert [again.answer(requests[VICTIM]) for _ in range(3)] == [first] * 3
    body = content(requests[VICTIM], messages.REQUESTS[stage])
    if stage == "mask":
        other = messages.Deliveries([b"", *body.sealed[1:]])
        with pytest.raises(SecureAggregationError, match="stage is 'mask', expected 'agree'"):
            again.answer(asked(FED, "mask", VICTIM, other))
    assert sum(victim.ledger.counts().values()) == (stage in STAGES[2:])


def masks_off(reply_to):
    """The attack of a server without colluders: ten answers to `mask`, each time without another neighbour."""
    _, states, requests = until(FED, "mask")
    sealed = content(requests[VICTIM], messages.Deliveries).sealed

    def vector(delivered):
        reply = reply_to(states[VICTIM], asked(FED, "mask", VICTIM, messages.Deliveries(delivered)))
        return np.frombuffer(content(reply, messages.Masked).vector, "<u4")

    whole = vector(sealed)
    alone = whole - sum(
        (whole - vector([b"" if k == hidden else one for k, one in enumerate(sealed)]) for hidden in range(4)),
        np.zeros(6, "<u4"),
    )
    return alone - crypto.self_mask(states[VICTIM].seed, 6, 32)  # which the round opens, as it should


def test_a_bare_state_that_answers_again_shows_its_vector():
    """Why states are stored as they are: without that, four more answers are enough in a round of five."""
    own = members(FED)[VICTIM].vector
    assert (masks_off(lambda state, request: bare.answer(state, request)[1]) == own).all()


def test_a_restored_folder_does_not_answer_mask_again(tmp_path):
    """Ten tries with a copy that was made before `mask`: with the ledger, and with the ledger restored as well."""
    victim = node(tmp_path)
    victim.join()
    _, _, requests = round_with(victim, "mask")
    backup = tmp_path / "backup"
    shutil.copytree(victim.storage.folder, backup)
    victim.answer(requests[VICTIM])
    sealed = content(requests[VICTIM], messages.Deliveries).sealed
    for attempt in range(10):
        shutil.rmtree(victim.storage.folder)
        shutil.copytree(backup, victim.storage.folder)
        body = messages.Deliveries([b"" if k == attempt % 4 else one for k, one in enumerate(sealed)])
        with pytest.raises(FoltrError, match="restored"):
            node(tmp_path).answer(asked(FED, "mask", VICTIM, body))


def test_a_restored_state_with_its_key_is_stopped_by_the_ledger(tmp_path):
    """Both files of the round come back, the ledger does not: the second charge of a round is refused."""
    victim = node(tmp_path)
    victim.join()
    _, _, requests = round_with(victim, "mask")
    files = [victim.storage.folder / "round.state", victim.storage.witness / "round.head"]
    before = [path.read_bytes() for path in files]
    victim.answer(requests[VICTIM])
    for path, old in zip(files, before, strict=True):
        path.write_bytes(old)
    sealed = content(requests[VICTIM], messages.Deliveries).sealed
    with pytest.raises(PrivacyError, match="rounds only rise"):
        victim.answer(asked(FED, "mask", VICTIM, messages.Deliveries([b"", *sealed[1:]])))


def test_a_restored_folder_signs_no_second_set(tmp_path):
    victim = node(tmp_path)
    victim.join()
    _, _, requests = round_with(victim, "agree")
    backup = (victim.storage.folder / "round.state").read_bytes()
    victim.answer(requests[VICTIM])
    (victim.storage.folder / "round.state").write_bytes(backup)
    with pytest.raises(SecureAggregationError, match="restored"):
        victim.answer(requests[VICTIM])


def test_a_crash_before_the_charge_sends_no_masked_vector_without_it(tmp_path, monkeypatch):
    """Asked again after the crash, the node charges and answers; a stored reply would leave uncharged."""
    victim = node(tmp_path)
    victim.join()
    _, _, requests = round_with(victim, "mask")
    with monkeypatch.context() as failing:
        failing.setattr(type(victim.ledger), "charge", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            victim.answer(requests[VICTIM])
    again = node(tmp_path)
    assert again.answer(requests[VICTIM])
    assert sum(again.ledger.counts().values()) == 1


def test_a_round_that_was_charged_is_not_joined_again_though_its_files_are_lost(tmp_path):
    victim = node(tmp_path)
    victim.join(round=3)
    _, _, requests = round_with(victim, "mask", round=3)
    victim.answer(requests[VICTIM])
    (victim.storage.folder / "round.state").unlink()
    (victim.storage.witness / "round.head").unlink()
    for round in (1, 3):
        with pytest.raises(SecureAggregationError, match="already joined round 3; rounds only rise"):
            victim.join(round=round)
    victim.join(round=4)


def test_a_failed_round_is_a_spent_release(tmp_path):
    victim = node(tmp_path)
    victim.join()
    _, _, requests = round_with(victim, "mask")
    victim.answer(requests[VICTIM])
    end_round(victim.storage)  # the server never finished
    assert sum(victim.ledger.counts().values()) == 1
    with pytest.raises(SecureAggregationError, match="rounds only rise"):
        victim.join(round=1)
    with pytest.raises(SecureAggregationError, match="no open round"):
        victim.answer(requests[VICTIM])
    victim.join(round=2)


@pytest.mark.parametrize("stage", STAGES[:3])
def test_a_round_that_fails_before_the_vector_leaves_costs_nothing(tmp_path, stage):
    victim = node(tmp_path)
    victim.join()
    round_with(victim, stage)
    assert not sum(victim.ledger.counts().values())
    with pytest.raises(SecureAggregationError, match="rounds only rise"):
        victim.join(round=1)  # all the same: noise is drawn once in a round


def test_beyond_the_budget_nothing_is_joined(tmp_path):
    with pytest.raises(PrivacyError, match="budget"):
        node(tmp_path, budget=1e-6).join()


def test_noise_is_drawn_once(tmp_path, monkeypatch):
    victim, drawn = node(tmp_path), []
    real = participant.release
    monkeypatch.setattr(participant, "release", lambda *a, **k: drawn.append(1) or real(*a, **k))
    victim.join()
    _, _, requests = round_with(victim, "unmask")
    assert node(tmp_path).answer(requests[VICTIM]) == victim.answer(requests[VICTIM])
    assert len(drawn) == 1


def test_files_are_the_owners_and_sealed_and_empty_of_secrets_in_the_end(tmp_path):
    victim = node(tmp_path)
    victim.join()
    _, _, requests = round_with(victim, "unmask")
    stored = load(round_place(victim.storage), participant._Stored)
    on_disk = (victim.storage.folder / "round.state").read_bytes()
    secrets = [stored.seed, stored.mask, stored.channel, stored.vector, *stored.shared.values(), *stored.held.values()]
    assert all(len(one) >= 24 and one not in on_disk for one in secrets)
    for path in (victim.storage.folder / "round.state", victim.storage.witness / "round.head"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    victim.answer(requests[VICTIM])
    left = msgspec.msgpack.encode(load(round_place(victim.storage), participant._Stored))
    assert not any(one in left for one in (stored.seed, stored.mask, stored.channel, stored.vector))


def test_a_node_with_a_budget_takes_part_in_no_sum_without_noise(tmp_path):
    without = node(tmp_path, budget=1e9, fed=federation(5, length=6))
    with pytest.raises(PrivacyError, match="budget"):
        without.join()
    assert not without.ledger.counts()


def test_a_node_with_its_witness_beside_it_is_refused(tmp_path):
    one = node(tmp_path)
    folder = one.storage.folder
    for witness in (folder, folder / "deep" / "witness"):  # a backup of the folder has both
        with pytest.raises(SpecError, match="another folder"):
            one._replace(storage=Storage(folder, witness)).join()


def test_a_round_is_answered_only_as_the_member_that_joined_it(tmp_path):
    """Two federations with one folder: the vector has the noise of the first, and the second would be charged for the
    noise of its own terms, which is not there."""
    more = federation(5, length=6, noise_multiplier=400.0)
    one, other = node(tmp_path), node(tmp_path, fed=more)
    one.join()
    with pytest.raises(SecureAggregationError, match="joined under another registry or other terms"):
        other.answer(next(server_of(more))[VICTIM])
    assert one.answer(next(server_of(FED))[VICTIM])
    assert not other.ledger.counts()


# share: keys and nonces


def sealing(state, body):
    """Under which key each neighbour's shares are sealed, and what is sealed."""
    after, reply = bare.answer(state, asked(FED, "share", VICTIM, body))
    sealed = dict(zip(after.neighbours, content(reply, messages.Shares).sealed, strict=True))
    keys = {other: crypto.derive(after.shared[other], after.view, VICTIM, other, "shares") for other in after.shared}
    return {(keys[other], sealed[other]) for other in keys}


def test_share_answered_twice_reuses_no_key_for_another_text():
    """Of a state that was restored: the same graph gives the same bytes, another graph other keys for all."""
    _, states, requests = until(FED, "share")
    state, body = states[VICTIM], content(requests[VICTIM], messages.Neighbourhood)
    first, again = sealing(state, body), sealing(state, body)
    assert first == again
    fewer = [name for name in FED.identities if name != 22]
    adverts = {name: states[name].advert for name in fewer}
    levels = messages_levels(adverts)
    smaller = messages.Neighbourhood(
        to_set(fewer, FED.registry),
        levels[-1][0],
        bare.graph.merkle_path(levels, 0),
        [messages.signed_keys(one) for one in adverts.values()][1:],
    )
    second = sealing(state, smaller)
    assert len(second) == 3
    assert not {key for key, _ in first} & {key for key, _ in second}


def messages_levels(adverts):
    return bare.graph.merkle_levels([bare.graph.merkle_leaf(one) for one in adverts.values()])


# what shows in a log


def test_no_struct_with_a_secret_shows_it(tmp_path):
    victim = node(tmp_path)
    victim.join()
    round_with(victim, "unmask")
    stored, newest = load(round_place(victim.storage), participant._Stored), head(round_place(victim.storage))
    _, states, _ = until(FED, "unmask")
    state = states[VICTIM]
    secrets = [stored.seed, stored.mask, stored.channel, newest.key, state.seed, state.mask, state.channel]
    secrets += [*state.shared.values(), *state.held.values(), *stored.held.values()]
    identity = FED.identities[VICTIM].private_bytes_raw()
    shown = " ".join(map(repr, [stored, newest, state, victim.member, victim, FED.identities[VICTIM], server_of(FED)]))
    for secret in [*secrets, identity]:
        assert repr(secret)[2:-1] not in shown
        assert secret.hex() not in shown
    assert "vector" not in repr(state)


def test_run_in_memory_still_takes_bare_clients():
    found = run_in_memory(server_of(FED), members(FED))
    assert found.included == tuple(FED.identities)
