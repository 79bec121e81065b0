"""State that must not go back: crashes between any two writes lose nothing that left, old copies are refused."""

import contextlib
import itertools
import json

import msgspec
import pytest

from foltr import witnessed
from foltr.errors import FoltrError, SecureAggregationError, SpecError, StateError
from foltr.secagg import crypto
from foltr.witnessed import (
    Place,
    checked,
    erase,
    exclusive,
    head,
    load,
    read_state,
    save,
    write_state,
)


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path / "state" / "file", tmp_path / "elsewhere" / "witness", "file")


def written(place, content):
    with exclusive(place):
        return write_state(place, read_state(place), json.dumps(content).encode())


def content(place):
    with exclusive(place):
        stored = read_state(place).content
    return None if stored is None else json.loads(stored)


def test_a_state_comes_back_with_and_without_a_witness(place):
    for where in (place, place._replace(path=place.path.with_name("alone"), witness=None)):
        assert content(where) is None
        for value in ([1], {"a": "ä"}):
            written(where, value)
            assert content(where) == value
    assert json.loads(place.path.with_name("alone").read_bytes()) == {"a": "ä"}  # the content and nothing else


def test_every_older_copy_of_a_state_is_refused_and_so_is_its_loss(place):
    copies = []
    for value in range(4):
        written(place, value)
        copies.append(place.path.read_bytes())
    for copy in (*copies[:-1], b"", b"3", None):
        place.path.unlink() if copy is None else place.path.write_bytes(copy)
        with pytest.raises(StateError, match=r"which its witness .* saw.*restore the newest file"):
            read_state(place)
    place.path.write_bytes(copies[-1])
    assert content(place) == 3


def test_a_copy_that_was_used_elsewhere_is_refused_at_the_same_number(place, tmp_path):
    written(place, 1)
    other = Place(tmp_path / "copy" / "file", tmp_path / "other" / "witness", "file")
    for mine, theirs in zip(place[:2], other[:2], strict=True):
        theirs.parent.mkdir()
        theirs.write_bytes(mine.read_bytes())
    written(place, 2)
    written(other, 3)
    place.path.write_bytes(other.path.read_bytes())
    with pytest.raises(StateError, match="not the file of write 2"):
        read_state(place)


def test_a_state_is_not_read_without_its_witness(place):
    written(place, 1)
    with pytest.raises(StateError, match="has a witness, which is missing"):
        read_state(place._replace(witness=None))
    seen = place.witness.read_bytes()
    place.witness.unlink()
    with pytest.raises(StateError, match="has a witness, which is missing"):
        read_state(place)
    for damaged in (b"", seen[:-1], b"\xff", seen.replace(b'"version":1', b'"version":2'), seen.replace(b'"', b"")):
        place.witness.write_bytes(damaged)
        with pytest.raises(StateError):
            read_state(place)


def test_a_file_of_earlier_versions_gets_a_witness_and_is_an_older_copy_from_then_on(place):
    place.path.parent.mkdir()
    place.path.write_bytes(b'{"of": "before"}')
    assert content(place) == {"of": "before"}
    written(place, {"of": "now"})
    assert content(place) == {"of": "now"}
    place.path.write_bytes(b'{"of": "before"}')
    with pytest.raises(StateError, match="restored"):
        read_state(place)


def crash_after(monkeypatch, writes):
    """Durable writes work `writes` times, then the power fails."""
    real, left = witnessed.write_durably, itertools.count()

    def write(*given, **more):
        if next(left) >= writes:
            raise KeyboardInterrupt
        real(*given, **more)

    monkeypatch.setattr(witnessed, "write_durably", write)


@pytest.mark.parametrize("stored", range(3))
@pytest.mark.parametrize("writes", range(3))
def test_a_crash_at_any_write_leaves_the_state_before_or_after(place, monkeypatch, stored, writes):
    for value in range(stored):
        written(place, value)
    with monkeypatch.context() as patch:
        crash_after(patch, writes)
        try:
            written(place, "new")
            completed = True
        except KeyboardInterrupt:
            completed = False
    before = stored - 1 if stored else None
    assert content(place) == "new" if completed else content(place) in (before, "new")
    written(place, "newer")
    assert content(place) == "newer"


def test_what_was_read_after_a_crash_is_not_taken_back_by_an_older_copy(place, monkeypatch):
    """The witness follows when the state is read, not only with the next write."""
    written(place, "old")
    backup = place.path.read_bytes()
    with monkeypatch.context() as patch, contextlib.suppress(KeyboardInterrupt):
        crash_after(patch, 1)
        written(place, "new")
    assert content(place) == "new"
    place.path.write_bytes(backup)
    with pytest.raises(StateError, match="restored"):
        read_state(place)


# --- sealed -----------------------------------------------------------------------------------------------------------


class Secret(msgspec.Struct, frozen=True):
    value: bytes


def test_only_the_newest_sealed_state_opens_and_an_erased_one_never(place):
    save(place, 1, Secret(b"first"), owner="us")
    backup = [path.read_bytes() for path in place[:2]]
    save(place, 2, Secret(b"second"), owner="us")
    assert load(place, Secret) == Secret(b"second")
    newest = place.path.read_bytes()
    assert not any(secret in newest for secret in (b"second", head(place).key))
    for copy in (backup[0], b""):
        place.path.write_bytes(copy)
        with pytest.raises(SecureAggregationError, match="restored from a copy"):
            load(place, Secret)
    place.path.write_bytes(newest)
    erase(place)
    assert (head(place).number, head(place).owner, head(place).key) == (2, "us", b"")
    place.path.write_bytes(newest)
    with pytest.raises(SecureAggregationError, match="no open file"):
        load(place, Secret)


def test_every_write_of_a_sealed_state_has_a_key_of_its_own(place):
    """Who has a backup of a state and later gets the witness reads the newest state and no earlier one."""
    keys, copies = set(), []
    for number in range(5):
        save(place, number, Secret(b"%d" % number))
        keys.add(head(place).key)
        copies.append(place.path.read_bytes())
    assert len(keys) == 5
    sealed = copies[0].split(b"\n", 1)
    with pytest.raises(SecureAggregationError):
        crypto.decrypt(head(place).key, sealed[1], b"file" + sealed[0] + b"\n")


@pytest.mark.parametrize("writes", range(3))
def test_a_crash_while_sealing_never_brings_an_older_content_back(place, monkeypatch, writes):
    save(place, 1, Secret(b"first"))
    with monkeypatch.context() as patch:
        crash_after(patch, writes)
        with contextlib.suppress(KeyboardInterrupt):
            save(place, 2, Secret(b"second"))
    if writes == 1:
        with pytest.raises(SecureAggregationError, match="a write was interrupted"):
            load(place, Secret)
    else:
        assert load(place, Secret) == Secret(b"second" if writes else b"first")


def damages(whole):
    """A file cut off anywhere, each byte changed, and what is no such file at all."""
    yield from (whole[:size] for size in range(len(whole)))
    yield from (whole[:k] + bytes([whole[k] ^ 1 << k % 8]) + whole[k + 1 :] for k in range(len(whole)))
    yield from (b"\xff" * 40, b"\x91" * 5000, b"\x94\x01\xc4\x00\xc4\x00\xa1\xff", b"{}", whole + b"\x00")


def test_a_damaged_witness_of_a_sealed_state_is_a_declared_error_that_says_what_to_do(place):
    save(place, 7, Secret(b"first"), owner="us")
    for damaged in damages(place.witness.read_bytes()):
        place.witness.write_bytes(damaged)
        for call in (lambda: head(place), lambda: load(place, Secret)):
            with pytest.raises(StateError, match=r"is damaged .* nothing is sent: restore the newest file"):
                call()


def test_a_sealed_state_with_a_damaged_witness_is_erased_and_its_number_stays_used(place):
    for number in (7, 9):
        save(place, number, Secret(b"first"))
        place.witness.write_bytes(b"\xc1")
        erase(place)
        assert head(place).number == number
        assert not place.path.exists()
    place.witness.write_bytes(b"\xc1")
    with pytest.raises(StateError, match=r"state the highest number .* \(highest = ...\)"):
        erase(place)
    erase(place, highest=12)
    assert head(place).number == 12


@pytest.mark.parametrize("writes", range(4))
def test_a_crash_in_the_first_write_of_a_sealed_state_is_no_lost_witness(place, monkeypatch, writes):
    with monkeypatch.context() as patch, contextlib.suppress(KeyboardInterrupt):
        crash_after(patch, writes)
        save(place, 1, Secret(b"first"))
    assert head(place).number == (1 if writes == 3 else -1)
    save(place, 2, Secret(b"second"))
    assert load(place, Secret) == Secret(b"second")


def test_a_sealed_state_without_its_witness_is_refused_until_it_is_erased(place):
    save(place, 7, Secret(b"first"), owner="us")
    place.witness.unlink()
    for call in (lambda: head(place), lambda: load(place, Secret)):
        with pytest.raises(StateError, match=r"the witness of .* is missing; nothing is sent: restore the newest"):
            call()
    erase(place)
    assert (head(place).number, head(place).owner) == (7, "us")


def test_a_state_of_another_shape_or_name_is_refused_with_a_declared_error(place):
    save(place, 1, Secret(b"first"))

    class Other(msgspec.Struct):
        number: int

    for wrong in (lambda: load(place, Other), lambda: load(place._replace(name="draw"), Secret)):
        with pytest.raises(FoltrError):
            wrong()


def test_a_witness_in_the_folder_that_it_watches_is_refused_also_through_a_link(place, tmp_path):
    place.path.parent.mkdir()
    (tmp_path / "link").symlink_to(place.path.parent)
    for witness in (place.path.with_name("w"), place.path.parent / "deep" / "w", tmp_path / "link" / "w"):
        with pytest.raises(SpecError, match="belongs in another folder"):
            checked(place._replace(witness=witness))
    assert checked(place) == place
