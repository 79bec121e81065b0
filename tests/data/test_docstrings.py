"""The corpus that every machine has."""

import sys

import pytest

from foltr.errors import DataMissing, SpecError
from foltr.lab.data import corpora, docstrings
from foltr.text.analysis import STOP_WORDS

MODULE = '''"""Work with made things.

More about them."""

if True:
    class Thing:
        """A thing that can be weighed twice."""

        def weigh(self):
            """Return the weight of this thing in grams.

            Air is not counted.
            """
            def inner():
                """Nobody asks for what is within."""

        @property
        def name(self):
            """The first definition counts."""

        @name.setter
        def name(self, value):
            """The second does not."""

        def silent(self):
            return 1

async def build():
    """Build many things side by side quickly."""

def empty():
    "  "

raise RuntimeError("this file was imported")
'''


@pytest.fixture
def library(tmp_path):
    """A standard library of one package; what is not of the library, or packaged apart, lies beside it."""
    for name in ("json/__init__.py", "json/tests/case.py", "tkinter/__init__.py", "stranger.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(MODULE)
    return tmp_path


NAMES = ("json", "json.Thing", "json.Thing.weigh", "json.Thing.name", "json.build")


def test_every_documented_object_is_a_document(library):
    found = docstrings.load_docstrings(root=library)
    assert (found.ids, found.titles) == (NAMES, NAMES)
    assert found.bodies[2] == "Return the weight of this thing in grams.\n\nAir is not counted."
    assert found.bodies[3] == "The first definition counts."


def test_the_object_has_grade_2_and_its_module_1(library):
    found = docstrings.load_docstrings(root=library)
    assert len(found.judgments) == len(found.query_ids) * len(NAMES)
    for query, name in enumerate(found.query_ids):
        grades = found.judgments[found.judgments[:, 0] == query, 2].tolist()
        item = int(name[1:])
        assert grades == [2 if document == item else 1 for document in range(len(NAMES))]


def test_a_query_is_a_few_telling_words_of_the_summary_line_in_their_order(library):
    found = docstrings.load_docstrings(root=library)
    asked = dict(zip(found.query_ids, found.query_texts, strict=True))
    assert asked["q3"] == "first definition counts"
    words = iter(["build", "many", "things", "side", "by", "side", "quickly"])
    assert len(asked["q4"].split()) == 5
    assert all(word in words and word not in STOP_WORDS for word in asked["q4"].split())


def test_seeds_ask_differently_and_the_same_seed_the_same(library):
    one, again, other = (docstrings.load_docstrings(root=library, seed=seed, queries=2) for seed in (1, 1, 2))
    assert (one.query_ids, one.query_texts) == (again.query_ids, again.query_texts)
    assert (one.query_ids, one.query_texts) != (other.query_ids, other.query_texts)
    assert one.bodies == other.bodies


def test_the_second_use_reads_no_source(library, monkeypatch):
    first = docstrings.load_docstrings(root=library)
    monkeypatch.setattr(docstrings, "_objects", None)
    assert docstrings.load_docstrings(root=library).bodies == first.bodies


def test_a_damaged_or_closed_cache_costs_only_time(library, own_folders, monkeypatch):
    first = docstrings.load_docstrings(root=library)
    (cached,) = (own_folders / "cache" / "corpora").iterdir()
    cached.write_bytes(cached.read_bytes()[:40])
    assert docstrings.load_docstrings(root=library).bodies == first.bodies
    (own_folders / "a file").write_text("")
    monkeypatch.setenv("FOLTR_CACHE", str(own_folders / "a file"))
    assert docstrings.load_docstrings(root=library).bodies == first.bodies


def test_a_changed_library_is_read_again(library):
    docstrings.load_docstrings(root=library)
    (library / "json" / "more.py").write_text('"""Another module."""')
    assert docstrings.load_docstrings(root=library).ids[-1] == "json.more"


def test_without_sources_it_says_so(tmp_path):
    with pytest.raises(DataMissing, match="source of Python's standard library is missing"):
        docstrings.load_docstrings(root=tmp_path)
    with pytest.raises(SpecError, match="queries=0"):
        docstrings.load_docstrings(queries=0)


def test_the_real_library_is_read_without_importing_any_of_it():
    rare = {"nntplib", "xdrlib", "antigravity", "this", "mailcap"}
    before = rare & set(sys.modules)
    found = corpora.load_corpus("docstrings")
    assert rare & set(sys.modules) == before
    assert len(found.ids) > 4_000
    assert len(found.query_ids) == docstrings.QUERIES
    assert {"json.dumps", "os.walk", "pathlib.Path"} <= set(found.ids) or sys.version_info >= (3, 13)
    assert all(found.bodies)
    assert set(found.judgments[:, 2].tolist()) == {1, 2}
