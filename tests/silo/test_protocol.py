"""Queries through a server: what each role learns, and what it does not."""

import math

import numpy as np
import pytest
from scipy.stats import kstest, laplace
from silos import (
    ASKS,
    DECOYS,
    FAMILY,
    KEY,
    MANY,
    OWNS,
    TARGET,
    TEXTS,
    THIRD,
    WORDS,
    asker,
    index_of,
    lists,
    opened,
    owner_of,
    question,
    seeded,
    sketches,
)

from foltr.errors import DataError, PrivacyError, SpecError
from foltr.privacy.ledger import spent
from foltr.silo import envelopes, messages, noise
from foltr.silo.allowance import in_memory
from foltr.silo.index import noisy_counts
from foltr.silo.owners import NoiseChoice, answer, make_owner, with_statistics
from foltr.silo.protocol import Target, ask_counts, ask_statistics, ask_top, obfuscate, relay
from foltr.silo.sketches import family, hash_terms
from foltr.silo.statistics import release_statistics

EVERY = np.arange(len(TEXTS))


@pytest.mark.parametrize("term", [*WORDS, "unheard"])
def test_without_noise_counts_come_back_exactly(term):
    reported = relay(ask_counts(asker(), TARGET, term, EVERY), owner_of("none")).result
    assert reported.estimates.tolist() == [text.split().count(term) for text in TEXTS]


@pytest.mark.parametrize("variant", ["paper", "sound"])
def test_without_noise_the_best_documents_come_back(variant):
    owner = owner_of("none", counts=sketches(), lists=lists(variant=variant))
    reported = relay(ask_top(asker(), TARGET, "cough", top=2), owner).result
    assert (
        reported.found.documents[: 1 if variant == "paper" else 2].tolist() == [3, 1][: 1 if variant == "paper" else 2]
    )


def test_with_little_noise_valid_answers_are_the_exact_ones():
    """Scale 30 / 3,000: rounding takes all of it away, but for once in e^50 cells."""
    owner = owner_of("one_shot", epsilon=3000.0)
    assert relay(ask_counts(asker(), TARGET, "fever", EVERY[:1]), owner).result.estimates.tolist() == [3]
    found = relay(ask_top(asker(), TARGET, "cough", top=3), owner).result.found
    assert found.documents.tolist() == [3, 1, 0]
    assert found.counts.tolist() == [7, 2, 1]


def test_real_rows_are_the_terms_and_the_rest_are_of_decoys():
    asked = obfuscate(asker(real_rows=4), "fever")
    own = hash_terms(["fever"], FAMILY).columns[0]
    theirs = hash_terms(DECOYS, FAMILY).columns
    assert len(asked.rows) == 4
    for row, column in enumerate(asked.columns):
        assert column == own[row] if row in asked.rows else column in theirs[:, row]


def test_rows_are_drawn_evenly():
    """Of 3,000 terms; each row is real in 4 of 30, chi-squared with 29 degrees: false alarm 1 in a million."""
    one = asker(real_rows=4, decoys=DECOYS[:2], secret=bytes(32))
    often = np.bincount(np.concatenate([obfuscate(one, f"t{n}").rows for n in range(3000)]), minlength=30)
    expected = 3000 * 4 / 30
    assert ((often - expected) ** 2 / expected).sum() < 85


def test_one_term_always_asks_the_same_columns_and_another_asker_does_not():
    one, other = asker(real_rows=4), asker(THIRD, real_rows=4)
    assert np.array_equal(obfuscate(one, "fever").columns, obfuscate(one, "fever").columns)
    assert not np.array_equal(obfuscate(one, "fever").columns, obfuscate(other, "fever").columns)


def queries(one):
    words = sorted({word for text in TEXTS for word in text.split()})
    return ask_counts(one, TARGET, "fever", EVERY), ask_top(one, TARGET, "fever", top=2), words


@pytest.mark.parametrize("kind", noise.VARIANTS)
def test_the_server_sees_no_term_no_key_no_column_and_no_cell(kind):
    secret = bytes(range(100, 132))
    curious = asker(real_rows=5, secret=secret)
    columns = obfuscate(curious, "fever").columns.astype("<i4").tobytes()
    for query in queries(curious)[:2]:
        exchange = relay(query, owner_of(kind), asker_name="one", owner_name="two")
        assert [(one.sender, one.receiver) for one in exchange.seen] == [("one", "two"), ("two", "one")]
        everything = b"".join(one.content for one in exchange.seen)
        hidden = [KEY, KEY.hex().encode(), secret, columns, b"fever", b"decoy", sketches().shape.fingerprint.encode()]
        reply = envelopes.open_envelope(ASKS, exchange.seen[1].content, "answer")[1]
        for one in (*hidden, *(word.encode() for word in WORDS), reply[:200]):
            assert one not in everything


def test_all_answers_about_terms_have_one_size():
    """Cells of rare and of frequent terms hold different numbers of entries; the server cannot tell."""
    for held, real_rows in ((lists(), 30), (index_of(), None)):
        owner, one = owner_of("none", lists=held), asker(real_rows=real_rows)
        sizes = {len(relay(ask_top(one, TARGET, term, top=1), owner).seen[1].content) for term in (*WORDS, "unheard")}
        assert len(sizes) == 1


def test_what_is_printed_holds_no_secret_and_no_count():
    one, owner = asker(secret=bytes(range(50, 82))), owner_of("paper")
    printed = repr(one) + repr(owner)
    for hidden in (KEY, one.secret, owner.secret, ASKS.signing, *ASKS.shared):
        assert repr(hidden)[2:-1] not in printed
    assert "array" not in printed


def test_every_answer_states_the_size_of_its_anonymity_set():
    few = asker(real_rows=2)
    reported = relay(ask_counts(few, TARGET, "fever", EVERY), owner_of("none")).result
    assert reported.anonymity_set_size == pytest.approx(991, abs=1)
    top = relay(ask_top(few, TARGET, "fever", top=2), owner_of("none")).result
    assert top.anonymity_set_size == reported.anonymity_set_size


@pytest.mark.parametrize("kind", ["none", "paper"])
def test_the_papers_answers_protect_nobody(kind):
    after = relay(ask_counts(asker(), TARGET, "fever", np.array([2])), owner_of(kind)).owner
    assert spent(after.ledger._replace(counts=after.ledger.counts[[2]])).epsilon == math.inf
    assert spent(after.ledger._replace(counts=after.ledger.counts[[2]]), "server").epsilon == math.inf
    assert spent(after.ledger._replace(counts=after.ledger.counts[[0]])).epsilon == 0


def test_a_sketch_of_one_shot_noise_costs_the_same_however_often_it_is_asked():
    owner = owner_of("one_shot", epsilon=0.5)
    before = spent(owner.ledger).epsilon
    for _ in range(3):
        owner = relay(ask_counts(asker(), TARGET, "fever", EVERY), owner).owner
    assert spent(owner.ledger).epsilon == before == pytest.approx(0.5, rel=0.01)


@pytest.mark.parametrize("kind", ["none", "paper"])
def test_a_party_with_a_budget_gives_no_unprotected_answer(kind):
    with pytest.raises(PrivacyError, match="exceed the budget"):
        relay(ask_counts(asker(), TARGET, "fever", EVERY), owner_of(kind, budget=1.0))


def test_noise_beyond_the_budget_is_not_drawn():
    with pytest.raises(PrivacyError, match="nothing was released"):
        owner_of("one_shot", epsilon=0.5, budget=0.4)


def test_a_question_under_another_key_or_shape_is_refused():
    for functions in (family(bytes(32)), family(KEY, rows=20), family(KEY, hash="md5")):
        stranger = asker(functions=functions, real_rows=3)
        with pytest.raises(SpecError, match="do not belong together"):
            relay(ask_top(stranger, TARGET, "fever", top=2), owner_of("none"))


def test_title_and_body_cannot_be_exchanged_on_the_way():
    limits = in_memory(MANY, OWNS.context)
    owner = make_owner(OWNS, field="body", counts=sketches(), choice=NoiseChoice("none"), allowance=limits)
    relay(ask_counts(asker(), Target(OWNS.place, "body"), "fever", EVERY), owner)
    with pytest.raises(SpecError, match="a question about the field 'title' to an owner of 'body'"):
        relay(ask_counts(asker(), Target(OWNS.place, "title"), "fever", EVERY), owner)


def test_more_documents_than_there_are_cannot_be_asked_for():
    for kind in noise.VARIANTS:
        owner = owner_of(kind, counts=sketches(), lists=lists(top=150))
        with pytest.raises(SpecError, match="use 1 to 5"):
            relay(ask_top(asker(), TARGET, "fever", top=6), owner)


def test_what_a_party_does_not_have_it_cannot_answer():
    with pytest.raises(SpecError, match="has no lists"):
        relay(ask_top(asker(), TARGET, "fever", top=1), owner_of("none", counts=sketches()))
    with pytest.raises(SpecError, match="one count sketch a document"):
        relay(ask_counts(asker(), TARGET, "fever", EVERY), owner_of("none", lists=lists()))
    with pytest.raises(SpecError, match="one count sketch a document"):
        owner_of("one_shot", lists=lists())
    with pytest.raises(SpecError, match="without documents"):
        make_owner(OWNS)
    with pytest.raises(SpecError, match="no document 5; use 0 to 4"):
        relay(ask_counts(asker(), TARGET, "fever", np.array([5])), owner_of("none"))


def test_a_party_has_sketches_of_one_key_only():
    with pytest.raises(SpecError, match="do not belong together"):
        owner_of("none", counts=sketches(), lists=lists(functions=family(bytes(32))))


def test_obfuscation_needs_decoys():
    with pytest.raises(SpecError, match="rows need decoys"):
        asker(real_rows=4, decoys=["one"])


@pytest.mark.parametrize("content", [b"", b"\xc1", b"\x93\x01\x02\x03"])
def test_what_is_no_question_is_refused(content):
    with pytest.raises(DataError, match="no envelope"):
        answer(owner_of("none"), content)
    with pytest.raises(DataError, match="no Question"):
        answer(owner_of("none"), envelopes.seal(ASKS, "question", OWNS.place, 1, content))


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"columns": bytes(8)}, "announced"),
        ({"columns": np.full(30, 200, "<i4").tobytes()}, "beyond 0"),
        ({"columns": np.full(30, -1, "<i4").tobytes()}, "beyond 0"),
        ({"what": "count", "documents": np.array([-1], "<i4").tobytes()}, "no document"),
        ({"what": "count", "documents": np.array([1, 1], "<i4").tobytes()}, "name each once"),
        ({"what": "count", "documents": b""}, "name each once"),
        ({"what": "count", "documents": bytes(3)}, r"announced"),
    ],
)
def test_questions_that_cannot_be_are_refused_and_cost_nothing(changed, says):
    owner = owner_of("none")
    with pytest.raises((SpecError, DataError), match=says):
        answer(owner, question(**changed))
    assert owner.allowance.accounts == {}


def resealed(reply, kind, **changed):
    """The reply with other content, sealed by its owner."""
    envelope = envelopes.read_envelope(reply)
    content = opened(reply, kind)
    parts = {name: getattr(content, name) for name in content.__struct_fields__} | changed
    plain = messages.encode(kind(**parts))
    return envelopes.seal(OWNS, "answer", ASKS.place, envelope.number, plain, envelope.about)


@pytest.mark.parametrize("change", ["sizes", "short", "nan"])
def test_answers_that_cannot_be_are_refused(change):
    query = ask_top(asker(), TARGET, "fever", top=1)
    _, reply = answer(owner_of("none"), next(query))
    entries = 30 * opened(reply, messages.TopAnswer).capacity
    parts = {
        "sizes": {"sizes": np.full(30, 99, "<i4").tobytes()},
        "short": {"documents": b""},
        "nan": {"counts": np.full(entries, np.nan).tobytes()},
    }[change]
    with pytest.raises(DataError, match=r"ask again|announced"):
        query.send(resealed(reply, messages.TopAnswer, **parts))


def test_a_table_whose_parts_do_not_fit_is_refused():
    documents = sketches()
    table = release_statistics(*_counted(), FAMILY, noise="exact")
    query = ask_statistics(asker(), TARGET)
    _, reply = answer(with_statistics(owner_of("none", counts=documents), table), next(query))
    with pytest.raises(DataError, match="do not fit each other"):
        query.send(resealed(reply, messages.StatisticsAnswer, lengths=bytes(8)))


def _counted():
    from silos import counts

    words, documents = counts()
    return documents, words


def test_an_answer_belongs_to_one_question():
    """The server exchanges the answers to two questions of one asker, or sends an old one again."""
    owner, one = owner_of("none"), asker()
    first, second = (ask_counts(one, TARGET, term, EVERY) for term in ("fever", "cough"))
    replies = [answer(owner, next(query))[1] for query in (first, second)]
    with pytest.raises(DataError, match="an answer to another question"):
        first.send(replies[1])
    with pytest.raises(DataError, match="an answer to another question"):
        second.send(replies[0])


def test_an_answer_of_another_member_is_refused():
    query = ask_counts(asker(), TARGET, "fever", EVERY)
    envelope = envelopes.read_envelope(next(query))
    forged = messages.encode(messages.CountAnswer(np.zeros((5, 30)).tobytes()))
    with pytest.raises(DataError, match="or of another party"):
        query.send(envelopes.seal(THIRD, "answer", ASKS.place, envelope.number, forged, envelope.about))


def test_seeded_noise_is_for_tests_only():
    """Deployed owners take noise from the operating system: two of them never answer alike."""
    choice, limits = NoiseChoice("one_shot", 0.5), in_memory(MANY, OWNS.context)
    owners = [make_owner(OWNS, counts=sketches(), choice=choice, allowance=limits) for _ in range(2)]
    one, other = (relay(ask_counts(asker(), TARGET, "fever", EVERY), owner).result.estimates for owner in owners)
    assert not np.array_equal(one, other)
    again = [owner_of("one_shot", uniforms=seeded(4)) for _ in range(2)]
    assert np.array_equal(again[0].counts.cells, again[1].counts.cells)


@pytest.mark.parametrize("term", [*WORDS, "unheard"])
def test_an_index_answers_exactly_without_noise(term):
    owner, one = owner_of("none", lists=index_of()), asker(real_rows=None)
    truth = [text.split().count(term) for text in TEXTS]
    assert relay(ask_counts(one, TARGET, term, EVERY), owner).result.estimates.tolist() == truth
    found = relay(ask_top(one, TARGET, term, top=3), owner).result.found
    best = sorted((place for place in range(5) if truth[place]), key=lambda place: (-truth[place], place))[:3]
    assert found.documents.tolist() == best
    assert found.counts.tolist() == [truth[place] for place in best]
    assert found.complete == 1


def test_an_index_with_little_noise_answers_exactly_and_with_noise_it_is_charged():
    one = asker(real_rows=None)
    owner = owner_of("one_shot", epsilon=3000.0, lists=index_of())
    assert relay(ask_counts(one, TARGET, "fever", EVERY), owner).result.estimates.tolist() == [3, 1, 0, 0, 2]
    assert relay(ask_top(one, TARGET, "cough", top=3), owner).result.found.documents.tolist() == [3, 1, 0]
    noisy = owner_of("one_shot", epsilon=0.5, lists=index_of())
    assert spent(noisy.ledger).epsilon == pytest.approx(0.5, rel=0.01)
    with pytest.raises(SpecError, match="noise 'paper' is of sketches"):
        owner_of("paper", lists=index_of())


def test_the_noise_of_an_index_is_laplace_of_scale_one_over_epsilon():
    """2,000 words that no document has, in five documents: chance of a false alarm 1 in 1,000, seed fixed."""
    held = index_of()
    drawn = np.concatenate([noisy_counts(held, word, 0.25, bytes(32)) for word in range(1, 2001)])
    assert kstest(drawn + noise.laplace((len(drawn),), 0.01, seeded(3)), laplace(scale=4.0).cdf).statistic < 0.07
    assert np.abs(drawn).mean() == pytest.approx(4.0, abs=0.15)
    assert abs(np.corrcoef(drawn.reshape(-1, 5).T)[0, 1]) < 0.08
