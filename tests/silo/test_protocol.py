"""Queries through a server: what each role learns, and what it does not."""

import math

import numpy as np
import pytest
from silos import DECOYS, FAMILY, KEY, TEXTS, WORDS, lists, seeded, sketches

from foltr.errors import DataError, PrivacyError, SpecError
from foltr.privacy.ledger import spent, spent_by
from foltr.silo import messages, noise, rtk
from foltr.silo.protocol import answer, ask_count, ask_top, make_asker, make_owner, obfuscate, relay
from foltr.silo.sketches import family, hash_terms

ASKER = make_asker(FAMILY, real_rows=30, decoys=DECOYS)


def party(noise_kind, **more):
    return make_owner(counts=sketches(), lists=lists(), noise_kind=noise_kind, uniforms=seeded(1), **more)


@pytest.mark.parametrize("term", [*WORDS, "unheard"])
def test_without_noise_counts_come_back_exactly(term):
    for document, text in enumerate(TEXTS):
        reported = relay(ask_count(ASKER, term, document), party("none")).result
        assert reported.estimate == text.split().count(term)


@pytest.mark.parametrize("variant", rtk.VARIANTS)
def test_without_noise_the_best_documents_come_back(variant):
    owner = make_owner(counts=sketches(), lists=lists(variant=variant), noise_kind="none")
    reported = relay(ask_top(ASKER, "cough", top=2), owner).result
    assert (
        reported.found.documents[: 1 if variant == "paper" else 2].tolist() == [3, 1][: 1 if variant == "paper" else 2]
    )


@pytest.mark.parametrize("noise_kind", ["per_query", "one_shot"])
def test_with_little_noise_valid_answers_are_the_exact_ones(noise_kind):
    """Scale 30 / 3,000: rounding takes all of it away, but for once in e^50 cells."""
    owner = party(noise_kind, epsilon=3000.0)
    assert relay(ask_count(ASKER, "fever", 0), owner).result.estimate == 3
    found = relay(ask_top(ASKER, "cough", top=3), owner).result.found
    assert found.documents.tolist() == [3, 1, 0]
    assert found.counts.tolist() == [7, 2, 1]


def test_real_rows_are_the_terms_and_the_rest_are_of_decoys():
    asker = make_asker(FAMILY, real_rows=4, decoys=DECOYS)
    question = obfuscate(asker, "fever")
    own = hash_terms(["fever"], FAMILY).columns[0]
    theirs = hash_terms(DECOYS, FAMILY).columns
    assert len(question.rows) == 4
    for row, column in enumerate(question.columns):
        assert column == own[row] if row in question.rows else column in theirs[:, row]


def test_rows_are_drawn_evenly():
    """Of 3,000 terms; each row is real in 4 of 30, chi-squared with 29 degrees: false alarm 1 in a million."""
    asker = make_asker(FAMILY, real_rows=4, decoys=DECOYS[:2], secret=bytes(32))
    often = np.bincount(np.concatenate([obfuscate(asker, f"t{n}").rows for n in range(3000)]), minlength=30)
    expected = 3000 * 4 / 30
    assert ((often - expected) ** 2 / expected).sum() < 85


def test_one_term_always_asks_the_same_columns_and_another_asker_does_not():
    one, other = (make_asker(FAMILY, real_rows=4, decoys=DECOYS) for _ in range(2))
    assert np.array_equal(obfuscate(one, "fever").columns, obfuscate(one, "fever").columns)
    assert not np.array_equal(obfuscate(one, "fever").columns, obfuscate(other, "fever").columns)


@pytest.mark.parametrize("noise_kind", noise.VARIANTS)
def test_the_server_sees_no_term_and_no_key(noise_kind):
    owner, secret = party(noise_kind), bytes(range(100, 132))
    curious = make_asker(FAMILY, real_rows=5, decoys=DECOYS, secret=secret)
    for query in (ask_count(curious, "fever", 0), ask_top(curious, "fever", top=2)):
        exchange = relay(query, owner, asker_name="one", owner_name="two")
        assert [(one.sender, one.receiver) for one in exchange.seen] == [("one", "two"), ("two", "one")]
        everything = b"".join(one.content for one in exchange.seen)
        for hidden in (KEY, KEY.hex().encode(), secret, b"fever", b"decoy", *(word.encode() for word in WORDS)):
            assert hidden not in everything
        question = messages.decode(exchange.seen[0].content, messages.Question)
        columns = obfuscate(curious, "fever").columns  # nothing in it but the columns, the shape and a number
        assert question == messages.Question(
            1, question.number, question.what, 0, tuple(sketches().shape), columns.astype("<i4").tobytes()
        )


def test_every_answer_states_the_size_of_its_anonymity_set():
    few = make_asker(FAMILY, real_rows=2, decoys=DECOYS)
    reported = relay(ask_count(few, "fever", 0), party("none")).result
    assert reported.anonymity_set_size == pytest.approx(991, abs=1)
    assert relay(ask_top(few, "fever", top=2), party("none")).result.anonymity_set_size == reported.anonymity_set_size


@pytest.mark.parametrize("noise_kind", ["none", "paper"])
def test_the_papers_answers_protect_nobody(noise_kind):
    after = relay(ask_count(ASKER, "fever", 2), party(noise_kind)).owner
    assert spent_by(after.ledger, 2).epsilon == math.inf
    assert spent_by(after.ledger, 2, "server").epsilon == math.inf
    assert spent_by(after.ledger, 0).epsilon == 0


def test_answers_with_noise_in_every_cell_cost_the_documents_they_are_about():
    owner = party("per_query", epsilon=0.25)
    for _ in range(2):
        owner = relay(ask_count(ASKER, "fever", 1), owner).owner
    owner = relay(ask_top(ASKER, "rash", top=2), owner).owner
    assert [spent_by(owner.ledger, document).epsilon for document in (0, 1)] == pytest.approx([0.25, 0.75], rel=0.01)


def test_a_sketch_of_one_shot_noise_costs_the_same_however_often_it_is_asked():
    owner = party("one_shot", epsilon=0.5)
    before = spent(owner.ledger).epsilon
    answers = []
    for _ in range(3):
        exchange = relay(ask_count(ASKER, "fever", 1), owner)
        owner = exchange.owner
        answers.append(exchange.result.estimate)
    assert len(set(answers)) == 1
    assert spent(owner.ledger).epsilon == before == pytest.approx(0.5, rel=0.01)


@pytest.mark.parametrize("noise_kind", ["none", "paper"])
def test_a_party_with_a_budget_gives_no_unprotected_answer(noise_kind):
    with pytest.raises(PrivacyError, match="exceed the budget"):
        relay(ask_count(ASKER, "fever", 0), party(noise_kind, budget=1.0))


def test_beyond_the_budget_nothing_leaves():
    owner = party("per_query", epsilon=0.5, budget=0.6)
    owner = relay(ask_count(ASKER, "fever", 0), owner).owner
    with pytest.raises(PrivacyError, match="nothing was released"):
        relay(ask_count(ASKER, "cough", 0), owner)
    relay(ask_count(ASKER, "cough", 1), owner)


def test_a_question_under_another_key_or_shape_is_refused():
    for functions in (family(bytes(32)), family(KEY, rows=20), family(KEY, hash="md5")):
        stranger = make_asker(functions, real_rows=3, decoys=DECOYS)
        with pytest.raises(SpecError, match="do not belong together"):
            relay(ask_top(stranger, "fever", top=2), party("none"))


def test_more_documents_than_there_are_cannot_be_asked_for():
    for noise_kind in noise.VARIANTS:
        owner = make_owner(counts=sketches(), lists=lists(top=150), noise_kind=noise_kind, top_k=150)
        with pytest.raises(SpecError, match="use 1 to 5"):
            relay(ask_top(ASKER, "fever", top=6), owner)


def test_what_a_party_does_not_have_it_cannot_answer():
    with pytest.raises(SpecError, match="has no lists"):
        relay(ask_top(ASKER, "fever", top=1), make_owner(counts=sketches(), noise_kind="none"))
    with pytest.raises(SpecError, match="one count sketch a document"):
        relay(ask_count(ASKER, "fever", 0), make_owner(lists=lists(), noise_kind="none"))
    with pytest.raises(SpecError, match="one count sketch a document"):
        make_owner(lists=lists(), noise_kind="one_shot")
    with pytest.raises(SpecError, match="without sketches"):
        make_owner()
    with pytest.raises(SpecError, match="no document 5; use 0 to 4"):
        relay(ask_count(ASKER, "fever", 5), party("none"))


def test_a_party_has_sketches_of_one_key_only():
    with pytest.raises(SpecError, match="do not belong together"):
        make_owner(counts=sketches(), lists=lists(functions=family(bytes(32))), noise_kind="none")


def test_obfuscation_needs_decoys():
    with pytest.raises(SpecError, match="rows need decoys"):
        make_asker(FAMILY, real_rows=4, decoys=["one"])


@pytest.mark.parametrize("content", [b"", b"\xc1", b"\x93\x01\x02\x03"])
def test_what_is_no_question_is_refused(content):
    with pytest.raises(DataError, match="no Question"):
        answer(party("none"), content)


def spoiled(number, **changed):
    """A question that is right but for what is changed."""
    shape, columns = tuple(sketches().shape), np.zeros(30, "<i4").tobytes()
    parts = {"version": 1, "what": "count", "document": 0, "shape": shape, "columns": columns} | changed
    return messages.encode(messages.Question(number=number, **parts))


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"version": 2}, "version"),
        ({"columns": bytes(8)}, "announced"),
        ({"columns": np.full(30, 200, "<i4").tobytes()}, "beyond 0"),
        ({"columns": np.full(30, -1, "<i4").tobytes()}, "beyond 0"),
        ({"document": -1}, "no document"),
    ],
)
def test_questions_that_cannot_be_are_refused(changed, says):
    with pytest.raises((SpecError, DataError), match=says):
        answer(party("none"), spoiled(b"12345678", **changed))


@pytest.mark.parametrize("change", ["number", "sizes", "short", "nan"])
def test_answers_that_cannot_be_are_refused(change):
    query = ask_top(ASKER, "fever", top=1)
    reply = messages.decode(answer(party("none"), next(query))[1], messages.TopAnswer)
    parts = {name: getattr(reply, name) for name in reply.__struct_fields__}
    parts |= {
        "number": {"number": b"another!"},
        "sizes": {"sizes": np.full(30, 99, "<i4").tobytes()},
        "short": {"documents": b""},
        "nan": {"counts": np.full(30 * reply.capacity, np.nan).tobytes()},
    }[change]
    with pytest.raises(DataError, match=r"ask again|announced"):
        query.send(messages.encode(messages.TopAnswer(**parts)))
