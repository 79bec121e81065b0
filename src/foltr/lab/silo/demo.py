"""Cross-silo learning to rank on one corpus: one query with what each role sees of it, and the regimes compared.

Source: S3 figure 2 (a query) and table I (the comparison).

A simulation: the key of the hashes and the noise follow from the seed, so that it says the same every time and protects
nothing. Messages are sealed and opened as deployed parties do.

Differs from the paper: one run, tested on each party's own queries over the documents of all; changes come with 95 %
intervals.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from foltr.lab.silo.evaluation import METRICS
from foltr.lab.silo.training import MAIN, compare, repeatable
from foltr.privacy import ledger as accounts
from foltr.silo import leakage, noise
from foltr.silo.envelopes import open_envelope
from foltr.silo.messages import CountAnswer, count_cells, decode
from foltr.silo.owners import NoiseChoice, Owner, answer, make_owner
from foltr.silo.parties import SiloFederation, TrainTest, spent
from foltr.silo.protocol import Asker, Target, ask_counts, ask_top, obfuscate, relay
from foltr.text.counts import counts_of, take
from foltr.types import Array

_ASKER, _OWNER = 0, 1
_FIRST = np.zeros(1, np.int64)
_LONG = 5  # letters: a shorter word may occur in any bytes by chance


def one_question(federation: SiloFederation, *, real_rows: int = 5, epsilon: float = 0.5) -> dict[str, Any]:
    """A term of the first party's queries, asked of the second, in a federation without noise."""
    body = take(federation.counted.body, federation.owned[_OWNER])
    number = _worth_asking(federation, body.terms)
    term = federation.words[number]
    owner = federation.bodies[_OWNER]
    asker = replace(federation.askers[_ASKER], real_rows=real_rows)
    target = Target(owner.membership.place, owner.field)
    whole = relay(ask_top(federation.askers[_ASKER], target, term, top=min(5, owner.top_k)), owner)
    truth = counts_of(body, np.arange(len(body.lengths)), np.array([number]))[:, 0]
    best = int(truth.argmax())
    exchange = relay(ask_counts(asker, target, term, np.array([best])), owner)
    request = exchange.seen[0].content
    columns = obfuscate(asker, term).columns
    documents = whole.result.found.documents
    return {
        "term": term,
        "asker": {
            "documents": [federation.corpus.ids[federation.owned[_OWNER][one]] for one in documents],
            "counts": whole.result.found.counts.tolist(),
            "true_counts": truth[documents].tolist(),
        },
        "server": {
            "messages": len(exchange.seen),
            "bytes": [len(one.content) for one in exchange.seen],
            "contains_term": any(term.encode() in one.content for one in exchange.seen),
            "contains_columns": columns.astype("<i4").tobytes() in request,
        },
        "columns": columns.tolist(),
        "owner": [_identification(federation, asker, term, rows) for rows in (2, 3, 4, 5)],
        "noise": [
            _answer(asker, term, _of_one(federation, best, NoiseChoice(kind, epsilon)), int(truth[best]))
            for kind in noise.VARIANTS
        ],
    }


def comparison(federation: SiloFederation, data: TrainTest) -> dict[str, Any]:
    """nDCG@10 of every party under every regime, and which parties gain from cross-party data."""
    result = compare(federation, data)
    values = {name: found[:, MAIN] for name, found in result.own.items()}
    return {
        "data": federation.corpus.name,
        "documents": [len(mine) for mine in federation.owned],
        "queries": [len(test.queries) for test in data.tests[: federation.setup.parties]],
        "metric": METRICS[MAIN],
        "regimes": {name: {"parties": row.tolist(), "mean": float(row.mean())} for name, row in values.items()},
        "changes": [gain._asdict() for gain in result.gains],
        "noise": federation.setup.noise,
        "statistics": federation.setup.statistics,
        "epsilon": spent(federation)._asdict() | {"unit": "word", "adjacency": "zero-out", "against": "a member"},
        "simulation": True,
    }


def _worth_asking(federation: SiloFederation, held: Array) -> int:
    """The rarest term of the asker's first query that is in some documents of the owner."""
    frequency = np.bincount(held, minlength=len(federation.words))
    queries = np.flatnonzero(federation.held.queries == _ASKER)
    long = np.array([len(word) >= _LONG for word in federation.words])
    for fewest in (5, 1):
        enough = long & (frequency >= fewest)
        for query in queries:
            fit = [term for term in federation.terms[query].tolist() if enough[term]]
            if fit:
                return min(fit, key=lambda term: frequency[term])
    return int(frequency.argmax())


def _identification(federation: SiloFederation, asker: Asker, term: str, real_rows: int) -> dict[str, Any]:
    """Which words of the parties' vocabulary are candidates for a query of so many real rows."""
    family = asker.family
    question = obfuscate(replace(asker, real_rows=real_rows), term)
    candidates = leakage.identify(question.columns, federation.words, family, real_rows=real_rows)
    sizes = {"rows": family.rows, "columns": family.columns, "vocabulary": len(federation.words)}
    expected = leakage.anonymity_set_size(real_rows=real_rows, **sizes)
    return {
        "real_rows": real_rows,
        "candidates": len(candidates),
        "anonymity_set_size": expected,
        "first": candidates[0],
    }


def _of_one(federation: SiloFederation, document: int, choice: NoiseChoice) -> Owner:
    """An owner of that document alone, with this noise."""
    owner = federation.bodies[_OWNER]
    assert owner.counts is not None
    counts = owner.counts._replace(cells=owner.counts.cells[document : document + 1])
    seeded = choice._replace(uniforms=repeatable(federation.seed))
    return make_owner(owner.membership, field=owner.field, counts=counts, choice=seeded)


def _answer(asker: Asker, term: str, owner: Owner, truth: int) -> dict[str, Any]:
    """The same question twice: what comes back, what is left of the paper's noise after the attack, and the cost."""
    target = Target(owner.membership.place, owner.field)
    once, again = (_cells(asker, target, term, owner) for _ in range(2))
    question = obfuscate(asker, term)
    signs, rows = question.hashes.signs[0], question.rows
    return {
        "noise": owner.noise,
        "true_count": truth,
        "answer": float(np.median((signs * once)[rows])),
        "same_when_asked_again": bool(np.array_equal(once, again)),
        "after_the_attack": float(np.median((signs * leakage.remove_shared_noise(once))[rows])),
        "epsilon": accounts.spent(relay(ask_counts(asker, target, term, _FIRST), owner).owner.ledger).epsilon,
    }


def _cells(asker: Asker, target: Target, term: str, owner: Owner) -> Array:
    """[z] the cells that the asker opens."""
    query = ask_counts(asker, target, term, _FIRST)
    _, reply = answer(owner, next(query))
    _, content = open_envelope(asker.membership, reply, "answer")
    return count_cells(decode(content, CountAnswer), 1, owner.shape.rows)[0]
