"""The asker's side of the protocol, and the server between asker and owner.

Source: S3 section IV-B, algorithms 1 and 2 (term counts), equation 4 (obfuscation), algorithm 5 (reverse top-K).

**Asker.** Hashes the term under a key that the parties share (`keys`). Of z rows, z1 random ones show the term's
column, the rest those of decoy terms, which come from a public list. The same term always sends the same columns (rows
and decoys follow from a secret and the term): what stays constant between two questions would otherwise reveal the real
rows. The price: an owner recognises equal questions. A query is a generator: it yields one sealed request, receives the
sealed reply, and returns the result together with the size of its anonymity set (`leakage`).

**Server.** `relay` forwards bytes and has no key. `Seen` is all that it gets: envelopes (`envelopes`) with who asks
whom, when and how much, padded; it sees neither columns nor cells. Over a network the same bytes travel.

**Owner.** See `owners`.

Differs from the paper: the asker applies the sign on reading, and its decoys are fixed for a term (the paper draws new
ones). Messages are sealed and signed.
"""

import hashlib
import time
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from foltr.errors import DataError, SpecError
from foltr.secagg.crypto import new_secret
from foltr.silo import envelopes, messages, noise, rtk
from foltr.silo.keys import Membership
from foltr.silo.leakage import VOCABULARY, anonymity_set_size
from foltr.silo.owners import Owner, answer
from foltr.silo.rtk import TopDocuments
from foltr.silo.sketches import Family, Hashes, SketchShape, hash_terms, shape_of
from foltr.silo.statistics import StatisticsTable
from foltr.types import Array

Result = TypeVar("Result")
Query = Generator[bytes, bytes, Result]
DECOYS = tuple(f"made up {number}" for number in range(1000))  # public; no term has a space in it


@dataclass(frozen=True)
class Asker:
    membership: Membership
    family: Family
    real_rows: int  # z1
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
    anonymity_set_size: float  # expected other words with the same columns


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
    membership: Membership, family: Family, *, real_rows: int, decoys: Iterable[str] = DECOYS,
    secret: bytes | None = None, vocabulary: int = VOCABULARY,
) -> Asker:  # fmt: skip
    """An asker; its secret is from the operating system unless given. Its question numbers start at the clock."""
    terms = tuple(dict.fromkeys(decoys))
    anonymity_set_size(real_rows=real_rows, rows=family.rows, columns=family.columns, vocabulary=vocabulary)
    if real_rows < family.rows and len(terms) < 2:
        raise SpecError(f"{family.rows - real_rows} rows need decoys; give 2 or more other terms, or ask all rows")
    numbers = count(time.time_ns())
    return Asker(membership, family, real_rows, terms, vocabulary, secret or new_secret(), numbers)


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


def ask_counts(asker: Asker, target: Target, term: str, documents: Array) -> Query[CountResult]:
    """The estimated counts of a term in documents of an owner."""
    question = obfuscate(asker, term)
    wanted = np.ascontiguousarray(documents, "<i4")
    sent = messages.Question("count", target.field, _shape(question.hashes.shape), wanted.tobytes(), _columns(question))
    reply = messages.decode((yield from _exchange(asker, target.place, sent)), messages.CountAnswer)
    cells = messages.count_cells(reply, len(wanted), asker.family.rows)
    signed = (question.hashes.signs[0] * cells)[:, question.rows]
    return CountResult(np.median(signed, axis=1), _anonymity(asker))


def ask_top(asker: Asker, target: Target, term: str, *, top: int, beta: float = 0.1) -> Query[TopResult]:
    """The documents of the owner that have a term most often, according to its answer."""
    question = obfuscate(asker, term)
    sent = messages.Question("top", target.field, _shape(question.hashes.shape), columns=_columns(question))
    reply = messages.decode((yield from _exchange(asker, target.place, sent)), messages.TopAnswer)
    if not 1 <= top <= reply.top_k:
        raise SpecError(f"top = {top} asked of a party that answers up to {reply.top_k}; use 1 to {reply.top_k}")
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


def _shape(shape: SketchShape) -> tuple[int, int, str, str]:
    return shape.rows, shape.columns, shape.hash, shape.fingerprint


def _columns(question: ObfuscatedTerm) -> bytes:
    return question.columns.astype("<i4").tobytes()


def _anonymity(asker: Asker) -> float:
    family = asker.family
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
