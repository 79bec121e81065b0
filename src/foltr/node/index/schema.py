"""The tables of the index, and connections to them.

SQLite is the truth about files and documents. Word sequences and the text for snippets stand in tables of their own,
so that reading titles and states does not walk over their pages. Document, word and stem numbers are never used twice:
a number that a reader still holds can miss, but never mean something else.

An index of an earlier version is changed in place where MIGRATIONS has a script for it, by the next process that writes
it: documents of a disk that is away cannot be read again. Otherwise the index is built anew, and the old one serves
meanwhile: readers also take the tables of earlier versions from OLDEST_READABLE on, as long as they have the columns of
today. Whoever raises SCHEMA writes a script, and does one of three things for readers. Where columns were only added
for writers, or meanings changed that a reader does not see: nothing. Where tables or columns were renamed, divided or
added for readers: a script in VIEWS, which shows the old tables as today's (temporary views, which go before tables of
the same name; they may call functions that `_older_views` registers, such as a decoder of old contents). Where that is
not possible: raise OLDEST_READABLE; searching waits for the new index.
"""

import contextlib
import sqlite3
from pathlib import Path

from foltr.errors import StorageError
from foltr.files import private_file
from foltr.text.fields import FIELDS

APPLICATION_ID = 0x666F6C74  # "folt"
SCHEMA = 4  # raised with every change of the tables below or of what stands in them
OLDEST_READABLE = 3  # earlier versions were never published
VIEWS: dict[int, str] = {  # version -> statements that show its tables as those of today
    3: "CREATE TEMP VIEW documents AS SELECT *, 1 AS has_text FROM main.documents;",  # files without a text had no row
}
_NAMES = """
ALTER TABLE documents ADD COLUMN has_text INTEGER NOT NULL DEFAULT 1;
INSERT INTO sums VALUES ('names', 0, 0);
"""
_FOLLOWED = """
CREATE TABLE followed (
    path BLOB PRIMARY KEY, device INTEGER, inode INTEGER, size INTEGER, mtime_ns INTEGER, digest BLOB, text BLOB,
    seen INTEGER
) WITHOUT ROWID;
"""
MIGRATIONS = {3: _NAMES + _FOLLOWED}  # version -> statements that make its tables those of the version behind it
READ_TABLES = (
    "meta",
    "roots",
    "folders",
    "files",
    "documents",
    "sequences",
    "bodies",
    "words",
    "stems",
    "changes",
    "sums",
)
STATES = ("waiting", "indexed", "excluded", "skipped", "failed")

_TABLES = f"""
CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE roots (id INTEGER PRIMARY KEY AUTOINCREMENT, path BLOB NOT NULL UNIQUE, state TEXT NOT NULL, reason TEXT);
CREATE TABLE folders (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    path BLOB NOT NULL,
    root INTEGER NOT NULL REFERENCES roots ON DELETE CASCADE,
    UNIQUE (root, path)
);
CREATE INDEX folders_by_path ON folders (path);
CREATE TABLE files (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    folder INTEGER NOT NULL REFERENCES folders ON DELETE CASCADE,
    name BLOB NOT NULL,
    is_folder INTEGER NOT NULL,
    size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL,
    inode INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN {STATES}),
    reason TEXT,
    UNIQUE (folder, name)
);
CREATE INDEX files_waiting ON files (id) WHERE state = 'waiting';
CREATE TABLE documents (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    file INTEGER NOT NULL REFERENCES files,
    part TEXT NOT NULL,
    title TEXT NOT NULL,
    kind TEXT NOT NULL,
    date REAL NOT NULL,
    sender TEXT NOT NULL,
    recipients TEXT NOT NULL,
    generation INTEGER NOT NULL,
    has_text INTEGER NOT NULL
);
CREATE INDEX documents_of_file ON documents (file);
CREATE INDEX documents_of_generation ON documents (generation);
CREATE TABLE sequences (document INTEGER PRIMARY KEY, content BLOB NOT NULL);
CREATE TABLE bodies (document INTEGER PRIMARY KEY, content BLOB NOT NULL);
CREATE TABLE words (word TEXT PRIMARY KEY, id INTEGER NOT NULL, stem INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE stems (stem TEXT PRIMARY KEY, id INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE changes (id INTEGER PRIMARY KEY AUTOINCREMENT, content BLOB NOT NULL);
CREATE TABLE sums (field TEXT PRIMARY KEY, length INTEGER NOT NULL, documents INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE removed (document INTEGER PRIMARY KEY, generation INTEGER NOT NULL);
{_FOLLOWED}
INSERT INTO meta VALUES ('generation', 0), ('vocabulary', 0);
INSERT INTO sums VALUES ('', 0, 0), ('names', 0, 0), {", ".join(f"('{field}', 0, 0)" for field in FIELDS)};
"""  # noqa: S608


def connect(path: Path, *, write: bool) -> sqlite3.Connection:
    """A connection to the index; a writer creates the tables where there are none."""
    if write:
        private_file(path)
    try:
        connection = sqlite3.connect(
            path.absolute().as_uri() + ("" if write else "?mode=ro"),
            uri=True,
            isolation_level=None,
            check_same_thread=False,
            timeout=30.0,
        )
        _configure(connection, write=write)
    except sqlite3.Error as problem:
        raise StorageError(f"{path}: the index cannot be opened ({problem}); delete the file, it is rebuilt") from None
    return connection


def _configure(connection: sqlite3.Connection, *, write: bool) -> None:
    for pragma in ("temp_store = MEMORY", "foreign_keys = ON", "cache_size = -16384"):
        connection.execute(f"PRAGMA {pragma}")
    if not write:
        _older_views(connection)
        connection.execute("PRAGMA query_only = ON")
        return
    if connection.execute("PRAGMA user_version").fetchone()[0] == 0:
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute("PRAGMA page_size = 8192")
    # a deleted document leaves no bytes behind; the journal is cut when it is written back
    for pragma in ("journal_mode = WAL", "secure_delete = ON", "synchronous = NORMAL", "journal_size_limit = 8388608"):
        connection.execute(f"PRAGMA {pragma}")
    if connection.execute("PRAGMA user_version").fetchone()[0] == 0:
        stamp = f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {SCHEMA};"
        connection.executescript(f"BEGIN IMMEDIATE; {_TABLES} {stamp} COMMIT;")


def migrate(path: Path) -> None:
    """Changes the tables of an earlier version to those of today where there are scripts; each step all or nothing."""
    with contextlib.suppress(StorageError), contextlib.closing(connect(path, write=True)) as connection:
        while (found := version(connection)) in MIGRATIONS and found < SCHEMA:
            connection.executescript(f"BEGIN IMMEDIATE; {MIGRATIONS[found]} PRAGMA user_version = {found + 1}; COMMIT;")


def can_migrate(found: int) -> bool:
    """Whether tables of a version become those of today by scripts."""
    return all(step in MIGRATIONS for step in range(found, SCHEMA))


def _older_views(connection: sqlite3.Connection) -> None:
    """Shows the tables of an earlier version as those of today."""
    connection.executescript(VIEWS.get(version(connection), ""))


def is_readable(connection: sqlite3.Connection) -> bool:
    """Whether a reader of today understands the tables: those of today, or of an earlier version with all columns."""
    found = version(connection)
    if found == SCHEMA:
        return True
    with contextlib.closing(sqlite3.connect(":memory:")) as today:
        today.executescript(_TABLES)
        return OLDEST_READABLE <= found < SCHEMA and all(
            _columns(today, table) <= _columns(connection, table) for table in READ_TABLES
        )


def _columns(connection: sqlite3.Connection, table: str) -> set[str]:
    return {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}


def version(connection: sqlite3.Connection) -> int:
    """The schema of the tables; 0 if this is not an index of foltr."""
    if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        return 0
    return int(connection.execute("PRAGMA user_version").fetchone()[0])
