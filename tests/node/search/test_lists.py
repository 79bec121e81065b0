"""Lists: the same bytes twice, prefixes, conditions, spelling, paging, files that are gone."""

import json
import os
from pathlib import Path

import pytest

import foltr.node
from foltr.errors import InputError
from foltr.node.search import reader
from foltr.node.search.results import to_plain


def paths(results):
    return [row.path for row in results.rows]


def names(results):
    return [Path(row.path).name for row in results.rows]


def text_of(results):
    return json.dumps(to_plain(results))


QUERIES = [
    "temporary file",
    "parse",
    "sort list",
    "decode bytes json",
    "thread lock wait",
    "a",
    "date tim",
    "zip archive",
]


@pytest.mark.parametrize("query", QUERIES)
def test_the_same_query_gives_the_same_bytes(query, home):
    said = []
    for _ in range(2):  # also after a restart, and after an index run that finds nothing changed
        with foltr.node.open(home) as node:
            said += [text_of(node.search(query)), text_of(node.search(query))]
            node.settle(node.search(query))
            list(node.index())
            said.append(text_of(node.search(query)))
    assert len(said[0]) > 500
    assert set(said) == {said[0]}


def test_the_list_does_not_depend_on_when_files_were_indexed(tmp_path, folder):
    """Equal scores are ordered by path, not by number."""
    lists = []
    for order in (1, -1):
        with foltr.node.open(tmp_path / f"home{order}") as node:
            node.add([folder])
            for name in ["a", "b", "c"][::order]:
                (folder / f"{name}.txt").write_text("the same words in every file")
                list(node.index())
            lists.append(paths(node.search("same words")))
        for file in folder.iterdir():
            file.unlink()
    assert lists[0] == lists[1] == sorted(lists[0])


def targets(library, count=200):
    """Words of titles, each with the file that has it in its name."""
    found = {}
    for file in sorted((library / "docs").rglob("*.md")):
        word = file.stem.lower()
        if word.isalpha() and len(word) > 4:
            found.setdefault(word, file)
    return list(found.items())[:count]


def test_the_target_stays_in_the_list_at_every_prefix(node, library):
    words = targets(library)
    assert len(words) == 200
    lost = [
        (word[:letters], str(file))
        for word, file in words
        for letters in range(3, len(word) + 1)
        if str(file) not in paths(node.search(word[:letters], limit=100))
    ]
    assert lost == []


def test_a_list_goes_on_as_far_as_it_is_asked_for(node_of):
    node = node_of(**{f"{i:04}.txt": f"apple number{i}" for i in range(1_030)})
    assert node.search("apple").total == 1_000
    deep = node.search("apple", limit=2_000)
    assert len(set(paths(deep))) == deep.total == 1_030
    assert paths(node.search("apple", limit=20)) == paths(deep)[:20]
    assert paths(node.search("apple", limit=20, offset=1_010)) == paths(deep)[1_010:]


def test_inflected_words_do_not_flicker(node_of):
    node = node_of(**{"a.txt": "he was running", "b.txt": "they run", "c.txt": "unrelated words"})
    for typed in ("run", "runn", "runni", "runnin", "running"):
        assert set(names(node.search(typed))) == {"a.txt", "b.txt"}, typed


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("apple", {"one.txt", "two.md", "three.txt"}),
        ('"apple pie"', {"one.txt"}),
        ("apple -pie", {"two.md"}),
        ('apple -"apple pie"', {"two.md", "three.txt"}),
        ("apple path:two", {"two.md"}),
        ("apple -path:two", {"one.txt", "three.txt"}),
        ("apple type:md", {"two.md"}),
        ("apple type:md OR path:one", {"one.txt", "two.md"}),
        ("apple before:2010", {"one.txt"}),
        ("apple after:2010", {"two.md", "three.txt"}),
        ("apple after:2015 before:2016", {"two.md"}),
        ("pear OR cherry", {"four.txt", "five.txt"}),
        ("type:md", {"two.md"}),
        ("size:apple", {"one.txt", "two.md", "three.txt"}),
        ("apple path:nowhere", set()),
        ('"pie apple"', {"three.txt"}),
        ('"the apple"', {"three.txt"}),
    ],
    ids=map(str, range(17)),  # folders of tests have these names, and paths are searched
)
def test_conditions(query, found, node_of, folder):
    node_of(
        **{"one.txt": "apple pie", "two.md": "apple juice", "three.txt": "pie apple, the apple", "four.txt": "pear"},
        **{"five.txt": "cherry"},
    ).close()
    for year, name in ((2009, "one.txt"), (2015, "two.md"), (2020, "three.txt")):
        seconds = (year - 1970) * 365.25 * 86400 + 100 * 86400
        os.utime(folder / name, (seconds, seconds))
    assert set(names(node_of().search(query))) == found


def test_mail_fields(node_of, folder):
    for number, (sender, recipient) in enumerate([("ada", "bob"), ("bob", "ada")]):
        (folder / f"{number}.eml").write_text(
            f"From: {sender} <{sender}@example.org>\nTo: {recipient}@example.org\nSubject: Report {number}\n"
            "Date: Mon, 01 Jan 2024 10:00:00 +0000\nMessage-ID: <1@x>\n\nthe quarterly numbers\n"
        )
    node = node_of()
    assert names(node.search("quarterly from:ada")) == ["0.eml"]
    assert names(node.search("quarterly to:ada")) == ["1.eml"]
    assert names(node.search('subject:"report 1"')) == ["1.eml"]


def test_an_exact_file_name_comes_first(node_of):
    node = node_of(**{"budget.txt": "numbers", "other.txt": "budget budget budget budget", "budget plan.txt": "x"})
    assert names(node.search("budget"))[0] == "budget.txt"
    assert names(node.search("budget.txt"))[0] == "budget.txt"


def test_a_title_with_the_words_as_typed_comes_before_one_with_the_same_stems(node):
    for query, first in (("json loads", "loads.md"), ("json load", "load.md"), ("JSON.loads", "loads.md")):
        assert names(node.search(query))[0] == first


@pytest.mark.parametrize("words", [1, 700, 10**9])
def test_the_number_of_words_in_memory_is_bounded_and_does_not_change_the_list(node_of, monkeypatch, words):
    texts = {f"{i}.txt": "apple pear " * (40 * i) + f"end{i}" for i in range(1, 12)}
    node = node_of(**texts)
    expected = text_of(node.search('apple "pear apple" -end3'))
    sizes, joined = [], reader.joined
    monkeypatch.setattr(reader, "MAX_BLOCK", words)
    monkeypatch.setattr(reader, "joined", lambda some: sizes.append([len(one) for one, _ in some]) or joined(some))
    for _ in range(2):  # the second time from what is held
        node._rankings.clear()
        assert text_of(node.search('apple "pear apple" -end3')) == expected
    assert all(len(block) == 1 or sum(block) <= words for block in sizes)
    assert len(sizes) == {1: 20, 10**9: 2}.get(words, len(sizes))


def test_a_misspelt_word_finds_the_right_one_below_exact_ones(node_of):
    texts = {f"{i}.txt": "an important document about the kitchen" for i in range(5)}
    node = node_of(**texts, **{"typo.txt": "kitchin"})
    results = node.search("kitchin ")
    assert names(results)[0] == "typo.txt"
    assert len(results.rows) == 6
    assert results.corrected
    assert results.suggestion == "kitchen"
    assert {row.reason for row in results.rows[1:]} == {"similar spelling"}
    assert names(node.search("kitchan"))[0] != "typo.txt"


def test_no_other_spelling_where_there_are_enough_hits(node_of):
    node = node_of(
        **{f"{i}.txt": "form of words" for i in range(4)}, **{f"{i}{i}.txt": "from here" for i in range(4)},
        **{f"x{i}.txt": "house" for i in range(5)}, **{f"y{i}.txt": "mouse" for i in range(5)},
    )  # fmt: skip
    results = node.search("house ")
    assert {name[0] for name in names(results)} == {"x"}
    assert not results.corrected


def test_nothing_found_suggests_the_nearest_spelling(node_of):
    node = node_of(**{"a.txt": "kitten"})
    results = node.search("kit10n")
    assert (results.suggestion, names(results)) == ("kitten", [])
    assert node.search("qqqqqqqq").rows == ()


def test_pages_follow_each_other_without_gaps(node_of):
    node = node_of(**{f"{i:03}.txt": f"word number{i} " + "x " * i for i in range(250)})
    whole = [row.id for row in node.search("word", limit=250).rows]
    pages = [row.id for offset in range(0, 250, 30) for row in node.search("word", limit=30, offset=offset).rows]
    assert len(set(whole)) == 250
    assert pages == whole
    assert node.search("word").total == 250
    ranks = [row.rank for row in node.search("word", limit=5, offset=120).rows]
    assert ranks == [121, 122, 123, 124, 125]


def test_a_row_far_behind_can_be_chosen(node_of):
    node = node_of(**{f"{i:03}.txt": f"word number{i} " + "x " * i for i in range(150)})
    results = node.search("word", limit=10, offset=130)
    node.choose(results, results.rows[3].id)
    assert node.search("word").rows[0].id == results.rows[3].id


def test_a_deleted_file_is_never_shown(node_of, folder):
    node = node_of(**{"a.txt": "secret plan", "b.txt": "secret plan too"})
    (folder / "a.txt").unlink()
    assert names(node.search("secret plan")) == ["b.txt"]
    assert names(node.search("")) == ["b.txt"]


def test_without_words_the_newest_documents_are_shown(node_of, folder):
    node_of(**{"old.txt": "x", "new.txt": "y"}).close()
    os.utime(folder / "old.txt", (1e9, 1e9))
    os.utime(folder / "new.txt", (1.5e9, 1.5e9))
    results = node_of().search("")
    assert names(results) == ["new.txt", "old.txt"]
    assert results.rows[0].reason == "recent"


def test_contributions_add_up_to_the_score(node):
    for query in QUERIES:
        results = node.search(query)
        for row in results.rows:
            assert sum(one.points for one in node.explain(results, row.id)) == pytest.approx(row.score, abs=1e-9)


def test_a_node_without_documents_finds_nothing(tmp_path):
    with foltr.node.open(tmp_path / "empty") as node:
        results = node.search("anything")
        assert results.rows == ()
        assert node.log.displayed(node.settle(results)).documents == ()
        assert node.settle(node.search("")) is None  # nothing was searched


def test_documents_are_named_by_numbers_of_the_list(node):
    results = node.search("parse")
    with pytest.raises(InputError, match="did not show document"):
        node.choose(results, 10**9)
    with pytest.raises(InputError, match="not known any more"):
        node.choose("0" * 24, results.rows[0].id)


def test_other_scripts_and_accents(node_of):
    node = node_of(**{"tokyo.txt": "東京都に住んでいます", "cafe.txt": "Das Café am Straßenrand", "plain.txt": "cafe"})
    assert names(node.search("東京")) == ["tokyo.txt"]
    assert set(names(node.search("cafe"))) == {"cafe.txt", "plain.txt"}
    assert names(node.search("strassenrand")) == ["cafe.txt"]
    (row,) = node.search("東京").rows
    assert row.snippet.text[slice(*row.snippet.highlights[0])] == "東京"
