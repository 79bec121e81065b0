"""Finding, adding and loading collections, on tiny folders of every layout."""

import gzip
import json
import lzma
import os
import zipfile

import numpy as np
import pytest

from foltr.errors import DataError, DataMissing, SpecError, StorageError
from foltr.lab.data import catalog, letor, places
from foltr.lab.data.published import COLLECTIONS


def lines(first, *, width=3, top=2, queries=4):
    """Documents of some queries from `first` on; feature 1 tells the query."""
    rows = []
    for query in range(first, first + queries):
        for document in range(3):
            values = [query, document, query * document % 5][:width] + [1] * max(0, width - 3)
            rows.append(f"{document % (top + 1)} qid:{query} " + " ".join(f"{i + 1}:{v}" for i, v in enumerate(values)))
    return "\n".join(rows) + "\n"


def five_parts(root, *, suffix="", pack=bytes, **shape):
    root.mkdir(parents=True, exist_ok=True)
    for part in range(1, 6):
        (root / f"S{part}.txt{suffix}").write_bytes(pack(lines(100 * part, **shape).encode()))


def three(root, names, **shape):
    root.mkdir(parents=True, exist_ok=True)
    for start, name in zip((100, 200, 300), names, strict=True):
        (root / name).write_text(lines(start, **shape))


def parts_of(data):
    """Which hundreds the queries come from."""
    return sorted({int(query) // 100 for query in data.queries})


@pytest.mark.parametrize(
    ("fold", "train", "validation", "test"),
    [(1, [1, 2, 3], [4], [5]), (2, [2, 3, 4], [5], [1]), (3, [3, 4, 5], [1], [2]), (5, [1, 2, 5], [3], [4])],
)
def test_five_parts_go_round(tmp_path, fold, train, validation, test):
    five_parts(tmp_path)
    catalog.add("mine", tmp_path)
    loaded = catalog.load("mine", fold=fold)
    assert [parts_of(loaded.train), parts_of(loaded.validation), parts_of(loaded.test)] == [
        train,
        validation,
        test,
    ]


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".xz", lzma.compress)], ids=["gz", "xz"])
def test_packed_parts_are_the_same_data(tmp_path, suffix, pack):
    five_parts(tmp_path / "plain")
    five_parts(tmp_path / "packed", suffix=suffix, pack=pack)
    catalog.add("plain", tmp_path / "plain")
    catalog.add("packed", tmp_path / "packed")
    assert catalog.load("plain").checksum == catalog.load("packed").checksum


LAYOUTS = {
    "folds": (["Fold1", "Fold2"], ["train.txt", "vali.txt", "test.txt"]),
    "LETOR 3 folds": (["Fold1", "Fold2"], ["trainingset.txt", "validationset.txt", "testset.txt"]),
    "Yahoo": (["."], ["set1.train.txt", "set1.valid.txt", "set1.test.txt"]),
    "one split": (["."], ["train.txt", "vali.txt", "test.txt"]),
}


@pytest.mark.parametrize("inside", [".", "sample"], ids=["in the folder", "one folder deeper"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_is_found(tmp_path, layout, inside):
    folders, names = LAYOUTS[layout]
    for folder in folders:
        three(tmp_path / inside / folder, names)
    found = catalog.add("mine", tmp_path)
    assert found.layout == layout
    assert list(found.folds) == list(range(1, len(folders) + 1))
    loaded = catalog.load("mine", fold=len(folders))
    assert [parts_of(loaded.train), parts_of(loaded.validation), parts_of(loaded.test)] == [[1], [2], [3]]
    assert (loaded.grades, loaded.note, loaded.name) == (3, "own data", "mine")


@pytest.mark.parametrize("prefix", ["", "MSLR-WEB10K/"])
@pytest.mark.parametrize("given", ["folder", "archive"])
def test_an_archive_is_read_as_it_is(tmp_path, prefix, given):
    archive = tmp_path / "MSLR-WEB10K.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for start, name in zip((100, 200, 300), ("train", "vali", "test"), strict=True):
            file.writestr(f"{prefix}Fold2/{name}.txt", lines(start, width=136, top=4))
    catalog.add("mslr-web10k", archive if given == "archive" else tmp_path)
    loaded = catalog.load("mslr-web10k", fold=2)
    assert parts_of(loaded.test) == [3]
    assert loaded.grades == 5
    assert loaded.note == "0 % sample"
    assert loaded.train.features.max() == 1  # scaled within queries, as is its default
    assert catalog.load("mslr-web10k", fold=2, normalize="none").train.features.max() == 103
    with pytest.raises(SpecError, match="has no fold 1; there are 2"):
        catalog.load("mslr-web10k")


def test_zscore_takes_its_figures_from_the_training_part(tmp_path):
    three(tmp_path, LAYOUTS["one split"][1])
    catalog.add("mine", tmp_path)
    loaded = catalog.load("mine", normalize="zscore")
    raw = catalog.load("mine")
    mean, sd = raw.train.features.mean(axis=0), raw.train.features.std(axis=0)
    assert loaded.train.features == pytest.approx((raw.train.features - mean) / sd, abs=1e-5)
    assert loaded.test.features == pytest.approx((raw.test.features - mean) / sd, rel=1e-5)
    assert loaded.checksum != raw.checksum


def test_own_data_is_as_wide_as_its_widest_part(tmp_path):
    three(tmp_path, LAYOUTS["one split"][1])
    (tmp_path / "test.txt").write_text("1 qid:5 7:1\n")
    catalog.add("mine", tmp_path)
    loaded = catalog.load("mine")
    assert loaded.train.features.shape[1] == loaded.test.features.shape[1] == 7
    (tmp_path / "test.txt").write_text("3 qid:5 7:1\n")
    with pytest.raises(DataError, match=r"test\.txt:1:1: found '3'; expected a label from 0 to 2"):
        catalog.load("mine")


@pytest.mark.parametrize(
    ("line", "place", "expected"),
    [
        ("1 qid:9 47:1", "S2.txt:13:9", "features from 1 to 46"),
        ("1 qid:9 1:1 2:1", "S2.txt:13:16", "all of 46 features"),
        ("3 qid:9 1:1", "S2.txt:13:1", "a label from 0 to 2"),
    ],
)
def test_a_published_shape_is_held_to(tmp_path, monkeypatch, line, place, expected):
    monkeypatch.setenv("FOLTR_DATA", str(tmp_path))
    five_parts(tmp_path / "mq2008", width=46, top=1)
    assert catalog.load("mq2008").grades == 3  # as published, though no label here is 2
    with (tmp_path / "mq2008" / "S2.txt").open("a") as file:
        file.write(f"{line}\n")
    with pytest.raises(DataError) as caught:
        catalog.load("mq2008")
    assert f"{place}: found" in str(caught.value)
    assert expected in str(caught.value)


def test_foltr_data_may_name_several_folders_and_added_ones_come_first(tmp_path, monkeypatch, own_folders):
    monkeypatch.setenv("FOLTR_DATA", os.pathsep.join([str(tmp_path / "none"), str(tmp_path / "b")]))
    five_parts(own_folders / "data" / "mq2008", width=46)
    assert catalog.locate("mq2008")[0] == own_folders / "data" / "mq2008"
    five_parts(tmp_path / "b" / "mq2008", width=46)
    assert catalog.locate("mq2008")[0] == tmp_path / "b" / "mq2008"
    five_parts(tmp_path / "c", width=46)
    catalog.add("mq2008", tmp_path / "c")
    assert catalog.locate("mq2008")[0] == tmp_path / "c"


@pytest.mark.parametrize("name", COLLECTIONS)
def test_a_missing_set_says_where_to_get_it_and_how_to_tell(name, tmp_path, monkeypatch):
    monkeypatch.setenv("FOLTR_DATA", str(tmp_path))
    with pytest.raises(DataMissing) as caught:
        catalog.load(name)
    message = str(caught.value)
    for part in ("https://", f"into {tmp_path / name};", f"foltr data add {name} PATH", "FOLTR_DATA"):
        assert part in message


def test_an_unknown_name_lists_the_known_ones(tmp_path):
    five_parts(tmp_path)
    catalog.add("mine", tmp_path)
    with pytest.raises(DataMissing) as caught:
        catalog.load("mq2009")
    for name in (*COLLECTIONS, "mine", "synthetic-mq2007", "synthetic-mslr"):
        assert name in str(caught.value)


def test_adding_looks_before_it_remembers(tmp_path, own_folders):
    with pytest.raises(DataError, match=r"no such folder; looked for S1\.txt"):
        catalog.add("mine", tmp_path / "nowhere")
    (tmp_path / "S1.txt").write_text(lines(1))
    with pytest.raises(DataError, match="none of the known layouts"):
        catalog.add("mine", tmp_path)
    five_parts(tmp_path)
    for bad in ("", "Mine", "a/b", "../x", "a@5"):
        with pytest.raises(DataError, match="not allowed"):
            catalog.add(bad, tmp_path)
    with pytest.raises(DataError, match="built-in"):
        catalog.add("synthetic-mslr", tmp_path)
    assert not (own_folders / "config" / "data.json").exists()
    catalog.add("mine", tmp_path)
    assert json.loads((own_folders / "config" / "data.json").read_text()) == {"mine": str(tmp_path)}
    assert [path.name for path in (own_folders / "config").iterdir()] == ["data.json"]


def test_a_broken_settings_file_is_named(own_folders):
    (own_folders / "config").mkdir()
    (own_folders / "config" / "data.json").write_text("{")
    with pytest.raises(StorageError, match=r"data\.json: cannot be read"):
        catalog.names()


def test_a_damaged_archive_is_named(tmp_path):
    (tmp_path / "MSLR-WEB10K.zip").write_bytes(b"PK\x03\x04 cut short")
    with pytest.raises(DataError, match=r"MSLR-WEB10K\.zip: damaged or cut short"):
        places.find(tmp_path)


def test_a_folder_that_went_away_is_missing_data(tmp_path):
    five_parts(tmp_path / "here")
    catalog.add("mine", tmp_path / "here")
    (tmp_path / "here").rename(tmp_path / "there")
    with pytest.raises(DataMissing, match="empty or missing"):
        catalog.load("mine")


def test_wrong_options_list_the_right_ones(tmp_path):
    five_parts(tmp_path)
    catalog.add("mine", tmp_path)
    with pytest.raises(SpecError, match="there are 1, 2, 3, 4, 5"):
        catalog.load("mine", fold=6)
    with pytest.raises(SpecError, match="query-minmax"):
        catalog.load("mine", normalize="l2")
    with pytest.raises(SpecError, match="'error' and 'zero'"):
        catalog.load("mine", nan="drop")


def test_nan_is_refused_or_zero(tmp_path):
    three(tmp_path, LAYOUTS["one split"][1])
    (tmp_path / "vali.txt").write_text("1 qid:5 1:nan 2:2\n")
    with pytest.raises(DataError, match=r"vali\.txt:1:11: found 'nan'"):
        catalog.add("mine", tmp_path)
    catalog.add("mine", tmp_path, nan="zero")
    assert catalog.load("mine").validation.features.tolist() == [[0, 2, 0]]
    with pytest.raises(DataError, match=r"vali\.txt:1:11: found 'nan'"):
        catalog.load("mine", nan="error")


def test_a_changed_file_is_read_again(tmp_path):
    three(tmp_path, LAYOUTS["one split"][1])
    catalog.add("mine", tmp_path)
    before = catalog.load("mine")
    (tmp_path / "test.txt").write_text("1 qid:5 1:9 3:1\n")
    after = catalog.load("mine")
    assert after.test.features.tolist() == [[9, 0, 1]]
    assert after.checksum != before.checksum
    assert np.array_equal(after.train.features, before.train.features)


def test_the_second_load_parses_nothing(tmp_path, monkeypatch):
    five_parts(tmp_path)
    catalog.add("mine", tmp_path)
    first = catalog.load("mine")
    monkeypatch.setattr(letor, "_chunks", None)
    assert catalog.load("mine").checksum == first.checksum


def test_listing_parses_nothing_and_names_all(tmp_path, monkeypatch):
    five_parts(tmp_path)
    catalog.add("mine", tmp_path)
    monkeypatch.setattr(letor, "_chunks", None)
    listed = {row.name: row for row in catalog.listing()}
    assert set(listed) == {*COLLECTIONS, "mine", "synthetic-mq2007", "synthetic-mslr"}
    assert listed["mine"].where == str(tmp_path)
    assert listed["mq2007"][1:] == (None, 1692, 69623, 46, 3, "not on this machine")
    assert listed["synthetic-mslr"].note == "synthetic"


def test_describe_counts_each_part(tmp_path):
    three(tmp_path, LAYOUTS["one split"][1])
    (tmp_path / "test.txt").write_text("0 qid:5 1:9\n0 qid:5 1:3\n1 qid:6 1:1\n")
    catalog.add("mine", tmp_path)
    described = catalog.describe("mine")
    assert (described.where, described.note, described.features, described.grades) == (str(tmp_path), "own data", 3, 3)
    test = described.folds[1]["test"]
    assert test == ((str(tmp_path / "test.txt"),), 2, 3, (2, 1, 0), 1)
    assert described.checksums == {1: catalog.load("mine").checksum}


def test_document_ids_follow_the_rows(tmp_path):
    three(tmp_path, LAYOUTS["one split"][1])
    (tmp_path / "vali.txt").write_text("1 qid:5 1:1 #docid = A inc = 1\n1 qid:5 1:1 # docid = B\n")
    catalog.add("mine", tmp_path)
    assert catalog.document_ids("mine")["validation"] == ["A", "B"]
