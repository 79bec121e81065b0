"""A party with five documents, and random numbers with an address."""

from collections import Counter

import numpy as np

from foltr.rng import stream
from foltr.silo import rtk
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


def seeded(seed):
    """Further numbers of one stream at every call."""
    position = 0

    def uniforms(size):
        nonlocal position
        drawn = stream(seed, purpose="choice").skip(position).uniform(size)
        position += size
        return np.asarray(drawn)

    return uniforms
