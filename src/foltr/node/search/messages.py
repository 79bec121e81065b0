"""One message of a mailbox as a file of its own (.eml), which a mail program opens.

The copy is readable by its owner only, stands among the files of the node, and goes after a day: a program may read it
again while its window is open. Erasing a folder from the index erases all copies.
"""

import contextlib
import re
import tempfile
import time
from pathlib import Path

from foltr.errors import InputError
from foltr.files import create_private, erase_file, private_folder
from foltr.node.extract.files import ReceivedFile, read_all
from foltr.node.extract.mail import mbox_messages, message_id
from foltr.node.extract.records import Limits, Refused

_DAY = 86_400.0
_NAME = "message.eml"
_QUOTED = re.compile(rb"(?m)^>(>*From )")  # how an mbox writes such a line of a message


def write_message(folder: Path, file: ReceivedFile, part: str) -> Path:
    """Writes a message of an mbox, or a whole file that is one, and returns where."""
    data = _message(file, part)
    clean_up(folder)
    private_folder(folder)
    copy = Path(tempfile.mkdtemp(prefix="opened-", dir=folder)) / _NAME
    create_private(copy, data)
    return copy


def clean_up(folder: Path, older_than: float = _DAY) -> None:
    """Erases copies that are older than so many seconds."""
    last = time.time() - older_than
    for copy in folder.glob("opened-*"):
        with contextlib.suppress(OSError):
            if copy.is_symlink():  # somebody else's: what it leads to is not ours
                copy.unlink()
            elif copy.stat().st_mtime <= last:
                erase_file(copy / _NAME)
                copy.rmdir()


def _message(file: ReceivedFile, part: str) -> bytes:
    limits = Limits()
    try:
        if not part:
            return read_all(file, limits.file_bytes)
        return _plain(_found(file, part, limits))
    except Refused as problem:
        raise InputError(f"the message cannot be read: {problem}; search again") from None


def _found(file: ReceivedFile, part: str, limits: Limits) -> bytes:
    """The message with this Message-ID; else the one with this number, as the index names a message without."""
    numbered = None
    for number, (data, _) in enumerate(mbox_messages(file, limits), start=1):
        identity = message_id(data)
        if identity == part:
            return data
        if str(number) == part:
            numbered = data
    if numbered is None:
        raise InputError("the mailbox does not have this message any more; index again (`foltr node index`)")
    return numbered


def _plain(data: bytes) -> bytes:
    """A message without what an mbox adds: its first line, and the mark before lines that begin with From."""
    if data.startswith(b"From "):
        data = data.partition(b"\n")[2]
    return _QUOTED.sub(rb"\1", data)
