"""The log of the server, bounded: what repeats is counted, and an hour has at most a hundred messages.

Whoever may connect can cause messages; without a bound the log fills the disk, or pushes others out of a journal.
"""

import contextlib
import logging
from collections.abc import Iterator

REPEAT_SECONDS = 60.0  # the same message is written once in this time
MOST_MESSAGES = 100  # in an hour
MOST_CHARACTERS = 8_000  # of a message with its traceback
_HOUR = 3600.0
_MOST_KINDS = 256  # messages that are told apart

_Kind = tuple[str, str, str]


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
    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]} ..."


@contextlib.contextmanager
def limited_log() -> Iterator[None]:
    """All messages of this process go to standard error, bounded."""
    handler = logging.StreamHandler()
    handler.addFilter(Limit())
    handler.setFormatter(Short("%(levelname)s: %(message)s"))
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)


def _kind(record: logging.LogRecord) -> _Kind:
    """Messages of one kind differ in their arguments only; of exceptions, type and place count."""
    exception = record.exc_info[1] if record.exc_info else None
    trace = exception.__traceback__ if exception is not None else None
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}" if trace is not None else ""
    return record.name, str(record.msg)[:200], f"{type(exception).__name__} {place}"
