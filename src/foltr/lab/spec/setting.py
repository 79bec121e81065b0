"""A setting: one point of a sweep, complete. Each table is a struct that stands beside its algorithm, with the papers'
values as defaults; this module only puts them together.
"""

import re
from typing import Annotated, Any, NamedTuple, TypeAlias

import msgspec

from foltr.clicks import Users
from foltr.errors import SpecError
from foltr.federation.personalization import Clusters, FedPer, LocalOnly, Offset, Together
from foltr.federation.round import Central, Federated
from foltr.lab.attacks.choice import AttackChoice
from foltr.lab.audit import Audit
from foltr.lab.data.partition import Clicks, Intents, Labels, Quantity
from foltr.lab.silo.projection import Picture
from foltr.lab.silo.retrieval import Finding
from foltr.learners.foltr_es import FoltrEs
from foltr.learners.pdgd import Pdgd
from foltr.privacy.mechanisms import Fpdgd, Gaussian, Laplace, NoPrivacy, RandomizedResponse
from foltr.rankers import Linear, Mlp
from foltr.silo.parties import Setup
from foltr.unlearning.choice import Unlearning


class DataChoice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    folds: str | int | list[int] = "1-5"
    normalize: str | None = None  # None: as is usual for the collection


class Runs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    seeds: Annotated[int, msgspec.Meta(ge=1)] = 1
    first_seed: Annotated[int, msgspec.Meta(ge=0, le=2**62)] = 1
    evaluate_every: Annotated[int, msgspec.Meta(ge=1)] | None = None  # None: about a hundred times a run


class Even(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="kind", tag="none"):
    """Everybody holds everything."""


class Sharing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Queries with all their labels that everybody is given (S2 section 4.4.3)."""

    fraction: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.0
    warm_up: Annotated[int, msgspec.Meta(ge=0)] = 0  # interactions of the server on them before the first round


class Setting(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One point of a sweep, complete."""

    data: DataChoice
    ranker: Linear | Mlp
    learner: Pdgd | FoltrEs
    users: Users
    federation: Federated | Central
    privacy: NoPrivacy | Fpdgd | RandomizedResponse | Gaussian | Laplace
    runs: Runs
    partition: Even | Intents | Labels | Clicks | Quantity = Even()
    sharing: Sharing = Sharing()
    personal: Together | FedPer | Offset | Clusters | LocalOnly = Together()
    attack: AttackChoice = AttackChoice()
    unlearning: Unlearning = Unlearning()
    audit: Audit = Audit()
    part: str = ""


class SiloSetting(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One point of a sweep over organisations with texts: nobody clicks, so it has tables of its own."""

    data: DataChoice
    silo: Setup | Finding | Picture
    runs: Runs
    part: str = ""


AnySetting: TypeAlias = Setting | SiloSetting


class Plan(NamedTuple):
    """All settings of a run, and what it is called."""

    name: str
    settings: list[AnySetting]
    text: str  # the spec as given


Tables: TypeAlias = dict[str, dict[str, type[msgspec.Struct]]]  # table -> kind -> struct; the first is the default
TABLES: Tables = {
    "data": {"": DataChoice},
    "ranker": {"linear": Linear, "mlp": Mlp},
    "learner": {"pdgd": Pdgd, "foltr-es": FoltrEs},
    "users": {"": Users},
    "federation": {"federated": Federated, "central": Central},
    "privacy": {
        "none": NoPrivacy,
        "fpdgd": Fpdgd,
        "randomized-response": RandomizedResponse,
        "gaussian": Gaussian,
        "laplace": Laplace,
    },
    "runs": {"": Runs},
    "partition": {"none": Even, "intents": Intents, "labels": Labels, "clicks": Clicks, "quantity": Quantity},
    "sharing": {"": Sharing},
    "personal": {"none": Together, "fedper": FedPer, "offset": Offset, "clusters": Clusters, "local_only": LocalOnly},
    "attack": {"": AttackChoice},
    "unlearning": {"": Unlearning},
    "audit": {"": Audit},
}


SILO_TABLES: Tables = {
    "data": {"": DataChoice},
    "silo": {"train": Setup, "find": Finding, "picture": Picture},
    "runs": {"": Runs},
}


def resolved(made: AnySetting) -> dict[str, Any]:
    """A setting as plain data, every default written out."""
    plain: dict[str, Any] = msgspec.to_builtins(made)
    return plain


def kept(plain: dict[str, Any]) -> AnySetting:
    """The setting that `resolved` made plain data of."""
    kind: Any = SiloSetting if "silo" in plain else Setting
    made: AnySetting = msgspec.convert(plain, kind)
    return made


def flat(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested tables as one, with dotted keys."""
    out: dict[str, Any] = {}
    for key, value in tree.items():
        out |= flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return out


def num_byzantine(made: Setting, federation: Federated) -> int:
    """Attackers that the rule reckons with: as many as there are, if the spec does not say."""
    return made.attack.num_attackers if federation.num_byzantine is None else federation.num_byzantine


def folds_of(data: DataChoice) -> list[int]:
    """ "1-5", "1,3", 2 or [1, 2] as a list."""
    chosen, complaint = chosen_folds(data.folds)
    if complaint:
        raise SpecError(complaint)
    return chosen


def chosen_folds(folds: str | int | list[int]) -> tuple[list[int], str]:
    """The chosen folds, and what is wrong with them."""
    said = f"data.folds = {folds!r}: "
    if isinstance(folds, str):
        ranges = [re.fullmatch(r"\s*(\d{1,3})\s*(?:-\s*(\d{1,3}))?\s*", piece) for piece in folds.split(",")]
        found = [range(int(one[1]), int(one[2] or one[1]) + 1) for one in ranges if one]
        if len(found) < len(ranges):
            return [], said + "expected a number, a range such as 1-5, or a list such as 1,3"
        if not all(found):
            return [], said + "that is no fold at all; the first number must not be the larger"
        chosen = [fold for one in found for fold in one]
    else:
        chosen = [folds] if isinstance(folds, int) else folds
    if not chosen or min(chosen) < 1:
        return [], said + "folds count from 1, and there must be one at least"
    if len(set(chosen)) < len(chosen):
        return [], said + "a fold is named twice"
    return chosen, ""
