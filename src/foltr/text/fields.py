"""Documents as sequences of word numbers, field by field, and a query against them: what features are computed from.

Sequences keep the order of words, so that counts, lengths, phrases and proximity follow from them alone. A word is an
unstemmed, folded form; a query's term names every word that counts as an occurrence of it (all words with its stem,
and for the last term of a query that is still being typed all words that begin with it). The words of several
documents may come from an index on disk or from a corpus in memory.
"""

from typing import NamedTuple

import numpy as np

from foltr.text.analysis import STOP_WORDS
from foltr.types import Array

NO_WORDS: Array = np.empty(0, dtype=np.int32)
FIELDS = ("title", "body", "name", "path", "sender", "recipients")  # the title of a mail is its subject


class Tokens(NamedTuple):
    """The words of documents: field f of document i is words[offsets[i * len(FIELDS) + f] : offsets[... + f + 1]]."""

    words: Array  # [total] int32 word numbers; those below Collection.stop_count are stop words
    offsets: Array  # [documents * len(FIELDS) + 1] int64


class Term(NamedTuple):
    """A distinct term of a query, with its statistics in the collection."""

    text: str  # the stem, or the beginning of a word that is still being typed
    repeats: int  # how often the query has it
    words: Array  # [m] int32 rising: every word that is an occurrence; empty: no document has it
    document_frequency: int  # documents with an occurrence in any field
    field_frequency: Array  # [fields] documents with an occurrence in the field
    collection_frequency: int  # occurrences in all fields
    beginning: Array = (
        NO_WORDS  # [m] int32 rising: words that begin with the query's unstemmed word; for prefix matches
    )
    names: int = 0  # documents with an occurrence of which only the name is known; part of no other count


class QueryText(NamedTuple):
    terms: tuple[Term, ...]  # in the order of first occurrence
    order: Array  # [words of the query] number of the term at each place
    folded: str  # the query as typed, folded: for exact and prefix matches of names and titles


class Collection(NamedTuple):
    """Sums over all documents; sums of parts are the sums of several parties."""

    documents: int
    lengths: Array  # [fields] words in all documents, stop words not counted
    with_field: Array  # [fields] documents in which the field has a word, be it a stop word
    stop_count: int = len(STOP_WORDS)  # smaller word numbers are stop words, in the order of the language's list


class Facts(NamedTuple):
    """Facts about documents beyond their words. Local ones are part of no message."""

    titles: tuple[str, ...]  # [documents] folded
    names: tuple[str, ...]  # [documents] folded, without the ending
    age_days: Array  # [documents]
    depth: Array  # [documents] folders above the file, below the root
    opened: Array  # [documents] chance to be opened next within its folder, over that of any document there, minus 1
    folder_opened: Array  # [documents] chance of the folder to be opened in next, over that by its size, minus 1
