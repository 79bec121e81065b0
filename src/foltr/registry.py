"""Kinds by name: which class a spec's `kind` stands for, in every slot, and how other people's classes get in.

A kind is a frozen struct with its functions beside it; its tag is its name in a spec. Built-in kinds are named here by
"module:Class" and imported when they are asked for. Others come in by `register(slot, cls)`, by the entry point group
`foltr.plugins` (a module or function that registers when it is loaded), or by `plugins = ["./my_rule.py"]` in a spec.
"""

import hashlib
import importlib
import importlib.metadata
import sys
import types
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from foltr.errors import SpecError, did_you_mean

SLOTS: dict[str, dict[str, str | type]] = {
    "ranker": {"linear": "foltr.rankers.linear:Linear", "mlp": "foltr.rankers.mlp:Mlp"},
    "learner": {
        "pdgd": "foltr.learners.pdgd:Pdgd",
        "foltr-es": "foltr.learners.foltr_es:FoltrEs",
        "softmax": "foltr.learners.softmax:SoftmaxMap",
    },
    "mechanism": {
        "none": "foltr.privacy.mechanisms:NoPrivacy",
        "fpdgd": "foltr.privacy.mechanisms:Fpdgd",
        "randomized-response": "foltr.privacy.mechanisms:RandomizedResponse",
        "gaussian": "foltr.privacy.mechanisms:Gaussian",
        "laplace": "foltr.privacy.mechanisms:Laplace",
    },
    "aggregator": {
        "fedavg": "foltr.federation.aggregators:FedAvg",
        "krum": "foltr.federation.krum:Krum",
        "multi_krum": "foltr.federation.krum:MultiKrum",
        "trimmed_mean": "foltr.federation.robust:TrimmedMean",
        "median": "foltr.federation.robust:Median",
        "bulyan": "foltr.federation.krum:Bulyan",
        "geometric_median": "foltr.federation.geometric_median:GeometricMedian",
        "norm_bounding": "foltr.federation.robust:NormBounding",
    },
    "attack": {
        "none": "foltr.lab.attacks.plain:NoAttack",
        "poison": "foltr.lab.attacks.plain:Poison",
        "lie": "foltr.lab.attacks.lie:Lie",
        "fang": "foltr.lab.attacks.fang:Fang",
        "sign_flip": "foltr.lab.attacks.plain:SignFlip",
        "unbounded": "foltr.lab.attacks.plain:Unbounded",
        "replacement": "foltr.lab.attacks.plain:Replacement",
        "min_max": "foltr.lab.attacks.min_max:MinMax",
        "min_max_unit": "foltr.lab.attacks.min_max:MinMaxUnit",
    },
    "click_model": {},  # names of published tables stand in `foltr.clicks`
    "partition": {
        "none": "foltr.lab.data.partition:NoPartition",
        "intents": "foltr.lab.data.partition:Intents",
        "labels": "foltr.lab.data.partition:Labels",
        "clicks": "foltr.lab.data.partition:Clicks",
        "quantity": "foltr.lab.data.partition:Quantity",
    },
}


def register(slot: str, cls: type) -> type:
    """Makes a class known under its tag; registering the same name again replaces what was registered from outside."""
    if slot not in SLOTS:
        raise SpecError(f"no slot {slot!r}; there are {', '.join(SLOTS)}")
    name = kind_name(cls)
    if isinstance(SLOTS[slot].get(name), str):
        raise SpecError(f"{slot} {name!r} is foltr's own; give your class another tag")
    SLOTS[slot][name] = cls
    _registered.append((slot, cls))
    return cls


_registered: list[tuple[str, type]] = []  # by the plug-in that is being run


def kind_name(cls: type) -> str:
    config = getattr(cls, "__struct_config__", None)
    if config is None or not isinstance(config.tag, str) or config.tag_field != "kind":
        raise SpecError(
            f"{cls.__name__} is no kind: write class {cls.__name__}(msgspec.Struct, frozen=True, "
            f'tag_field="kind", tag="its-name-in-a-spec")'
        )
    return str(config.tag)


def kind(slot: str, name: str) -> type:
    """The class behind a name; a wrong name lists the right ones."""
    _load_entry_points()
    found = SLOTS[slot].get(name)
    if found is None:
        listed = ", ".join(SLOTS[slot])
        raise SpecError(f"no {slot.replace('_', ' ')} {name!r}; there are {listed}.{did_you_mean(name, SLOTS[slot])}")
    if isinstance(found, str):
        module, _, cls = found.partition(":")
        builtin: type = getattr(importlib.import_module(module), cls)
        return builtin
    return found


def names(slot: str) -> list[str]:
    _load_entry_points()
    return list(SLOTS[slot])


def built_in(slot: str) -> list[str]:
    """Names of foltr's own kinds."""
    return [name for name, found in SLOTS[slot].items() if isinstance(found, str)]


@cache
def _load_entry_points() -> None:
    """Installed packages of other people, once a process."""
    for point in importlib.metadata.entry_points(group="foltr.plugins"):
        try:
            loaded: Any = point.load()
            if callable(loaded):
                loaded()
        except Exception as problem:
            raise SpecError(
                f"the installed plug-in {point.name!r} ({point.value}) cannot be loaded: "
                f"{type(problem).__name__}: {problem}; repair or uninstall it"
            ) from problem


class Plugin(NamedTuple):
    """A file that was run, and what it registered."""

    source: bytes
    module: types.ModuleType
    kinds: tuple[tuple[str, type], ...]


_PLUGINS: dict[str, Plugin] = {}  # absolute path -> what was run last


def load_plugin(path: str) -> Plugin:
    """Runs a Python file that registers kinds, once for each content that it has had last; its kinds win over others'.

    The file is compiled here, never taken from a bytecode cache: an edit within the same second counts too.
    """
    file = str(Path(path).resolve())
    try:
        source = Path(file).read_bytes()
    except OSError:
        raise SpecError(f"plugins: there is no file {path}; a path is relative to the folder of the spec") from None
    known = _PLUGINS.get(file)
    if known is None or known.source != source:
        known = _PLUGINS[file] = _run(file, source)
    for slot, cls in known.kinds:
        SLOTS[slot][kind_name(cls)] = cls
    sys.modules[known.module.__name__] = known.module
    return known


def _run(file: str, source: bytes) -> Plugin:
    """A file's module; a file that fails registers nothing."""
    name = f"foltr_plugin_{Path(file).stem}_{hashlib.sha256(file.encode()).hexdigest()[:8]}"
    module = types.ModuleType(name)
    module.__file__ = file
    before, earlier = {slot: dict(kinds) for slot, kinds in SLOTS.items()}, sys.modules.get(name)
    sys.modules[name] = module
    _registered.clear()
    try:
        exec(compile(source, file, "exec"), module.__dict__)  # noqa: S102 - a plug-in is code that a user names
    except Exception as problem:
        SLOTS.update(before)
        sys.modules.pop(name)
        sys.modules.update({name: earlier} if earlier else {})
        raise SpecError(f"plugins: {file} cannot be loaded: {type(problem).__name__}: {problem}") from problem
    return Plugin(source, module, tuple(_registered))


def plugin_source(path: str) -> bytes | None:
    """Source of the plug-in that was run from a file; None where the file is none."""
    known = _PLUGINS.get(path)
    return known.source if known else None
