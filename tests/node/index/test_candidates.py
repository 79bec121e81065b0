"""Candidates: what tantivy returns equals a BM25 over the texts, follows the store, and is rebuilt from it."""

import numpy as np
import pytest
from small_index import Text, indexed, new_writer, write

from foltr.errors import StorageError
from foltr.node.index.candidates import Candidates, codes
from foltr.node.index.store import Store
from foltr.rng import stream


@pytest.fixture
def writer(tmp_path):
    writer = new_writer(tmp_path)
    yield writer
    writer.close()


@pytest.fixture
def candidates(tmp_path):
    candidates = Candidates(tmp_path, write=True)
    yield candidates
    candidates.close()


def found(candidates, store, text, *, prefix=False, **options):
    return store.present(candidates.search(store, store.query_text(text, prefix=prefix), **options))


def many(number=300, length=30, words=400):
    """Documents of words with a Zipf-like distribution."""
    draws = stream(7, purpose="data").uniform(number * length).reshape(number, length)
    ranks = (words**draws).astype(int)
    return {f"/home/me/{i}": " ".join(f"w{rank}x" for rank in row) for i, row in enumerate(ranks)}


def test_the_top_equals_bm25_over_all_fields_as_one(writer, candidates):
    write(writer, many())
    candidates.update(writer.store)
    store = writer.store
    tokens = store.tokens(range(1, 301))
    sequences = np.split(tokens.words, tokens.offsets[6:-1:6])
    lengths = np.array([len(words[words >= store.stop_count]) for words in sequences])
    for text in ("w3x w50x", "w20x w100x w7x", "w399x"):
        query = store.query_text(text)
        scores = np.zeros(300)
        for term in query.terms:
            tf = np.array([np.isin(words, term.words).sum() for words in sequences])
            idf = np.log(1 + (300 - (tf > 0).sum() + 0.5) / ((tf > 0).sum() + 0.5))
            scores += idf * tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * lengths / lengths.mean()))
        best = found(candidates, store, text, top_k=20)
        # tantivy rounds lengths to a byte; all lengths are below 40 here, where it is exact
        assert np.allclose(np.sort(scores)[::-1][: len(best)], scores[np.array(best) - 1], rtol=1e-4)
        assert len(best) == min(20, (scores > 0).sum())


def test_a_reader_sees_what_the_writer_has_committed(writer, candidates, tmp_path):
    store, reader = Store(tmp_path / "index.sqlite"), Candidates(tmp_path)
    assert found(reader, store, "apple") == []
    write(writer, {"/home/me/a": "apple"})
    candidates.update(writer.store)
    assert found(reader, store, "apple") == [1]
    write(writer, {"/home/me/a": "pear", "/home/me/b": "apple"})
    candidates.update(writer.store)
    assert found(reader, store, "apple") == [3]
    assert found(reader, store, "pear") == [2]
    with pytest.raises(StorageError, match="opened for reading"):
        reader.rebuild(store)


def test_an_index_that_is_behind_is_caught_up_and_a_missing_or_damaged_one_rebuilt(writer, tmp_path):
    write(writer, {"/home/me/a": "apple"})
    first = Candidates(tmp_path, write=True)
    first.update(writer.store)
    first.close()
    stamp = (tmp_path / "candidates.json").read_bytes()
    write(writer, {"/home/me/a": "apple pie", "/home/me/b": "apple"})
    second = Candidates(tmp_path, write=True)
    second.update(writer.store)
    assert sorted(found(second, writer.store, "apple")) == [2, 3]
    second.close()
    (tmp_path / "candidates.json").write_bytes(stamp)  # stopped between commit and stamp
    third = Candidates(tmp_path, write=True)
    third.update(writer.store)
    assert sorted(found(third, writer.store, "apple")) == [2, 3]
    assert third._index.searcher().num_docs == 2
    third.close()
    for damage in (lambda path: path.write_bytes(b"{"), lambda path: path.unlink()):
        damage(tmp_path / "candidates.json")
        again = Candidates(tmp_path, write=True)
        again.update(writer.store)
        assert sorted(found(again, writer.store, "apple")) == [2, 3]
        again.close()
    for path in (tmp_path / again.stamp.folder).glob("meta.json"):
        path.write_bytes(b"{}")
    last = Candidates(tmp_path, write=True)
    last.update(writer.store)
    assert sorted(found(last, writer.store, "apple")) == [2, 3]
    last.close()


def test_required_excluded_and_allowed_documents(writer, candidates):
    write(writer, {"/home/me/a": "apple pie", "/home/me/b": "apple tart", "/home/me/c": "apple the pie tart"})
    candidates.update(writer.store)
    store = writer.store
    pie, tart, the = (store.query_text(word).terms[0] for word in ("pie", "tart", "the"))
    assert set(found(candidates, store, "apple")) == {1, 2, 3}
    assert set(found(candidates, store, "apple", must=[pie])) == {1, 3}
    assert set(found(candidates, store, "apple", must=[pie], must_not=[tart])) == {1}
    assert set(found(candidates, store, "apple", must=[the])) == {3}
    assert set(found(candidates, store, "", must=[pie])) == {1, 3}
    assert found(candidates, store, "apple", must=[store.query_text("zebra").terms[0]]) == []
    assert set(found(candidates, store, "apple", allowed=np.array([2, 3]))) == {2, 3}
    assert found(candidates, store, "apple", allowed=np.array([], int)) == []
    assert found(candidates, store, "the") == [3]


def test_allowed_documents_are_found_below_a_thousand_better_ones(writer, candidates):
    texts = {f"/home/me/{i}": "apple apple apple" for i in range(1500)} | {"/home/me/last": "apple " + "filler " * 50}
    write(writer, texts)
    candidates.update(writer.store)
    assert found(candidates, writer.store, "apple", allowed=np.array([1501]), top_k=10) == [1501]


def test_rare_and_frequent_completions_and_names_are_all_among_the_candidates(writer, candidates):
    texts = {f"/home/me/common{i}": "configure " * 3 for i in range(200)}
    texts |= {f"/home/me/odd{i}": f"con{i}x filler filler filler" for i in range(300)}
    texts |= {"/home/me/plan": Text("Concept", "filler " * 200)}
    write(writer, texts)
    candidates.update(writer.store)
    best = found(candidates, writer.store, "con", prefix=True, top_k=100)
    assert 501 in best[:10]
    assert sum(number <= 200 for number in best) >= 20
    for i in (0, 150, 299):
        assert found(candidates, writer.store, f"con{i}", prefix=True, top_k=100)[0] == 201 + i


def test_every_completion_is_found_and_a_longer_list_begins_like_a_short_one(writer, candidates):
    texts = {f"/home/me/odd{i}": " ".join(f"con{i}v{j}x" for j in range(8)) + " filler" * i for i in range(150)}
    texts |= {f"/home/me/common{i}": "configure " * (1 + i % 3) + "word " * i for i in range(40)}
    write(writer, texts)  # 1,201 completions of "con", most of them in one document
    candidates.update(writer.store)
    lists = [found(candidates, writer.store, "con", prefix=True, top_k=top_k) for top_k in (20, 60, 190)]
    assert sorted(lists[-1]) == list(range(1, 191))
    assert lists[0] == lists[1][:20]
    assert lists[1] == lists[2][:60]


def test_one_or_two_letters_are_looked_for_in_titles_and_names_while_these_suffice(writer, candidates):
    titled = {f"/home/me/t{i}": Text(f"Report red {i}", "filler") for i in range(100)}
    write(writer, titled | {f"/home/me/b{i}": "report report report" for i in range(50)})
    candidates.update(writer.store)
    for beginning, bodies in (("r", 0), ("re", 0), ("rep", 50), ("filler re", 50)):
        best = found(candidates, writer.store, beginning, prefix=True, top_k=200)
        assert (sum(number <= 100 for number in best), sum(number > 100 for number in best)) == (100, bodies), beginning
    write(writer, {"/home/me/x": "zebra"})
    candidates.update(writer.store)
    assert len(found(candidates, writer.store, "z", prefix=True)) == 1


def test_deleted_documents_do_not_pile_up(writer, candidates, tmp_path):
    write(writer, many(100))
    candidates.update(writer.store)
    for i in range(80):
        writer.write([indexed(writer, "/home/me/0", Text(body=f"changed {i}"))])
        candidates.update(writer.store)
    assert candidates.stamp.written - 100 <= 65
    assert len(list(tmp_path.glob("candidates-*"))) == 1
    assert found(candidates, writer.store, "changed") == [180]


def test_codes_are_distinct_and_of_fixed_width():
    numbers = np.array([0, 1, 63, 64, 2**30 - 1])
    assert codes(numbers).split() == ["00000", "00001", "0000_", "00010", "_____"]
    assert codes(np.zeros(0, int)) == ""
