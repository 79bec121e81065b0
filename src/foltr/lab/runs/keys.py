"""The code behind a single run, as one digest: it changes exactly when code that can change the run's numbers does.

The code is the static import closure (`closure`) of the components that a setting names: the modules of its kinds and
plug-ins, and the module that executes the run. Modules that import all kinds of a slot are switches: their imports of
kinds are not followed, so that a run with FedAvg does not depend on Krum. The versions of the libraries that compute
count too.

The tables below are all that this module knows about others. `tests/lab/test_result_keys.py` checks them against the
package and against what small runs execute.
"""

import hashlib
import importlib.util
import secrets
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from foltr import registry
from foltr._kernels.machine import USE_SIMD
from foltr.errors import SpecError
from foltr.lab.runs.closure import SourceOf, code_in, import_closure, is_inside, source_on_disk
from foltr.lab.spec.setting import AnySetting, PeopleSetting, SiloSetting

# In all tables `package.*` stands for a package and everything below it; a name alone is a module, or an __init__.

# The modules that execute a run on clicks, a cross-silo run, and one of people with a node.
CLICK_RUN = "foltr.lab.runs.single"
SILO_RUN = "foltr.lab.silo.runs"
PEOPLE_RUN = "foltr.lab.people.runs"

# Modules that decide no number of a result: they do not count, and their imports are not followed.
NEUTRAL = (
    "foltr",  # public names, imported on first use
    "foltr.files",
    "foltr.cli.*",
    "foltr.errors",
    "foltr.lab.bench.*",
    "foltr.lab.figures.*",
    "foltr.lab.records",
    "foltr.lab.reporting.*",
    "foltr.lab.runs.card",
    "foltr.lab.runs.pool",
    "foltr.lab.runs.progress",
    "foltr.lab.runs.run",
    "foltr.lab.runs.store",
    "foltr.lab.runs.on_texts",
    "foltr.lab.silo.card",
    "foltr.privacy.card",
    "foltr.registry",  # the class that it finds is a component by itself
)

# Modules that import all kinds of a slot and run the one that the setting names -> imports that are not followed.
_LEARNERS = ("foltr._kernels.foltr_es", "foltr._kernels.pdgd", "foltr.learners.*")
SWITCHES: dict[str, tuple[str, ...]] = {
    "foltr.federation.releases": ("foltr.privacy.events", "foltr.privacy.ledger"),
    "foltr.federation.round": ("foltr.privacy.events", "foltr.privacy.ledger"),
    "foltr.lab.runs.single": ("foltr.lab.audit.*", "foltr.lab.runs.unlearning"),
    "foltr.lab.silo.runs": ("foltr.lab.silo.*", "foltr.silo.*"),
    "foltr.lab.simulation.batches": _LEARNERS,
    "foltr.lab.simulation.compiled": ("foltr.learners.*",),
    "foltr.lab.simulation.engines": ("foltr.learners.*",),
    "foltr.lab.simulation.plain": ("foltr.learners.*",),
    "foltr.lab.simulation.protection": ("foltr._kernels.noise",),
    "foltr.lab.simulation.rounds": ("foltr.federation.buffered", "foltr.federation.detector", "foltr.secagg.*"),
    "foltr.lab.simulation.task": ("foltr.federation.buffered", "foltr.learners.*"),
    "foltr.lab.spec.setting": ("foltr.*",),
    "foltr.node": ("foltr.node.*",),  # for type checkers; loaded when a name is used, which no run does
    "foltr.privacy.ledger": ("foltr.privacy.accounting",),  # admission is in closed form
    "foltr.privacy.mechanisms": ("foltr.privacy.calibration", "foltr.privacy.events", "foltr.privacy.noise"),
}

# What a switch runs for a component: for a module that is reached, or for a kind that the setting names, `module:kind`.
IMPLEMENTED_BY: dict[str, tuple[str, ...]] = {
    "foltr.lab.audit:Audit": ("foltr.lab.audit.click_guessing",),
    "foltr.lab.spec.setting:Unlearning": ("foltr.lab.runs.unlearning",),
    "foltr.learners.foltr_es": ("foltr._kernels.foltr_es",),
    "foltr.learners.pdgd": ("foltr._kernels.pdgd",),
    "foltr.silo.parties:Setup": ("foltr.lab.silo.training", "foltr.privacy.accounting"),
}

# What a switch runs for a trait of a kind, whoever wrote it: slot -> trait -> its value -> modules.
TRAITS: dict[str, dict[str, dict[Any, tuple[str, ...]]]] = {
    "federation": {
        "defend_on_detection": {True: ("foltr.federation.detector",)},
        "mode": {"buffered": ("foltr.federation.buffered",)},
    },
    "learner": {"message": {"objective": ("foltr.learners.foltr_es",)}},
    "privacy": {
        "acts_on": {
            "delta": ("foltr._kernels.noise", "foltr.privacy.ledger", "foltr.privacy.noise"),
            "outcome": ("foltr.privacy.ledger",),
        },
        "secure_aggregation": {"execute": ("foltr.secagg.in_process", "foltr.secagg.two_in_process")},
    },
}

# Tables of a setting that name no component when the key has this value.
OFF: dict[str, Any] = {"audit.messages": 0, "unlearning.method": "none"}

# Keys of a setting whose value is the name of a kind -> the slot of the registry.
NAMED = {"federation.aggregator": "aggregator", "users.clicks": "click_model"}

LIBRARIES = ("numpy", "numba", "llvmlite", "scipy", "dp-accounting")

Resolve: TypeAlias = Callable[[str, str], Any]  # (dotted key, its value) -> the kind that it names, or None


def registered(key: str, value: str) -> Any:
    """The kind that a key of a setting names; None where it names none."""
    slot = NAMED.get(key)
    return registry.kind(slot, value) if slot and value in registry.names(slot) else None


def code_of(setting: AnySetting, *, resolve: Resolve = registered, source_of: SourceOf = source_on_disk) -> str:
    """The digest of the code and libraries behind a setting.

    It differs on each call, so that no stored result matches, if the code in memory may not be that of a file: for a
    class of a notebook cell, for a kind of a plug-in that was edited and loaded again, and for a module that a plug-in
    imports and that was edited since this process first read it.
    """
    components = tuple(components_of(setting, resolve=resolve))
    if not all(map(_is_current, _kinds(setting, "", resolve))):
        return secrets.token_hex(32)
    return (_stored_digest if all(map(is_inside, components)) else _digest)(components, source_of)


def reached(components: Iterable[str], source_of: SourceOf = source_on_disk) -> list[str]:
    """All modules that count for these components."""
    return import_closure(
        components, neutral=NEUTRAL, switches=SWITCHES, implemented_by=IMPLEMENTED_BY, source_of=source_of
    )


def _digest(components: tuple[str, ...], source_of: SourceOf) -> str:
    digest = hashlib.sha256(repr(versions()).encode())
    for module in reached(components, source_of):
        source = source_of(module)
        code = code_in(source).digest if source is not None else ""
        if not is_inside(module) and not (code and _in_memory(module, code)):
            return secrets.token_hex(32)
        name = module if is_inside(module) else Path(module).name
        digest.update(f"{name} {code}\n".encode())
    return digest.hexdigest()


_stored_digest = cache(_digest)


def _in_memory(file: str, code: str) -> bool:
    """Whether the code of a file outside foltr is the one that runs. What a plug-in imports is imported once only."""
    run = registry.plugin_source(file)
    return (_first_read.setdefault(file, code) if run is None else code_in(run).digest) == code


_first_read: dict[str, str] = {}  # file outside foltr that is no plug-in -> digest of its code


def _is_current(kind: Any) -> bool:
    """Whether a kind is the class of its module, and not one of a plug-in before an edit."""
    module = sys.modules.get(kind.__module__)
    return is_inside(kind.__module__) or getattr(module, kind.__qualname__, None) is kind


@cache
def versions() -> tuple[tuple[str, str], ...]:
    """Versions of Python and of LIBRARIES, empty where one is not installed; and whether SIMD runs."""
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return (("python", python), ("simd", str(USE_SIMD)), *((name, _version(name)) for name in LIBRARIES))


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


# --- components -----------------------------------------------------------------------------------------------------


def components_of(setting: AnySetting, *, resolve: Resolve = registered) -> list[str]:
    """The modules of a setting's kinds and plug-ins, with what implements them, and the module that executes it."""
    found = {_executed_by(setting)}
    for kind in _kinds(setting, "", resolve):
        found |= {_module(kind.__module__), *IMPLEMENTED_BY.get(f"{kind.__module__}:{kind.__qualname__}", ())}
    for table, traits in TRAITS.items():
        for trait, modules in traits.items():
            found |= {*modules.get(getattr(getattr(setting, table, None), trait, None), ())}
    learner = getattr(setting, "learner", None)
    if learner is not None and not is_inside(type(learner).__module__):
        found.add("foltr.learners.pdgd")  # by which the plain engine trains a centre and a warm-up
    found |= {_plugin(named) for named in getattr(setting, "plugins", ())}
    return sorted(found)


def _executed_by(setting: AnySetting) -> str:
    if isinstance(setting, PeopleSetting):
        return PEOPLE_RUN
    return SILO_RUN if isinstance(setting, SiloSetting) else CLICK_RUN


def _kinds(value: Any, key: str, resolve: Resolve) -> Iterator[Any]:
    """The classes of all structs in a setting, and the kinds that its strings name."""
    if isinstance(value, str):
        kind = resolve(key, value)
        if kind is not None:
            yield kind
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _kinds(one, key, resolve)
    elif isinstance(value, msgspec.Struct):
        fields = [(dotted, getattr(value, name)) for name, dotted in _keys(type(value), key)]
        if any(dotted in OFF and OFF[dotted] == content for dotted, content in fields):
            return
        yield type(value)
        for dotted, content in fields:
            yield from _kinds(content, dotted, resolve)


@cache
def _keys(struct: type[msgspec.Struct], key: str) -> list[tuple[str, str]]:
    """The fields of a struct that stands at a key, and the dotted keys of these."""
    return [(name, f"{key}.{name}".lstrip(".")) for name in struct.__struct_fields__]


def _module(name: str) -> str:
    """The name of a module in `closure`: the name inside foltr; else the path of its file, if it has one."""
    if is_inside(name):
        return name
    loaded = sys.modules.get(name)
    file = getattr(loaded, "__file__", None)
    if loaded is None:
        spec = importlib.util.find_spec(name) if "." not in name else None
        file = spec.origin if spec else None
    return str(Path(file).resolve()) if file and Path(file).is_file() else name


def _plugin(named: str) -> str:
    """An entry of a setting's `plugins`: the path of a file, or the name of a module."""
    if not named.endswith(".py"):
        return _module(named)
    if not Path(named).is_file():
        raise SpecError(f"plugins: {named}: there is no such file")
    return str(Path(named).resolve())
