"""The protocol of asker, server and owner: a query for a term that the server does not learn.

Source: S3 section IV-B, algorithms 1 and 2 (term counts), equation 4 (obfuscation), algorithm 5 (reverse top-K).

**Asker.** Hashes the term under a key that the parties share (`keys`). Of z rows, z1 random ones show the term's
column, the rest those of decoy terms. The same term always sends the same columns (rows and decoys follow from a secret
and the term): what stays constant between two questions would otherwise reveal the real rows. The price: equal
questions can be recognised. A query is a generator: it yields one request, receives the reply, and returns the result
together with the size of its anonymity set (`leakage`).

**Server.** `relay` forwards bytes and has no key. `Seen` is all that it learns: who asks whom, when, the fingerprint of
the key, z columns, the cells of the answer, and whether two questions are equal. Over a network the same bytes travel.

**Owner.** Reads the cells, adds noise (`noise`) and enters the event in its ledger, in which every document has an
account: beyond the budget no answer is sent. `none` and `paper` answer reverse top-K from exact lists (`rtk`). Which
documents such a list holds depends on exact counts, so noise on the counts cannot make it private: `per_query` and
`one_shot` add noise to the cells of ALL documents first and choose the largest afterwards, which costs no more than the
cells themselves.

Differs from the paper: the asker applies the sign on reading, and its decoys are fixed for a term (the paper draws new
ones). Noise comes before the choice of the largest. The paper leaves open which draw a list's noise is; in `paper`
every document has one of its own.
"""

import hashlib
from collections.abc import Generator, Iterable
from typing import Generic, Literal, NamedTuple, TypeVar

import numpy as np

from foltr.errors import SpecError
from foltr.privacy import ledger as accounts
from foltr.secagg.crypto import new_secret
from foltr.silo import messages, noise, rtk
from foltr.silo.leakage import VOCABULARY, anonymity_set_size
from foltr.silo.rtk import Cells, RtkSketch, TopDocuments
from foltr.silo.sketches import Family, Hashes, Sketch, SketchShape, hash_terms, require_same_shape
from foltr.types import Array

Result = TypeVar("Result")
Query = Generator[bytes, bytes, Result]
DELTA = 1e-6  # of the accounts; the noise here is pure epsilon-DP and needs none


class Asker(NamedTuple):
    family: Family
    real_rows: int  # z1
    decoys: tuple[str, ...]  # terms whose columns stand in the other rows
    secret: bytes  # decides on rows and decoys; never leaves the asker
    vocabulary: int  # words that an owner is assumed to try


class ObfuscatedTerm(NamedTuple):
    hashes: Hashes  # of the term, [1, z]
    rows: Array  # [z1] the real ones, rising
    columns: Array  # [z] what is sent


class CountResult(NamedTuple):
    estimate: float
    anonymity_set_size: float  # expected other words with the same columns


class TopResult(NamedTuple):
    found: TopDocuments
    anonymity_set_size: float


class Owner(NamedTuple):
    shape: SketchShape
    noise: str
    epsilon: float
    counts: Sketch | None  # [documents, z, w]; of `one_shot` with its noise
    lists: RtkSketch | None
    top_k: int  # K
    capacity: int  # entries of a cell in answers of `per_query` and `one_shot`
    ledger: accounts.Ledger  # a document is a user
    uniforms: noise.Uniforms


class Seen(NamedTuple):
    sender: str
    receiver: str
    content: bytes


class Exchange(NamedTuple, Generic[Result]):
    result: Result
    owner: Owner  # after it has paid
    seen: tuple[Seen, ...]  # by the server


def make_asker(
    family: Family, *, real_rows: int, decoys: Iterable[str], secret: bytes | None = None, vocabulary: int = VOCABULARY
) -> Asker:
    """An asker; its secret is from the operating system unless given."""
    terms = tuple(dict.fromkeys(decoys))
    anonymity_set_size(real_rows=real_rows, rows=family.rows, columns=family.columns, vocabulary=vocabulary)
    if real_rows < family.rows and len(terms) < 2:
        raise SpecError(f"{family.rows - real_rows} rows need decoys; give 2 or more other terms, or ask all rows")
    return Asker(family, real_rows, terms, secret or new_secret(), vocabulary)


def obfuscate(asker: Asker, term: str) -> ObfuscatedTerm:
    """The columns for a term: its own in z1 rows, those of decoys elsewhere."""
    family = asker.family
    hashes = hash_terms([term], family)
    seed = hashlib.blake2b(term.encode("utf-8", "surrogatepass"), key=asker.secret, digest_size=32).digest()
    drawn = noise.from_secret(seed, 2 * family.rows)
    rows = np.sort(np.argsort(drawn[: family.rows], kind="stable")[: asker.real_rows])
    columns = hashes.columns[0].copy()
    if asker.real_rows < family.rows:
        places = (drawn[family.rows :] * len(asker.decoys)).astype(np.int64).tolist()
        # a decoy that is the term itself is replaced by the one before it; place -1 is the last
        decoys = [asker.decoys[at] if asker.decoys[at] != term else asker.decoys[at - 1] for at in places]
        columns = hash_terms(decoys, family).columns.diagonal().copy()
        columns[rows] = hashes.columns[0, rows]
    return ObfuscatedTerm(hashes, rows, columns)


def ask_count(asker: Asker, term: str, document: int) -> Query[CountResult]:
    """The estimated count of a term in one document of the owner."""
    question = obfuscate(asker, term)
    number = new_secret()[:8]
    answer = messages.decode((yield _request(number, "count", document, question)), messages.CountAnswer)
    messages.require_same_number(number, answer.number)
    cells = messages.count_cells(answer, asker.family.rows)
    signed = (question.hashes.signs[0] * cells)[question.rows]
    return CountResult(float(np.median(signed)), _anonymity(asker))


def ask_top(asker: Asker, term: str, *, top: int, beta: float = 0.1) -> Query[TopResult]:
    """The documents of the owner that have a term most often, according to its answer."""
    question = obfuscate(asker, term)
    number = new_secret()[:8]
    answer = messages.decode((yield _request(number, "top", 0, question)), messages.TopAnswer)
    messages.require_same_number(number, answer.number)
    if not 1 <= top <= answer.top_k:
        raise SpecError(f"top = {top} asked of a party that answers up to {answer.top_k}; use 1 to {answer.top_k}")
    cells, hashes = messages.top_cells(answer, asker.family.rows), question.hashes
    found = rtk.rank(answer.variant, cells, hashes.signs[0], hashes.tags[0], top=top, beta=beta, rows=question.rows)
    return TopResult(found, _anonymity(asker))


def _request(number: bytes, what: Literal["count", "top"], document: int, question: ObfuscatedTerm) -> bytes:
    columns = question.columns.astype("<i4").tobytes()
    shape = question.hashes.shape
    sent = (shape.rows, shape.columns, shape.hash, shape.fingerprint)
    return messages.encode(messages.Question(messages.VERSION, number, what, document, sent, columns))


def _anonymity(asker: Asker) -> float:
    family = asker.family
    sizes = {"real_rows": asker.real_rows, "rows": family.rows, "columns": family.columns}
    return anonymity_set_size(**sizes, vocabulary=asker.vocabulary)


def make_owner(
    *,
    counts: Sketch | None = None,
    lists: RtkSketch | None = None,
    noise_kind: str = "per_query",
    epsilon: float = 0.5,
    top_k: int = 150,
    alpha: float = 5.0,
    budget: float | None = None,
    uniforms: noise.Uniforms = noise.from_system,
) -> Owner:
    """An owner of sketches. `one_shot` adds its noise, and pays for it, here."""
    noise.check_noise(noise_kind, epsilon)
    held = counts or lists
    if held is None:
        raise SpecError("an owner without sketches can answer nothing; give counts, lists or both")
    if counts is not None and (counts.kind != "count" or counts.cells.ndim != 3):
        raise SpecError(f"one count sketch a document is needed, not a {counts.kind} sketch {counts.cells.shape}")
    if counts is not None and lists is not None:
        require_same_shape(counts.shape, lists.shape)
    documents = len(counts.cells) if counts is not None else 1 + max(lists.members if lists else (), default=0)
    top = min(lists.top if lists else top_k, documents)
    ledger = accounts.begin(documents, delta=DELTA, budget=budget)
    owner = Owner(held.shape, noise_kind, epsilon, counts, lists, top, int(alpha * top), ledger, uniforms)
    if noise_kind != "one_shot":
        return owner
    return _pay(owner, np.arange(documents))._replace(
        counts=noise.perturb_sketch(_required(counts), epsilon, uniforms), lists=None
    )


def answer(owner: Owner, request: bytes) -> tuple[Owner, bytes]:
    """The owner after it has paid, and its reply."""
    question = messages.decode(request, messages.Question)
    if question.version != messages.VERSION:
        raise SpecError(f"a question of version {question.version}; this owner speaks version {messages.VERSION}")
    require_same_shape(owner.shape, SketchShape(*question.shape))
    columns = messages.columns_of(question, owner.shape)
    return (_answer_count if question.what == "count" else _answer_top)(owner, question, columns)


def _answer_count(owner: Owner, question: messages.Question, columns: Array) -> tuple[Owner, bytes]:
    sketches = _required(owner.counts)
    if not 0 <= question.document < len(sketches.cells):
        raise SpecError(f"no document {question.document}; use 0 to {len(sketches.cells) - 1}")
    paid = charge(owner, np.array([question.document]))
    cells = sketches.cells[question.document, np.arange(len(columns)), columns]
    reported = noise.perturb(cells, owner.noise, owner.epsilon, owner.uniforms)
    return paid, messages.encode(messages.CountAnswer(question.number, reported.astype("<f8").tobytes()))


def _answer_top(owner: Owner, question: messages.Question, columns: Array) -> tuple[Owner, bytes]:
    paid = charge(owner, np.arange(len(owner.ledger.counts)))
    if owner.noise in ("none", "paper"):
        if owner.lists is None:
            raise SpecError(f"this party has no lists, which {owner.noise!r} answers from; give it an RTK-sketch")
        cells, variant = _one_draw_each(owner, rtk.read(owner.lists, columns)), owner.lists.variant
    else:
        sketches = _required(owner.counts).cells[:, np.arange(len(columns)), columns]  # [documents, z]
        reported = noise.perturb(sketches, owner.noise, owner.epsilon, owner.uniforms)
        cells, variant = _largest(reported, owner.capacity), "sound"
    reply = messages.top_answer(question.number, cells, variant=variant, top_k=owner.top_k)
    return paid, messages.encode(reply)


def _one_draw_each(owner: Owner, cells: Cells) -> Cells:
    """`paper`: a document's counts in all cells get the same noise."""
    if owner.noise == "none":
        return cells
    numbers, places = np.unique(cells.documents, return_inverse=True)
    draws = noise.laplace((len(numbers),), 1 / owner.epsilon, owner.uniforms)
    return cells._replace(counts=cells.counts + draws[places].reshape(cells.counts.shape))


def _largest(reported: Array, capacity: int) -> Cells:
    """Of reported [documents, z] in every row those of largest magnitude, equal ones in the order of documents."""
    order = np.argsort(-np.abs(reported), axis=0, kind="stable")[:capacity].astype(np.int32)  # [listed, z]
    rows = reported.shape[1]
    counts = np.take_along_axis(reported, order, axis=0).T
    sizes = np.full(rows, len(order), np.int32)
    return Cells(order.T, counts, np.empty((rows, 0), np.uint16), sizes, np.zeros(rows, np.int32))


def ask_counts(owner: Owner, asker: Asker, term: str, documents: Array) -> tuple[Owner, Array]:
    """[documents] the estimates that `ask_count` would return for each, computed at once and without messages."""
    question = obfuscate(asker, term)
    cells = _required(owner.counts).cells[documents[:, None], np.arange(owner.shape.rows), question.columns]
    signed = question.hashes.signs[0] * noise.perturb(cells, owner.noise, owner.epsilon, owner.uniforms)
    return charge(owner, documents), np.median(signed[:, question.rows], axis=1)


def charge(owner: Owner, documents: Array) -> Owner:
    """The owner after an answer about these documents; `one_shot` has paid already."""
    return owner if owner.noise == "one_shot" else _pay(owner, documents)


def _pay(owner: Owner, documents: Array) -> Owner:
    event = noise.event_of(owner.noise, owner.shape.rows, owner.epsilon)
    return owner._replace(ledger=accounts.record(owner.ledger, event, documents))


def _required(sketches: Sketch | None) -> Sketch:
    if sketches is None:
        raise SpecError("this needs one count sketch a document, which the party does not have; give it counts")
    return sketches


def relay(
    query: Query[Result], owner: Owner, *, asker_name: str = "asker", owner_name: str = "owner"
) -> Exchange[Result]:
    """The server: forwards the question to the owner and the answer back, and records both."""
    request = next(query)
    after, reply = answer(owner, request)
    seen = Seen(asker_name, owner_name, request), Seen(owner_name, asker_name, reply)
    try:
        query.send(reply)
    except StopIteration as finished:
        return Exchange(finished.value, after, seen)
    raise RuntimeError("a query asks once")
