"""Unpacking gzip files and members of zip files within limits of size, number and compression ratio."""

import io
import zipfile
import zlib

from foltr.node.extract.formats import HEAD
from foltr.node.extract.records import Limits, Refused

_PIECE = 1 << 16
_ALWAYS = 1 << 20  # bytes that any file may unpack to, whatever the ratio
_ENTRY = b"PK\x01\x02"  # begins an entry of a zip file's directory


def gunzip_head(head: bytes) -> bytes:
    """The first bytes of what a gzip file holds, from its own first bytes."""
    try:
        return zlib.decompressobj(31).decompress(head, HEAD)
    except zlib.error:
        raise Refused("failed", "damaged gzip data") from None


def gunzip(data: bytes, limits: Limits) -> bytes:
    """Content of a gzip file, all its members in a row."""
    budget = Budget(limits, len(data))
    pieces: list[bytes] = []
    try:
        while data[:2] == b"\x1f\x8b":
            stream = zlib.decompressobj(31)
            while not stream.eof:
                piece = stream.decompress(data, _PIECE)
                if not piece and not stream.eof and not stream.unconsumed_tail:
                    raise Refused("failed", "a gzip file that ends early")
                budget.spend(len(piece))
                pieces.append(piece)
                data = stream.unconsumed_tail
            data = stream.unused_data
    except zlib.error:
        raise Refused("failed", "damaged gzip data") from None
    return b"".join(pieces)


class Budget:
    """Bytes that may still be unpacked from one file."""

    def __init__(self, limits: Limits, packed: int) -> None:
        self._allowed = min(limits.unpacked_bytes, max(_ALWAYS, limits.compression_ratio * packed))
        self._left = self._allowed

    def spend(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise Refused("skipped", f"unpacks to more than {self._allowed / (1 << 20):.3g} MB")


class Archive:
    """A zip file whose named members are read, each within what is left of the budget; nothing is unpacked to disk."""

    def __init__(self, data: bytes, limits: Limits) -> None:
        if data.count(_ENTRY) > limits.zip_members:  # before zipfile makes an object of each
            raise Refused("skipped", f"a zip file with more than {limits.zip_members} members")
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
        except (zipfile.BadZipFile, ValueError, OverflowError, NotImplementedError):
            raise Refused("failed", "a damaged zip file") from None
        self._budget = Budget(limits, len(data))
        self.names = frozenset(self._zip.namelist())

    def read(self, name: str) -> bytes:
        """The bytes of a member; b"" where there is none of this name."""
        if name not in self.names:
            return b""
        pieces: list[bytes] = []
        try:
            if self._zip.getinfo(name).flag_bits & 1:
                raise Refused("skipped", "encrypted")
            with self._zip.open(name) as member:
                while piece := member.read(_PIECE):
                    self._budget.spend(len(piece))
                    pieces.append(piece)
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError):
            raise Refused("failed", "a damaged zip file") from None
        return b"".join(pieces)
