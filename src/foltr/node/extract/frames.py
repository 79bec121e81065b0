"""Messages on a stream socket: four bytes of length, then that many bytes."""

import struct
from collections.abc import Iterator

_LENGTH = struct.Struct("<I")


class FrameTooLong(Exception):
    """A frame announces more bytes than its reader allows."""


def frame(message: bytes) -> bytes:
    return _LENGTH.pack(len(message)) + message


class Frames:
    """Complete messages out of the pieces that arrive."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._pending = bytearray()

    def feed(self, piece: bytes) -> Iterator[bytes]:
        self._pending += piece
        start = 0
        try:
            while len(self._pending) - start >= _LENGTH.size:
                (length,) = _LENGTH.unpack_from(self._pending, start)
                if length > self._longest:
                    raise FrameTooLong(f"a message of {length} bytes, where {self._longest} are allowed")
                end = start + _LENGTH.size + length
                if end > len(self._pending):
                    return
                message = bytes(self._pending[start + _LENGTH.size : end])
                start = end
                yield message
        finally:
            del self._pending[:start]
