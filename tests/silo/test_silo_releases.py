"""Noise that belongs to content: one draw for every content of a document, under any name; an edit is charged."""

import json
from collections import Counter
from itertools import count as count_from

import numpy as np
import pytest
from silos import ASKS, FAMILY, MANY, OWNS, TARGET, TEXTS, asker, counts, index_of, seeded, sketches

from foltr.errors import DataError, PrivacyError, SpecError
from foltr.privacy.ledger import spent
from foltr.rng import stream
from foltr.silo.allowance import in_memory
from foltr.silo.owners import serve_releases, with_statistics
from foltr.silo.protocol import ask_counts, ask_top, relay
from foltr.silo.releases import release, release_times, release_to_file, statistics_to_file
from foltr.silo.sketches import family, hash_terms, sketch_documents
from foltr.silo.statistics import release_statistics
from foltr.text.counts import count

NAMES = [f"{number}.txt" for number in range(5)]
WORDS, _ = counts([*TEXTS, "sneeze"])
EDITED = [*TEXTS[:2], "rash sneeze", *TEXTS[3:]]


def sketched(texts, functions=FAMILY):
    """Sketches over one vocabulary, so that only the edited document changes."""
    vocabulary = {word: place for place, word in enumerate(WORDS)}
    found = count([Counter(text.split()) for text in texts], vocabulary)
    return sketch_documents("count", found, hash_terms(WORDS, functions))


KINDS = {"sketches": sketched, "index": lambda texts: index_of(texts, top=3)}
every_kind = pytest.mark.parametrize("kind", KINDS)


def released(kind, texts, names=NAMES, before=None, **more):
    return release(KINDS[kind](texts), names, before, **{"epsilon": 0.5, "uniforms": seeded(1)} | more)


def served(releases):
    return serve_releases(OWNS, releases, allowance=in_memory(MANY, OWNS.context))


def answers(kind, releases, word="fever"):
    """What an asker gets about one word in every document."""
    one = asker(ASKS) if kind == "sketches" else asker(ASKS, real_rows=None)
    every = np.arange(len(releases.names))
    return relay(ask_counts(one, TARGET, word, every), served(releases)).result.estimates


@every_kind
def test_unchanged_documents_keep_their_noise_and_cost_nothing(kind):
    first = released(kind, TEXTS)
    again = released(kind, TEXTS, before=first, uniforms=seeded(2))
    assert answers(kind, again).tolist() == answers(kind, first).tolist()
    assert release_times(again).tolist() == [1, 1, 1, 1, 1]
    turned = released(kind, TEXTS[::-1], NAMES[::-1], first)
    assert answers(kind, turned).tolist() == answers(kind, first).tolist()[::-1]


@every_kind
def test_an_edit_is_a_new_release_with_new_noise_and_is_charged(kind):
    first = released(kind, TEXTS)
    second = released(kind, EDITED, before=first)
    assert release_times(second).tolist() == [1, 1, 2, 1, 1]
    words = [f"word{number}" for number in range(40)]  # that no document has: all of an answer is noise
    differ = [answers(kind, first, word) != answers(kind, second, word) for word in words]
    assert np.any(differ, axis=0).tolist() == [False, False, True, False, False]
    owner = serve_releases(OWNS, second)
    assert [
        spent(owner.ledger._replace(counts=owner.ledger.counts[[one]])).epsilon for one in range(5)
    ] == pytest.approx([0.5, 0.5, 1, 0.5, 0.5], rel=0.01)


@every_kind
def test_a_document_under_sixty_names_has_one_noise_and_one_account(kind):
    """The attack: every name brings new noise, and 60 answers are averaged. Epsilon would be 30 at a budget of .5."""
    releases, heard = None, []
    for number in range(60):
        names = [*NAMES[:2], f"name {number}", *NAMES[3:]]
        releases = released(kind, TEXTS, names, releases, budget=0.5, uniforms=seeded(number))
        heard.append(answers(kind, releases).tolist())
    assert all(one == heard[0] for one in heard)
    assert spent(serve_releases(OWNS, releases).ledger).epsilon == pytest.approx(0.5, rel=0.01)
    control = [answers(kind, released(kind, TEXTS, uniforms=seeded(number)))[2] for number in range(60)]
    assert len(set(control)) > 10  # with new noise for every name


@every_kind
def test_copies_have_one_noise_and_one_account(kind):
    texts, names = [*TEXTS, TEXTS[0], TEXTS[0]], [*NAMES, "copy", "second copy"]
    both = released(kind, texts, names, released(kind, TEXTS), budget=0.5)
    assert len({answers(kind, both)[place] for place in (0, 5, 6)}) == 1
    assert release_times(both).tolist() == [1] * 7


@every_kind
def test_renaming_between_edits_resets_no_account(kind):
    texts, releases, name = list(TEXTS), None, "0.txt"
    for number in range(4):
        texts[0] = f"fever cough {'rash ' * (number + 1)}"
        releases = released(kind, texts, [name, *NAMES[1:]], releases)
        name = f"moved {number}"
        releases = released(kind, texts, [name, *NAMES[1:]], releases)
    assert release_times(releases).tolist() == [4, 1, 1, 1, 1]
    with pytest.raises(PrivacyError, match=r"moved 3: release 5 of epsilon 0\.5 would exceed the budget of 2"):
        released(kind, ["fever", *texts[1:]], [name, *NAMES[1:]], releases, budget=2.0)


@every_kind
def test_names_that_are_exchanged_take_their_accounts_along(kind):
    edited = released(kind, EDITED, before=released(kind, TEXTS))  # 2.txt has spent twice
    turned = released(kind, [EDITED[2], *EDITED[1::-1], *EDITED[3:]], [*NAMES[:3], *NAMES[3:]], edited, budget=1.0)
    assert release_times(turned).tolist() == [2, 1, 1, 1, 1]


def history(*steps):
    """Releases after each state of a folder, name -> text; how often each document of the last was released."""
    releases = None
    for state in steps:
        releases = released("index", list(state.values()), list(state), releases)
    return dict(zip(releases.names, release_times(releases).tolist(), strict=True))


def test_equal_documents_that_are_renamed_together_keep_the_longer_account():
    """Before, the account of whichever came last: a document with two contents went on as if it had one."""
    before = [{"a": "rash", "b": "fever"}, {"a": "fever", "b": "fever"}]
    assert history(*before, {"x": "fever", "y": "fever"})["x"] == 2
    assert history(*before, {"b": "rash", "a": "fever"})["a"] == 2


def test_a_copy_under_a_name_that_was_used_before_goes_on_with_its_own_account():
    edits = [{"a": "cough " * times} for times in (1, 2, 3, 4)]
    assert history({"a": "rash", "old": "aspirin"}, *edits, {**edits[-1], "old": "cough " * 4}) == {"a": 5, "old": 6}


def test_a_deleted_document_has_spent_whoever_takes_its_name():
    """It comes back under a third name: before, its account was gone with its name."""
    edits = [{"a": "fever", "b": "rash"}, {"a": "cough", "b": "rash"}]
    assert history(*edits, {"a": "rash"}, {"a": "rash", "c": "cough"}) == {"a": 1, "c": 2}


@pytest.mark.parametrize("kind", KINDS)
def test_documents_that_are_renamed_when_the_group_gets_a_new_key_keep_what_they_spent(kind):
    """Under a new key no digest is that of before: all names counted as new, a true epsilon of 1 at a budget of .5."""
    first = released(kind, EDITED, before=released(kind, TEXTS))
    newer = {"sketches": sketched, "index": index_of}[kind](EDITED, functions=family(bytes(32), rows=30, columns=200))
    moved = [f"moved/{name}" for name in NAMES]
    assert release_times(release(newer, NAMES, first, epsilon=0.5)).tolist() == [2, 2, 3, 2, 2]
    assert release_times(release(newer, moved, first, epsilon=0.5)).tolist() == [3] * 5  # any of them may be 2.txt
    with pytest.raises(PrivacyError, match="would exceed the budget"):
        release(newer, moved, first, epsilon=0.5, budget=0.5)


def random_history(seed):
    """States of a folder and, for every document, the contents of its own history. One change a document and release;
    a name that has become free is not used again, except by the document that had it.
    """
    draws = stream(seed, purpose="choice").uniform(400).tolist()
    documents, fresh, steps = [], count_from(1), []
    for _ in range(7):
        for document in list(documents):
            kind = int(draws.pop() * 8)
            if not document["there"]:
                document["there"] = kind < 4
            elif kind == 0:
                document["text"] = f"w{next(fresh)}"
            elif kind == 1:
                document["text"] = sorted(document["contents"])[int(draws.pop() * len(document["contents"]))]
            elif kind == 2:
                document["name"] = f"n{next(fresh)}"
            elif kind == 3:
                documents.append({**document, "name": f"n{next(fresh)}", "contents": set(document["contents"])})
            elif kind == 4:
                document["there"] = False
        documents.append({"name": f"n{next(fresh)}", "text": f"w{next(fresh)}", "there": True, "contents": set()})
        present = [document for document in documents if document["there"]]
        for document in present:
            document["contents"].add(document["text"])
        steps.append({document["name"]: document["text"] for document in present})
    return steps, {document["name"]: len(document["contents"]) for document in documents if document["there"]}


@pytest.mark.parametrize("seed", range(40))
def test_no_history_of_edits_copies_names_and_deletions_spends_more_than_its_account(seed):
    steps, contents = random_history(seed)
    times = history(*steps)
    assert all(times[name] >= contents[name] for name in times)


@every_kind
def test_a_file_that_is_emptied_and_filled_again_keeps_its_account(kind):
    texts = [*TEXTS, ""]
    names, releases = [*NAMES, "empty"], None
    for content in ("fever", "", "fever fever", "", "cough"):
        releases = released(kind, [content, *texts[1:]], names, releases)
    assert release_times(releases).tolist()[0] == 4  # three contents and the empty one


@every_kind
def test_copies_of_a_template_do_not_add_up(kind):
    releases = released(kind, ["rash"], ["template"])
    for number in range(5):
        texts = ["rash", *("fever " * (other + 1) for other in range(number)), "rash"]
        names = ["template", *(f"note {other}" for other in range(number)), f"note {number}"]
        releases = released(kind, texts, names, releases)
        texts[-1] = "fever " * (number + 1)
        releases = released(kind, texts, names, releases)
    assert release_times(releases).tolist() == [1, 2, 2, 2, 2, 2]


@every_kind
def test_what_comes_back_has_its_noise_and_goes_on_from_what_it_spent(kind):
    first = released(kind, TEXTS)
    gone = released(kind, TEXTS[1:], NAMES[1:], first)
    assert len(gone.accounts["0.txt"]) == 1
    for name in ("0.txt", "another.txt"):
        back = released(kind, TEXTS, [name, *NAMES[1:]], gone, budget=0.5)
        assert release_times(back).tolist() == [1, 1, 1, 1, 1]
        assert answers(kind, back).tolist() == answers(kind, first).tolist()
    reverted = released(kind, TEXTS, before=released(kind, EDITED, before=first))
    assert release_times(reverted).tolist() == [1, 1, 2, 1, 1]
    assert answers(kind, reverted).tolist() == answers(kind, first).tolist()


@every_kind
def test_beyond_the_budget_an_edit_is_not_released(kind):
    first = released(kind, TEXTS)
    with pytest.raises(PrivacyError, match=r"2\.txt: release 2 of epsilon 0\.5 would exceed the budget of 0\.9"):
        released(kind, EDITED, before=first, budget=0.9)
    released(kind, TEXTS, before=first, budget=0.5)  # nothing new is released
    released(kind, EDITED, before=first, budget=1.0)


@every_kind
def test_after_a_restart_the_same_question_has_the_same_answer(kind, tmp_path):
    file = tmp_path / "accounts.json"
    first, again = (release_to_file(file, KINDS[kind](TEXTS), NAMES, epsilon=0.5) for _ in range(2))
    assert answers(kind, first).tolist() == answers(kind, again).tolist()
    one = asker(ASKS) if kind == "sketches" else asker(ASKS, real_rows=None)
    tops = [relay(ask_top(one, TARGET, "fever", top=3), served(held)).result for held in (first, again)]
    assert tops[0].found.documents.tolist() == tops[1].found.documents.tolist()
    assert file.stat().st_mode & 0o077 == 0


@every_kind
def test_a_release_is_on_disk_before_it_can_be_served(kind, tmp_path):
    file = tmp_path / "accounts.json"
    release_to_file(file, KINDS[kind](TEXTS), NAMES, epsilon=0.5)
    edited = release_to_file(file, KINDS[kind](EDITED), NAMES, epsilon=0.5, budget=1.0)
    assert release_times(edited).tolist() == [1, 1, 2, 1, 1]
    with pytest.raises(PrivacyError, match="nothing was released"):
        release_to_file(file, KINDS[kind]([*TEXTS[:2], "aspirin", *TEXTS[3:]]), NAMES, epsilon=0.5, budget=1.0)
    assert {len(account) for account in json.loads(file.read_text())["accounts"].values()} == {1, 2}


def earlier_version(file, **arrays):
    """A file as earlier versions of foltr wrote it: noised sketches, and how often each document was released."""
    header = {"version": 2, "kind": "sketch", "variant": "count", **sketches().shape._asdict()}
    packed = {"header": header} | {name: part for name, part in arrays.items() if isinstance(part, dict)}
    as_bytes = {name: np.frombuffer(json.dumps(part).encode(), np.uint8) for name, part in packed.items()}
    np.savez(file, cells=sketched(TEXTS).cells, **arrays | as_bytes)
    if file.suffix != ".npz":
        file.with_name(file.name + ".npz").rename(file)


def test_a_file_of_an_earlier_version_is_what_its_documents_have_spent(tmp_path):
    """Its noise belonged to names: every document is released again, and charged again."""
    file = tmp_path / "released.npz"
    about = {"epsilon": 0.5, "names": NAMES, "deleted": {"old.txt": 3}}
    earlier_version(file, about=about, versions=np.zeros((5, 16), np.uint8), times=np.array([1, 1, 2, 1, 1]))
    before = file.read_bytes()
    with pytest.raises(PrivacyError, match=r"2\.txt: release 3 of epsilon 0\.5"):
        release_to_file(file, sketched(TEXTS), NAMES, epsilon=0.5, budget=1.0)
    assert file.read_bytes() == before
    after = release_to_file(file, sketched(TEXTS), NAMES, epsilon=0.5, budget=1.5)
    assert release_times(after).tolist() == [2, 2, 3, 2, 2]
    assert release_times(release_to_file(file, sketched(TEXTS), NAMES, epsilon=0.5)).tolist() == [2, 2, 3, 2, 2]


def test_statistics_are_drawn_once_whatever_restarts(tmp_path):
    words, documents = counts()
    file = tmp_path / "statistics.bin"

    def draw():
        return release_statistics(documents, words, FAMILY, noise="noisy", epsilon=1.0)

    first, again = (statistics_to_file(file, draw) for _ in range(2))
    assert all(np.array_equal(one, other) for one, other in zip(first, again, strict=True))
    file.write_bytes(b"no table")
    with pytest.raises(DataError, match="holds no statistics"):
        statistics_to_file(file, draw)


def test_every_table_of_statistics_that_was_told_is_charged(tmp_path):
    """An owner that starts with its second table: before, its ledger stated one, and members averaged two."""
    words, documents = counts()
    tables = [
        statistics_to_file(
            tmp_path / name, lambda: release_statistics(documents, words, FAMILY, noise="noisy", epsilon=0.5)
        )
        for name in ("first", "second")
    ]
    assert tables[0].lengths.tolist() != tables[1].lengths.tolist()  # 10 numbers of scale 8: equal once in 10^12
    owner = served(released("index", TEXTS, epsilon=1.0))
    assert spent(with_statistics(owner, tables[1], tables=2).ledger).epsilon == pytest.approx(2.0, rel=0.01)
    with pytest.raises(SpecError, match="tables = 0"):
        with_statistics(owner, tables[1], tables=0)


def test_files_that_hold_no_releases_are_refused(tmp_path):
    file = tmp_path / "accounts"
    for wrong in (b"", b"{}", b'{"version": 9, "epsilon": 1, "secret": "00", "names": [], "accounts": {}}'):
        file.write_bytes(wrong)
        with pytest.raises(DataError, match="releases of"):
            release_to_file(file, sketched(TEXTS), NAMES, epsilon=0.5)
    for arrays in ({}, {"about": {}, "times": np.zeros(5)}, {"about": {"names": []}}):
        earlier_version(file, **arrays)
        with pytest.raises(DataError, match="holds no releases of documents"):
            release_to_file(file, sketched(TEXTS), NAMES, epsilon=0.5)
    earlier_version(file, about={"names": ["a"], "deleted": {}, "epsilon": 0.5}, times=np.ones(5))
    with pytest.raises(DataError, match="releases of 5 documents and 1 names"):
        release_to_file(file, sketched(TEXTS), NAMES, epsilon=0.5)


def test_impossible_releases_are_refused():
    with pytest.raises(SpecError, match="a name of its own"):
        release(sketched(TEXTS), ["a"] * 5, None, epsilon=0.5)
    with pytest.raises(SpecError, match=r"epsilon 0\.5 go on with epsilon 1"):
        released("sketches", TEXTS, before=released("sketches", TEXTS), epsilon=1.0)
