"""What a person opens often does not take over searches that are about something else."""

import msgspec
import pytest

import foltr.node
from foltr.node import settings as node_settings
from foltr.node.learning import versions
from foltr.text import matching


@pytest.fixture(scope="module")
def indexed(tmp_path_factory):
    """Ten notes in a favourite folder among 300 documents."""
    folder = tmp_path_factory.mktemp("documents")
    favourite, other = folder / "favourite", folder / "elsewhere"
    favourite.mkdir()
    other.mkdir()
    for number in range(10):
        later = "harbour harbour crane crane" if number >= 6 else "quiet"
        (favourite / f"note{number}.md").write_text(f"# Note {number}\n\nword{number} {later} and some more words\n")
    name = "an old guide to the harbour of a town in the north"
    (other / f"{name}.md").write_text(f"# {name.title()}\n\n" + "about ships and other things " * 40)
    for number in range(4):
        (other / f"report{number}.md").write_text(f"# Report {number}\n\ncrane crane crane and some words\n")
    for number in range(285):
        (other / f"filler{number}.md").write_text(f"# Filler {number}\n\nnothing to see in filler {number}\n")
    home = tmp_path_factory.mktemp("home")
    with foltr.node.open(home) as opened:
        opened.add([favourite, other])
        opened.save_settings(node_settings.changed(opened.settings, learning=False))  # no trial, no interleaved lists
        list(opened.index())
    return home


@pytest.fixture
def node(indexed):
    """Somebody whose weights have learned that folders matter."""
    with foltr.node.open(indexed) as opened:
        opened.delete_history(reset_weights=True)
        features = [
            msgspec.structs.replace(one, weight=1.5) if one.name == "folder" else one
            for one in versions.start_weights().features
        ]
        versions.adopt(opened.log, msgspec.structs.replace(versions.start_weights(), features=tuple(features)))
        yield opened


def open_the_favourite_folder(node, typed=("word{}", "word{} quiet")):
    """Two searches for each of six of its notes; the other four were never opened."""
    for words in typed:
        for number in range(6):
            results = node.search(words.format(number))
            node.choose(results, results.rows[0].id)


def names(node, text):
    return [row.path.rpartition("/")[2] for row in node.search(text).rows]


@pytest.mark.parametrize("bounded", [True, False])
def test_a_document_with_the_word_in_its_name_stays_before_favourites(node, monkeypatch, bounded):
    if not bounded:  # without the bound the folder takes the first place
        monkeypatch.setattr(matching, "with_bounded_history", lambda raw: raw)
    assert names(node, "harbour")[0].startswith("an old guide")
    open_the_favourite_folder(node)
    assert names(node, "harbour")[0].startswith("an old guide" if bounded else "note")


def test_between_documents_without_the_words_in_their_names_habits_decide(node):
    for text in ("crane", "crane some"):
        assert names(node, text)[0].startswith("report")
    open_the_favourite_folder(node)
    for text in ("crane", "crane some"):
        assert names(node, text)[0].startswith("note")


def test_openings_by_several_words_do_not_decide_a_search_for_one_word_of_bodies(node):
    open_the_favourite_folder(node, ("word{} quiet", "quiet word{}"))
    assert names(node, "crane")[0].startswith("report")
    assert names(node, "crane some")[0].startswith("note")  # several words: habits count
    open_the_favourite_folder(node, ("word{}",))  # now habits of such searches are known
    assert names(node, "crane")[0].startswith("note")


def test_openings_by_a_word_of_a_name_do_not_decide_a_search_for_one_word_of_bodies(node):
    open_the_favourite_folder(node, ("note{}",))
    assert names(node, "crane")[0].startswith("report")


def test_the_second_page_counts_the_same_openings_as_the_first(node):
    open_the_favourite_folder(node, ("word{} quiet", "quiet word{}"))
    listed = node.search("nothing", limit=10, offset=100)  # 285 bodies have the word; 100 of them were scored at first
    explained = [part for row in listed.rows for part in node.explain(listed, row.id) if part.feature == "folder"]
    assert len(explained) == 10
    assert {part.value for part in explained} == {0.0}
