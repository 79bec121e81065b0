"""Every file is found by its name, path, kind and date, also where nothing reads a text from it."""

import gzip
import os
import sqlite3

import pytest

import foltr.node
from foltr.node.index import layout, scan
from foltr.node.search.ranking import NAMES

PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)
ELF = b"\x7fELF" + bytes(60)


def names(node, text, limit=10):
    return [
        os.fsencode(row.path).rpartition(b"/")[2].decode("utf-8", "replace") for row in node.search(text, limit).rows
    ]


def written(folder, files):
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())


@pytest.fixture
def indexed(folder, tmp_path):
    """A function that writes files, indexes them and returns the node."""
    opened = []

    def index(files):
        written(folder, files)
        node = foltr.node.open(tmp_path / "home")
        opened.append(node)
        node.add([folder])
        list(node.index())
        return node

    yield index
    for node in opened:
        node.close()


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("holiday beach.jpg", PNG, "image"), ("holiday song.mp3", b"ID3" + bytes(40), "sound"),
        ("holiday film.mkv", bytes(50), "video"), ("holiday album.tar.xz", b"\xfd7zXZ\0", "archive"),
        ("holiday", ELF, "file"), ("holiday.exe", b"MZ" + bytes(50), "program"), ("holiday plan.xlsx", b"PK", "office"),
        ("holiday bill.pdf", b"%PDF-1.4 damaged", "pdf"), ("holiday.qqq", bytes(90), "file"),
        ("holiday.5.gz", b"\x1f\x8b\x08 damaged", "man"), ("holiday (1).png", b"", "image"),
    ],
)  # fmt: skip
def test_a_file_whose_text_cannot_be_read_is_found_by_its_name_and_kind(indexed, name, content, kind):
    node = indexed({name: content, "other.txt": "nothing to see"})
    assert names(node, "holiday") == [name]
    assert names(node, "holi") == [name]
    (row,) = node.search(f"holiday type:{kind}").rows
    assert (row.title, row.kind, row.snippet.text) == (name, kind, "")
    why = node.why(row.path)
    assert (why.state, why.documents) in {("skipped", 1), ("failed", 1)}
    assert node.status().names == 1


def test_paths_dates_and_broken_names_of_pictures_are_searched(indexed, folder):
    node = indexed({"Greece 2019/beach.png": PNG, "elsewhere/beach.png": PNG})
    assert names(node, "greece beach") == ["beach.png", "beach.png"]
    assert "Greece" in node.search("greece beach").rows[0].path
    os.utime(folder / "elsewhere/beach.png", (1e9, 1e9))
    (folder / os.fsdecode(b"caf\xe9.png")).write_bytes(PNG)
    list(node.index())
    assert len(names(node, "beach before:2002")) == 1  # the date of a picture follows the file
    assert names(node, "caf") == ["caf\ufffd.png"]


@pytest.mark.parametrize("place", [".git", "node_modules", "__pycache__", ".cache", ".hidden"])
def test_names_in_folders_that_are_left_out_are_not_found(indexed, place):
    node = indexed({f"{place}/beach.png": PNG, "forest.png": PNG})
    assert names(node, "beach") == []
    assert names(node, "forest") == ["forest.png"]


def test_names_of_secrets_links_and_excluded_files_are_not_found(indexed, folder, tmp_path):
    (tmp_path / "outside.png").write_bytes(PNG)
    (folder / "beach link.png").symlink_to(tmp_path / "outside.png")
    node = indexed(
        {
            "beach.pem": "x", "beach.kdbx": b"\x03\xd9\xa2\x9a" + bytes(20), "beach vault": b"\x03\xd9\xa2\x9a\x67",
            "beach keys.txt": "aws AKIA" + "ABCDEFGH12345678", "beach.png": PNG,
        }
    )  # fmt: skip
    assert names(node, "beach") == ["beach.png"]
    node.exclude(["*.png"])
    assert names(node, "beach") == []
    assert node.status().names == 0


def test_all_names_are_searchable_before_the_first_text_is_read(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(scan, "_MANY", 5)
    written(folder, {f"note number{i}.txt": f"text{i}" for i in range(20)} | {"beach.png": PNG})
    with foltr.node.open(tmp_path / "home") as node, foltr.node.open(tmp_path / "home") as other:
        node.add([folder])
        seen = []
        for progress in node.index():
            if progress.phase == "names":
                seen = [names(other, "number7"), names(other, "beach"), names(other, "text7")]
                assert other.status().states["waiting"] == 20
        assert seen == [["note number7.txt"], ["beach.png"], []]
        assert names(other, "text7") == ["note number7.txt"]  # once, with its text
        assert names(other, "number7") == ["note number7.txt"]
        assert other.status().documents == 20
        assert other.status().names == 1


def test_pictures_change_no_score_of_a_text(indexed, folder):
    node = indexed({f"{i}.txt": f"beach {'sand ' * i} of the sea {i}" for i in range(12)})
    before = {q: [(row.path, row.score) for row in node.search(q, 20).rows] for q in ("beach", "sand sea", "beach 7")}
    written(folder, {f"beach sand sea/beach {i} sand.png": PNG for i in range(150)})
    list(node.index())
    for query, rows in before.items():
        after = [(row.path, row.score) for row in node.search(query, 200).rows if row.path.endswith(".txt")]
        assert after == rows


def test_a_name_gets_no_bonus_for_being_short(indexed):
    node = indexed({"beach.png": PNG, "a.txt": "beach " + "sand " * 200, "b.txt": "sea " * 100})
    results = node.search("beach")
    raw = node.known_list(results).page.raw[:, NAMES.index("length")]
    by_name = {row.path.rpartition("/")[2]: length for row, length in zip(results.rows, raw, strict=True)}
    usual = (201 + 100) / 2
    assert by_name["beach.png"] >= usual


def test_a_file_that_becomes_readable_or_unreadable_stays_one_result(indexed, folder):
    node = indexed({"beach report.pdf": b"%PDF-1.4 damaged", "notes.txt": "beach"})
    assert sorted(names(node, "beach")) == ["beach report.pdf", "notes.txt"]
    (folder / "beach report.pdf").write_text("now it is a text about sand")
    (folder / "notes.txt").write_bytes(ELF)
    list(node.index())
    assert names(node, "beach") == ["beach report.pdf"]
    assert names(node, "sand") == ["beach report.pdf"]
    assert names(node, "notes") == ["notes.txt"]
    (folder / "notes.txt").unlink()
    list(node.index())
    assert names(node, "notes") == []


def test_words_of_names_alone_are_no_typing_errors(indexed):
    node = indexed({"parish.png": PNG, **{f"{i}.txt": "about paris and the paris metro" for i in range(9)}})
    results = node.search("parish")
    assert results.rows[0].path.endswith("/parish.png")


def test_counts_have_names_and_texts(indexed):
    node = indexed({**{f"sea beach {i}.png": PNG for i in range(30)}, **{f"{i}.txt": "sea beach" for i in range(7)}})
    assert node.search("sea beach").counts.all_words == 37


def test_an_index_of_the_version_before_goes_on_in_place(indexed, folder):
    node = indexed({"a.txt": "apple", "beach.txt": "sand"})
    (number,) = (row.id for row in node.search("apple").rows)
    live, home = layout.live_folder(node.places), node.places.config.parent
    node.close()
    connection = sqlite3.connect(live / "index.sqlite")  # as version 3 wrote it: no column, no row of sums, no names
    connection.executescript(
        "ALTER TABLE documents DROP COLUMN has_text; DELETE FROM sums WHERE field = 'names'; DROP TABLE followed;"
        "PRAGMA user_version = 3;"
    )
    connection.close()
    (live / "names.json").unlink()
    (live / "candidates.json").write_text((live / "candidates.json").read_text().replace('"fields": 5', '"fields": 4'))
    written(folder, {"beach.png": PNG})
    with foltr.node.open(home) as node:
        assert names(node, "apple") == ["a.txt"]
        assert names(node, "beach") == ["beach.txt"]
        assert (node.status().names, node.status().rebuilding) == (0, None)
        list(node.index())
        assert names(node, "beach")[0] in ("beach.png", "beach.txt")
        assert sorted(names(node, "beach")) == ["beach.png", "beach.txt"]
        assert [row.id for row in node.search("apple").rows] == [number]  # not read again
        assert layout.live_folder(node.places) == live


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("git show", "git-show.html"), ("git-show", "git-show.html"), ("git_show.html", "git-show.html"),
        ("fstab", "fstab.5.gz"), ("fstab.5", "fstab.5.gz"), ("cherry-p", "git-cherry-pick.html"),
        ("cherry pick", "git-cherry-pick.html"), ("git cherry", "git-cherry.html"), ("json loads", "json.loads.html"),
        ("json", "json.html"), ("GIT SHOW REF", "git-show-ref.html"), ("backup tar gz", "backup.tar.gz"),
        ("backup", "backup.tar.gz"), ("show ref", "git-show-ref.html"), ("libssl", "libssl.so.3"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("ending", ["", " "])
def test_exact_names_are_first_signs_are_spaces_and_endings_may_be_left_out(indexed, query, first, ending):
    often = "git show cherry pick p fstab json loads ref backup libssl " * 30
    pages = {
        f"git-{name}.html": f"<title>git-{name}</title>short" for name in ("show", "show-ref", "cherry", "cherry-pick")
    }
    others = {f"{i}.txt": f"{often} {i}" for i in range(30)}
    more = {"json.html": "json", "json.loads.html": "x", "fstab-decode.8": "fstab fstab", "libssl.so.3": ELF}
    node = indexed(
        {**pages, **others, **more, "fstab.5.gz": gzip.compress(b"x " * 9), "backup.tar.gz": b"\x1f\x8b\x08"}
    )
    assert names(node, query + ending)[0] == first


def test_an_exact_name_is_a_candidate_however_many_texts_have_its_words_more_often(indexed):
    often = {f"{i}.txt": "status report " * 40 for i in range(150)}
    node = indexed({**often, "status-report.txt": "nothing " * 900})
    assert names(node, "status report ")[0] == "status-report.txt"


def test_a_word_that_occurs_but_far_more_often_in_another_spelling_is_asked_about(indexed):
    usual = {f"{i}.txt": f"sqlite vacuum the database {i}" for i in range(90)}
    node = indexed({**usual, **{f"wrong{i}.txt": "sqlite vaccum it" for i in range(3)}})
    for query in ("sqlite vaccum", "vaccum ", "sqlite vaccum "):
        results = node.search(query)
        assert results.suggestion == query.replace("vaccum", "vacuum").strip()
        assert not results.corrected
        assert "wrong" in results.rows[0].path  # the list is that of the words as typed
    for query in ("sqlite vacuum", "databases", '"vaccum"', "-vaccum sqlite"):
        assert node.search(query).suggestion is None
