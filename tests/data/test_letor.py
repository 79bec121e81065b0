"""The LETOR reader against a slow, obvious one, and every complaint with its place."""

import bz2
import gzip
import lzma
import math
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foltr.errors import DataError
from foltr.lab.data import letor


def slow_read(text):
    """(label, query, {feature: value}) of each line, in plain Python."""
    rows = []
    for line in text.splitlines():
        words = line.partition("#")[0].split()
        if words:
            values = {int(key): float(value) for key, _, value in (word.partition(":") for word in words[2:])}
            rows.append((int(float(words[0])), int(words[1].removeprefix("qid:")), values))
    return rows


decimals = st.one_of(
    st.integers(-9999, 9999).map(str),
    st.floats(-1e6, 1e6, allow_nan=False).map(lambda x: f"{x:.6f}"),
    st.floats(width=32, allow_nan=False, allow_infinity=False).map(repr),
    st.floats(-1e30, 1e30, allow_nan=False).map(lambda x: f"{x:.8E}"),
    st.sampled_from(["0", "-0", ".5", "5.", "+3", "1e-400", "1E+2", f"0.{'0' * 22}1{'7' * 30}"]),
)
spaces = st.sampled_from([" ", "  ", "\t", " \t "])
line_ends = st.sampled_from(["\n", "\r\n", " \n", "\n\n", "\n# only a comment 1:2\n", " \t\n"])
comments = st.sampled_from(["", "#docid = G-1 inc = 1", " # a 7:1 qid:3", "#", " #é"])


@st.composite
def letor_texts(draw):
    """A text of some queries, sparse or dense, features in any order."""
    lines = []
    for query in draw(st.lists(st.integers(-(2**63) + 1, 2**63 - 1), min_size=1, max_size=4, unique=True)):
        for _ in range(draw(st.integers(1, 3))):
            features = draw(st.lists(st.integers(1, 12), unique=True, max_size=12))
            label = draw(st.sampled_from(["0", "1", "4", "2.0", "127", "3e0"]))
            words = [label, f"qid:{query}", *(f"{feature}:{draw(decimals)}" for feature in features)]
            lines.append(draw(spaces).join(words) + draw(comments) + draw(line_ends))
    return "".join(lines).rstrip("\n") if draw(st.booleans()) else "".join(lines)


@given(text=letor_texts(), chunk=st.sampled_from([1, 7, 64, 1 << 20]))
def test_agrees_with_the_slow_reader_for_any_chunk(tmp_path_factory, text, chunk):
    path = tmp_path_factory.getbasetemp() / "any.txt"
    path.write_bytes(text.encode())
    rows = slow_read(text)
    data = letor.read(str(path), width=12, chunk=chunk)
    expected = np.zeros((len(rows), 12), np.float32)
    for row, (_, _, values) in enumerate(rows):
        for feature, value in values.items():
            expected[row, feature - 1] = value
    # the reader may miss the nearest float32 by one step where the decimal text lies between two of them
    np.testing.assert_array_max_ulp(data.features, expected, maxulp=1)
    assert data.labels.tolist() == [label for label, _, _ in rows]
    sizes = np.diff(data.offsets)
    assert np.repeat(data.queries, sizes).tolist() == [query for _, query, _ in rows]
    assert (sizes > 0).all()


@given(value=st.decimals(-1000, 1000, places=6))
def test_six_decimals_are_read_to_the_nearest_float(tmp_path_factory, value):
    path = tmp_path_factory.getbasetemp() / "one.txt"
    path.write_text(f"0 qid:1 1:{value}\n")
    assert letor.read(str(path)).features[0, 0] == np.float32(float(value))


def write(folder, text, name="some.txt"):
    path = folder / name
    path.write_text(text)
    return str(path)


def test_reads_what_it_says_on_the_line(tmp_path):
    data = letor.read(write(tmp_path, "2 qid:7 1:0.5 3:-2 # first\n0 qid:7 2:1e1\n\n1 qid:9 3:4\n"))
    assert data.features.tolist() == [[0.5, 0, -2], [0, 10, 0], [0, 0, 4]]
    assert data.labels.tolist() == [2, 0, 1]
    assert data.offsets.tolist() == [0, 2, 3]
    assert data.queries.tolist() == [7, 9]
    assert data.features.dtype == np.float32
    assert data.labels.dtype == np.int8
    assert data.features.flags.c_contiguous


def test_the_width_grows_when_a_later_chunk_needs_it(tmp_path):
    text = "".join(f"0 qid:{query} 1:1\n" for query in range(50)) + "0 qid:99 5:2 # 9:9\n"
    assert letor.read(write(tmp_path, text), chunk=16).features.shape == (51, 5)


def test_blocks_hold_together_when_a_query_spans_them(tmp_path, monkeypatch):
    monkeypatch.setattr(letor, "_BLOCK_BYTES", 3 * 4)  # three rows of one feature
    text = "".join(f"0 qid:{i // 5} 1:{i}\n" for i in range(17))
    data = letor.read(write(tmp_path, text))
    assert data.features[:, 0].tolist() == list(range(17))
    assert data.offsets.tolist() == [0, 5, 10, 15, 17]


WRONG = {
    "label is no number": ("x qid:1 1:2\n", "1:1", "'x'", "label"),
    "label is no whole number": ("0 qid:1 1:2\n1.5 qid:1 1:2\n", "2:1", "'1.5'", "whole number"),
    "label is negative": ("-1 qid:1 1:2\n", "1:1", "'-1'", "from 0 to 127"),
    "label is too large": ("128 qid:1 1:2\n", "1:1", "'128'", "from 0 to 127"),
    "label only": ("1\n", "1:2", "nothing", "qid:NUMBER"),
    "no qid": ("\n# c\n  1 1:2\n", "3:5", "'1:2'", "qid:NUMBER"),
    "qid is a word": ("1 qid:a7 1:2\n", "1:3", "'qid:a7'", "whole number"),
    "qid has a fraction": ("1 qid:7.5 1:2\n", "1:3", "'qid:7.5'", "whole number"),
    "qid is empty": ("1 qid: 1:2\n", "1:3", "'qid:'", "whole number"),
    "qid exceeds 63 bits": ("1 qid:9223372036854775808 1:2\n", "1:3", "'qid:9223372036854775808'", "63 bits"),
    "feature 0": ("1 qid:1 0:2\n", "1:9", "'0:2'", "from 1"),
    "feature is a word": ("1 qid:1 1:2 body:3\n", "1:13", "'body:3'", "FEATURE:VALUE"),
    "no colon": ("1 qid:1 1:2 7\n", "1:13", "'7'", "FEATURE:VALUE"),
    "huge feature": ("1 qid:1 99999999999999999999:2\n", "1:9", "'99999999999999999999:2'", "FEATURE:VALUE"),
    "beyond the width": ("1 qid:1 4:2\n", "1:9", "'4:2'", "from 1 to 3"),
    "twice": ("1 qid:1 2:2 1:1 2:3\n", "1:17", "'2:3'", "once"),
    "value is a word": ("1 qid:1 1:2\n1 qid:1 1:abc\n", "2:11", "'abc'", "a number"),
    "value is missing": ("1 qid:1 1: 2:1\n", "1:11", "nothing", "a number"),
    "two dots": ("1 qid:1 1:1.2.3\n", "1:11", "'1.2.3'", "a number"),
    "exponent without digits": ("1 qid:1 1:1e\n", "1:11", "'1e'", "a number"),
    "only a sign": ("1 qid:1 1:-\n", "1:11", "'-'", "a number"),
    "nan": ("1 qid:1 1:NaN\n", "1:11", "'NaN'", 'nan="zero"'),
    "infinity": ("1 qid:1 1:-inf\n", "1:11", "'-inf'", "finite"),
    "larger than float32": ("1 qid:1 1:1e39\n", "1:11", "'1e39'", "finite"),
    "carriage returns stay columns": ("0 qid:1 1:1\r\n0 qid:1 1:?\r\n", "2:11", "'?'", "a number"),
    "the last line has no end": ("0 qid:1 1:1\n0 qid:1 1:", "2:11", "nothing", "a number"),
    "binary": ("\x00\x01\x02\n", "1:1", "'\\x00\\x01\\x02'", "label"),
}


@pytest.mark.parametrize("chunk", [1, 7, 1 << 20])
@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_line_is_named_with_its_column(tmp_path, case, chunk):
    text, place, found, expected = WRONG[case]
    path = tmp_path / "bad.txt"
    path.write_bytes(text.encode())
    with pytest.raises(DataError) as caught:
        letor.read(str(path), width=3, chunk=chunk)
    message = str(caught.value)
    assert message.startswith(f"{path}:{place}: found {found};")
    assert expected in message


def test_a_sparse_line_is_wrong_where_every_feature_must_be_given(tmp_path):
    path = write(tmp_path, "0 qid:1 1:1 2:2\n0 qid:1 1:1 # c\n")
    with pytest.raises(DataError, match=r"some\.txt:2:13: found '#'; expected all of 2 features"):
        list(letor.blocks([path], letor.Rules(2, dense=True)))


def test_a_label_beyond_the_grades_is_named(tmp_path):
    path = write(tmp_path, "0 qid:1 1:1\n3 qid:1 1:1\n")
    with pytest.raises(DataError, match=r"some\.txt:2:1: found '3'; expected a label from 0 to 2"):
        list(letor.blocks([path], letor.Rules(1, grades=3)))


def test_nan_is_zero_on_request(tmp_path):
    path = write(tmp_path, "0 qid:1 1:nan 2:3\n")
    assert letor.read(path, nan="zero").features.tolist() == [[0, 3]]


@pytest.mark.parametrize("chunk", [7, 1 << 20])
def test_a_query_in_two_places_names_both(tmp_path, chunk):
    path = write(tmp_path, "0 qid:1 1:1\n\n0 qid:2 1:1\n0 qid:1 1:?\n0 qid:1 1:1\n".replace("?", "1"))
    with pytest.raises(DataError) as caught:
        letor.read(path, chunk=chunk)
    assert str(caught.value).startswith(f"{path}:4:1: query 1 comes back; it began at {path}:1 ")


def test_the_first_of_two_faults_is_named(tmp_path):
    path = write(tmp_path, "0 qid:1 1:1\n0 qid:2 1:1\n0 qid:1 1:1\n0 qid:3 1:?\n")
    with pytest.raises(DataError, match=r":3:1: query 1"):
        letor.read(path)


def test_files_are_read_as_one_but_share_no_query(tmp_path):
    first = write(tmp_path, "0 qid:1 1:1\n", "a.txt")
    second = write(tmp_path, "1 qid:2 2:1\n", "b.txt")
    assert letor.read([first, second]).features.tolist() == [[1, 0], [0, 1]]
    third = write(tmp_path, "# c\n1 qid:1 1:1\n", "c.txt")
    with pytest.raises(DataError) as caught:
        letor.read([first, second, third])
    assert str(caught.value).startswith(f"{third}:2:1: query 1 comes back; it began at {first}:1 ")
    continued = write(tmp_path, "1 qid:1 1:1\n", "d.txt")
    with pytest.raises(DataError, match=r"d\.txt:1:1: query 1 comes back"):
        letor.read([first, continued])


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing\n"])
def test_an_empty_file_is_an_error(tmp_path, text):
    path = write(tmp_path, text)
    with pytest.raises(DataError, match=r"some\.txt: it holds no document"):
        letor.read(path)


def test_a_missing_file_is_an_error(tmp_path):
    with pytest.raises(DataError, match=r"none\.txt: there is no such file"):
        letor.read(str(tmp_path / "none.txt"))


def test_a_file_without_line_ends_is_given_up_early(tmp_path, monkeypatch):
    monkeypatch.setattr(letor, "_LONGEST_LINE", 100)
    path = write(tmp_path, "x" * 500)
    with pytest.raises(DataError, match="no line end within 100 bytes"):
        letor.read(path, width=1, chunk=50)


LINES = "".join(f"{i % 3} qid:{i // 4} 1:{i} 2:{math.sqrt(i):.6f}\n" for i in range(400))


def pack(folder: Path, kind: str) -> tuple[Path, str]:
    """A packed file of LINES: its path and its source."""
    path = folder / f"some.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("Fold1/train.txt", LINES)
        return path, f"{path}!Fold1/train.txt"
    path.write_bytes({"gz": gzip, "xz": lzma, "bz2": bz2}[kind].compress(LINES.encode()))
    return path, str(path)


@pytest.mark.parametrize("kind", ["gz", "xz", "bz2", "zip"])
def test_packed_files_hold_the_same(tmp_path, kind):
    plain, packed = letor.read(write(tmp_path, LINES)), letor.read(pack(tmp_path, kind)[1], chunk=100)
    for ours, theirs in zip(plain, packed, strict=True):
        assert np.array_equal(ours, theirs)


@pytest.mark.parametrize("kind", ["gz", "xz", "bz2", "zip"])
@pytest.mark.parametrize("share", [0.0, 0.5, 0.9])
def test_a_truncated_archive_is_named(tmp_path, kind, share):
    path, source = pack(tmp_path, kind)
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * share)])
    with pytest.raises(DataError) as caught:
        letor.read(source, width=2)
    assert str(caught.value).startswith(f"{source}: ")


@pytest.mark.parametrize("kind", ["gz", "xz", "zip"])
def test_a_garbled_archive_is_named(tmp_path, kind):
    path, source = pack(tmp_path, kind)
    garbled = bytearray(path.read_bytes())
    for at in range(len(garbled) // 3, len(garbled) // 2):
        garbled[at] ^= 0x5A
    path.write_bytes(garbled)
    with pytest.raises(DataError) as caught:
        letor.read(source, width=2)
    assert str(path) in str(caught.value)


def test_a_member_that_is_not_there_is_named(tmp_path):
    path, _ = pack(tmp_path, "zip")
    with pytest.raises(DataError, match="no such member"):
        letor.read(f"{path}!Fold9/train.txt")


def test_document_ids_come_from_the_comments(tmp_path):
    path = write(
        tmp_path,
        "0 qid:1 1:1 #docid = GX000-00-0000000 inc = 1 prob = 0.02\n"
        "# docid = not a document\n\n"
        "0 qid:1 1:1 # docid = clueweb09-en0006-78-20618 \n"
        "0 qid:1 1:1 # some words = 3 \r\n"
        "0 qid:1 1:1\n",
    )
    ids = ["GX000-00-0000000", "clueweb09-en0006-78-20618", "some words = 3", ""]
    assert letor.document_ids([path]) == ids
