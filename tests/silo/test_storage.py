"""Sketches on disk: what was saved comes back, what was broken is named, the key stays away."""

import io
import json
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from foltr.errors import DataError
from foltr.silo import rtk, sketches
from foltr.silo.sketches import family, hash_terms, take_hashes
from foltr.silo.storage import load_rtk, load_sketch, save

KEY = b"a key that must not be on a disk"
HASHES = hash_terms([f"word{n}" for n in range(9)], family(KEY, rows=3, columns=4))


def rtk_sketch(variant="sound"):
    sketch = rtk.empty(HASHES.shape, variant=variant, top=2, alpha=2)
    for number in range(8):
        rtk.add(sketch, number, take_hashes(HASHES, [number, 8]), [3, number + 1])
    return sketch


def count_sketch(kind="count", documents=None):
    sketch = sketches.empty(kind, HASHES.shape, documents)
    sketch.cells[...] = np.arange(sketch.cells.size).reshape(sketch.cells.shape)
    return sketch


@pytest.mark.parametrize("variant", rtk.VARIANTS)
def test_an_rtk_sketch_comes_back_and_works_on(variant, tmp_path):
    sketch = rtk_sketch(variant)
    assert save(tmp_path / "one.npz", sketch) == (tmp_path / "one.npz").stat().st_size
    loaded = load_rtk(tmp_path / "one.npz")
    for before, after in zip(sketch, loaded, strict=True):
        assert np.array_equal(before, after)
    rtk.delete(loaded, 3)
    rtk.add(loaded, 3, take_hashes(HASHES, [0]), [1])
    assert loaded.members == sketch.members


@pytest.mark.parametrize("kind", sketches.KINDS)
@pytest.mark.parametrize("documents", [None, 5])
def test_a_sketch_comes_back(kind, documents, tmp_path):
    sketch = count_sketch(kind, documents)
    save(tmp_path / "one.npz", sketch)
    loaded = load_sketch(tmp_path / "one.npz")
    assert (loaded.kind, loaded.shape) == (sketch.kind, sketch.shape)
    assert np.array_equal(loaded.cells, sketch.cells)


def test_the_key_is_not_in_the_file(tmp_path):
    save(tmp_path / "one.npz", rtk_sketch())
    content = (tmp_path / "one.npz").read_bytes()
    assert KEY not in content
    assert KEY.hex().encode() not in content
    assert HASHES.shape.fingerprint.encode() in content


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_damaged_file_is_an_error_that_names_it_or_harmless(data, tmp_path):
    path = tmp_path / "broken.npz"
    save(path, rtk_sketch())
    content = bytearray(path.read_bytes())
    if data.draw(st.booleans()):
        del content[data.draw(st.integers(0, len(content) - 1)) :]
    else:
        content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    said = ""
    try:
        loaded = load_rtk(path)
    except DataError as error:
        said = str(error)
    if not said:  # a byte that says nothing, as a time in the table of contents
        assert all(np.array_equal(before, after) for before, after in zip(rtk_sketch(), loaded, strict=True))
    assert not said or "broken.npz" in said


def rewritten(path, header=(), **arrays):
    """The file with another header or other arrays, and right checksums."""
    with np.load(path) as file:
        inside = {name: file[name] for name in file.files}
    if header is not None:
        changed = json.loads(bytes(inside["header"])) | dict(header)
        inside["header"] = np.frombuffer(json.dumps(changed).encode(), np.uint8)
    np.savez(path, **(inside | arrays))


def with_sizes(sketch, size):
    return np.full_like(sketch.sizes, size)


@pytest.mark.parametrize(
    ("said", "change"),
    [
        (
            "version 1; expected 'rtk', version 2: give another file, or build the sketch again",
            {"header": {"version": 1}},
        ),
        ("version 3; expected 'rtk', version 2", {"header": {"version": 3}}),
        ("holds 'sketch'", {"header": {"kind": "sketch"}}),
        ("no known variant", {"header": {"variant": "best"}}),
        ("no known variant", {"header": {"top": "many"}}),
        ("no shape", {"header": {"rows": -3}}),
        ("do not fit", {"header": {"rows": 10**9}}),
        ("do not fit", {"header": {"top": 50}}),
        ("more than its capacity", {"sizes": with_sizes(rtk_sketch(), 5)}),
        ("more than its capacity", {"sizes": with_sizes(rtk_sketch(), -1)}),
        ("that is no member", {"members": np.array([1, 2], np.int32)}),
        ("not in order", {"entries": rtk_sketch().entries[..., ::-1].copy()}),
        ("lacks entries", {"entries": rtk_sketch().entries.astype(np.float64)}),
        ("lacks limits", {"limits": np.zeros((3, 4), np.int64)}),
        ("header", {"header": None, "header_": 0}),
    ],
)
def test_a_file_that_contradicts_itself_is_refused(said, change, tmp_path):
    path = tmp_path / "odd.npz"
    save(path, rtk_sketch())
    if change.pop("header_", None) is not None:
        np.savez(path, entries=rtk_sketch().entries)
    else:
        rewritten(path, **change)
    with pytest.raises(DataError, match=f"odd.npz.*{said}"):
        load_rtk(path)


def test_pickles_bombs_and_giants_are_not_opened(tmp_path):
    pickled, packed, giant = (tmp_path / name for name in ("pickled.npz", "packed.npz", "giant.npz"))
    np.savez(pickled, header=np.array([{"a": 1}], dtype=object))
    np.savez_compressed(packed, header=np.zeros(10**6, np.uint8))
    announced = io.BytesIO()
    np.lib.format.write_array_header_1_0(announced, {"descr": "<i8", "fortran_order": False, "shape": (1 << 50,)})
    with zipfile.ZipFile(giant, "w") as file:
        file.writestr("entries.npy", announced.getvalue())
    for path, said in ((pickled, "plain array"), (packed, "compressed"), (giant, "announces more")):
        with pytest.raises(DataError, match=f"{path.name}.*{said}"):
            load_rtk(path)


def test_a_missing_file_and_a_wrong_folder_say_so(tmp_path):
    with pytest.raises(DataError, match=r"nowhere\.npz does not exist"):
        load_sketch(tmp_path / "nowhere.npz")
    (tmp_path / "text.npz").write_text("no sketch at all")
    with pytest.raises(DataError, match=r"text\.npz is damaged"):
        load_sketch(tmp_path / "text.npz")
