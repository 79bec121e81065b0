"""The exceptions of foltr, as one tree.

    FoltrError                 the job failed                        exit code 1
    ├── Interrupted            stopped by the user; work is stored    exit code 1
    ├── StorageError           disk full, no permission, broken file  exit code 1
    │   └── StateError         state that went back, was copied or is damaged; nothing leaves  exit code 1
    ├── SecureAggregationError a client or the server broke the protocol; no sum is released  exit code 1
    ├── PrivacyError           a release that cannot be accounted for, or beyond the budget  exit code 1
    ├── Refused                another machine of a federation refused a request, with its reason  exit code 1
    └── InputError             the call or its input is wrong        exit code 2
        ├── SpecError          a key, a value or a pair in a spec
        └── DataError          a file, a line, a column
            └── DataMissing    a data set that is not on this machine

Every message names the place, what was expected and what to do. The command line prints it without a traceback. A
misspelt name of any kind (command, option, spec key, kind, figure, data set, setting) gets `did_you_mean`.
"""

from collections.abc import Iterable
from difflib import get_close_matches

_CLOSEST = 3  # names that are offered at most


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Returns " Did you mean 'right' or 'write'?" for a misspelt name; empty where no known name is close."""
    close = get_close_matches(name, list(known), n=_CLOSEST)
    return f" Did you mean {' or '.join(map(repr, close))}?" if close else ""


class FoltrError(Exception):
    """The job failed."""

    exit_code = 1


class Interrupted(FoltrError):
    """The user stopped the work; finished work is stored."""


class StorageError(FoltrError):
    """A file could not be written or read back."""


class StateError(StorageError):
    """A file of state is damaged, older than its witness, or another one."""


class PrivacyError(FoltrError):
    """A release that cannot be accounted for, or that a budget forbids."""


class SecureAggregationError(FoltrError):
    """Secure aggregation stopped before anything was summed: too few clients, or somebody broke the protocol."""


class Refused(FoltrError):
    """A coordinator refused the request of a node or of the second operator; the message is its reason."""


class InputError(FoltrError):
    """The call or its input is wrong."""

    exit_code = 2


class SpecError(InputError):
    """A spec is invalid."""


class DataError(InputError):
    """A data file is invalid."""


class DataMissing(DataError):
    """A data set is not on this machine."""
