"""Small real indexes for the tests: documents as extraction returns them, written by the real writer."""

import os
import re
from typing import NamedTuple

from foltr.node import places as node_places
from foltr.node.index import files, indexing
from foltr.node.index.writing import Result, Writer
from foltr.node.settings import Settings


class Text(NamedTuple):
    title: str = ""
    body: str = ""
    kind: str = "text"
    date: float | None = None
    sender: str = ""
    recipients: str = ""
    part: str = ""


def file_number(writer, path, root="/home/me"):
    connection = writer.connection
    folder_path, _, name = path.rpartition("/")
    folder = files.add_folder(connection, folder_path, files.add_root(connection, root))
    name = os.fsencode(name)
    known = files.in_folder(connection, folder).get(name)
    if known:
        return known.id
    return connection.execute(
        "INSERT INTO files (folder, name, is_folder, size, mtime_ns, inode, state) "
        "VALUES (?, ?, 0, 0, 0, 0, 'waiting')",
        (folder, name),
    ).lastrowid


def indexed(writer, path, *documents, mtime_ns=0):
    return Result(file_number(writer, path), "indexed", None, 1, mtime_ns, 1, documents)


def write(writer, texts):
    """Indexes {path: body or Text}."""
    batch = [indexed(writer, path, one if isinstance(one, Text) else Text(body=one)) for path, one in texts.items()]
    writer.write(batch)


def new_writer(folder):
    return Writer(folder / "index.sqlite")


def node_at(folder, *roots):
    """Folders of a node, and settings with these roots."""
    places = node_places.create(node_places.find(folder / "home"))
    return places, Settings(roots=tuple(map(str, roots)))


def run(places, settings):
    return list(indexing.index(places, settings))


def searched(reader, text):
    """Names of the files with a document among the candidates."""
    found = reader.candidates.search(reader.store, reader.store.query_text(text))
    return {one.path.rpartition("/")[2] for one in reader.store.documents(found)}


def byte_search(folder, word):
    """Files below a folder whose bytes contain a word, whatever the case."""
    pattern = re.compile(re.escape(word.encode()), re.IGNORECASE)
    return [path for path in sorted(folder.rglob("*")) if path.is_file() and pattern.search(path.read_bytes())]
