"""What a message, a key or a record of any form may cost: nothing is kept, taken or shown that should not be."""

import pytest
from rich.pretty import pretty_repr
from small_draws import entrants
from small_nodes import node, round_with
from small_operators import operators, run
from small_rounds import RANKER, members
from small_rounds import federation as one_server
from small_two_servers import agreed, federation

from foltr.errors import SecureAggregationError, SpecError, StorageError
from foltr.federation import participant
from foltr.federation.membership import round_place
from foltr.secagg import crypto
from foltr.secagg.terms import Terms, context, new_federation, registry
from foltr.secagg.two_servers import context as context_of_two
from foltr.secagg.two_servers import two_servers
from foltr.witnessed import head, load

SMALL_ORDER = (
    bytes(32), b"\1" + bytes(31), b"\1" + bytes(30) + b"\x80", b"\xec" + b"\xff" * 30 + b"\x7f", b"\xee" + b"\xff" * 31,
    bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"),
    bytes.fromhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa"),
)  # fmt: skip


def test_signatures_of_another_length_than_64_are_refused_before_the_cache():
    identity = crypto.new_identity()
    public, signature = identity.public_key().public_bytes_raw(), identity.sign(b"message")
    crypto.forget_verified()
    for wrong in (b"", signature[:-1], signature + b"0", bytes(60_000)):
        assert not crypto.signed_by(public, wrong, b"message")
    assert not crypto.signed_by(public[:-1], signature, b"message")
    assert crypto._verified.cache_info().currsize == 0
    assert crypto.signed_by(public, signature, b"message")


@pytest.mark.parametrize("wrong", [b"", b"short", bytes(33), *SMALL_ORDER])
def test_a_registry_takes_no_key_of_another_length_or_of_small_order(wrong):
    server, other = (crypto.new_identity().public_key().public_bytes_raw() for _ in range(2))
    assert registry(server, {0: other}).keys == {0: other}
    with pytest.raises(SecureAggregationError, match="client 7: its identity is not"):
        registry(server, {0: other, 7: wrong})
    with pytest.raises(SecureAggregationError, match="the server's identity is not"):
        registry(wrong, {0: other})


@pytest.mark.parametrize("wrong", [b"", b"short", bytes(32), b"\1" + bytes(31)])
def test_aggregators_have_no_key_of_another_length_or_of_small_order(wrong):
    window = federation(7).window()
    with pytest.raises(SpecError, match="aggregator's identity"):
        two_servers(window.setup.terms, window.setup.registry, (window.setup.operators[0], wrong))
    with pytest.raises(SpecError, match="keys of a round"):
        context_of_two(window._replace(keys=(window.keys[0], wrong)))


def test_numbers_that_are_equal_give_one_context():
    name, fed = new_federation(), federation(7)
    whole = Terms(name, 5, clip=1, noise_multiplier=0, dropouts=0, stage_seconds=120)
    real = Terms(name, 5, clip=1.0, noise_multiplier=-0.0, dropouts=0.0, stage_seconds=120.0)
    setups = [two_servers(terms, fed.setup.registry, fed.setup.operators) for terms in (whole, real)]
    assert context_of_two(fed.window(setup=setups[0])) == context_of_two(fed.window(setup=setups[1]))
    assert context(whole, fed.setup.registry, 1, RANKER) == context(real, fed.setup.registry, 1, RANKER)


def test_an_aggregator_opens_nothing_with_the_memory_of_another_federation(tmp_path):
    one, other = federation(7), federation(7)
    run(one, operators(one, tmp_path))
    with pytest.raises(StorageError, match="a folder for each federation"):
        operators(other, tmp_path)[0].statements(1)
    (tmp_path / "operator-0" / "memory.json").unlink()
    with pytest.raises(StorageError, match="not the memory of an operator of write 1"):  # nor where it is lost
        operators(other, tmp_path)[0].statements(1)


def test_rich_prints_no_secret(tmp_path):
    """Structs of msgspec tell rich all of their fields unless they are told not to."""
    victim = node(tmp_path)
    victim.join()
    round_with(victim, "unmask")
    stored, newest = load(round_place(victim.storage), participant._Stored), head(round_place(victim.storage))
    states, _ = agreed(federation(7))
    client = next(iter(members(one_server(5)).values()))
    entrant = next(iter(entrants(one_server(40, cohort=11)).values()))
    shown = pretty_repr([stored, newest, states[0], client, victim, entrant], max_width=10**9)
    hidden = [stored.seed, stored.mask, stored.channel, stored.vector, newest.key, states[0].coin]
    assert not any(repr(secret)[2:-1] in shown for secret in hidden)
    for name in ("key=", "vector=", "coin=", "shares=", "secrets=", "identity=", "value=", "seed="):
        assert name not in shown
