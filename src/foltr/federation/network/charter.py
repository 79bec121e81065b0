"""A coordinator's federation: what was fixed when it was created, and the settings that its operator may change."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from foltr.errors import InputError
from foltr.federation.announcement import Ranker
from foltr.federation.membership import Storage
from foltr.federation.network.invitation import FederationKind
from foltr.federation.network.store import Store
from foltr.secagg.terms import Terms

DAY = 86_400.0  # seconds
Days = Annotated[float, msgspec.Meta(gt=0, le=366)]


class Charter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Fixed at `coordinator init`. Terms, kind and start never change: nodes would refuse it."""

    kind: FederationKind
    terms: Terms
    start: Ranker  # version 0
    server_learning_rate: float = 1.0


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`coordinator.toml`, which the operator edits; the server reads it when it starts."""

    name: str  # of the federation, for people
    address: str  # https://host:port by which nodes and the second operator reach the coordinator
    host: str = "127.0.0.1"  # that the server listens on
    port: Annotated[int, msgspec.Meta(ge=1, le=65_535)] = 8490
    admission: str = "invitation"  # whoever has an invitation is admitted; "hand": `coordinator admit` admits
    first_members: Annotated[int, msgspec.Meta(ge=3)] = 5  # a federation begins with at least so many
    close_share: Annotated[float, msgspec.Meta(gt=0, le=1)] = 1.0  # contributions of so many members end a window early
    interval_days: Annotated[float, msgspec.Meta(ge=0, le=366)] = 0.0  # from one round to the next; 0: no pause
    dormant_days: Days = 14.0  # members that were not seen for so long are not in the next registry
    invitation_days: Days = 14.0
    public_certificate: bool = False  # a publicly trusted certificate, of `certificate` and `key`, instead of our own
    certificate: str = ""  # files, PEM
    key: str = ""

    def __post_init__(self) -> None:
        if not self.address.startswith("https://"):
            raise InputError(f"address = {self.address!r}: nodes connect over https:// only")
        if self.admission not in ("invitation", "hand"):
            raise InputError(f"admission = {self.admission!r}: use 'invitation' or 'hand'")
        if not self.name.strip() or not self.name.isprintable() or len(self.name) > 100:
            raise InputError("name: use one line of 1 to 100 characters")


class Desk(NamedTuple):
    """Everything that the coordinator's answers depend on; `desk.handle` and `rounds.advance` are functions of it."""

    store: Store
    charter: Charter
    settings: Settings
    identity: Ed25519PrivateKey  # of the coordinator: announcements, registries, receipts
    operator: Ed25519PrivateKey  # of operator 0
    storage: Storage  # of operator 0: its memory, and its keys and witnesses apart
    cache: dict[Any, Any]  # registries and setups by number

    def __repr__(self) -> str:
        return f"Desk(federation={self.charter.terms.federation!r})"  # no secret reaches a log


Clock = Callable[[], float]


def read_settings(path: Path) -> Settings:
    try:
        return msgspec.toml.decode(path.read_bytes(), type=Settings)
    except FileNotFoundError:
        raise InputError(f"{path}: there is no coordinator here; make one with `foltr coordinator init`") from None
    except (OSError, msgspec.DecodeError, ValueError) as problem:
        raise InputError(f"{path}: {problem}") from None
