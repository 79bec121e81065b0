"""An index on disk: what was saved comes back, what was broken is named, the key stays away."""

import io
import json
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from silos import index_of

from foltr.errors import DataError
from foltr.silo.sketches import family
from foltr.silo.storage import load_index, save_index

KEY = b"a key that must not be on a disk"
INDEX = index_of(functions=family(KEY))


def test_an_index_comes_back(tmp_path):
    assert save_index(tmp_path / "one.npz", INDEX) == (tmp_path / "one.npz").stat().st_size
    loaded = load_index(tmp_path / "one.npz")
    assert all(np.array_equal(before, after) for before, after in zip(INDEX, loaded, strict=True))


def test_the_key_is_not_in_the_file(tmp_path):
    save_index(tmp_path / "one.npz", INDEX)
    content = (tmp_path / "one.npz").read_bytes()
    assert KEY not in content
    assert KEY.hex().encode() not in content
    assert INDEX.shape.fingerprint.encode() in content


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_damaged_file_is_an_error_that_names_it_or_harmless(data, tmp_path):
    path = tmp_path / "broken.npz"
    save_index(path, INDEX)
    content = bytearray(path.read_bytes())
    if data.draw(st.booleans()):
        del content[data.draw(st.integers(0, len(content) - 1)) :]
    else:
        content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    said = ""
    try:
        loaded = load_index(path)
    except DataError as error:
        said = str(error)
    if not said:  # a byte that says nothing, as a time in the table of contents
        assert all(np.array_equal(before, after) for before, after in zip(INDEX, loaded, strict=True))
    assert not said or "broken.npz" in said


def rewritten(path, header=(), **arrays):
    """The file with another header or other arrays, and right checksums."""
    with np.load(path) as file:
        inside = {name: file[name] for name in file.files}
    if header is not None:
        changed = json.loads(bytes(inside["header"])) | dict(header)
        inside["header"] = np.frombuffer(json.dumps(changed).encode(), np.uint8)
    np.savez(path, **(inside | arrays))


@pytest.mark.parametrize(
    ("said", "change"),
    [
        ("version 1; expected 'index', version 2: give another file, or build the index", {"header": {"version": 1}}),
        ("version 3; expected 'index', version 2", {"header": {"version": 3}}),
        ("holds 'sketch'", {"header": {"kind": "sketch"}}),
        ("shows an asker more than the asked word; build it again", {"header": {"kind": "rtk"}}),
        ("says no K", {"header": {"top": "many"}}),
        ("no shape", {"header": {"rows": -3}}),
        ("not in order", {"hashes": INDEX.hashes[::-1].copy()}),
        ("do not fit each other", {"hashes": INDEX.hashes[1:]}),
        ("do not fit each other", {"counts": INDEX.counts[1:]}),
        ("do not fit each other", {"versions": INDEX.versions[:, :3]}),
        ("its lists overlap", {"starts": INDEX.starts[::-1].copy()}),
        ("names a document that is not there", {"versions": INDEX.versions[:1]}),
        ("names a document that is not there", {"counts": np.zeros_like(INDEX.counts)}),
        ("lacks counts", {"counts": INDEX.counts.astype(np.float64)}),
        ("header", {"header": None, "header_": 0}),
    ],
)
def test_a_file_that_contradicts_itself_is_refused(said, change, tmp_path):
    path = tmp_path / "odd.npz"
    save_index(path, INDEX)
    if change.pop("header_", None) is not None:
        np.savez(path, hashes=INDEX.hashes)
    else:
        rewritten(path, **change)
    with pytest.raises(DataError, match=f"odd.npz.*{said}"):
        load_index(path)


def test_pickles_bombs_and_giants_are_not_opened(tmp_path):
    pickled, packed, giant = (tmp_path / name for name in ("pickled.npz", "packed.npz", "giant.npz"))
    np.savez(pickled, header=np.array([{"a": 1}], dtype=object))
    np.savez_compressed(packed, header=np.zeros(10**6, np.uint8))
    announced = io.BytesIO()
    np.lib.format.write_array_header_1_0(announced, {"descr": "<i8", "fortran_order": False, "shape": (1 << 50,)})
    with zipfile.ZipFile(giant, "w") as file:
        file.writestr("hashes.npy", announced.getvalue())
    for path, said in ((pickled, "plain array"), (packed, "compressed"), (giant, "announces more")):
        with pytest.raises(DataError, match=f"{path.name}.*{said}"):
            load_index(path)


def test_a_missing_file_and_no_index_say_so(tmp_path):
    with pytest.raises(DataError, match=r"nowhere\.npz does not exist"):
        load_index(tmp_path / "nowhere.npz")
    (tmp_path / "text.npz").write_text("no index at all")
    with pytest.raises(DataError, match=r"text\.npz is damaged"):
        load_index(tmp_path / "text.npz")
