"""The log of the server, bounded: what repeats is counted, and an hour has at most a hundred messages.

Whoever may connect can cause messages; without a bound the log fills the disk, or pushes others out of a journal.

A log outlives a deleted history, so it names no query, path, title or click. The message of an exception may quote any
of them: of exceptions, the type and the lines of code are written, not the message. `FOLTR_LOG` (debug, info, warning,
error) sets the level of foltr's own messages; libraries write warnings and errors.
"""

import contextlib
import logging
import os
import traceback
from collections.abc import Iterator
from types import TracebackType
from typing import TypeAlias

from foltr.errors import InputError

REPEAT_SECONDS = 60.0  # the same message is written once in this time
MOST_MESSAGES = 100  # in an hour
MOST_CHARACTERS = 8_000  # of a message with its traceback
_HOUR = 3600.0
_MOST_KINDS = 256  # messages that are told apart

LEVELS = ("debug", "info", "warning", "error")
_Kind = tuple[str, str, str]
_Raised: TypeAlias = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


class Limit(logging.Filter):
    """Lets a message pass unless the same one was written a short while ago, or the hour has had its messages."""

    def __init__(self) -> None:
        super().__init__()
        self._written: dict[_Kind, tuple[float, int]] = {}  # when it was written last, and repetitions since
        self._hour, self._messages, self._left_out = 0.0, 0, 0

    def filter(self, record: logging.LogRecord) -> bool:
        now, kind = record.created, _kind(record)
        if not 0 <= now - self._hour < _HOUR:
            self._hour, self._messages = now, 0
        last, repetitions = self._written.get(kind, (0.0, 0))
        repeated = kind in self._written and 0 <= now - last < REPEAT_SECONDS
        if repeated or self._messages >= MOST_MESSAGES:
            self._written[kind] = (last, repetitions + 1)
            self._left_out += not repeated
            return False
        if len(self._written) >= _MOST_KINDS:
            self._written.clear()
        self._written[kind] = (now, 0)
        self._messages += 1
        self._tell(record, repetitions)
        return True

    def _tell(self, record: logging.LogRecord, repetitions: int) -> None:
        notes = [f"{repetitions:,} times more since it was last written"] * bool(repetitions)
        notes += [f"{self._left_out:,} messages were left out"] * bool(self._left_out)
        self._left_out = 0
        if notes:
            record.msg, record.args = f"{record.getMessage().rstrip()} ({'; '.join(notes)})", None


class Short(logging.Formatter):
    """Formats a record in at most MOST_CHARACTERS, and exceptions without what their messages quote."""

    def format(self, record: logging.LogRecord) -> str:
        record.exc_text = None  # another handler's traceback, with the message
        text = super().format(record)
        record.exc_text = None
        return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]} ..."

    def formatException(self, ei: _Raised) -> str:  # noqa: N802 - the name of the standard library
        lines: list[str] = []
        problem = ei[1]
        while problem is not None and len(lines) < MOST_CHARACTERS:
            frames = traceback.extract_tb(problem.__traceback__)
            lines += [f"{type(problem).__name__} (its message is left out: it may quote a search or a path)"]
            lines += [f"  {frame.filename}:{frame.lineno} in {frame.name}" for frame in frames]
            problem = problem.__cause__ or (None if problem.__suppress_context__ else problem.__context__)
        return "\n".join(lines)


@contextlib.contextmanager
def limited_log() -> Iterator[None]:
    """Sends all messages of this process to standard error, bounded."""
    own = logging.getLogger("foltr")
    before = own.level
    own.setLevel(_level())
    handler = logging.StreamHandler()
    handler.addFilter(Limit())
    handler.setFormatter(Short("%(levelname)s: %(message)s"))
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)
        own.setLevel(before)


def _level() -> int:
    name = os.environ.get("FOLTR_LOG", "warning").lower()
    if name not in LEVELS:
        raise InputError(f"FOLTR_LOG={name[:20]}: no such level; use one of {', '.join(LEVELS)}")
    return logging.getLevelNamesMapping()[name.upper()]


def _kind(record: logging.LogRecord) -> _Kind:
    """Messages of one kind differ in their arguments only; of exceptions, type and place count."""
    exception = record.exc_info[1] if record.exc_info else None
    trace = exception.__traceback__ if exception is not None else None
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}" if trace is not None else ""
    return record.name, str(record.msg)[:200], f"{type(exception).__name__} {place}"
