"""A group of three members, one of which owns five documents, and random numbers with an address."""

from collections import Counter

import numpy as np

from foltr.rng import stream
from foltr.silo import envelopes, messages, rtk
from foltr.silo.allowance import Limits, in_memory
from foltr.silo.index import build_index
from foltr.silo.keys import group_plan, make_group, new_identity, open_group, public
from foltr.silo.owners import NoiseChoice, make_owner
from foltr.silo.protocol import Target, make_asker
from foltr.silo.sketches import family, hash_terms, sketch_documents
from foltr.text.counts import count

KEY = bytes(range(32))
FAMILY = family(KEY, rows=30, columns=200)
TEXTS = ["fever fever fever cough", "fever cough cough", "rash", "cough " * 7, "aspirin rash rash fever fever"]
WORDS = sorted({word for text in TEXTS for word in text.split()})
DECOYS = [f"decoy{number}" for number in range(500)]


def counts(texts=TEXTS):
    found = [Counter(text.split()) for text in texts]
    words = sorted(set().union(*found))
    return words, count(found, {word: place for place, word in enumerate(words)})


def sketches(texts=TEXTS, functions=FAMILY):
    words, documents = counts(texts)
    return sketch_documents("count", documents, hash_terms(words, functions))


def lists(texts=TEXTS, functions=FAMILY, variant="sound", top=3):
    words, documents = counts(texts)
    hashes = hash_terms(words, functions)
    sketch = rtk.empty(hashes.shape, variant=variant, top=top)
    rtk.add_documents(sketch, documents, hashes)
    return sketch


def index_of(texts=TEXTS, functions=FAMILY, top=3):
    words, documents = counts(texts)
    return build_index(documents, words, functions, top=top)


def seeded(seed):
    """Further numbers of one stream at every call."""
    position = 0

    def uniforms(size):
        nonlocal position
        drawn = stream(seed, purpose="choice").skip(position).uniform(size)
        position += size
        return np.asarray(drawn)

    return uniforms


IDENTITIES = [new_identity() for _ in range(3)]
PLAN = group_plan("clinics", public(IDENTITIES[0]), [public(one) for one in IDENTITIES])
GROUP = make_group(PLAN, IDENTITIES[0], epoch=1, key=KEY)
MEMBERS = [open_group(GROUP, one, PLAN)[0] for one in IDENTITIES]
ASKS, OWNS, THIRD = MEMBERS
TARGET = Target(OWNS.place)
MANY = Limits(10**9, 10**9)


def owner_of(kind="one_shot", *, epsilon=0.5, budget=None, uniforms=None, limits=MANY, **sketched):
    """An owner of the five documents, or of these sketches."""
    given = sketched or {"counts": sketches(), "lists": lists()}
    choice = NoiseChoice(kind, epsilon, budget, uniforms or seeded(1))
    return make_owner(OWNS, **given, choice=choice, allowance=in_memory(limits, OWNS.context, now=lambda: 0.0))


def asker(member=ASKS, functions=FAMILY, **more):
    return make_asker(member, functions, **{"real_rows": functions.rows, "decoys": DECOYS} | more)


def question(member=ASKS, number=1, receiver=None, **changed):
    """A sealed question that is right but for what is changed: all documents' counts in column 0 of every row."""
    parts = {"what": "top", "field": "", "shape": tuple(sketches().shape), "columns": np.zeros(30, "<i4").tobytes()}
    content = messages.encode(messages.Question(**parts | changed))
    return envelopes.seal(member, "question", OWNS.place if receiver is None else receiver, number, content)


def opened(reply, kind, member=ASKS):
    """What the asker reads in a reply."""
    return messages.decode(envelopes.open_envelope(member, reply, "answer")[1], kind)
