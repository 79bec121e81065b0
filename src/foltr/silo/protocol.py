"""The asker's side of the protocol, and the server between asker and owner.

Source: S3 section IV-B, algorithms 1 and 2 (term counts), equation 4 (obfuscation), algorithm 5 (reverse top-K).

**Asker.** Hashes the term under a key that the parties share (`keys`). To an index, the default between parties, it
sends the keyed hash of the term. To a sketch it sends columns: of z rows, z1 random ones show the term's column, the
rest those of decoy terms, which come from a public list. The same term always sends the same columns, in every session
of an epoch (rows and decoys follow from the term and a secret that follows from the stored identity): what two
questions have in common would otherwise reveal the real rows. The price: an owner recognises equal questions. Not
covered: two members, or one member in two epochs, who ask for the same term show different rows; an owner who guesses
that they do intersects them. A query is a generator: it yields one sealed request, receives the sealed reply, and
returns the result together with the size of its anonymity set (`leakage`).

**Server.** `relay` forwards bytes and has no key. `Seen` is all that it gets: envelopes (`envelopes`) with who asks
whom, when and how much, padded; it sees neither columns nor cells. Over a network the same bytes travel.

**Owner.** See `owners`.

Differs from the paper: the index is ours; the asker applies the sign on reading, and its decoys are fixed for a term
(the paper draws new ones). Messages are sealed and signed.
"""

import hashlib
import time
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Generic, Literal, NamedTuple, TypeVar

import numpy as np

from foltr.errors import DataError, SpecError
from foltr.silo import envelopes, messages, noise, rtk
from foltr.silo.keys import Membership, own_secret
from foltr.silo.leakage import VOCABULARY, anonymity_set_size
from foltr.silo.owners import Owner, answer
from foltr.silo.rtk import TopDocuments
from foltr.silo.sketches import Family, Hashes, SketchShape, hash_terms, hash_words, shape_of
from foltr.silo.statistics import StatisticsTable
from foltr.types import Array

Result = TypeVar("Result")
Query = Generator[bytes, bytes, Result]
DECOYS = tuple(f"made up {number}" for number in range(1000))  # public; no term has a space in it


@dataclass(frozen=True)
class Asker:
    membership: Membership
    family: Family
    real_rows: int | None  # z1 of questions to sketches; None: asks an index
    decoys: tuple[str, ...]  # terms whose columns stand in the other rows
    vocabulary: int  # words that an owner is assumed to try
    secret: bytes = field(repr=False)  # decides on rows and decoys; never leaves the asker
    numbers: Iterator[int] = field(repr=False)  # of questions, rising


class ObfuscatedTerm(NamedTuple):
    hashes: Hashes  # of the term, [1, z]
    rows: Array  # [z1] the real ones, rising
    columns: Array  # [z] what is sent


class CountResult(NamedTuple):
    estimates: Array  # [documents]
    anonymity_set_size: float  # expected other words with the same columns; 0 with an index: it gets a 64-bit hash


class TopResult(NamedTuple):
    found: TopDocuments
    anonymity_set_size: float


class Target(NamedTuple):
    """Whom a question is for."""

    place: int  # of the owner among the members
    field: str = ""


class Seen(NamedTuple):
    sender: str
    receiver: str
    content: bytes


class Exchange(NamedTuple, Generic[Result]):
    result: Result
    owner: Owner  # after it has paid
    seen: tuple[Seen, ...]  # by the server


def make_asker(
    membership: Membership, family: Family, *, real_rows: int | None = None, decoys: Iterable[str] = DECOYS,
    secret: bytes | None = None, vocabulary: int = VOCABULARY,
) -> Asker:  # fmt: skip
    """An asker of owners with an index; with `real_rows` (z1) of owners with sketches.

    Its secret follows from the member's identity and the group's epoch unless given: all sessions of an epoch send the
    same columns for a term. Its question numbers start at the clock.
    """
    terms = tuple(dict.fromkeys(decoys))
    if real_rows is not None:
        anonymity_set_size(real_rows=real_rows, rows=family.rows, columns=family.columns, vocabulary=vocabulary)
        if real_rows < family.rows and len(terms) < 2:
            raise SpecError(f"{family.rows - real_rows} rows need decoys; give 2 or more other terms, or ask all rows")
    chosen = secret or own_secret(membership, "rows and decoys")
    return Asker(membership, family, real_rows, terms, vocabulary, chosen, count(time.time_ns()))


def obfuscate(asker: Asker, term: str) -> ObfuscatedTerm:
    """The columns for a term: its own in z1 rows, those of decoys elsewhere."""
    family, real_rows = asker.family, asker.real_rows
    if real_rows is None:
        raise SpecError("this asker asks an index, which has no rows; give real_rows to ask sketches")
    hashes = hash_terms([term], family)
    seed = hashlib.blake2b(term.encode("utf-8", "surrogatepass"), key=asker.secret, digest_size=32).digest()
    drawn = noise.from_secret(seed, 2 * family.rows)
    rows = np.sort(np.argsort(drawn[: family.rows], kind="stable")[:real_rows])
    columns = hashes.columns[0].copy()
    if real_rows < family.rows:
        places = (drawn[family.rows :] * len(asker.decoys)).astype(np.int64).tolist()
        # a decoy that is the term itself is replaced by the one before it; place -1 is the last
        decoys = [asker.decoys[at] if asker.decoys[at] != term else asker.decoys[at - 1] for at in places]
        columns = hash_terms(decoys, family).columns.diagonal().copy()
        columns[rows] = hashes.columns[0, rows]
    return ObfuscatedTerm(hashes, rows, columns)


def ask_counts(asker: Asker, target: Target, term: str, documents: Array) -> Query[CountResult]:
    """The counts of a term in documents of an owner: of an index as it states them, of sketches estimated."""
    wanted = np.ascontiguousarray(documents, "<i4")
    if asker.real_rows is None:
        asked = _word_question(asker, target, "count", term, wanted.tobytes())
        reply = messages.decode((yield from _exchange(asker, target.place, asked)), messages.CountAnswer)
        return CountResult(messages.count_cells(reply, len(wanted), 1)[:, 0], 0.0)
    question = obfuscate(asker, term)
    sent = messages.Question("count", target.field, _shape(question.hashes.shape), wanted.tobytes(), _columns(question))
    reply = messages.decode((yield from _exchange(asker, target.place, sent)), messages.CountAnswer)
    cells = messages.count_cells(reply, len(wanted), asker.family.rows)
    signed = (question.hashes.signs[0] * cells)[:, question.rows]
    return CountResult(np.median(signed, axis=1), _anonymity(asker))


def ask_top(asker: Asker, target: Target, term: str, *, top: int, beta: float = 0.1) -> Query[TopResult]:
    """The documents of the owner that have a term most often, according to its answer."""
    if asker.real_rows is None:
        asked = _word_question(asker, target, "top", term)
        reply = messages.decode((yield from _exchange(asker, target.place, asked)), messages.TopAnswer)
        _check_top(top, reply)
        found = messages.top_list(reply)
        best = TopDocuments(found.documents[:top], found.counts[:top], found.rows[:top], found.complete)
        return TopResult(best, 0.0)
    question = obfuscate(asker, term)
    sent = messages.Question("top", target.field, _shape(question.hashes.shape), columns=_columns(question))
    reply = messages.decode((yield from _exchange(asker, target.place, sent)), messages.TopAnswer)
    _check_top(top, reply)
    cells, hashes = messages.top_cells(reply, asker.family.rows), question.hashes
    found = rtk.rank(reply.variant, cells, hashes.signs[0], hashes.tags[0], top=top, beta=beta, rows=question.rows)
    return TopResult(found, _anonymity(asker))


def ask_statistics(asker: Asker, target: Target) -> Query[StatisticsTable]:
    """The table of word statistics that the owner has released."""
    sent = messages.Question("statistics", target.field, _shape(shape_of(asker.family)))
    reply = messages.decode((yield from _exchange(asker, target.place, sent)), messages.StatisticsAnswer)
    return messages.statistics_table(reply)


def _exchange(asker: Asker, owner: int, question: messages.Question) -> Query[bytes]:
    """Seals the question, yields it, and opens the answer to it."""
    member, number = asker.membership, next(asker.numbers)
    request = envelopes.seal(member, "question", owner, number, messages.encode(question))
    envelope, content = envelopes.open_envelope(member, (yield request), "answer")
    if (envelope.sender, envelope.number, envelope.about) != (owner, number, envelopes.digest(request)):
        raise DataError("an answer to another question, or of another party; ask again")
    return content


def _word_question(
    asker: Asker, target: Target, what: Literal["count", "top"], term: str, documents: bytes = b""
) -> messages.Question:
    word = hash_words([term], asker.family).astype("<u8").tobytes()
    return messages.Question(what, target.field, _shape(shape_of(asker.family)), documents, word=word)


def _check_top(top: int, reply: messages.TopAnswer) -> None:
    if not 1 <= top <= reply.top_k:
        raise SpecError(f"top = {top} asked of a party that answers up to {reply.top_k}; use 1 to {reply.top_k}")


def _shape(shape: SketchShape) -> tuple[int, int, str, str]:
    return shape.rows, shape.columns, shape.hash, shape.fingerprint


def _columns(question: ObfuscatedTerm) -> bytes:
    return question.columns.astype("<i4").tobytes()


def _anonymity(asker: Asker) -> float:
    family = asker.family
    assert asker.real_rows is not None
    sizes = {"real_rows": asker.real_rows, "rows": family.rows, "columns": family.columns}
    return anonymity_set_size(**sizes, vocabulary=asker.vocabulary)


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
