"""Cross-silo learning to rank on one corpus: one question with what each role saw of it, and the regimes compared.

Source: S3 figure 2 (a question) and table I (the comparison).

Differs from the paper: one run, tested on each party's own queries over the documents of all; changes come with 95 %
intervals.
"""

from typing import Any

import numpy as np

from foltr.lab.silo.training import MAIN, trained
from foltr.privacy import ledger as accounts
from foltr.silo import leaks, noise
from foltr.silo.anonymity import others_that_fit
from foltr.silo.answering import Owner, answered, owner
from foltr.silo.asking import Asker, ask_count, ask_top, asked
from foltr.silo.crossing import Prepared
from foltr.silo.messages import CountAnswer, decoded, told_cells
from foltr.silo.parties import Federation, spent
from foltr.silo.protocol import relay
from foltr.silo.quality import MEASURES
from foltr.text.counts import counts_of, take
from foltr.types import Array

_ASKER, _OWNER = 0, 1
_LONG = 5  # letters: a shorter word may be found in any bytes by chance


def one_question(federation: Federation, *, true_rows: int = 5, epsilon: float = 0.5) -> dict[str, Any]:
    """A term of the first party's queries, asked of the second, in a federation without noise."""
    body = take(federation.counted.body, federation.owned[_OWNER])
    number = _worth_asking(federation, body.terms)
    term = federation.words[number]
    who = federation.bodies[_OWNER]
    asking = federation.askers[_ASKER]._replace(true_rows=true_rows)
    whole = relay(ask_top(federation.askers[_ASKER], term, top=min(5, who.most)), who)
    truth = counts_of(body, np.arange(len(body.lengths)), np.array([number]))[:, 0]
    best = int(truth.argmax())
    exchange = relay(ask_count(asking, term, best), who)
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
            "columns": asked(asking, term).columns.tolist(),
            "term_in_it": any(term.encode() in one.content for one in exchange.seen),
        },
        "owner": [_guess(federation, asking, term, rows) for rows in (2, 3, 4, 5)],
        "noise": [
            _answer(asking, term, _of_one(who, best, kind, epsilon), int(truth[best])) for kind in noise.VARIANTS
        ],
    }


def compared(federation: Federation, prepared: Prepared) -> dict[str, Any]:
    """nDCG@10 of every party under every regime, and whom cross-party data helps."""
    made = trained(federation, prepared)
    marks = {name: found[:, MAIN] for name, found in made.own.items()}
    return {
        "data": federation.corpus.name,
        "documents": [len(mine) for mine in federation.owned],
        "queries": [len(test.queries) for test in prepared.tests[: federation.setup.parties]],
        "measure": MEASURES[MAIN],
        "regimes": {name: {"parties": row.tolist(), "mean": float(row.mean())} for name, row in marks.items()},
        "changes": [gain._asdict() for gain in made.gains],
        "noise": federation.setup.noise,
        "epsilon": spent(federation),
    }


def _worth_asking(federation: Federation, held: Array) -> int:
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


def _guess(federation: Federation, asking: Asker, term: str, true_rows: int) -> dict[str, Any]:
    """Which words of the parties' vocabulary fit a question of so many true rows."""
    family = asking.family
    question = asked(asking._replace(true_rows=true_rows), term)
    fitting = leaks.named(question.columns, federation.words, family, true_rows=true_rows)
    sizes = {"rows": family.rows, "columns": family.columns, "vocabulary": len(federation.words)}
    expected = others_that_fit(true_rows=true_rows, **sizes)
    return {"true_rows": true_rows, "fitting": len(fitting), "expected_others": expected, "first": fitting[0]}


def _of_one(who: Owner, document: int, kind: str, epsilon: float) -> Owner:
    """An owner of that document alone, with noise of this kind."""
    assert who.counts is not None
    counts = who.counts._replace(cells=who.counts.cells[document : document + 1])
    return owner(counts=counts, noise_kind=kind, epsilon=epsilon, uniforms=who.uniforms)


def _answer(asking: Asker, term: str, who: Owner, truth: int) -> dict[str, Any]:
    query = ask_count(asking, term, 0)
    after, reply = answered(who, next(query))
    cells = told_cells(decoded(reply, CountAnswer), who.shape.rows)
    question = asked(asking, term)
    signs, rows = question.hashes.signs[0], question.rows
    return {
        "noise": who.noise,
        "true_count": truth,
        "answer": float(np.median((signs * cells)[rows])),
        "after_the_attack": float(np.median((signs * leaks.undone(cells))[rows])),
        "epsilon": accounts.spent(after.ledger).epsilon,
    }
