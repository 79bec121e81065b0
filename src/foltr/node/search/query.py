"""The query language: words, "phrases", -word, OR, and fields. No text is a syntax error.

    tax 2024            words; a document needs one of them, and ranks higher with all
    "tax return"        these words in this order, nothing between them
    -draft              no document with this word; also -"a phrase" and -path:old
    tax OR duty         alternatives: either counts as the same term; OR in capitals
    path:reports        part of the path;          type:pdf       kind or ending of the file (type:pdf,odt: either)
    from:ada  to:bob    part of a mail's sender or recipients;    subject:report   part of the title
    after:2024-03       dated on or after 1 March 2024;           before:2024      dated before 1 January 2024

A field that is none of these is plain words, and so is a date that is none; a quote that is not closed is ignored, so
that lists do not vanish while a phrase is typed. The last word stands for every word that begins with it, unless
whitespace follows. A query is plain data; `to_text` writes it so that parsing gives the same query again.
"""

import datetime
import re
from typing import NamedTuple

FIELDS = ("path", "type", "from", "to", "subject", "before", "after")
MAX_CHARACTERS = 2_000  # of a query; the rest is not read
MAX_CLAUSES = 50

_TOKEN = re.compile(
    r'(?P<minus>-(?=[\w"]))?(?:(?P<field>[A-Za-z]+):(?=[^\s"]|"[^"]*"))?(?:"(?P<quoted>[^"]*)"|(?P<bare>[^\s"]+)|")'
)
_DATE = re.compile(r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?", re.ASCII)


class Clause(NamedTuple):
    field: str  # one of FIELDS, or "" for the text of the document
    text: str
    quoted: bool = False
    negated: bool = False

    @property
    def plain(self) -> bool:
        """A word that raises the score; any other clause is a condition."""
        return not (self.field or self.quoted or self.negated)


class Query(NamedTuple):
    groups: tuple[tuple[Clause, ...], ...]  # every group holds; a group is a list of alternatives
    prefix: bool  # the last clause is a word that may go on

    @property
    def conditions(self) -> tuple[tuple[Clause, ...], ...]:
        """Groups that a document must satisfy; in the others every alternative is a plain word."""
        return tuple(group for group in self.groups if not all(clause.plain for clause in group))

    @property
    def positive(self) -> tuple[tuple[Clause, ...], ...]:
        """The clauses whose words are searched for, group by group."""
        wanted = (tuple(one for one in group if not (one.field or one.negated)) for group in self.groups)
        return tuple(group for group in wanted if group)


class _Token(NamedTuple):
    clause: Clause | None  # None: OR
    end: int


def parse(text: str) -> Query:
    """The query that a text stands for; every text stands for one."""
    read = text[:MAX_CHARACTERS]
    tokens = _tokens(read)
    groups: list[list[Clause]] = []
    joined = False
    for place, token in enumerate(tokens):
        if token.clause is None and groups:
            joined = any(one.clause for one in tokens[place + 1 :])
            continue
        clause = token.clause or Clause("", "OR")
        if joined:
            groups[-1].append(clause)
        else:
            groups.append([clause])
        joined = False
    goes_on = bool(groups) and groups[-1][-1].plain and tokens[-1].end == len(text)
    return Query(tuple(map(tuple, groups)), goes_on and (tokens[-1].clause is not None or len(tokens) == 1))


def to_text(query: Query) -> str:
    """A text that parses to the same query."""
    written = " ".join(" OR ".join(map(_clause_text, group)) for group in query.groups)
    closed = not query.prefix and bool(query.groups) and query.groups[-1][-1].plain
    return written + " " * closed


def date_of(text: str) -> datetime.date | None:
    """The first day that YYYY, YYYY-MM or YYYY-MM-DD names."""
    found = _DATE.fullmatch(text)
    if not found:
        return None
    year, month, day = (int(part) if part else 1 for part in found.groups())
    try:
        return datetime.date(year, month, day)
    except ValueError:
        return None


def _tokens(text: str) -> list[_Token]:
    found = []
    for match in _TOKEN.finditer(text):
        clause = _clause(match)
        if match["bare"] == "OR" and clause == Clause("", "OR"):
            found.append(_Token(None, match.end()))
        elif clause is not None:
            found.append(_Token(clause, match.end()))
    return found[:MAX_CLAUSES]


def _clause(match: re.Match[str]) -> Clause | None:
    """None for what holds no word: a lonely or empty quote."""
    written, quoted = match["quoted"], match["quoted"] is not None
    value = " ".join(written.split()) if quoted else match["bare"]
    if not value:
        return None
    field, negated = (match["field"] or "").lower(), match["minus"] is not None
    known = field in FIELDS and (field not in ("before", "after") or date_of(value) is not None)
    if field and not known:
        return Clause("", f"{match['field']}:{value}", quoted, negated)
    return Clause(field, value, quoted, negated)


def _clause_text(clause: Clause) -> str:
    field = f"{clause.field}:" if clause.field else ""
    value = f'"{clause.text}"' if clause.quoted else clause.text
    return "-" * clause.negated + field + value
