"""A setting: one complete point of a sweep. Each table is a struct beside its algorithm, with the papers' values as
defaults; this module combines them.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

import msgspec

from foltr import registry
from foltr.clicks import Users
from foltr.errors import SpecError, did_you_mean
from foltr.federation.personalization import Clusters, FedPer, LocalOnly, Offset, Shared
from foltr.lab.attacks.plain import NoAttack
from foltr.lab.audit import Audit
from foltr.lab.data.partition import NoPartition
from foltr.lab.people.settings import KnownItems, Spill, Together, Topical
from foltr.lab.silo.disclosure import Disclosure
from foltr.lab.silo.projection import Projection
from foltr.lab.silo.retrieval import Retrieval
from foltr.lab.simulation.task import Central, Federated
from foltr.privacy.mechanisms import SecAggMode
from foltr.silo.parties import Setup
from foltr.types import Empty

Count = Annotated[int, msgspec.Meta(ge=1)]
MetricNames = Annotated[tuple[str, ...], msgspec.Meta(min_length=1)]


class DataChoice(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    folds: str | int | list[int] | None = None  # None: all that the collection has
    normalize: str | None = None  # None: as is usual for the collection


class Runs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    seeds: Annotated[int, msgspec.Meta(ge=1)] = 1
    first_seed: Annotated[int, msgspec.Meta(ge=0, le=2**62)] = 1
    evaluate_every: Annotated[int, msgspec.Meta(ge=1)] | None = None  # None: about a hundred times a run


class Metrics(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is measured offline, beside nDCG@10 and RR@10; the first is the one that settings are compared by.

    Online metrics count a query without a relevant document as 0.
    """

    names: MetricNames = ("nDCG@10", "RR@10")  # the first ranks settings; AP, ERR, P and R too, as in AP(rel=2)@10
    empty: Empty = "skip"  # queries without a relevant document: left out of offline means, or counted as 0


class Sharing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Queries with all labels that every client gets (S2 section 4.4.3)."""

    fraction: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.0  # of the queries
    warm_up: Annotated[int, msgspec.Meta(ge=0)] = 0  # interactions of the server on them before the first round


class SecAgg(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Operation of secure aggregation; whether it is used is said by `privacy.secure_aggregation`."""

    mode: SecAggMode = "one-server"  # two-servers: two aggregators that do not collude, and that add the noise


class Unlearning(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whether and how clients are unlearned; before, they send -z times their local models."""

    method: Literal["none", "retrain", "calibrated", "logs", "shards", "statistics"] = "none"
    forget_clients: Annotated[tuple[int, ...], msgspec.Meta(min_length=1)] = (0,)
    z: Annotated[float, msgspec.Meta(gt=0)] = 2.0  # they send -z times their local models
    keep_every: Count = 10  # rounds between stored updates
    local_steps: Count = 3  # of calibration, a kept round
    shards: Count = 5
    ridge: Annotated[float, msgspec.Meta(gt=0)] = 10.0  # of the pairwise ranker (statistics)


class Setting(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One point of a sweep, complete. Tables that are slots hold any registered kind."""

    data: DataChoice
    ranker: Any
    learner: Any
    users: Users
    federation: Federated | Central
    privacy: Any
    runs: Runs
    metrics: Metrics = Metrics()
    secagg: SecAgg = SecAgg()
    partition: Any = NoPartition()
    sharing: Sharing = Sharing()
    personal: Shared | FedPer | Offset | Clusters | LocalOnly = Shared()
    attack: Any = NoAttack()
    unlearning: Unlearning = Unlearning()
    audit: Audit = Audit()
    plugins: tuple[str, ...] = ()  # Python files that register further kinds
    part: str = ""


class SiloSetting(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One point of a cross-silo sweep; without clicks, it has other tables."""

    data: DataChoice
    silo: Setup | Retrieval | Disclosure | Projection
    runs: Runs
    part: str = ""


class PeopleSetting(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One point of a sweep over simulated people who search texts with a node."""

    data: DataChoice
    people: KnownItems | Topical | Spill | Together
    runs: Runs
    part: str = ""


TextSetting: TypeAlias = SiloSetting | PeopleSetting
AnySetting: TypeAlias = Setting | TextSetting


class Plan(NamedTuple):
    """All settings of a run, and its name."""

    name: str
    settings: list[AnySetting]
    text: str  # the spec as given
    baseline: Mapping[str, Any] = MappingProxyType({})  # values of the setting that the others are tested against
    tune: Literal["test", "validation"] = "test"  # part on which the best setting is chosen: test or validation


SLOTS = {"ranker": "ranker", "learner": "learner", "privacy": "mechanism", "partition": "partition", "attack": "attack"}
DEFAULTS = {"ranker": "linear", "learner": "pdgd", "privacy": "none", "partition": "none", "attack": "none"}

# table -> kind -> struct; the first is the default. Tables that are slots are asked of the registry
TABLES: dict[str, dict[str, type[msgspec.Struct]]] = {
    "data": {"": DataChoice},
    "users": {"": Users},
    "federation": {"federated": Federated, "central": Central},
    "runs": {"": Runs},
    "metrics": {"": Metrics},
    "secagg": {"": SecAgg},
    "sharing": {"": Sharing},
    "personal": {"none": Shared, "fedper": FedPer, "offset": Offset, "clusters": Clusters, "local_only": LocalOnly},
    "unlearning": {"": Unlearning},
    "audit": {"": Audit},
}
# the table that makes a spec one on texts -> its tables, and its struct
TEXT_TABLES: dict[str, dict[str, dict[str, type[msgspec.Struct]]]] = {
    "silo": {
        "data": {"": DataChoice},
        "silo": {"train": Setup, "retrieval": Retrieval, "disclosure": Disclosure, "projection": Projection},
        "runs": {"": Runs},
    },
    "people": {
        "data": {"": DataChoice},
        "people": {"known-items": KnownItems, "topical": Topical, "spill": Spill, "together": Together},
        "runs": {"": Runs},
    },
}
TEXT_SETTINGS: dict[str, type[SiloSetting] | type[PeopleSetting]] = {"silo": SiloSetting, "people": PeopleSetting}


def text_table(raw: dict[str, Any]) -> str:
    """The table that makes a spec one on texts, or ""."""
    return next((table for table in TEXT_TABLES if table in raw), "")


def tables_of(raw: dict[str, Any]) -> list[str]:
    """The tables of a spec; with a table `silo` it is a cross-silo spec, with `people` one of simulated people."""
    if text_table(raw):
        return list(TEXT_TABLES[text_table(raw)])
    return [table for table in Setting.__struct_fields__ if table in TABLES or table in SLOTS]


def struct_of(table: str, kind: str | None, raw: dict[str, Any]) -> type[msgspec.Struct]:
    """The struct that a table's content is read as."""
    on_texts = text_table(raw)
    if not on_texts and table in SLOTS:
        return registry.kind(SLOTS[table], kind or DEFAULTS[table])
    kinds = (TEXT_TABLES[on_texts] if on_texts else TABLES)[table]
    name = next(iter(kinds)) if kind is None or "" in kinds else kind
    if name not in kinds:
        raise SpecError(f"no {table} {name!r}; there are {', '.join(kinds)}.{did_you_mean(name, kinds)}")
    return kinds[name]


def resolved(setting: AnySetting) -> dict[str, Any]:
    """A setting as plain data, every default written out."""
    plain: dict[str, Any] = msgspec.to_builtins(setting)
    return plain


def stored(plain: dict[str, Any]) -> AnySetting:
    """The setting from the plain data of `resolved`."""
    for path in plain.get("plugins", ()):
        registry.load_plugin(path)
    tables: dict[str, Any] = {}
    for table in tables_of(plain):
        content = plain[table]
        tables[table] = msgspec.convert(content, struct_of(table, content.get("kind"), plain))
    if text_table(plain):
        return TEXT_SETTINGS[text_table(plain)](**tables, part=plain["part"])
    return Setting(**tables, plugins=tuple(plain.get("plugins", ())), part=plain["part"])


def flat(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested tables as one, with dotted keys."""
    out: dict[str, Any] = {}
    for key, value in tree.items():
        out |= flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return out


def num_byzantine(setting: Setting, federation: Federated) -> int:
    """Byzantine clients that the aggregator tolerates: num_attackers, unless the spec states it."""
    attackers: int = getattr(setting.attack, "num_attackers", 0)
    return attackers if federation.num_byzantine is None else federation.num_byzantine


def chosen_folds(folds: str | int | list[int] | None) -> tuple[list[int], str]:
    """The folds of "1-5", "1,3", 2 or [1, 2], none where nothing was chosen, and what is wrong with them."""
    said = f"data.folds = {folds!r}: "
    if folds is None:
        return [], ""
    if isinstance(folds, str):
        ranges = [re.fullmatch(r"\s*(\d{1,3})\s*(?:-\s*(\d{1,3}))?\s*", piece) for piece in folds.split(",")]
        found = [range(int(one[1]), int(one[2] or one[1]) + 1) for one in ranges if one]
        if len(found) < len(ranges):
            return [], said + "expected a number, a range such as 1-5, or a list such as 1,3"
        if not all(found):
            return [], said + "an empty range; the first number must not be the larger"
        chosen = [fold for one in found for fold in one]
    else:
        chosen = [folds] if isinstance(folds, int) else folds
    if not chosen or min(chosen) < 1:
        return [], said + "folds count from 1, and there must be one at least"
    if len(set(chosen)) < len(chosen):
        return [], said + "a fold is named twice"
    return chosen, ""
