"""Cross-silo learning to rank on one corpus: one query with what each role sees of it, and the regimes compared.

Source: S3 figure 2 (a query) and table I (the comparison).

Differs from the paper: one run, tested on each party's own queries over the documents of all; changes come with 95 %
intervals.
"""

from typing import Any

import numpy as np

from foltr.lab.silo.evaluation import METRICS
from foltr.lab.silo.training import MAIN, compare
from foltr.privacy import ledger as accounts
from foltr.silo import leakage, noise
from foltr.silo.messages import CountAnswer, count_cells, decode
from foltr.silo.parties import SiloFederation, TrainTest, spent
from foltr.silo.protocol import Asker, Owner, answer, ask_count, ask_top, make_owner, obfuscate, relay
from foltr.text.counts import counts_of, take
from foltr.types import Array

_ASKER, _OWNER = 0, 1
_LONG = 5  # letters: a shorter word may occur in any bytes by chance


def one_question(federation: SiloFederation, *, real_rows: int = 5, epsilon: float = 0.5) -> dict[str, Any]:
    """A term of the first party's queries, asked of the second, in a federation without noise."""
    body = take(federation.counted.body, federation.owned[_OWNER])
    number = _worth_asking(federation, body.terms)
    term = federation.words[number]
    owner = federation.bodies[_OWNER]
    asker = federation.askers[_ASKER]._replace(real_rows=real_rows)
    whole = relay(ask_top(federation.askers[_ASKER], term, top=min(5, owner.top_k)), owner)
    truth = counts_of(body, np.arange(len(body.lengths)), np.array([number]))[:, 0]
    best = int(truth.argmax())
    exchange = relay(ask_count(asker, term, best), owner)
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
            "columns": obfuscate(asker, term).columns.tolist(),
            "contains_term": any(term.encode() in one.content for one in exchange.seen),
        },
        "owner": [_identification(federation, asker, term, rows) for rows in (2, 3, 4, 5)],
        "noise": [
            _answer(asker, term, _of_one(owner, best, kind, epsilon), int(truth[best])) for kind in noise.VARIANTS
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
        "epsilon": spent(federation),
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
    question = obfuscate(asker._replace(real_rows=real_rows), term)
    candidates = leakage.identify(question.columns, federation.words, family, real_rows=real_rows)
    sizes = {"rows": family.rows, "columns": family.columns, "vocabulary": len(federation.words)}
    expected = leakage.anonymity_set_size(real_rows=real_rows, **sizes)
    return {
        "real_rows": real_rows,
        "candidates": len(candidates),
        "anonymity_set_size": expected,
        "first": candidates[0],
    }


def _of_one(owner: Owner, document: int, kind: str, epsilon: float) -> Owner:
    """An owner of that document alone, with noise of this kind."""
    assert owner.counts is not None
    counts = owner.counts._replace(cells=owner.counts.cells[document : document + 1])
    return make_owner(counts=counts, noise_kind=kind, epsilon=epsilon, uniforms=owner.uniforms)


def _answer(asker: Asker, term: str, owner: Owner, truth: int) -> dict[str, Any]:
    query = ask_count(asker, term, 0)
    after, reply = answer(owner, next(query))
    cells = count_cells(decode(reply, CountAnswer), owner.shape.rows)
    question = obfuscate(asker, term)
    signs, rows = question.hashes.signs[0], question.rows
    return {
        "noise": owner.noise,
        "true_count": truth,
        "answer": float(np.median((signs * cells)[rows])),
        "after_the_attack": float(np.median((signs * leakage.remove_shared_noise(cells))[rows])),
        "epsilon": accounts.spent(after.ledger).epsilon,
    }
