"""The owner of documents: opens a question of a member, counts it, and answers it sealed.

Source: S3 section IV-B, algorithm 2 (answers), algorithm 5 (reverse top-K).

`answer` takes the bytes of an envelope and nothing else. In this order: it opens the envelope (member, group, version,
receiver, signature), validates the question, counts its number and its cells in the asker's allowance, which is stored,
charges the ledger, reads the cells, and seals the answer to this question. What fails before the allowance costs
nothing, what fails later is spent.

`none` and `paper` answer reverse top-K from exact lists (`rtk`). Which documents such a list holds depends on exact
counts, so noise on the counts cannot make it private: `one_shot` answers from the noised cells of ALL documents and
chooses the largest afterwards, which costs no more than the cells themselves. It has paid when its noise was drawn
(`releases`); `none` and `paper` charge an infinite epsilon with the first answer about a document.

The ledger has an account for every document. Adversary: whoever gets answers, that is the asking member and whoever
colludes with it. Against the server alone the envelopes protect, not the noise.

Differs from the paper: noise comes before the choice of the largest. The paper leaves open which draw a list's noise
is; in `paper` every document has one of its own.
"""

from dataclasses import dataclass, replace
from dataclasses import field as entry
from typing import NamedTuple

import numpy as np

from foltr.errors import SpecError
from foltr.privacy import ledger as accounts
from foltr.privacy.events import Event
from foltr.silo import envelopes, messages, noise, rtk
from foltr.silo.allowance import Allowance, Limits, in_memory, spend
from foltr.silo.keys import Membership
from foltr.silo.releases import Releases
from foltr.silo.rtk import Cells, RtkSketch
from foltr.silo.sketches import Sketch, SketchShape, require_same_shape
from foltr.silo.statistics import StatisticsTable, statistics_event
from foltr.types import Array

DELTA = 1e-6  # of the accounts; the noise here is pure epsilon-DP and needs none
TERMS_A_DAY, TERMS_IN_ALL = 20, 100  # reverse top-K questions of an asker where no limits are given


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
    lists: RtkSketch | None = entry(repr=False)
    top_k: int  # K
    capacity: int  # entries of a cell in answers
    ledger: accounts.Ledger = entry(repr=False)  # a document is a user
    allowance: Allowance = entry(repr=False)
    secret: bytes = entry(repr=False)  # of the draws of `paper`
    statistics: StatisticsTable | None = entry(default=None, repr=False)


def make_owner(
    membership: Membership,
    *,
    field: str = "",
    counts: Sketch | None = None,
    lists: RtkSketch | None = None,
    choice: NoiseChoice = DEFAULT_NOISE,
    top_k: int = 150,
    alpha: float = 5.0,
    allowance: Allowance | None = None,
) -> Owner:
    """An owner of exact sketches. `one_shot` draws its noise, and pays for it, here; `serve_releases` stores it."""
    noise.check_noise(choice.kind, choice.epsilon)
    held = counts or lists
    if held is None:
        raise SpecError("an owner without sketches can answer nothing; give counts, lists or both")
    if counts is not None and (counts.kind != "count" or counts.cells.ndim != 3):
        raise SpecError(f"one count sketch a document is needed, not a {counts.kind} sketch {counts.cells.shape}")
    if counts is not None and lists is not None:
        require_same_shape(counts.shape, lists.shape)
    documents = len(counts.cells) if counts is not None else 1 + max(lists.members if lists else (), default=0)
    top = min(lists.top if lists else top_k, documents)
    ledger = accounts.begin(documents, delta=DELTA, budget=choice.budget)
    exact_lists = lists is not None and choice.kind != "one_shot"
    capacity = lists.entries.shape[2] if lists is not None and exact_lists else min(int(alpha * top), documents)
    rows = held.shape.rows
    owner = Owner(
        membership, field, held.shape, choice.kind, choice.epsilon, counts, lists, top, capacity, ledger,
        allowance or in_memory(default_limits(rows, capacity), membership.context), _secret(choice),
    )  # fmt: skip
    if choice.kind != "one_shot":
        return owner
    paid = _charge(owner, noise.event_of("one_shot", rows, choice.epsilon), np.arange(documents))
    return replace(paid, counts=noise.perturb_sketch(_required(counts), choice.epsilon, choice.uniforms), lists=None)


def serve_releases(
    membership: Membership, releases: Releases, *, field: str = "", top_k: int = 150, alpha: float = 5.0,
    budget: float | None = None, allowance: Allowance | None = None,
) -> Owner:  # fmt: skip
    """An owner that answers from stored releases; its ledger has what every document has spent so far."""
    sketch, documents = releases.sketch, len(releases.names)
    top = min(top_k, documents)
    ledger = accounts.begin(documents, delta=DELTA, budget=budget)
    event = noise.event_of("one_shot", sketch.shape.rows, releases.epsilon)
    for times in np.unique(releases.times).tolist():
        ledger = accounts.record(ledger, event, np.flatnonzero(releases.times == times), times)
    capacity = min(int(alpha * top), documents)
    limits = in_memory(default_limits(sketch.shape.rows, capacity), membership.context)
    return Owner(
        membership, field, sketch.shape, "one_shot", releases.epsilon, sketch, None, top, capacity, ledger,
        allowance or limits, bytes(32),
    )  # fmt: skip


def default_limits(rows: int, capacity: int) -> Limits:
    """20 reverse top-K questions a day and 100 in all: of the paper's 200 columns, never every cell."""
    cells = max(rows * capacity, 1)
    return Limits(TERMS_A_DAY * cells, TERMS_IN_ALL * cells)


def with_statistics(owner: Owner, table: StatisticsTable) -> Owner:
    """The owner with a table that it tells to members; its event is charged now, once, to every document."""
    if owner.statistics is not None:
        raise SpecError("this owner has released its statistics; a second table would be a second release")
    documents = np.arange(len(owner.ledger.counts))
    if len(table.lengths) != len(documents):
        raise SpecError(f"statistics of {len(table.lengths)} documents for an owner of {len(documents)}")
    return replace(_charge(owner, statistics_event(table.noise, table.epsilon), documents), statistics=table)


def answer(owner: Owner, request: bytes) -> tuple[Owner, bytes]:
    """The owner after it has paid, and its sealed reply; only a question of a member is answered."""
    envelope, content = envelopes.open_envelope(owner.membership, request, "question")
    question = messages.decode(content, messages.Question)
    require_same_shape(owner.shape, SketchShape(*question.shape))
    if question.field != owner.field:
        raise SpecError(f"a question about the field {question.field!r} to an owner of {owner.field!r}; ask its owner")
    documents, columns, cells = _validated(owner, question)
    asker = owner.membership.members[envelope.sender].signing
    spend(owner.allowance, asker, envelope.number, cells)
    if question.what == "statistics":
        paid, reply = owner, messages.encode(messages.statistics_answer(_released(owner)))
    elif question.what == "count":
        paid = _charge_answers(owner, documents)
        reply = messages.encode(messages.CountAnswer(_counts(owner, documents, columns).astype("<f8").tobytes()))
    else:
        paid = _charge_answers(owner, documents)
        lists, variant = _lists(owner, columns)
        reply = messages.encode(messages.top_answer(lists, variant=variant, top_k=owner.top_k))
    about = envelopes.digest(request)
    return paid, envelopes.seal(owner.membership, "answer", envelope.sender, envelope.number, reply, about)


def _validated(owner: Owner, question: messages.Question) -> tuple[Array, Array, int]:
    """Documents, columns and the cells that the answer shows; refuses what cannot be answered."""
    nothing = np.empty(0, np.int64)
    if question.what == "statistics":
        _released(owner)
        return nothing, nothing, 0
    columns = messages.columns_of(question, owner.shape)
    if question.what == "count":
        documents = messages.documents_of(question, len(_required(owner.counts).cells))
        return documents, columns, len(documents) * owner.shape.rows
    if owner.noise == "one_shot":
        _required(owner.counts)
    elif owner.lists is None:
        raise SpecError(f"this party has no lists, which {owner.noise!r} answers from; give it an RTK-sketch")
    return np.arange(len(owner.ledger.counts)), columns, owner.capacity * owner.shape.rows


def _counts(owner: Owner, documents: Array, columns: Array) -> Array:
    """[documents, z]"""
    sketches = _required(owner.counts)
    cells = sketches.cells[documents[:, None], np.arange(len(columns)), columns]
    if owner.noise != "paper":
        return cells.astype(np.float64)
    return (
        cells + noise.paper_draws(len(sketches.cells), "count", columns, owner.epsilon, owner.secret)[documents, None]
    )


def _lists(owner: Owner, columns: Array) -> tuple[Cells, str]:
    if owner.lists is None:
        sketches = _required(owner.counts).cells[:, np.arange(len(columns)), columns]  # [documents, z]
        return _largest(sketches.astype(np.float64), owner.capacity), "sound"
    cells = rtk.read(owner.lists, columns)
    if owner.noise == "paper":
        draws = noise.paper_draws(len(owner.ledger.counts), "top", columns, owner.epsilon, owner.secret)
        cells = cells._replace(counts=cells.counts + draws[cells.documents])
    return cells, owner.lists.variant


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
    event = noise.event_of(owner.noise, owner.shape.rows, owner.epsilon)
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
