"""Collections with intents: judgements that join their documents, folds, and a synthetic one whose intents conflict."""

import itertools
import lzma
import zipfile

import numpy as np
import pytest

from foltr.errors import DataError, DataMissing, SpecError
from foltr.lab.data import catalog, intents
from foltr.lab.figures import figures
from foltr.lab.simulation.population import folds_of
from foltr.lab.spec.parse import setting
from foltr.lab.spec.setting import flat, resolved
from foltr.rng import stream

WIDTH = 42  # features of a line of clueweb09


def document(query, place):
    return f"clueweb09-en{query:04}-{place:02}"


def collection(root, *, judged, packed=False):
    """Five parts of two queries with three documents each, and four files of judgements."""
    values = " ".join(f"{feature}:0.5" for feature in range(1, WIDTH + 1))
    (root / "intents").mkdir(parents=True)
    for part in range(1, 6):
        lines = [f"0 qid:{q} {values} # docid = {document(q, p)}" for q in (2 * part, 2 * part + 1) for p in range(3)]
        (root / f"S{part}.txt").write_text("\n".join(lines) + "\n")
    for intent in range(1, 5):
        lines = [f"{q} {intent} {document(q, p)} 1" for q, p, i in judged if i == intent]
        text = "\n".join([*lines, f"999 {intent} nobody 0"]) + "\n"
        if packed:
            (root / "intents" / f"{intent}.txt.xz").write_bytes(lzma.compress(text.encode()))
        else:
            (root / "intents" / f"{intent}.txt").write_text(text)


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "packed"])
def test_judgements_join_their_documents(tmp_path, monkeypatch, packed):
    judged = {(2, 0, 1), (2, 0, 3), (7, 2, 4), (11, 1, 2)}  # query, place, intent
    collection(tmp_path / "clueweb09", judged=judged, packed=packed)
    monkeypatch.setenv("FOLTR_DATA", str(tmp_path))
    loaded = intents.load_intents("clueweb09")
    rows = [(int(q), p) for q in loaded.data.queries for p in range(3)]
    found = {(*rows[row], int(intent) + 1) for row, intent in np.argwhere(loaded.intents)}
    assert found == judged
    assert {rows[row] for row in np.flatnonzero(loaded.data.labels)} == {(2, 0), (7, 2), (11, 1)}
    assert "not the published" in loaded.note


def test_missing_judgements_are_named_with_a_way_out(tmp_path, monkeypatch):
    collection(tmp_path / "clueweb09", judged=set())
    (tmp_path / "clueweb09" / "intents" / "3.txt").unlink()
    monkeypatch.setenv("FOLTR_DATA", str(tmp_path))
    with pytest.raises(DataMissing, match=r"3\.txt is missing.*use synthetic-intents"):
        intents.load_intents("clueweb09")


@pytest.mark.parametrize("line", ["2 1 doc", "2 1 doc 5", "2 1 doc yes"])
def test_a_wrong_judgement_is_named_with_its_line(tmp_path, monkeypatch, line):
    collection(tmp_path / "clueweb09", judged=set())
    (tmp_path / "clueweb09" / "intents" / "2.txt").write_text(f"2 2 doc 0\n{line}\n")
    monkeypatch.setenv("FOLTR_DATA", str(tmp_path))
    with pytest.raises(DataError, match=r"2\.txt:2: found .* expected 'query intent document 0-or-1'"):
        intents.load_intents("clueweb09")


def test_without_the_features_the_error_says_where_to_get_them():
    with pytest.raises(DataMissing, match="Webis"):
        intents.load_intents("clueweb09")


@pytest.mark.data
@pytest.mark.usefixtures("real_data")
def test_the_real_collection_has_the_counted_judgements():
    loaded = intents.load_intents("clueweb09")
    assert loaded.data.features.shape == (26_646, 42)
    assert loaded.intents.sum(axis=0).tolist() == [3937, 2765, 2449, 884]  # counted by a separate script
    assert np.array_equal(loaded.data.labels, loaded.intents.any(axis=1))
    first = catalog.load("clueweb09").train
    assert np.array_equal(loaded.data.features[: len(first.labels)], first.features)


def test_folds_test_every_query_once_and_train_on_the_others():
    whole = intents.load_intents("synthetic-intents@23")
    tested = []
    for number in range(1, 6):
        train, test = intents.split_fold(whole, number, seed=3)
        assert sorted([*train.data.queries, *test.data.queries]) == list(range(1, 24))
        assert len(test.data.queries) in (4, 5)
        tested += test.data.queries.tolist()
    assert sorted(tested) == list(range(1, 24))


def test_a_fold_keeps_documents_with_their_query():
    whole = intents.load_intents("synthetic-intents@10")
    for part in intents.split_fold(whole, 2, seed=1):
        for place, query in enumerate(part.data.queries - 1):
            mine = slice(*part.data.offsets[place : place + 2])
            theirs = slice(*whole.data.offsets[query : query + 2])
            assert np.array_equal(part.data.features[mine], whole.data.features[theirs])
            assert np.array_equal(part.intents[mine], whole.intents[theirs])
            assert np.array_equal(part.data.labels[mine], whole.data.labels[theirs])


def ndcg_at_10(scores, offsets, relevant):
    """Mean over queries with a relevant document."""
    discounts, values = 1 / np.log2(np.arange(2, 12)), []
    for first, last in itertools.pairwise(offsets):
        found = relevant[first:last][np.argsort(-scores[first:last], kind="stable")[:10]]
        if relevant[first:last].any():
            values.append(found @ discounts / discounts[: relevant[first:last].sum()].sum())
    return np.mean(values)


def test_the_synthetic_intents_conflict():
    """As the module says of 2,000 queries; here 600, so that a mean has an sd of about .01: abs=.05 is five of them."""
    data, relevant = intents.generate_intents(queries=600, seed=2)
    tastes = intents.tastes()

    def mean_of_intents(scores_of):
        return np.mean([ndcg_at_10(scores_of(intent), data.offsets, relevant[:, intent]) for intent in range(4)])

    shuffled = stream(0, purpose="ranking").uniform(len(data.labels))
    assert mean_of_intents(lambda _: shuffled) == pytest.approx(0.18, abs=0.05)
    assert mean_of_intents(lambda i: data.features @ tastes[i - 1]) == pytest.approx(0.22, abs=0.05)
    assert mean_of_intents(lambda _: data.features @ tastes.mean(axis=0)) == pytest.approx(0.38, abs=0.05)
    assert mean_of_intents(lambda i: data.features @ tastes[i]) == pytest.approx(0.56, abs=0.05)


def test_a_seed_is_one_synthetic_collection_of_any_size():
    small, large = (intents.generate_intents(queries=count, seed=5) for count in (6, 20))
    rows = len(small[0].labels)
    assert np.array_equal(small[0].features, large[0].features[:rows])
    assert np.array_equal(small[1], large[1][:rows])
    assert not np.array_equal(intents.generate_intents(queries=6, seed=6)[0].offsets, small[0].offsets)


def test_the_synthetic_collection_has_its_size_and_says_what_it_is():
    made = intents.load_intents("synthetic-intents")
    assert made.note == "synthetic"
    assert made.data.features.shape[1] == 46
    assert len(made.data.queries) == 200
    assert np.diff(made.data.offsets).mean() == pytest.approx(40, abs=2)
    assert (made.data.features.min(), made.data.features.max()) == (0, 1)
    assert np.array_equal(made.data.labels, made.intents.any(axis=1))


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: intents.load_intents("mq2007"), "there are clueweb09, synthetic-intents"),
        (lambda: intents.load_intents("synthetic-intents@3"), "with 5 or more"),
        (lambda: intents.load_intents("synthetic-intents@x"), "with 5 or more"),
        (lambda: intents.load_intents("synthetic-intents", normalize="zscore"), "leave normalize out"),
        (lambda: intents.split_fold(intents.load_intents("synthetic-intents@5"), 6, seed=1), "there are 1 to 5"),
        (lambda: intents.generate_intents(queries=0), "at least 1"),
    ],
)
def test_what_makes_no_sense_is_refused(call, says):
    with pytest.raises(SpecError, match=says):
        call()


def repository(root, *, queries=6, packed=False):
    """The published set in the layout of its repository: datasets/, intents/0.txt .. 4.txt; with NaN in it."""
    values = " ".join(f"{feature}:{feature / 7:.6f}" for feature in range(1, 105))
    lines = [f"{p % 2} qid:{q} {values} 105:{'nan' if p == 0 else q * p} #{document(q, p)}"
             for q in range(1, queries + 1) for p in range(3)]  # fmt: skip
    (root / "datasets").mkdir(parents=True)
    (root / "intents").mkdir()
    if packed:
        with zipfile.ZipFile(root / "datasets" / "clueweb09_intent_change.zip", "w") as archive:
            archive.writestr("clueweb09_intent_change.txt", "\n".join(lines) + "\n")
    else:
        (root / "datasets" / "clueweb09_intent_change.txt").write_text("\n".join(lines) + "\n")
    for intent in range(5):
        judged = [f"{q} {intent} {document(q, p)} {int((q + p) % 5 == intent)}" for q in range(1, 7) for p in range(3)]
        (root / "intents" / f"{intent}.txt").write_text("\n".join(judged) + "\n")
    return root


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "zip"])
@pytest.mark.parametrize("added", [False, True], ids=["FOLTR_DATA", "added"])
def test_the_published_set_is_read_in_the_layout_of_its_repository(tmp_path, monkeypatch, packed, added):
    root = repository(tmp_path / "intent-change", packed=packed)
    if added:
        assert catalog.add("intent-change", root).layout == "intent change"
    else:
        monkeypatch.setenv("FOLTR_DATA", str(tmp_path))
    fold = intents.load_fold("intent-change", fold=1)
    assert fold.train.features.shape == (18, 105)
    assert np.isfinite(fold.train.features).all()  # NaN is read as 0, as the authors' program does
    assert fold.grades == 2
    assert "as published" in fold.note
    seen, unseen = fold.intents
    expected = [[int((q + p) % 5 == intent) for intent in range(1, 5)] for q in range(1, 7) for p in range(3)]
    assert seen.tolist() == unseen.tolist() == expected
    assert fold.train.labels.tolist() == [max(row) for row in expected]
    assert np.array_equal(fold.train.queries, fold.test.queries)  # the paper tests where it trained


def test_the_published_set_has_one_fold_and_runs_without_naming_it(tmp_path, monkeypatch):
    repository(tmp_path / "intent-change")
    monkeypatch.setenv("FOLTR_DATA", str(tmp_path))
    one = setting({"data": {"name": "intent-change"}, "partition": {"kind": "intents"}, "federation": {"clients": 4}})
    assert folds_of(one) == [1]
    with pytest.raises(SpecError, match="intent-change has no fold 2; there is 1"):
        intents.load_fold("intent-change", fold=2)


def test_who_lacks_the_published_set_is_told_where_its_repository_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataMissing, match="ielab/OLTR-intent-change"):
        intents.load_intents("intent-change")


def test_table_4_2_is_expected_of_the_published_set_alone():
    (expected,) = figures.read_figure("noniid/fig4.3").content["expected"]
    assert expected["where"] == {"data.name": "intent-change"}
    published = {tuple(keys): number for *keys, number in expected["rows"]}
    assert len(published) == 12
    settings = [flat(resolved(one)) for one in figures.plan_of(figures.read_figure("noniid/fig4.3")).settings]
    for part, ranker, users in published:
        where = {"data.name": "intent-change", "part": part, "ranker.kind": ranker, "users.clicks": users}
        assert sum(all(one[key] == value for key, value in where.items()) for one in settings) == 1
