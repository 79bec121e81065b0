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

from foltr.lab.silo import disclosure, retrieval
from foltr.lab.silo.evaluation import METRICS, relevant_queries
from foltr.lab.silo.tasks import RetrievalTask
from foltr.lab.silo.training import MAIN, compare, repeatable
from foltr.privacy import ledger as accounts
from foltr.silo import leakage
from foltr.silo.allowance import in_memory
from foltr.silo.envelopes import open_envelope
from foltr.silo.index import build_index
from foltr.silo.messages import CountAnswer, count_cells, decode
from foltr.silo.owners import NoiseChoice, Owner, answer, default_limits, make_owner
from foltr.silo.parties import UNLIMITED, SiloFederation, TrainTest, entries_read, spent
from foltr.silo.protocol import Asker, Target, ask_counts, ask_top, obfuscate, relay
from foltr.silo.sketches import hash_words, sketch_documents
from foltr.text.counts import counts_of, take
from foltr.types import Array

_ASKER, _OWNER = 0, 1
_REAL_ROWS = 5  # of questions to sketches
_FIRST = np.zeros(1, np.int64)
_LONG = 5  # letters: a shorter word may occur in any bytes by chance


def one_question(federation: SiloFederation, *, epsilon: float = 0.5) -> dict[str, Any]:
    """A term of the first party's queries, asked of the second, in a federation with an index and without noise."""
    body = take(federation.counted.body, federation.owned[_OWNER])
    number = _worth_asking(federation, body.terms)
    term = federation.words[number]
    owner, asker = federation.bodies[_OWNER], federation.askers[_ASKER]
    target = Target(owner.membership.place, owner.field)
    exchange = relay(ask_top(asker, target, term, top=min(5, owner.top_k)), owner)
    truth = counts_of(body, np.arange(len(body.lengths)), np.array([number]))[:, 0]
    best, documents = int(truth.argmax()), exchange.result.found.documents
    asked = hash_words([term], asker.family)[0]
    return {
        "term": term,
        "asker": {
            "documents": [federation.corpus.ids[federation.owned[_OWNER][one]] for one in documents],
            "counts": exchange.result.found.counts.tolist(),
            "true_counts": truth[documents].tolist(),
        },
        "server": {
            "messages": len(exchange.seen),
            "bytes": [len(message.content) for message in exchange.seen],
            "contains_term": any(term.encode() in message.content for message in exchange.seen),
            "contains_hash": any(asked.tobytes() in message.content for message in exchange.seen),
        },
        "identified": federation.words[int(np.flatnonzero(hash_words(federation.words, asker.family) == asked)[0])],
        "owner": [_identification(federation, asker, term, rows) for rows in (2, 3, 4, 5)],
        "disclosure": [_disclosure(federation, by) for by in ("index", "sound", "sampled")],
        "noise": [
            _answer(federation, term, best, NoiseChoice(kind, epsilon), int(truth[best]), by=by)
            for by, kind in (("index", "none"), ("index", "one_shot"), ("sketch", "paper"), ("sketch", "one_shot"))
        ],
    }


def _disclosure(federation: SiloFederation, by: Any) -> dict[str, Any]:
    """Answers of the second party to 20 words, and the cost of a word in bytes."""
    body = take(federation.counted.body, federation.owned[_OWNER])
    words, terms = np.unique(body.terms, return_inverse=True)
    held = body._replace(terms=terms.astype(np.int32), vocabulary_size=len(words))
    queries = federation.train[federation.held.queries[federation.train] == _ASKER]
    asked = np.unique(np.concatenate([federation.terms[query] for query in queries]))
    task = RetrievalTask(
        held, [federation.words[word] for word in words.tolist()], np.flatnonzero(np.isin(words, asked))
    )
    top = min(federation.setup.top, len(held.lengths))
    shown = disclosure.measure(task, disclosure.Disclosure(by=by, top=top), seed=federation.seed)
    cost = retrieval.measure(task, retrieval.Retrieval(by=by, top=top, asked=1), seed=federation.seed)["kB sent"]
    return {"by": by, **shown, "kB sent": cost}


def comparison(federation: SiloFederation, data: TrainTest) -> dict[str, Any]:
    """nDCG@10 of every party under every regime, and which parties gain from cross-party data."""
    result = compare(federation, data)
    values = {name: found[:, MAIN] for name, found in result.own.items()}
    tests = data.tests[: federation.setup.parties]
    return {
        "data": federation.corpus.name,
        "documents": [len(mine) for mine in federation.owned],
        "queries": np.bincount(federation.held.queries[data.test], minlength=len(tests))[: len(tests)].tolist(),
        "relevant_queries": [relevant_queries(test) for test in tests],
        "metric": METRICS[MAIN],
        "regimes": {name: {"parties": row.tolist(), "mean": float(row.mean())} for name, row in values.items()},
        "changes": [gain._asdict() for gain in result.gains],
        "lists": federation.setup.lists,
        "allowance": "off",
        "entries_read": entries_read(federation),
        "allowances": entries_read(federation) / default_limits(federation.setup.top).total,
        "mb_sent": federation.sent.total() / 1e6,
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


def _answer(
    federation: SiloFederation, term: str, document: int, choice: NoiseChoice, truth: int, *, by: str
) -> dict[str, Any]:
    """Asks a question twice about one document: what comes back, what an attack leaves of shared noise, the cost."""
    owner, asker = _of_one(federation, document, choice, by=by)
    target = Target(owner.membership.place, owner.field)
    once, again = (_cells(asker, target, term, owner) for _ in range(2))
    attacked, signs, rows = once, np.ones(1), _FIRST
    if by == "sketch":
        question = obfuscate(asker, term)
        signs, rows, attacked = question.hashes.signs[0], question.rows, leakage.remove_shared_noise(once)
    return {
        "noise": owner.noise,
        "of": by,
        "true_count": truth,
        "answer": float(np.median((signs * once)[rows])),
        "same_when_asked_again": bool(np.array_equal(once, again)),
        "after_the_attack": float(np.median((signs * attacked)[rows])),
        "epsilon": accounts.spent(relay(ask_counts(asker, target, term, _FIRST), owner).owner.ledger).epsilon,
    }


def _of_one(federation: SiloFederation, document: int, choice: NoiseChoice, *, by: str) -> tuple[Owner, Asker]:
    """An owner of that document alone with this noise, and who asks it."""
    owner, asker = federation.bodies[_OWNER], federation.askers[_ASKER]
    counts = take(federation.counted.body, federation.owned[_OWNER][document : document + 1])
    seeded = choice._replace(uniforms=repeatable(federation.seed))
    if by == "index":
        index = build_index(counts, federation.words, asker.family, top=1)
        return make_owner(owner.membership, field=owner.field, lists=index, choice=seeded), asker
    limits = in_memory(UNLIMITED, owner.membership.context)
    sketches = sketch_documents("count", counts, federation.hashes)
    sketched = make_owner(owner.membership, field=owner.field, counts=sketches, choice=seeded, allowance=limits)
    return sketched, replace(asker, real_rows=_REAL_ROWS)


def _cells(asker: Asker, target: Target, term: str, owner: Owner) -> Array:
    """[z] the numbers that the asker opens; one of an index."""
    query = ask_counts(asker, target, term, _FIRST)
    _, reply = answer(owner, next(query))
    _, content = open_envelope(asker.membership, reply, "answer")
    rows = owner.shape.rows if owner.lists is None else 1
    return count_cells(decode(content, CountAnswer), 1, rows)[0]
