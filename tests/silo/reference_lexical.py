"""The eight features written out for one query and one text, with dictionaries and loops."""

import math
from collections import Counter

K1, B, DELTA, MU, LAMBDA = 2.5, 0.8, 0.7, 2000.0, 0.1


def reference_features(query, document, collection):
    """query, document: lists of words; collection: the lists of words of every document."""
    everything = Counter(word for text in collection for word in text)
    total = sum(everything.values())
    mean_length = total / len(collection)
    counts, length = Counter(document), len(document)
    tf = idf_sum = tf_idf = bm25 = absolute = dirichlet = mercer = 0.0
    for word in query:
        if everything[word] == 0:
            continue
        n, p = counts[word], everything[word] / total
        idf = math.log(len(collection) / sum(word in text for text in collection))
        share = n / length if length else 0.0
        tf += share
        idf_sum += idf if n else 0.0
        tf_idf += share * idf
        bm25 += idf * n * (K1 + 1) / (n + K1 * (1 - B + B * length / mean_length))
        if length:
            absolute += math.log(max(n - DELTA, 0) / length + DELTA * len(counts) / length * p)
        else:
            absolute += math.log(p)
        dirichlet += math.log((n + MU * p) / (length + MU))
        mercer += math.log((1 - LAMBDA) * share + LAMBDA * p)
    return [length, tf, idf_sum, tf_idf, bm25, absolute, dirichlet, mercer]
