"""Attacks of members and owners that have the hash key and a dictionary: they work on sketches and sessions as they
were, and fail on what parties use now.

`control` runs each attack on the protocol before: sketches in one process, an asker with a new secret each session.
"""

import contextlib

import numpy as np
import pytest
from silos import ASKS, OWNS, TARGET, THIRD, asker, counts, index_of, lists, opened, sketches

from foltr.errors import DataError, PrivacyError, SpecError
from foltr.lab.data.corpora import load_corpus
from foltr.lab.silo.disclosure import Claims, Disclosure, claimed, measure, shares
from foltr.lab.silo.retrieval import postings
from foltr.lab.silo.tasks import text
from foltr.rng import stream
from foltr.silo import messages
from foltr.silo.allowance import Limits, in_memory
from foltr.silo.keys import group_in_process
from foltr.silo.owners import NoiseChoice, answer, default_limits, make_owner
from foltr.silo.protocol import Target, ask_counts, ask_top, make_asker, obfuscate, relay
from foltr.silo.sketches import family, hash_terms, new_key

FUNCTIONS = family(bytes(range(32)), rows=30, columns=50)
EVERYTHING = Limits(10**9, 10**9)


def zipf_texts(documents=300, words=800, length=50):
    """Texts whose word k has a frequency near 1 / k."""
    cumulative = np.cumsum(1 / np.arange(1, words + 1))
    draws = stream(5, purpose="data").uniform(documents * length).reshape(documents, length)
    numbers = np.searchsorted(cumulative / cumulative[-1], draws)
    return [" ".join(f"z{number}" for number in row) for row in numbers]


TEXTS = zipf_texts()
WORDS, COUNTED = counts(TEXTS)
TRUTH = postings(COUNTED)
FREQUENT = np.argsort(-np.diff(TRUTH.starts), kind="stable")
ASKED = {
    "frequent words": FREQUENT[:20],
    "rare words": FREQUENT[-20:],
    "any words": np.arange(7, 7 + 20 * 30, 30),
}


def sketch_claims(variant, asked):
    """The old protocol: an owner in one process answers 20 questions from a sketch; what a dictionary makes of them."""
    member, other = group_in_process(2, FUNCTIONS.key)
    lists_ = lists(TEXTS, FUNCTIONS, variant, top=50)
    owner = make_owner(member, lists=lists_, choice=NoiseChoice("none"), allowance=in_memory(EVERYTHING, b""))
    one = make_asker(other, FUNCTIONS, real_rows=30)
    shown = []
    for term in asked:
        reply = relay(ask_top(one, Target(member.place), WORDS[term], top=1), owner).seen[1].content
        cells = messages.top_cells(opened(reply, messages.TopAnswer, other), 30)
        shown.append((obfuscate(one, WORDS[term]).columns, cells))
    return claimed(variant, shown, hash_terms(WORDS, FUNCTIONS), np.diff(TRUTH.starts))


def index_claims(asked):
    """The new protocol between members."""
    owner = make_owner(OWNS, lists=index_of(TEXTS, FUNCTIONS, top=50), choice=NoiseChoice("none"))
    one, claims = asker(functions=FUNCTIONS, real_rows=None), []
    for term in asked:
        exchange = relay(ask_top(one, TARGET, WORDS[term], top=50), owner)
        owner, found = exchange.owner, exchange.result.found
        claims.append(Claims(np.full(len(found.documents), term), found.documents, found.counts))
    return Claims(*(np.concatenate(part) for part in zip(*claims, strict=True)))


@pytest.mark.parametrize("asked", ASKED.values(), ids=list(ASKED))
def test_answers_from_sketches_show_words_that_were_not_asked_and_an_index_shows_none(asked):
    """20 of 800 words are asked, whichever they are."""
    sampled, sound = (shares(sketch_claims(variant, asked), TRUTH, asked) for variant in ("sampled", "sound"))
    assert sampled["words known"] > 0.9  # the control
    assert sampled["entries known"] > 0.5
    assert sound["unasked known"] > 0.2
    index = shares(index_claims(asked), TRUTH, asked)
    assert index["unasked known"] == 0
    assert index["words known"] == 20 / len(WORDS)
    assert index["entries known"] <= 20 * 50 / len(TRUTH.documents)


def test_an_answer_from_an_index_depends_on_the_asked_word_only():
    """Every other word is taken out of the documents: the answer is the same, byte by byte."""
    word = WORDS[FREQUENT[3]]
    alone = [" ".join(other if other == word else f"x{place}" for place, other in enumerate(text.split())) or "x"
             for text in TEXTS]  # fmt: skip
    replies = []
    for texts in (TEXTS, alone):
        owner = make_owner(OWNS, lists=index_of(texts, FUNCTIONS, top=50), choice=NoiseChoice("none"))
        exchange = relay(ask_top(asker(functions=FUNCTIONS, real_rows=None), TARGET, word, top=50), owner)
        replies.append(messages.encode(opened(exchange.seen[1].content, messages.TopAnswer)))
    assert replies[0] == replies[1]


def test_hashes_that_no_dictionary_has_show_nothing():
    """An asker that sends arbitrary hashes instead of words pays for them, and gets empty lists."""
    owner = make_owner(OWNS, lists=index_of(TEXTS, FUNCTIONS, top=50), choice=NoiseChoice("none"))
    one, found = asker(functions=FUNCTIONS, real_rows=None), 0
    for number in range(20):
        exchange = relay(ask_top(one, TARGET, f"no such word {number}", top=50), owner)
        owner, found = exchange.owner, found + len(exchange.result.found.documents)
    with pytest.raises(PrivacyError, match="has 0 left"):
        relay(ask_top(one, TARGET, WORDS[0], top=50), owner)
    assert found == 0


def test_whatever_is_asked_the_allowance_counts_at_least_what_becomes_known():
    """Lists and counts in turn, until the asker is refused: right claims never exceed the entries charged."""
    owner = make_owner(OWNS, lists=index_of(TEXTS, FUNCTIONS, top=50), choice=NoiseChoice("none"))
    one, learned = asker(functions=FUNCTIONS, real_rows=None), set()
    for place in range(10):  # a list of 50 and 10 counts, which cost 50 too: 1,000 entries
        word = WORDS[FREQUENT[place]]
        exchange = relay(ask_top(one, TARGET, word, top=50), owner)
        learned |= {(word, document) for document in exchange.result.found.documents.tolist()}
        some = np.arange(place, place + 10)
        exchange = relay(ask_counts(one, TARGET, word, some), exchange.owner)
        learned |= {(word, int(document)) for document in some[exchange.result.estimates > 0]}
        owner = exchange.owner
    with pytest.raises(PrivacyError, match="has 0 left"):
        relay(ask_top(one, TARGET, WORDS[0], top=50), owner)
    (account,) = owner.allowance.accounts.values()
    assert 300 < len(learned) <= account.total <= 20 * 50


def words_tried(limits, dictionary, document=7):
    """A member tries a dictionary on one document, one count after the other, until it is refused."""
    allowance = in_memory(limits, b"", now=lambda: 0.0)
    owner = make_owner(OWNS, lists=index_of(TEXTS, FUNCTIONS, top=50), choice=NoiseChoice("none"), allowance=allowance)
    one, tried, read = asker(functions=FUNCTIONS, real_rows=None), 0, set()
    with contextlib.suppress(PrivacyError):
        for word in dictionary:
            exchange = relay(ask_counts(one, TARGET, word, np.array([document])), owner)
            owner, tried = exchange.owner, tried + 1
            read |= {word} if exchange.result.estimates[0] > 0 else set()
    return tried, len(read & set(TEXTS[document].split())) / len(set(TEXTS[document].split()))


@pytest.mark.parametrize(
    "dictionary",
    [[WORDS[term] for term in FREQUENT], [f"z{number}" for number in range(1000)], sorted(WORDS)],
    ids=["the owner's words, frequent ones first", "another dictionary", "the owner's words in any order"],
)
def test_one_document_cannot_be_read_word_by_word(dictionary):
    """A count of one document cost one entry: a day's allowance of 20 words tried 1,000 of them."""
    many = 20 * 50 * 50  # the control: as many questions as the entries of a day, 20 x K, paid for before
    tried, read = words_tried(Limits(many, many), dictionary)
    assert tried >= len(WORDS)
    assert read == 1.0
    tried, read = words_tried(default_limits(50), dictionary)
    assert tried == 20
    assert read < 0.6


def test_parties_cannot_deploy_sampled_lists():
    with pytest.raises(SpecError, match=r"far more than the asked word .*\(foltr\.silo\.index\.build_index"):
        make_owner(OWNS, lists=lists(variant="sampled"), choice=NoiseChoice("none"))


def test_a_sketch_does_not_fit_the_default_allowance():
    """One answer of the paper's sketch shows as many numbers as 150 lists: its owner must agree to it."""
    owner = make_owner(OWNS, lists=lists(TEXTS, FUNCTIONS, "sound", top=50), choice=NoiseChoice("none"))
    with pytest.raises(PrivacyError, match="agree on a larger allowance"):
        relay(ask_top(asker(functions=FUNCTIONS), TARGET, WORDS[0], top=1), owner)


def named_after_two_sessions(askers, number, columns):
    """The owner, which can hash a dictionary, intersects the candidates of two sessions of one member."""
    term = f"word{number}"
    rows = [(columns == obfuscate(one, term).columns).sum(axis=1) for one in askers]
    return np.flatnonzero(np.minimum(*rows) >= askers[0].real_rows).tolist() == [number]


def test_a_second_session_does_not_name_the_term():
    """Three real rows leave about 9 of 20,000 words. A new secret each session named the term in 40 of 40 trials."""
    functions = family(new_key(), rows=30, columns=200)
    columns = hash_terms([f"word{number}" for number in range(20_000)], functions).columns
    member, _ = group_in_process(2, functions.key)
    control = now = 0
    for trial in range(40):
        new = [make_asker(member, functions, real_rows=3, secret=bytes([trial, session] * 16)) for session in (0, 1)]
        control += named_after_two_sessions(new, 37 * trial, columns)
        stored = [make_asker(member, functions, real_rows=3) for _ in range(2)]
        now += named_after_two_sessions(stored, 37 * trial, columns)
    assert control >= 38
    assert now <= 2  # one session names it where no other word has three of its columns: e^-9


def test_sessions_of_a_member_look_alike_and_members_and_epochs_do_not():
    columns = [obfuscate(asker(member, real_rows=4), "fever").columns.tolist() for member in (ASKS, ASKS, THIRD)]
    assert columns[0] == columns[1] != columns[2]
    epochs = [group_in_process(2, bytes(range(32)))[0] for _ in range(2)]
    first, second = (obfuscate(asker(member, real_rows=4), "fever").columns.tolist() for member in epochs)
    assert first != second


def test_sketches_and_an_index_are_not_asked_alike():
    owner = make_owner(OWNS, lists=index_of(), choice=NoiseChoice("none"))
    with pytest.raises(SpecError, match="by columns to a party that answers from an index"):
        relay(ask_top(asker(), TARGET, "fever", top=1), owner)
    with pytest.raises(SpecError, match="by the hash of a word to a party that answers from sketches"):
        relay(ask_counts(asker(real_rows=None), TARGET, "fever", np.arange(2)),
              make_owner(OWNS, counts=sketches(), choice=NoiseChoice("none")))  # fmt: skip


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.usefixtures("real_data")
def test_on_nfcorpus_sampled_names_most_words_and_an_index_only_the_asked_ones():
    task = text("nfcorpus")
    assert len(load_corpus("nfcorpus").ids) == 3633
    sampled, sound, index = (measure(task, Disclosure(by=by), seed=1) for by in ("sampled", "sound", "index"))
    assert sampled["words known"] > 0.8
    assert sampled["entries known"] > 0.5
    assert sound["unasked known"] > 0.25
    assert (index["recall"], index["unasked known"]) == (1.0, 0.0)
    assert index["entries known"] < 0.01


def test_an_answer_to_an_index_that_comes_from_a_sketch_is_refused():
    one = asker(real_rows=None)
    query = ask_top(one, TARGET, "fever", top=1)
    owner = make_owner(OWNS, lists=index_of(), choice=NoiseChoice("none"))
    reply = opened(answer(owner, next(query))[1], messages.TopAnswer)
    with pytest.raises(DataError, match="an answer from a sketch"):
        messages.top_list(messages.TopAnswer("sound", *(getattr(reply, name) for name in reply.__struct_fields__[1:])))
