"""What was chosen before: first again at once, forgotten on demand, never what does not match."""

import threading
from pathlib import Path

import pytest
from test_lists import names, paths, text_of

import foltr.node
from foltr.node.learning import versions
from foltr.rng import stream


@pytest.mark.parametrize(("query", "place"), [("thread wait", 7), ("archive", 5), ("Parse Date", 9), ("json", 3)])
def test_a_document_chosen_once_is_first_for_the_query_and_its_beginnings(query, place, node):
    row = node.search(query).rows[place]
    node.choose(node.search(query), row.id)
    for letters in range(3, len(query) + 1):
        first = node.search(query[:letters]).rows[0]
        if first.id != row.id:  # an exact file name stays above memory
            assert first.reason.startswith("the name is what you typed"), query[:letters]
            first = node.search(query[:letters]).rows[1]
        assert first.id == row.id
        assert first.remembered
        assert first.reason.startswith(f"you opened this once for '{query.lower()}'")


def test_it_is_first_after_a_restart_too(home):
    with foltr.node.open(home) as node:
        results = node.search("thread wait")
        node.choose(results, results.rows[6].id)
    with foltr.node.open(home) as node:
        assert node.search("thread w").rows[0].id == results.rows[6].id


def test_after_forgetting_the_list_is_what_it_was(node):
    before = node.search("thread wait")
    node.choose(before, before.rows[7].id)
    assert node.search("thread wait").rows[0].id == before.rows[7].id
    assert node.forget_choice("thread wait", before.rows[7].id) == 1
    assert text_of(node.search("thread wait")) == text_of(before)
    assert node.history()[0].query == "thread wait"  # forgetting a choice does not delete the history


def test_a_choice_that_is_taken_back_leaves_no_trace_in_lists(node):
    before = node.search("thread wait")
    node.choose(before, before.rows[7].id)
    assert node.take_back(before, before.rows[7].id)
    assert text_of(node.search("thread wait")) == text_of(before)


def test_memory_never_shows_what_does_not_match(node_of, folder):
    node = node_of(**{"a.txt": "apple pie", "b.md": "apple juice", "c.txt": "apple tart"})
    results = node.search("apple")
    (chosen,) = [row for row in results.rows if row.path.endswith("b.md")]
    node.choose(results, chosen.id)
    assert names(node.search("apple"))[0] == "b.md"
    for query in ("apple -juice", "apple type:txt", "apple path:a.txt", 'apple "pie"', "apple before:1980"):
        node.choose(node.search("apple"), chosen.id)
        assert "b.md" not in names(node.search(query)), query
    (folder / "b.md").write_text("nothing of it any more")
    list(node.index())
    assert "b.md" not in names(node.search("apple"))
    (folder / "b.md").unlink()
    assert "b.md" not in names(node.search("apple"))


def test_an_exact_file_name_beats_memory(node_of):
    node = node_of(**{"budget.txt": "numbers", "other.txt": "the budget", "third.txt": "a budget plan"})
    results = node.search("budget")
    (other,) = [row for row in results.rows if row.path.endswith("other.txt")]
    for _ in range(3):
        node.choose(node.search("budget"), other.id)
    assert names(node.search("budget"))[:2] == ["budget.txt", "other.txt"]
    assert names(node.search("budg"))[0] == "other.txt"


def test_memory_takes_at_most_two_places(node):
    results = node.search("file")
    for row in results.rows[4:9]:
        node.choose(results, row.id)
    assert sum(row.remembered for row in node.search("file").rows) == 2


def test_a_remembered_document_that_is_no_candidate_is_found(node_of):
    """It matches, but a hundred others match better."""
    node = node_of(**{f"{i:03}.txt": "word " * 3 for i in range(130)}, **{"long.txt": "word " + "other " * 4000})
    last = node.search("word", limit=200).rows[-1]
    assert last.path.endswith("long.txt")
    results = node.search("word", limit=5, offset=last.rank - 3)
    node.choose(results, last.id)
    assert node.search("word").rows[0].id == last.id


def known_items(library, count):
    """Queries of three words of a text, each with its file."""
    draws = stream(7, round=0, client=0, purpose="queries")
    found = []
    for file in sorted((library / "docs").rglob("*.md")):
        words = sorted({word for word in file.read_text().lower().split() if word.isalpha() and len(word) > 4})
        if len(words) > 8:
            places = (draws.uniform(3) * len(words)).astype(int)
            draws = draws.skip(3)
            found.append((" ".join(words[place] for place in places), str(file)))
    return found[:count], found[count : 2 * count]


def mean_reciprocal_rank(node, queries):
    ranks = [
        paths(node.search(query)).index(file) + 1 if file in paths(node.search(query)) else 0 for query, file in queries
    ]
    return sum(1 / rank for rank in ranks if rank) / len(ranks)


def test_new_queries_do_not_lose_by_memory(home, library, monkeypatch):
    old, new = known_items(library, 80)
    with foltr.node.open(home) as node:
        for query, file in old:
            results = node.search(query, limit=50)
            for row in results.rows:
                if row.path == file:
                    node.choose(results, row.id)
        with_memory = mean_reciprocal_rank(node, new)
        again = mean_reciprocal_rank(node, old)
        monkeypatch.setattr(type(node.log), "lookup", lambda self, query, now: [])
        without = mean_reciprocal_rank(node, new)
    assert again > 0.98
    assert abs(with_memory - without) <= 0.005


def test_every_ten_choices_weights_are_fitted_and_the_start_can_return(node, library):
    old, _ = known_items(library, 60)
    chosen = 0
    for query, file in old:
        results = node.search(query, limit=50)
        for row in results.rows:
            if row.path == file:
                node.choose(results, row.id)
                chosen += 1
    assert chosen > 20
    assert len(node.versions()) >= 1
    node.go_back(0)
    assert node.search("json").model_version == 0


def test_settled_lists_only_are_logged(node):
    for letters in range(1, 5):
        node.search("json"[:letters])
    assert node.history() == []
    number = node.settle(node.search("json"))
    assert node.settle(node.search("jso")) == number + 1
    assert [one.query for one in node.history()] == ["jso", "json"]
    assert Path(node.history()[0].documents[0]).exists()


def test_settling_twice_logs_one_list(node):
    results = node.search("json")
    assert node.settle(results) == node.settle(results.search_id)
    assert len(node.history()) == 1


def test_openings_are_weighed_against_the_documents_of_their_folder(node_of, folder):
    node = node_of(**{f"{name}.txt": f"harbour {name}" for name in ("one", "two", "three")})
    node.choose(node.search("harbour one"), node.search("harbour one").rows[0].id)
    weighed = node._context("harbour").openings
    assert weighed.sizes == {str(folder): 3}
    assert weighed.indexed == 3
    assert node._context("harbour").openings is weighed  # nothing changed in between
    (folder / "four.txt").write_text("harbour four")
    list(node.index())
    node.search("harbour")
    assert node._context("harbour").openings.sizes == {str(folder): 4}


def test_searches_are_answered_while_weights_are_fitted(node, monkeypatch):
    """The fit stands still until the search is answered; were the search to wait for the fit, neither would end."""
    begun, answered = threading.Event(), threading.Event()
    fit, waited = versions.fit, []

    def standing_fit(*arguments, **options):
        begun.set()
        waited.append(answered.wait(20))
        return fit(*arguments, **options)

    monkeypatch.setattr(versions, "fit", standing_fit)

    def choose_ten_times():
        for number in range(10):
            results = node.search(f"json decoder {number}")
            node.choose(results, results.rows[-1].id)

    person = threading.Thread(target=choose_ten_times)
    person.start()
    assert begun.wait(60)
    results = node.search("csv reader")
    assert node.settle(results) is not None
    assert node.preview(results, results.rows[0].id).lines
    node.choose(results, results.rows[0].id)  # a second choice does not wait for the fit either
    answered.set()
    person.join(60)
    assert waited
    assert all(waited)
    assert len(node.versions()) == 1
