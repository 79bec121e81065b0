"""One ranking serves the list, its filters and its previews, until something that it depends on changes."""

import os
import shutil

import pytest

import foltr.node
from foltr.node import settings as node_settings
from foltr.node.learning import curations
from foltr.node.page import search as page_search
from foltr.node.search import listing
from foltr.node.search.listing import RecentRankings

QUERY = "parse dates"


@pytest.fixture
def ranked(monkeypatch):
    """The texts that the real function ranked, in order."""
    texts, rank = [], listing.rank_with_spelling

    def counted(reader, query, context):
        texts.append(context.text)
        return rank(reader, query, context)

    monkeypatch.setattr(listing, "rank_with_spelling", counted)
    return texts


def test_a_list_its_filters_and_its_previews_are_ranked_once(node, ranked):
    asked = page_search.asked_of(QUERY)
    view = page_search.list_view(node, asked)
    page_search.filters(node, asked)
    for row in view.rows[:3]:
        node.preview(view.results, row.id)
    page_search.list_view(node, page_search.asked_of(QUERY, "date"))
    assert ranked == [QUERY]


def test_a_ranking_that_is_used_again_gives_the_same_results(node):
    first = node.search(QUERY), node.search(QUERY, newest_first=True)
    assert (node.search(QUERY), node.search(QUERY, newest_first=True)) == first
    node._rankings.clear()
    assert (node.search(QUERY), node.search(QUERY, newest_first=True)) == first


def pin(node, document, key):
    curations.put(node.log, QUERY, key, "pinned", 1.0)


def hide(node, document, key):
    curations.put(node.log, QUERY, key, "hidden", 1.0)


def choose(node, document, key):
    node.choose(node.search("something else parse"), node.search("something else parse").rows[0].id)


def choose_here(node, document, key):
    node.choose(node.search(QUERY), document)


def explore(node, document, key):
    node.save_settings(node_settings.changed(node.settings, exploration=True))


def clear_history(node, document, key):
    node.delete_history()


def close_the_index(node, document, key):
    with node._lock:
        node._close_reader()


CHANGES = [pin, hide, choose, choose_here, explore, clear_history, close_the_index]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_each_change_leads_to_a_new_ranking(change, node, ranked):
    shown = node.search(QUERY)
    document = shown.rows[1]
    change(node, document.id, document.path)
    ranked.clear()
    node.search(QUERY)
    assert ranked == [QUERY]
    node.search(QUERY)
    assert ranked == [QUERY]


def test_another_version_of_the_weights_ranks_again(node, ranked, monkeypatch):
    node.search(QUERY)
    context = node._context

    def heavier(text):
        known = context(text)
        return known._replace(model=known.model._replace(weights=known.model.weights * 2))

    monkeypatch.setattr(node, "_context", heavier)
    node.search(QUERY)
    assert ranked == [QUERY, QUERY]


def test_another_day_ranks_again(node, ranked, monkeypatch):
    node.search(QUERY)
    context = node._context
    monkeypatch.setattr(node, "_context", lambda text: context(text)._replace(now=context(text).now + 86400))
    node.search(QUERY)
    assert ranked == [QUERY, QUERY]


def test_filters_are_part_of_the_query_and_rank_again(node, ranked):
    for text in (QUERY, f"type:markdown {QUERY}", f"{QUERY} ", QUERY):
        node.search(text)
    assert ranked == [QUERY, f"type:markdown {QUERY}", f"{QUERY} "]


def test_a_changed_index_ranks_again(node_of, folder, ranked):
    (folder / "a.md").write_text("parse the dates")
    with node_of() as node:
        assert len(node.search(QUERY).rows) == 1
        (folder / "b.md").write_text("parse other dates")
        list(node.index())
        assert len(node.search(QUERY).rows) == 2


def test_a_deleted_file_is_not_shown_and_a_restored_one_is_shown_again(node_of, folder):
    for name in "abc":
        (folder / f"{name}.md").write_text("parse the dates")
    with node_of() as node:
        assert len(node.search(QUERY).rows) == 3
        os.rename(folder / "a.md", folder.parent / "a.md")  # noqa: PTH104
        assert len(node.search(QUERY).rows) == 2
        os.rename(folder.parent / "a.md", folder / "a.md")  # noqa: PTH104
        assert len(node.search(QUERY).rows) == 3


def test_few_rankings_are_held_and_none_after_everything_was_forgotten(node):
    for number in range(2 * RecentRankings.HELD):
        node.search(f"{QUERY} {number}")
    assert len(node._rankings._held) == RecentRankings.HELD
    node.forget()
    assert not node._rankings._held


def test_nodes_share_no_rankings(node, home, tmp_path, ranked):
    shutil.copytree(home, tmp_path / "other")
    with foltr.node.open(tmp_path / "other") as other:
        node.search(QUERY)
        other.search(QUERY)
    assert ranked == [QUERY, QUERY]
