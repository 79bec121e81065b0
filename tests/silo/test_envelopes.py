"""Sealed messages: only the named member opens them, once they are changed nobody does, and sizes tell little."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from silos import ASKS, GROUP, IDENTITIES, OWNS, PLAN, THIRD

from foltr.errors import DataError
from foltr.silo.envelopes import Envelope, open_envelope, padded_size, read_envelope, seal
from foltr.silo.keys import VERSION, group_in_process, make_group, open_group


def sealed(plain=b"columns", number=7):
    return seal(ASKS, "question", OWNS.place, number, plain)


def changed(content, **parts):
    envelope = read_envelope(content)
    every = {name: getattr(envelope, name) for name in envelope.__struct_fields__}
    return msgspec.msgpack.encode(Envelope(**every | parts))


@given(plain=st.binary(max_size=3000))
def test_the_receiver_opens_what_was_sealed(plain):
    envelope, content = open_envelope(OWNS, sealed(plain), "question")
    assert content == plain
    assert (envelope.sender, envelope.number) == (ASKS.place, 7)


@pytest.mark.parametrize(
    "parts",
    [{"number": 8}, {"sender": THIRD.place}, {"salt": bytes(32)}, {"salt": b""}, {"signature": bytes(64)},
     {"receiver": THIRD.place}, {"kind": "answer"}, {"about": bytes(32)}, {"context": bytes(32)}, {"sender": 9},
     {"sender": -1}, {"number": 0}, {"version": VERSION - 1}, {"version": VERSION + 1}],
    ids=lambda parts: next(iter(parts)),
)  # fmt: skip
def test_nothing_of_the_header_can_be_changed(parts):
    with pytest.raises(DataError):
        open_envelope(OWNS, changed(sealed(), **parts), "question")


@given(place=st.integers(0, 10**6), bits=st.integers(1, 255))
def test_no_byte_can_be_changed(place, bits):
    content = bytearray(sealed())
    content[place % len(content)] ^= bits
    with pytest.raises(DataError):
        open_envelope(OWNS, bytes(content), "question")


def test_nobody_else_opens_it_and_it_does_not_come_back_as_an_answer():
    for member in (THIRD, ASKS):
        with pytest.raises(DataError, match="no question to this party"):
            open_envelope(member, sealed(), "question")
    with pytest.raises(DataError, match="no answer to this party"):
        open_envelope(OWNS, sealed(), "answer")
    readdressed = changed(sealed(), receiver=THIRD.place)
    with pytest.raises(DataError, match="not signed by the member it names"):
        open_envelope(THIRD, readdressed, "question")


def test_a_signature_by_another_member_does_not_pass_for_the_sender():
    """A member who re-seals a message under its own name cannot claim it is somebody else's."""
    own = seal(THIRD, "question", OWNS.place, 7, b"columns")
    with pytest.raises(DataError, match="not signed"):
        open_envelope(OWNS, changed(own, sender=ASKS.place), "question")


def test_messages_of_another_group_or_epoch_do_not_open():
    stranger = group_in_process(3, OWNS.key)[0]  # it has the hash key, and is no member
    with pytest.raises(DataError, match="another group or epoch"):
        open_envelope(OWNS, seal(stranger, "question", OWNS.place, 1, b""), "question")
    second = make_group(PLAN, IDENTITIES[0], epoch=GROUP.epoch + 1, key=OWNS.key)
    later = open_group(second, IDENTITIES[1], PLAN)[0]
    with pytest.raises(DataError, match="another group or epoch"):
        open_envelope(later, sealed(), "question")
    with pytest.raises(DataError, match=r"not signed|does not open"):
        open_envelope(later, changed(sealed(), context=later.context), "question")


def test_equal_messages_look_different_and_have_equal_sizes():
    one, other = sealed(), sealed()
    assert read_envelope(one).sealed != read_envelope(other).sealed
    assert len(one) == len(other) == len(sealed(b"a longer message"))
    assert b"columns" not in one


@given(size=st.integers(0, 10**7))
def test_padding_costs_at_most_an_eighth_and_leaves_few_sizes(size):
    padded = padded_size(size)
    assert size <= padded <= max(512, 1.125 * size)
    assert padded_size(padded) == padded


@pytest.mark.parametrize("content", [b"", b"\xc1", b"\x93\x01\x02\x03"])
def test_what_is_no_envelope_is_refused(content):
    with pytest.raises(DataError, match="no envelope"):
        read_envelope(content)
