"""Small real indexes for the tests: documents as extraction returns them, written by the real writer."""

import os
from typing import NamedTuple

from foltr.node import files
from foltr.node.writing import Result, Writer


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
    return known.id if known else files.add_file(connection, folder, name)


def indexed(writer, path, *documents, mtime_ns=0):
    return Result(file_number(writer, path), "indexed", None, 1, mtime_ns, 1, documents)


def write(writer, texts):
    """Indexes {path: body or Text}."""
    batch = [indexed(writer, path, one if isinstance(one, Text) else Text(body=one)) for path, one in texts.items()]
    writer.write(batch)


def new_writer(folder):
    return Writer(folder / "index.sqlite")
