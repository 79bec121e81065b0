"""Who asks another party for a term: questions that hide it among decoys, and answers read in the true rows.

Source: S3 algorithm 1 and equation 4; algorithm 5 for reverse top-K. Of z rows, z1 random ones show the term's column,
the rest those of other terms.

The same term always asks the same columns (rows and decoys follow from a secret and the term): what stays the same from
question to question would otherwise give the true rows away. The price: that two questions are equal can be seen.

A query is a generator: it yields one request, takes the reply, and returns what was found together with the expected
number of other words that would have asked the same (`anonymity`).

Differs from the paper: the sign is used on reading; decoys stay the same for a term (the paper draws new ones).
"""

import hashlib
from collections.abc import Generator, Iterable
from typing import Literal, NamedTuple, TypeVar

import numpy as np

from foltr.errors import SpecError
from foltr.secagg.crypto import new_secret
from foltr.silo import messages as post
from foltr.silo.anonymity import VOCABULARY, others_that_fit
from foltr.silo.hashing import Family, Hashes, hash_terms
from foltr.silo.noise import from_secret
from foltr.silo.rtk_query import Found, rank
from foltr.types import Array

Result = TypeVar("Result")
Query = Generator[bytes, bytes, Result]


class Asker(NamedTuple):
    family: Family
    true_rows: int  # z1
    decoys: tuple[str, ...]  # terms whose columns stand in the other rows
    secret: bytes  # decides on rows and decoys; stays here
    vocabulary: int  # words that an owner is thought to try


class Asked(NamedTuple):
    hashes: Hashes  # of the term, [1, z]
    rows: Array  # [z1] the true ones, rising
    columns: Array  # [z] what is sent


class Counted(NamedTuple):
    estimate: float
    others: float  # expected words that fit the question as well


class Listed(NamedTuple):
    found: Found
    others: float


def asker(
    family: Family, *, true_rows: int, decoys: Iterable[str], secret: bytes | None = None, vocabulary: int = VOCABULARY
) -> Asker:
    """Who asks; the secret is from the operating system unless given."""
    terms = tuple(dict.fromkeys(decoys))
    others_that_fit(true_rows=true_rows, rows=family.rows, columns=family.columns, vocabulary=vocabulary)
    if true_rows < family.rows and len(terms) < 2:
        raise SpecError(f"{family.rows - true_rows} rows need decoys; give 2 or more other terms, or ask all rows")
    return Asker(family, true_rows, terms, secret or new_secret(), vocabulary)


def asked(who: Asker, term: str) -> Asked:
    """The columns for a term: its own in z1 rows, those of other terms elsewhere."""
    family = who.family
    hashes = hash_terms([term], family)
    seed = hashlib.blake2b(term.encode("utf-8", "surrogatepass"), key=who.secret, digest_size=32).digest()
    drawn = from_secret(seed, 2 * family.rows)
    rows = np.sort(np.argsort(drawn[: family.rows], kind="stable")[: who.true_rows])
    columns = hashes.columns[0].copy()
    if who.true_rows < family.rows:
        places = (drawn[family.rows :] * len(who.decoys)).astype(np.int64).tolist()
        # the place before the first is the last, so there is another one beside the term
        others = [who.decoys[at] if who.decoys[at] != term else who.decoys[at - 1] for at in places]
        columns = hash_terms(others, family).columns.diagonal().copy()
        columns[rows] = hashes.columns[0, rows]
    return Asked(hashes, rows, columns)


def ask_count(who: Asker, term: str, document: int) -> Query[Counted]:
    """How often a term is in one document of the owner, about."""
    question = asked(who, term)
    number = new_secret()[:8]
    answer = post.decoded((yield _request(number, "count", document, question)), post.CountAnswer)
    post.same_number(number, answer.number)
    cells = post.told_cells(answer, who.family.rows)
    signed = (question.hashes.signs[0] * cells)[question.rows]
    return Counted(float(np.median(signed)), _others(who))


def ask_top(who: Asker, term: str, *, top: int, beta: float = 0.1) -> Query[Listed]:
    """Which documents of the owner have a term most often, about."""
    question = asked(who, term)
    number = new_secret()[:8]
    answer = post.decoded((yield _request(number, "top", 0, question)), post.TopAnswer)
    post.same_number(number, answer.number)
    if not 1 <= top <= answer.most:
        raise SpecError(f"top = {top} asked of a party that answers up to {answer.most}; use 1 to {answer.most}")
    cells, hashes = post.cells_of(answer, who.family.rows), question.hashes
    found = rank(answer.variant, cells, hashes.signs[0], hashes.tags[0], top=top, beta=beta, rows=question.rows)
    return Listed(found, _others(who))


def _request(number: bytes, what: Literal["count", "top"], document: int, question: Asked) -> bytes:
    columns = question.columns.astype("<i4").tobytes()
    shape = question.hashes.shape
    told = (shape.rows, shape.columns, shape.hash, shape.fingerprint)
    return post.encoded(post.Question(post.VERSION, number, what, document, told, columns))


def _others(who: Asker) -> float:
    family = who.family
    sizes = {"true_rows": who.true_rows, "rows": family.rows, "columns": family.columns}
    return others_that_fit(**sizes, vocabulary=who.vocabulary)
