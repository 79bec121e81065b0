"""Who has documents and answers questions about their terms, for a price that its ledger remembers.

Source: S3 algorithm 2 (term counts) and section V (reverse top-K). An owner reads the cells asked for, adds its noise
(`noise`) and enters the event in its ledger, in which every document has an account: beyond a budget nothing leaves.

Reverse top-K is answered from exact lists (`rtk_sketch`) by `none` and `paper`. Which documents such a list keeps
depends on exact counts, so no noise on the counts can make it private: `cells` and `once` noise the cells of ALL
documents first and keep the largest afterwards, which costs no more than the cells themselves.

Differs from the paper: noise comes before the choice of the largest. Whose draw a list's noise is, it leaves open; in
`paper` every document has one of its own.
"""

from typing import NamedTuple

import numpy as np

from foltr.errors import SpecError
from foltr.privacy import ledger as accounts
from foltr.silo import messages as post
from foltr.silo import noise, rtk_sketch
from foltr.silo.hashing import Shape, same_shape
from foltr.silo.rtk_query import Cells
from foltr.silo.rtk_sketch import RtkSketch
from foltr.silo.sketch import Sketch
from foltr.types import Array


class Owner(NamedTuple):
    shape: Shape
    noise: str
    epsilon: float
    counts: Sketch | None  # [documents, z, w]; of `once` with its noise
    lists: RtkSketch | None
    most: int  # K
    room: int  # entries of a cell that `cells` and `once` hand out
    ledger: accounts.Ledger  # a document is a user
    uniforms: noise.Uniforms


def owner(
    *,
    counts: Sketch | None = None,
    lists: RtkSketch | None = None,
    noise_kind: str = "cells",
    epsilon: float = 0.5,
    most: int = 150,
    alpha: float = 5.0,
    budget: float | None = None,
    delta: float = 1e-6,
    uniforms: noise.Uniforms = noise.from_system,
) -> Owner:
    """Who answers. `once` is noised, and paid for, here."""
    noise.check(noise_kind, epsilon)
    held = counts or lists
    if held is None:
        raise SpecError("an owner without sketches can answer nothing; give counts, lists or both")
    if counts is not None and (counts.kind != "count" or counts.cells.ndim != 3):
        raise SpecError(f"one count sketch a document is needed, not a {counts.kind} sketch {counts.cells.shape}")
    if counts is not None and lists is not None:
        same_shape(counts.shape, lists.shape)
    documents = len(counts.cells) if counts is not None else 1 + max(lists.members if lists else (), default=0)
    top = min(lists.top if lists else most, documents)
    ledger = accounts.begin(documents, delta=delta, budget=budget)
    made = Owner(held.shape, noise_kind, epsilon, counts, lists, top, int(alpha * top), ledger, uniforms)
    if noise_kind != "once":
        return made
    return _paid(made, np.arange(documents))._replace(
        counts=noise.noised_once(_needed(counts), epsilon, uniforms), lists=None
    )


def answered(who: Owner, request: bytes) -> tuple[Owner, bytes]:
    """The owner after it has paid, and its reply."""
    question = post.decoded(request, post.Question)
    if question.version != post.VERSION:
        raise SpecError(f"a question of version {question.version}; this owner speaks version {post.VERSION}")
    same_shape(who.shape, Shape(*question.shape))
    columns = post.columns_of(question, who.shape)
    return (_answer_count if question.what == "count" else _answer_top)(who, question, columns)


def _answer_count(who: Owner, question: post.Question, columns: Array) -> tuple[Owner, bytes]:
    sketches = _needed(who.counts)
    if not 0 <= question.document < len(sketches.cells):
        raise SpecError(f"no document {question.document}; use 0 to {len(sketches.cells) - 1}")
    paid = charged(who, np.array([question.document]))
    cells = sketches.cells[question.document, np.arange(len(columns)), columns]
    told = noise.perturbed(cells, who.noise, who.epsilon, who.uniforms)
    return paid, post.encoded(post.CountAnswer(question.number, told.astype("<f8").tobytes()))


def _answer_top(who: Owner, question: post.Question, columns: Array) -> tuple[Owner, bytes]:
    paid = charged(who, np.arange(len(who.ledger.counts)))
    if who.noise in ("none", "paper"):
        if who.lists is None:
            raise SpecError(f"this party keeps no lists, which {who.noise!r} answers from; give it an RTK-sketch")
        cells, variant = _one_draw_each(who, rtk_sketch.read(who.lists, columns)), who.lists.variant
    else:
        sketches = _needed(who.counts).cells[:, np.arange(len(columns)), columns]  # [documents, z]
        told = noise.perturbed(sketches, who.noise, who.epsilon, who.uniforms)
        cells, variant = _largest(told, who.room), "sound"
    return paid, post.encoded(post.top_answer(question.number, cells, variant=variant, most=who.most))


def _one_draw_each(who: Owner, cells: Cells) -> Cells:
    """`paper`: a document's counts in all cells get the same noise."""
    if who.noise == "none":
        return cells
    numbers, places = np.unique(cells.documents, return_inverse=True)
    draws = noise.laplace((len(numbers),), 1 / who.epsilon, who.uniforms)
    return cells._replace(counts=cells.counts + draws[places].reshape(cells.counts.shape))


def _largest(told: Array, room: int) -> Cells:
    """Of told [documents, z] in every row the largest at either end, equal ones in the order of documents."""
    order = np.argsort(-np.abs(told), axis=0, kind="stable")[:room].astype(np.int32)  # [kept, z]
    rows = told.shape[1]
    counts = np.take_along_axis(told, order, axis=0).T
    sizes = np.full(rows, len(order), np.int32)
    return Cells(order.T, counts, np.empty((rows, 0), np.uint16), sizes, np.zeros(rows, np.int32))


def charged(who: Owner, documents: Array) -> Owner:
    """The owner after an answer about these documents; what was noised once is paid already."""
    return who if who.noise == "once" else _paid(who, documents)


def _paid(who: Owner, documents: Array) -> Owner:
    event = noise.event_of(who.noise, who.shape.rows, who.epsilon)
    return who._replace(ledger=accounts.record(who.ledger, event, documents))


def _needed(sketches: Sketch | None) -> Sketch:
    if sketches is None:
        raise SpecError("this needs one count sketch a document, which the party does not keep; give it counts")
    return sketches
