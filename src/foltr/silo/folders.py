"""A folder of text files as one index file, and queries to it: what `foltr silo build` and `query` do.

The index holds exact counts: whoever has the file can read every number of it, key or not, and whoever has the key too
can test words against it. Its epsilon is infinite; it is the owner's own, like the documents. `query` is the owner
asking itself, through the sealed messages that another member would send (`protocol`), in one process.

The documents' names are in a second file, which the owner does not share; the key is in a third. The hash functions
follow from the key and from the text analysis, so that an index of other words (another language, an earlier analyser)
is refused instead of answering "nothing found".

Differs from the paper: the index is ours (`index`).
"""

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from foltr.errors import DataError, InputError, SpecError
from foltr.files import create_private, write_text
from foltr.silo import storage
from foltr.silo.index import Index, build_index
from foltr.silo.keys import group_in_process
from foltr.silo.owners import NoiseChoice, make_owner
from foltr.silo.protocol import Target, TopResult, ask_top, make_asker, relay
from foltr.silo.sketches import KEY_BYTES, Family, family, new_key, shape_of
from foltr.text.analysis import ENGLISH, fingerprint, terms, tokens
from foltr.text.corpus import TEXT_FILES, text_folder
from foltr.text.counts import count


class Built(NamedTuple):
    documents: int
    words: int  # different ones
    top: int
    bytes: int  # on disk
    new_key: bool


class WordAnswer(NamedTuple):
    term: str
    names: list[str]  # the best first
    result: TopResult


def build(folder: Path, to: Path, key_file: Path, *, top: int | None) -> Built:
    """Indexes every text file under a folder; a missing key file is written with a new key."""
    found = list(text_folder(folder))
    texts = [Counter(terms(one.body)) for one in found]
    vocabulary = {word: number for number, word in enumerate(sorted(set().union(*texts)))}
    if not vocabulary:
        kinds = ", ".join(TEXT_FILES)
        raise DataError(f"{folder}: no text file ({kinds}) with a word in it; give a folder that has some")
    wanted = min(150, len(found)) if top is None else top
    if not 1 <= wanted <= len(found):
        raise SpecError(f"top = {wanted} of {len(found)} documents; use 1 to {len(found)}")
    fresh = not key_file.exists()
    key = new_key() if fresh else read_key(key_file)
    index = build_index(count(texts, vocabulary), list(vocabulary), family(_hash_key(key)), top=wanted)
    if fresh:
        create_private(key_file, f"{key.hex()}\n".encode("ascii"))
    size = storage.save_index(to, index)
    write_text(names_file(to), json.dumps([one.id for one in found], ensure_ascii=False, allow_nan=False))
    return Built(len(found), len(vocabulary), wanted, size, fresh)


def ask(file: Path, word: str, key_file: Path, *, top: int | None = None) -> WordAnswer:
    """The documents that have a word most often; none if no document has it."""
    cut = terms(word)
    if not cut:
        raise InputError(f"{word!r} has no word that an index counts (stop words are left out); ask for another")
    if len(tokens(word)) != 1:
        raise InputError(f"{word!r} is {len(tokens(word))} words; ask for one at a time")
    index = storage.load_index(file)
    functions = _functions(file, key_file, index)
    member, other = group_in_process(2, functions.key)
    asker = make_asker(other, functions)
    owner = make_owner(member, lists=index, choice=NoiseChoice("none"))
    wanted = min(10, owner.top_k) if top is None else top
    result = relay(ask_top(asker, Target(member.place), cut[0], top=wanted), owner).result
    names = _names(file, len(index.versions))
    return WordAnswer(cut[0], [names[document] for document in result.found.documents.tolist()], result)


def read_key(path: Path) -> bytes:
    """32 bytes in hexadecimal digits."""
    if not path.is_file():
        raise DataError(f"{path} does not exist; give the key file that the index was built with")
    try:
        key = bytes.fromhex(path.read_text(encoding="ascii").strip())
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise DataError(f"{path} holds no key: {2 * KEY_BYTES} hexadecimal digits were expected")
    return key


def _hash_key(key: bytes) -> bytes:
    label = fingerprint(ENGLISH).encode("ascii")
    return hashlib.blake2b(label, key=key, digest_size=KEY_BYTES, person=b"foltr-folder").digest()


def names_file(index: Path) -> Path:
    return index.with_name(index.name + ".names.json")


def _functions(file: Path, key_file: Path, index: Index) -> Family:
    shape = index.shape
    functions = family(_hash_key(read_key(key_file)), rows=shape.rows, columns=shape.columns, hash=shape.hash)
    if shape_of(functions) != shape:
        raise InputError(
            f"{key_file} is not the key that {file} was built with (fingerprints {shape_of(functions).fingerprint} "
            f"and {shape.fingerprint}); give the key file of that build, or build the index again if it is of an "
            "earlier version of foltr, which cut texts into other words"
        )
    return functions


def _names(index: Path, documents: int) -> list[str]:
    """From the file beside the index; numbers where there is none."""
    path = names_file(index)
    if not path.exists():
        return [str(number) for number in range(documents)]
    try:
        names = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        names = None
    if not isinstance(names, list) or len(names) != documents or not all(isinstance(name, str) for name in names):
        raise DataError(f"{path} does not name the {documents} documents of {index}; build the index again")
    return names
