"""The owner of documents: opens a question of a member, counts it, and answers it sealed.

Source: S3 section IV-B, algorithm 2 (answers), algorithm 5 (reverse top-K).

`answer` takes the bytes of an envelope and nothing else. In this order: it opens the envelope (member, group, version,
receiver, signature), validates the question, counts its number and its cells in the asker's allowance, which is stored,
charges the ledger, reads the cells, and seals the answer to this question. What fails before the allowance costs
nothing, what fails later is spent.

An owner answers from an index (`index`, the default between parties) or from sketches. From an index an answer shows
the asked word only: `none` its exact list, `one_shot` the largest of the noised counts of ALL documents.

From sketches, `none` and `paper` answer reverse top-K with exact cells (`rtk`), which hold the documents of every word
that shares a column: a member separates them with a dictionary, and the allowance counts every number of an answer.
Which documents a cell lists depends on exact counts, so noise on the counts cannot make it private: `one_shot` answers
from the noised cells of ALL documents and chooses the largest afterwards, which costs no more than the cells do. Lists
of the variant `sampled` show the entries of every word of a cell, with tags by which a member names the words: they are
refused unless all parties are in one process, as in a reproduction on public texts.

`one_shot` has paid when its noise was drawn (`releases`); `none` and `paper` charge an infinite epsilon with the first
answer about a document. The ledger has an account for every document. Adversary: whoever gets answers, that is the
asking member and whoever colludes with it. Against the server alone the envelopes protect, not the noise.

Differs from the paper: the index; noise comes before the choice of the largest. The paper leaves open which draw a
list's noise is; in `paper` every document has one of its own.
"""

from dataclasses import dataclass, replace
from dataclasses import field as entry
from typing import NamedTuple

import numpy as np

from foltr.errors import SpecError
from foltr.privacy import ledger as accounts
from foltr.privacy.events import Event
from foltr.silo import envelopes, index, messages, noise, rtk
from foltr.silo.allowance import Allowance, Limits, in_memory, spend
from foltr.silo.index import Index
from foltr.silo.keys import Membership
from foltr.silo.releases import Releases, release_times
from foltr.silo.rtk import Cells, RtkSketch
from foltr.silo.sketches import Sketch, SketchShape, require_same_shape
from foltr.silo.statistics import StatisticsTable, statistics_event
from foltr.types import Array

DELTA = 1e-6  # of the accounts; the noise here is pure epsilon-DP and needs none
WORDS_A_DAY, WORDS_IN_ALL = 20, 100  # lists of K entries of an asker, where no limits are given
WORDS_TOGETHER = 2 * WORDS_IN_ALL  # of all askers, whoever colludes


class NoiseChoice(NamedTuple):
    """The noise of an owner, and the epsilon that no word may exceed."""

    kind: str = "one_shot"
    epsilon: float = 0.5
    budget: float | None = None
    uniforms: noise.Uniforms = noise.from_system


DEFAULT_NOISE = NoiseChoice()


@dataclass(frozen=True)
class Owner:
    membership: Membership
    field: str  # of the documents that it answers about, such as "title"; a question names it
    shape: SketchShape
    noise: str
    epsilon: float
    counts: Sketch | None = entry(repr=False)  # [documents, z, w]; of `one_shot` with its noise
    lists: RtkSketch | Index | None = entry(repr=False)
    top_k: int  # K
    capacity: int  # entries of a row in answers
    ledger: accounts.Ledger = entry(repr=False)  # a document is a user
    allowance: Allowance = entry(repr=False)
    secret: bytes = entry(repr=False)  # of the draws of `paper`, and of `one_shot` with an index
    statistics: StatisticsTable | None = entry(default=None, repr=False)


def make_owner(
    membership: Membership,
    *,
    field: str = "",
    counts: Sketch | None = None,
    lists: RtkSketch | Index | None = None,
    choice: NoiseChoice = DEFAULT_NOISE,
    top_k: int = 150,
    alpha: float = 5.0,
    allowance: Allowance | None = None,
) -> Owner:
    """An owner of an index or of exact sketches. `one_shot` draws its noise, and pays for it, here.

    A restart draws it again: owners that answer for longer than one process use `serve_releases`.
    """
    noise.check_noise(choice.kind, choice.epsilon)
    if isinstance(lists, Index):
        return _index_owner(membership, lists, field, choice, allowance)
    _check_sketches(membership, counts, lists)
    held = counts or lists
    assert held is not None
    documents = len(counts.cells) if counts is not None else 1 + max(lists.members if lists else (), default=0)
    top = min(lists.top if lists else top_k, documents)
    ledger = accounts.begin(documents, delta=DELTA, budget=choice.budget)
    exact_lists = lists is not None and choice.kind != "one_shot"
    capacity = lists.entries.shape[2] if lists is not None and exact_lists else min(int(alpha * top), documents)
    owner = Owner(
        membership, field, held.shape, choice.kind, choice.epsilon, counts, lists, top, capacity, ledger,
        allowance or in_memory(default_limits(top), membership.context), _secret(choice),
    )  # fmt: skip
    if choice.kind != "one_shot":
        return owner
    paid = _charge(owner, noise.event_of("one_shot", held.shape.rows, choice.epsilon), np.arange(documents))
    return replace(paid, counts=noise.perturb_sketch(_required(counts), choice.epsilon, choice.uniforms), lists=None)


def _check_sketches(membership: Membership, counts: Sketch | None, lists: RtkSketch | None) -> None:
    if counts is None and lists is None:
        raise SpecError("an owner without documents can answer nothing; give it an index, or counts, lists or both")
    if counts is not None and (counts.kind != "count" or counts.cells.ndim != 3):
        raise SpecError(f"one count sketch a document is needed, not a {counts.kind} sketch {counts.cells.shape}")
    if counts is not None and lists is not None:
        require_same_shape(counts.shape, lists.shape)
    if lists is not None and lists.variant == "sampled" and not membership.in_process:
        raise SpecError(
            "lists of the variant 'sampled' show an asker far more than the asked word (on nfcorpus 20 questions name "
            "83 % of the owner's words); parties answer from an index (foltr.silo.index.build_index), which shows the "
            "asked word only; 'sampled' is for reproductions in one process"
        )


def _index_owner(
    membership: Membership, lists: Index, field: str, choice: NoiseChoice, allowance: Allowance | None
) -> Owner:
    if choice.kind == "paper":
        raise SpecError("noise 'paper' is of sketches; an index has 'none' or 'one_shot'")
    documents, top = len(lists.versions), lists.top
    ledger = accounts.begin(documents, delta=DELTA, budget=choice.budget)
    secret = choice.uniforms(4).tobytes() if choice.kind == "one_shot" else bytes(32)
    owner = Owner(
        membership, field, lists.shape, choice.kind, choice.epsilon, None, lists, top, top, ledger,
        allowance or in_memory(default_limits(top), membership.context), secret,
    )  # fmt: skip
    if choice.kind != "one_shot":
        return owner
    return _charge(owner, noise.event_of("one_shot", 1, choice.epsilon), np.arange(documents))


def serve_releases(
    membership: Membership, releases: Releases, *, field: str = "", top_k: int = 150, alpha: float = 5.0,
    budget: float | None = None, allowance: Allowance | None = None,
) -> Owner:  # fmt: skip
    """An owner that answers from stored releases; its ledger has what every document has spent so far."""
    held, times = releases.held, release_times(releases)
    is_index = isinstance(held, Index)
    top = held.top if isinstance(held, Index) else min(top_k, len(times))
    ledger = accounts.begin(len(times), delta=DELTA, budget=budget)
    event = noise.event_of("one_shot", 1 if is_index else held.shape.rows, releases.epsilon)
    for number in np.unique(times).tolist():
        ledger = accounts.record(ledger, event, np.flatnonzero(times == number), number)
    return Owner(
        membership, field, held.shape, "one_shot", releases.epsilon, None if isinstance(held, Index) else held,
        held if isinstance(held, Index) else None, top, top if is_index else min(int(alpha * top), len(times)), ledger,
        allowance or in_memory(default_limits(top), membership.context), releases.secret,
    )  # fmt: skip


def default_limits(top: int) -> Limits:
    """20 words a day and 100 in all of an asker, 200 of all askers together; K entries for each.

    Every question costs K at least, so no more words than these can be asked, whatever is asked about them.
    One answer from the paper's sketch shows as many numbers as 150 lists do: owners of sketches agree on other limits.
    """
    entries = max(top, 1)
    return Limits(WORDS_A_DAY * entries, WORDS_IN_ALL * entries, WORDS_TOGETHER * entries)


def with_statistics(owner: Owner, table: StatisticsTable, *, tables: int = 1) -> Owner:
    """The owner with a table that it tells to members; its event is charged now to every document.

    `tables`: how many tables of these documents members have been told, this one included. The ledger of an owner that
    starts knows no earlier one, and members average the noise of several away.
    """
    if tables < 1:
        raise SpecError(f"tables = {tables}; count this one too")
    if owner.statistics is not None:
        raise SpecError("this owner has released its statistics; a second table would be a second release")
    documents = np.arange(len(owner.ledger.counts))
    if len(table.lengths) != len(documents):
        raise SpecError(f"statistics of {len(table.lengths)} documents for an owner of {len(documents)}")
    for _ in range(tables):
        owner = _charge(owner, statistics_event(table.noise, table.epsilon), documents)
    return replace(owner, statistics=table)


def answer(owner: Owner, request: bytes) -> tuple[Owner, bytes]:
    """The owner after it has paid, and its sealed reply; only a question of a member is answered."""
    envelope, content = envelopes.open_envelope(owner.membership, request, "question")
    question = messages.decode(content, messages.Question)
    require_same_shape(owner.shape, SketchShape(*question.shape))
    if question.field != owner.field:
        raise SpecError(f"a question about the field {question.field!r} to an owner of {owner.field!r}; ask its owner")
    documents, asked, entries = _validated(owner, question)
    asker = owner.membership.members[envelope.sender].signing
    spend(owner.allowance, asker, envelope.number, entries)
    if question.what == "statistics":
        paid, reply = owner, messages.encode(messages.statistics_answer(_released(owner)))
    elif question.what == "count":
        paid = _charge_answers(owner, documents)
        reply = messages.encode(messages.CountAnswer(_counts(owner, documents, asked).astype("<f8").tobytes()))
    else:
        paid = _charge_answers(owner, documents)
        lists, variant = _lists(owner, asked)
        reply = messages.encode(messages.top_answer(lists, variant=variant, top_k=owner.top_k))
    about = envelopes.digest(request)
    return paid, envelopes.seal(owner.membership, "answer", envelope.sender, envelope.number, reply, about)


def _validated(owner: Owner, question: messages.Question) -> tuple[Array, Array | int, int]:
    """Documents, what is asked (a word's hash, or columns) and the entries that the answer may show.

    Refuses what cannot be answered.
    """
    nothing = np.empty(0, np.int64)
    if question.what == "statistics":
        _released(owner)
        return nothing, nothing, 0
    if isinstance(owner.lists, Index):
        asked: Array | int = messages.word_of(question)
        every, rows = len(owner.lists.versions), 1
    else:
        asked = messages.columns_of(question, owner.shape)
        every, rows = len(owner.ledger.counts), owner.shape.rows
    if question.what == "count":
        held = every if isinstance(owner.lists, Index) else len(_required(owner.counts).cells)
        documents = messages.documents_of(question, held)
        return documents, asked, max(len(documents) * rows, owner.top_k)  # a word costs a list: see `allowance`
    if owner.lists is None and owner.noise != "one_shot":
        raise SpecError(f"this party has no lists, which {owner.noise!r} answers from; give it an RTK-sketch")
    if owner.lists is None:
        _required(owner.counts)
    return np.arange(every), asked, owner.capacity * rows


def _counts(owner: Owner, documents: Array, asked: Array | int) -> Array:
    """[documents, z]; z = 1 of an index."""
    if isinstance(owner.lists, Index):
        return _index_counts(owner, owner.lists, asked)[documents, None]
    sketches, columns = _required(owner.counts), np.asarray(asked)
    cells = sketches.cells[documents[:, None], np.arange(len(columns)), columns]
    if owner.noise != "paper":
        return cells.astype(np.float64)
    return (
        cells + noise.paper_draws(len(sketches.cells), "count", columns, owner.epsilon, owner.secret)[documents, None]
    )


def _lists(owner: Owner, asked: Array | int) -> tuple[Cells, str]:
    if isinstance(owner.lists, Index):
        return _index_list(owner, owner.lists, asked), messages.INDEX
    columns = np.asarray(asked)
    if owner.lists is None:
        sketches = _required(owner.counts).cells[:, np.arange(len(columns)), columns]  # [documents, z]
        return _largest(sketches.astype(np.float64), owner.capacity), "sound"
    cells = rtk.read(owner.lists, columns)
    if owner.noise == "paper":
        draws = noise.paper_draws(len(owner.ledger.counts), "top", columns, owner.epsilon, owner.secret)
        cells = cells._replace(counts=cells.counts + draws[cells.documents])
    return cells, owner.lists.variant


def _index_counts(owner: Owner, held: Index, word: Array | int) -> Array:
    """[documents] counts of one word, with the owner's noise."""
    if owner.noise == "one_shot":
        return index.noisy_counts(held, int(word), owner.epsilon, owner.secret)
    return index.all_counts(held, int(word))


def _index_list(owner: Owner, held: Index, word: Array | int) -> Cells:
    """One row of K places: the documents that have the word most often; complete where there is no noise."""
    if owner.noise == "one_shot":
        documents, counts = index.largest(_index_counts(owner, held, word), owner.capacity)
    else:
        documents, counts = (part[: owner.capacity] for part in index.postings(held, int(word)))
    row, amounts = np.zeros((1, owner.capacity), np.int32), np.zeros((1, owner.capacity))
    row[0, : len(documents)], amounts[0, : len(documents)] = documents, counts
    complete = np.array([owner.noise != "one_shot"], np.int32)
    return Cells(row, amounts, np.empty((1, 0), np.uint16), np.array([len(documents)], np.int32), complete)


def _largest(reported: Array, capacity: int) -> Cells:
    """Of reported [documents, z] in every row those of largest magnitude, equal ones in the order of documents."""
    order = np.argsort(-np.abs(reported), axis=0, kind="stable")[:capacity].astype(np.int32)  # [listed, z]
    rows = reported.shape[1]
    counts = np.take_along_axis(reported, order, axis=0).T
    sizes = np.full(rows, len(order), np.int32)
    return Cells(order.T, counts, np.empty((rows, 0), np.uint16), sizes, np.zeros(rows, np.int32))


def _charge_answers(owner: Owner, documents: Array) -> Owner:
    """`one_shot` has paid already; the others are infinite once and for all, so that one charge is enough."""
    if owner.noise == "one_shot":
        return owner
    rows = 1 if isinstance(owner.lists, Index) else owner.shape.rows
    event = noise.event_of(owner.noise, rows, owner.epsilon)
    if event in owner.ledger.events:
        documents = documents[owner.ledger.counts[documents, owner.ledger.events.index(event)] == 0]
    return _charge(owner, event, documents) if len(documents) else owner


def _charge(owner: Owner, event: Event, documents: Array) -> Owner:
    return replace(owner, ledger=accounts.record(owner.ledger, event, documents))


def _secret(choice: NoiseChoice) -> bytes:
    """Of the same source as all noise of the owner."""
    return choice.uniforms(4).tobytes() if choice.kind == "paper" else bytes(32)


def _required(sketches: Sketch | None) -> Sketch:
    if sketches is None:
        raise SpecError("this needs one count sketch a document, which the party does not have; give it counts")
    return sketches


def _released(owner: Owner) -> StatisticsTable:
    if owner.statistics is None:
        raise SpecError("this party has released no statistics; it must do so before the first question for them")
    return owner.statistics
