"""Runs on texts: cross-silo experiments and simulated people. Both have `load`, `check`, `facts` and `run_setting`."""

from collections.abc import Iterator
from types import ModuleType
from typing import Any

from foltr.lab.people import runs as people_runs
from foltr.lab.silo import runs as silo_runs
from foltr.lab.simulation.evaluation import Progress, RunResult
from foltr.lab.spec.setting import SiloSetting, TextSetting


def _module(setting: TextSetting) -> ModuleType:
    return silo_runs if isinstance(setting, SiloSetting) else people_runs


def load(setting: TextSetting) -> Any:
    """The texts of a setting; DataMissing where they are not on this machine."""
    return _module(setting).load(setting.data)


def checked(setting: TextSetting) -> dict[str, Any]:
    """Checks a setting against its texts and returns the facts of the texts."""
    texts = load(setting)
    _module(setting).check(setting, texts)
    facts: dict[str, Any] = _module(setting).facts(setting, texts)
    return facts


def run_setting(setting: TextSetting, seed: int) -> Iterator[Progress | RunResult]:
    """Progress and the result of one single run."""
    yield from _module(setting).run_setting(setting, load(setting), seed)
