"""Records that extraction returns, its limits, and the messages between the pool and its child processes.

A name is bytes on the wire, because names of files need not be valid Unicode. Lengths in `Limits` are characters of
text or bytes of files, as the names say. A child may have been taken over by a file, so its messages are bounded while
they are decoded (`Meta`); what depends on `Limits` is checked in `child`. On the socket a message is a
frame: four bytes of length, then that many bytes.
"""

import struct
from collections.abc import Iterator
from typing import Annotated, Literal

import msgspec

State = Literal["skipped", "failed", "waiting"]
MOST_DOCUMENTS = 4_000  # in one reply
Short = Annotated[str, msgspec.Meta(max_length=4_000)]
Reason = Annotated[str, msgspec.Meta(max_length=1_000)]
Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 50)]
_LENGTH = struct.Struct("<I")


class ExtractedDocument(msgspec.Struct, array_like=True):
    """The text of a file, or of one message of a mailbox."""

    title: Short
    body: str
    kind: Short  # one of formats.KINDS
    date: float | None = None  # seconds since 1970, where the content has a date (mail); None: take that of the file
    sender: Short = ""
    recipients: Short = ""  # To and Cc, separated by commas
    part: Short = ""  # "" for a file; Message-ID or ordinal number inside an mbox
    truncated: bool = False  # the text is longer than what is stored


class Extracted(msgspec.Struct):
    """The documents of one file, and the version of the file that was read."""

    documents: list[ExtractedDocument]
    size: int = 0  # as the parent saw it, never from a child
    modified: int = 0  # st_mtime_ns, likewise
    truncated: bool = False  # the file has more documents than these
    secrets: int = 0  # messages of a mailbox that were left out because they look like secrets


class Failure(msgspec.Struct, frozen=True):
    """Why a file has no text. "waiting": it changed while it was read, so try again."""

    state: State
    reason: Reason
    unnamed: bool = False  # its name is not indexed either: a secret, or no regular file


class Limits(msgspec.Struct, frozen=True):
    """Bounds on the work for one file; what exceeds them is skipped, failed or truncated, never processed further."""

    file_bytes: int = 64 << 20
    mailbox_bytes: int = 2 << 30  # an mbox is read message by message
    message_bytes: int = 32 << 20  # of one message of an mbox
    characters: int = 2_000_000  # of one document
    total_characters: int = 32_000_000  # of all messages of one mbox
    messages: int = 50_000
    mime_parts: int = 200
    unpacked_bytes: int = 128 << 20  # of gzip files and of the members of a zip file that are read
    compression_ratio: int = 250  # unpacked to packed, beyond 1 MB
    zip_members: int = 10_000
    xml_depth: int = 500
    pages: int = 5_000
    cpu_seconds: int = 30  # of processor time for one file


class Start(msgspec.Struct, array_like=True):
    """The first message to a child."""

    limits: Limits
    memory: int  # bytes of address space
    longest: float  # seconds after which a child ends itself, where the parent is gone and cannot


class Protections(msgspec.Struct, frozen=True):
    """Confinement of a child beside its limits on memory and time; which parts hold depends on the operating system."""

    system_calls: bool = False  # an allow list of system calls (seccomp)
    landlock: Annotated[int, msgspec.Meta(ge=0, le=1000)] = 0  # version of the kernel's Landlock; 0: it has none
    capabilities: bool = False  # root's privileges are given up

    def __str__(self) -> str:
        parts = ["an allow list of system calls"] * self.system_calls
        parts += [f"Landlock version {self.landlock}"] if self.landlock else []
        return " and ".join(parts) or "limits on memory and time only: this system lacks the rest"


class Ready(msgspec.Struct, array_like=True):
    """The first message of a child, before it has seen a file."""

    protections: Protections
    memory: Count  # resident, bytes


class Request(msgspec.Struct, array_like=True):
    """One file for a child; its descriptor comes along with the message."""

    number: int
    name: bytes  # the last part of its path: the ending tells its kind
    size: int


class Reply(msgspec.Struct, array_like=True):
    """An answer of a child: documents of a file (more follow unless `last`), or a failure with its reason."""

    number: Count
    documents: Annotated[list[ExtractedDocument], msgspec.Meta(max_length=MOST_DOCUMENTS)]
    last: bool = True
    failure: Failure | None = None
    truncated: bool = False
    secrets: Count = 0
    memory: Count = 0  # resident memory of the child after this file, bytes


class Refused(Exception):
    """Raised where a file is read: the reason why it has no text."""

    def __init__(self, state: State, reason: str, *, unnamed: bool = False) -> None:
        super().__init__(reason)
        self.failure = Failure(state, reason, unnamed)


class FrameTooLong(Exception):
    """A frame announces more bytes than its reader allows."""


def frame(message: bytes) -> bytes:
    """A message as it is sent: four bytes of length, then the message."""
    return _LENGTH.pack(len(message)) + message


class Frames:
    """Cuts the bytes of a stream socket into messages, whatever the sizes of the pieces that arrive."""

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
