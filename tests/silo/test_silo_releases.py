"""Stored noise: one draw for every version of a document; an edit is a new release, and is charged."""

import numpy as np
import pytest
from silos import ASKS, FAMILY, OWNS, TARGET, TEXTS, asker, counts, seeded, sketches

from foltr.errors import DataError, PrivacyError, SpecError
from foltr.privacy.ledger import spent_by
from foltr.silo.owners import serve_releases
from foltr.silo.protocol import ask_counts, ask_top, relay
from foltr.silo.releases import load_releases, release, release_to_file, save_releases, statistics_to_file
from foltr.silo.sketches import hash_terms, sketch_documents

NAMES = [f"{number}.txt" for number in range(5)]
WORDS, _ = counts([*TEXTS, "sneeze"])


def exact(texts):
    """Sketches over one vocabulary, so that only the edited document changes."""
    from collections import Counter

    from foltr.text.counts import count

    known = {word: place for place, word in enumerate(WORDS)}
    return sketch_documents("count", count([Counter(text.split()) for text in texts], known), hash_terms(WORDS, FAMILY))


FIRST = release(exact(TEXTS), NAMES, None, epsilon=0.5, uniforms=seeded(1))
EDITED = [*TEXTS[:2], "rash sneeze", *TEXTS[3:]]


def test_unchanged_documents_keep_their_noise_and_cost_nothing():
    again = release(exact(TEXTS), NAMES, FIRST, epsilon=0.5, uniforms=seeded(2))
    assert np.array_equal(again.sketch.cells, FIRST.sketch.cells)
    assert again.times.tolist() == [1, 1, 1, 1, 1]
    turned = release(exact(TEXTS[::-1]), NAMES[::-1], FIRST, epsilon=0.5, uniforms=seeded(2))
    assert np.array_equal(turned.sketch.cells, FIRST.sketch.cells[::-1])


def test_an_edit_is_a_new_release_with_new_noise_and_is_charged():
    second = release(exact(EDITED), NAMES, FIRST, epsilon=0.5, uniforms=seeded(2))
    assert second.times.tolist() == [1, 1, 2, 1, 1]
    same = np.all(second.sketch.cells == FIRST.sketch.cells, axis=(1, 2))
    assert same.tolist() == [True, True, False, True, True]
    noise = second.sketch.cells[2] - exact(EDITED).cells[2], FIRST.sketch.cells[2] - exact(TEXTS).cells[2]
    assert np.mean(noise[0] == noise[1]) < 0.05  # scale 60: equal by chance in about 1 of 240 cells
    owner = serve_releases(OWNS, second)
    assert [spent_by(owner.ledger, one).epsilon for one in range(5)] == pytest.approx([0.5, 0.5, 1, 0.5, 0.5], rel=0.01)


def test_a_document_that_comes_back_goes_on_from_what_it_spent():
    gone = release(exact(TEXTS[1:]), NAMES[1:], FIRST, epsilon=0.5, uniforms=seeded(2))
    assert gone.deleted == {"0.txt": 1}
    back = release(exact(TEXTS), NAMES, gone, epsilon=0.5, uniforms=seeded(3))
    assert back.times.tolist() == [2, 1, 1, 1, 1]
    assert back.deleted == {}


def test_beyond_the_budget_an_edit_is_not_released():
    with pytest.raises(PrivacyError, match=r"2\.txt: release 2 of epsilon 0\.5 would exceed the budget of 0\.9"):
        release(exact(EDITED), NAMES, FIRST, epsilon=0.5, budget=0.9)
    release(exact(TEXTS), NAMES, FIRST, epsilon=0.5, budget=0.5)  # nothing new is released
    release(exact(EDITED), NAMES, FIRST, epsilon=0.5, budget=1.0)


def test_after_a_restart_the_same_question_has_the_same_answer(tmp_path):
    save_releases(tmp_path / "released.npz", FIRST)
    loaded = load_releases(tmp_path / "released.npz")
    for before, after in zip(FIRST, loaded, strict=True):
        assert np.array_equal(before, after) if isinstance(before, np.ndarray) else True
    assert (loaded.names, loaded.epsilon, loaded.deleted) == (FIRST.names, FIRST.epsilon, FIRST.deleted)
    answers = [
        relay(ask_counts(asker(ASKS), TARGET, "fever", np.arange(5)), serve_releases(OWNS, one)).result.estimates
        for one in (FIRST, loaded)
    ]
    assert np.array_equal(*answers)
    tops = [relay(ask_top(asker(ASKS), TARGET, "fever", top=3), serve_releases(OWNS, one)) for one in (FIRST, loaded)]
    assert tops[0].result.found.documents.tolist() == tops[1].result.found.documents.tolist()


def test_a_release_is_on_disk_before_it_can_be_served(tmp_path):
    file = tmp_path / "released.npz"
    first = release_to_file(file, exact(TEXTS), NAMES, epsilon=0.5)
    again = release_to_file(file, exact(TEXTS), NAMES, epsilon=0.5)
    assert np.array_equal(first.sketch.cells, again.sketch.cells)
    edited = release_to_file(file, exact(EDITED), NAMES, epsilon=0.5, budget=1.0)
    assert load_releases(file).times.tolist() == edited.times.tolist() == [1, 1, 2, 1, 1]
    with pytest.raises(PrivacyError, match="nothing was released"):
        release_to_file(file, exact(TEXTS), NAMES, epsilon=0.5, budget=1.0)
    assert load_releases(file).times.tolist() == [1, 1, 2, 1, 1]


def test_statistics_are_drawn_once_whatever_restarts(tmp_path):
    from foltr.silo.statistics import release_statistics

    words, documents = counts()
    file = tmp_path / "statistics.bin"

    def draw():
        return release_statistics(documents, words, FAMILY, noise="noisy", epsilon=1.0)

    first, again = (statistics_to_file(file, draw) for _ in range(2))
    assert all(np.array_equal(one, other) for one, other in zip(first, again, strict=True))
    file.write_bytes(b"no table")
    with pytest.raises(DataError, match="holds no statistics"):
        statistics_to_file(file, draw)


def test_files_that_hold_no_releases_are_refused(tmp_path):
    from foltr.silo.storage import save

    save(tmp_path / "plain.npz", sketches())
    with pytest.raises(DataError, match="lacks one of versions, times"):
        load_releases(tmp_path / "plain.npz")
    save(tmp_path / "odd.npz", sketches(), about={}, more={"versions": FIRST.versions, "times": FIRST.times})
    with pytest.raises(DataError, match="holds no releases of documents"):
        load_releases(tmp_path / "odd.npz")


def test_impossible_releases_are_refused():
    with pytest.raises(SpecError, match="a name of its own"):
        release(exact(TEXTS), ["a"] * 5, None, epsilon=0.5)
    with pytest.raises(SpecError, match=r"epsilon 0\.5 go on with epsilon 1"):
        release(exact(TEXTS), NAMES, FIRST, epsilon=1.0)
