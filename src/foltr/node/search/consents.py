"""What a person agreed to open although it can run code: kinds of files (`launchable.RISKS`), asked about once each.

Consent comes from a click on the page. It is no setting: no file of another machine brings it along.
"""

import msgspec

from foltr.errors import InputError
from foltr.files import write_json
from foltr.node.places import Places
from foltr.node.search.launchable import RISKS

_FILE = "consents.json"


def given(places: Places) -> frozenset[str]:
    """The kinds that are opened without a question; none where the file cannot be read."""
    try:
        stored = msgspec.json.decode((places.data / _FILE).read_bytes(), type=list[str])
    except (OSError, msgspec.MsgspecError):
        return frozenset()
    return frozenset(stored) & RISKS.keys()


def give(places: Places, kind: str) -> None:
    _store(places, given(places) | {_checked(kind)})


def revoke(places: Places, kind: str) -> None:
    _store(places, given(places) - {_checked(kind)})


def _checked(kind: str) -> str:
    if kind not in RISKS:
        raise InputError(f"no kind {kind[:40]!r} of files is asked about; there are {', '.join(RISKS)}")
    return kind


def _store(places: Places, kinds: frozenset[str]) -> None:
    write_json(places.data / _FILE, sorted(kinds), private=True)
