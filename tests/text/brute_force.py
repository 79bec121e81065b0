"""Every feature again, from the raw texts of a small collection, by loops over documents, fields and places."""

import math
from itertools import pairwise

import Stemmer

from foltr.text.analysis import STOP_WORDS, words

ALL = ("title", "body", "name", "path", "sender", "recipients")
WEIGHT = {"title": 3, "body": 1, "name": 2, "path": 1, "sender": 1, "recipients": 0.5}
SLOPE = {"title": 0.5, "body": 0.75, "name": 0.5, "path": 0.5, "sender": 0.5, "recipients": 0.5}
snowball = Stemmer.Stemmer("english").stemWord


class Collection:
    def __init__(self, texts):
        self.number = len(next(iter(texts.values())))
        self.raw = texts
        self.words = [{f: words(texts[f][d]) if f in texts else [] for f in ALL} for d in range(self.number)]
        self.vocabulary = {word for document in self.words for field in document.values() for word in field}

    def matches(self, asked, word):
        """Whether a word of a text is an occurrence of an asked one: (text, is it a beginning, do stop words count)."""
        text, beginning, stop_too = asked
        if word in STOP_WORDS and not stop_too:
            return False
        if snowball(word) == snowball(text):
            return True
        if not beginning:
            return False
        if word.startswith(text) or snowball(word) in {snowball(other) for other in self.vocabulary if
                                                       other.startswith(text)}:  # fmt: skip
            return True
        return snowball(word) in coming(text)

    def content(self, document, field, stop_too=False):
        return [word for word in self.words[document][field] if stop_too or word not in STOP_WORDS]

    def length(self, document, field):
        return len(self.content(document, field))

    def mean(self, field):
        having = sum(bool(document[field]) for document in self.words)
        return sum(self.length(d, field) for d in range(self.number)) / max(having, 1)


def coming(text):
    """Stems of the regular English forms that a beginning may become."""
    forms = [
        text + ending[cut:]
        for ending in ("s", "es", "ies", "ied", "ed", "ing", "ly")
        for cut in range(len(ending))
        if text.endswith(ending[:cut]) and len(text) > cut + 1
    ]
    return {snowball(form) for form in forms if not snowball(form).startswith(text)}


def asked_terms(query, prefix):
    """[(text, beginning, stop words count)] one by one, for queries of plain words."""
    parts = words(query)
    only_stop = all(word in STOP_WORDS for word in parts)
    found = []
    for place, word in enumerate(parts):
        last = prefix and place == len(parts) - 1 and not query.endswith(" ")
        if only_stop or last or word not in STOP_WORDS:
            found.append((word, last, only_stop))
    return found


def letters_apart(folded):
    """The text with one space for each run of signs; a point between two digits is none."""
    inner = {i for i in range(1, len(folded) - 1) if folded[i] == "." and (folded[i - 1] + folded[i + 1]).isdigit()}
    kept = [letter if letter.isalnum() or i in inner else " " for i, letter in enumerate(folded)]
    return " ".join("".join(kept).split()) or folded


def idf(documents, frequency):
    frequency = max(frequency, 1)
    return math.log(1 + (max(documents, frequency) - frequency + 0.5) / (frequency + 0.5))


def features(collection, query, document, folded_query, folded_title, folded_name, facts, prefix=False):
    asked = asked_terms(query, prefix)
    stop_too = bool(asked) and asked[0][2]
    distinct = {}
    for one in asked:
        distinct.setdefault(snowball(one[0]), []).append(one)
    terms = list(distinct.values())

    def is_term(term, word):
        return any(collection.matches(one, word) for one in term)

    def count(term, d, field):
        return sum(is_term(term, word) for word in collection.words[d][field])

    def has(term, d, field):
        return count(term, d, field) > 0

    everyone = range(collection.number)
    df = [sum(any(has(term, d, f) for f in ALL) for d in everyone) for term in terms]
    weight = [idf(collection.number, frequency) for frequency in df]
    length = sum(collection.length(document, f) for f in ALL)
    total = max(sum(collection.length(d, f) for d in everyone for f in ALL), 1)
    out = {}

    mean = total / collection.number
    out["bm25"] = sum(
        len(term) * weight[t] * c / (c + 1.2 * (0.25 + 0.75 * length / mean))
        for t, term in enumerate(terms) for c in [sum(count(term, document, f) for f in ALL)]
    )  # fmt: skip
    for field in ("title", "body", "name", "path"):
        having = sum(bool(one[field]) for one in collection.words)
        out[f"bm25_{field}"] = 0.0
        for term in terms:
            c = count(term, document, field)
            if c:
                frequency = sum(has(term, d, field) for d in everyone)
                norm = 1.2 * (0.25 + 0.75 * collection.length(document, field) / max(collection.mean(field), 1e-9))
                out[f"bm25_{field}"] += len(term) * idf(having, frequency) * c / (c + norm)
    out["bm25f"] = 0.0
    for t, term in enumerate(terms):
        pseudo = 0.0
        for field in ALL:
            c = count(term, document, field)
            if c:
                relative = collection.length(document, field) / max(collection.mean(field), 1e-9)
                pseudo += WEIGHT[field] * c / (1 - SLOPE[field] + SLOPE[field] * relative)
        out["bm25f"] += len(term) * weight[t] * pseudo / (pseudo + 1.2)
    out["ql"] = 0.0
    for term in terms:
        cf = max(sum(count(term, d, f) for d in everyone for f in ALL), 1)
        c = sum(count(term, document, f) for f in ALL)
        out["ql"] += len(term) * math.log((c + 1000 * cf / total) / (length + 1000))

    for field in ("title", "body", "name", "path"):
        out[f"cov_{field}"] = sum(has(term, document, field) for term in terms) / max(len(terms), 1)
        out[f"idfcov_{field}"] = sum(w * has(term, document, field) for w, term in zip(weight, terms, strict=True))
    out["idfcov_any"] = sum(
        w for w, term in zip(weight, terms, strict=True) if any(has(term, document, f) for f in ALL)
    )
    for name in ("idfcov_title", "idfcov_body", "idfcov_name", "idfcov_path", "idfcov_any"):
        out[name] /= max(sum(weight), 1e-9)

    order = [next(t for t, term in enumerate(terms) if one in term) for one in asked]
    out |= proximity(collection, document, terms, order, is_term, stop_too)
    matched = sum(any(is_term(term, word) for term in terms) for word in collection.words[document]["title"])
    out["title_cov_by_q"] = min(1.0, matched / max(collection.length(document, "title"), 1))
    out["title_exact"] = float(folded_query != "" and letters_apart(folded_title) == letters_apart(folded_query))
    base, _, ending = folded_query.rpartition(".")
    stripped = [folded_query.split(".")[0], base, folded_query]
    out["name_exact"] = float(folded_name != "" and (folded_name == folded_query or (" " not in ending and
                              folded_name in stripped)))  # fmt: skip
    for field in ("title", "name", "path"):
        begun = 0
        for term in terms:
            starts = [one[0] for one in term if len(one[0]) >= 2]
            begun += has(term, document, field) or any(
                word.startswith(start) for word in collection.words[document][field] for start in starts
            )
        out[f"prefix_{field}"] = begun / max(len(terms), 1)
    return out | {"length": length} | facts


def proximity(collection, document, terms, order, is_term, stop_too):
    ordered = unordered = 0.0
    pairs = list(pairwise(order))
    for first, second in pairs:
        follows = near = 0
        for field in ALL:
            text = collection.content(document, field, stop_too)
            for place, word in enumerate(text):
                if is_term(terms[first], word):
                    follows += place + 1 < len(text) and is_term(terms[second], text[place + 1])
                    around = [p for p in range(place - 7, place + 8) if p != place and 0 <= p < len(text)]
                    near += any(is_term(terms[second], text[p]) for p in around)
        ordered += follows / (1 + follows)
        unordered += near / (1 + near)
    best = 0.0
    for field in ALL:
        text = collection.content(document, field, stop_too)
        here = [t for t, term in enumerate(terms) if any(is_term(term, word) for word in text)]
        if len(here) >= 2:
            spans = [
                end - start for start in range(len(text)) for end in range(start + 1, len(text) + 1)
                if all(any(is_term(terms[t], word) for word in text[start:end]) for t in here)
            ]  # fmt: skip
            best = max(best, len(here) / len(terms) * len(here) / max(min(spans), len(here)))
    out = {"ordered": ordered / max(len(pairs), 1), "unordered": unordered / max(len(pairs), 1), "minspan": best}
    for field in ("title", "body"):
        text = collection.content(document, field, stop_too)
        starts = range(len(text) - len(order) + 1)
        out[f"phrase_{field}"] = float(
            len(order) >= 2
            and any(all(is_term(terms[t], text[start + n]) for n, t in enumerate(order)) for start in starts)
        )
    return out
