"""Federated online learning to rank: clicks train one shared ranker; documents, queries and clicks stay at home."""

from importlib import import_module
from typing import Any

__version__ = "0.2.0.dev0"

# name -> module; imported at first use, so that a client stays light and the command line starts fast
_PUBLIC: dict[str, str] = {
    "Dataset": "foltr.types",
    "Fold": "foltr.lab.data.catalog",
    "FoltrError": "foltr.errors",
    "Interaction": "foltr.types",
    "Model": "foltr.types",
    "Ranker": "foltr.rankers.trained",
    "Result": "foltr.lab.runs.api",
    "Searches": "foltr.client",
    "Spec": "foltr.lab.runs.api",
    "Update": "foltr.types",
    "Updates": "foltr.types",
    "load": "foltr.lab.data.catalog",
    "local_update": "foltr.client",
    "register": "foltr.registry",
    "run": "foltr.lab.runs.api",
    "run_rounds": "foltr.federation.round",
}

__all__ = [
    "Dataset", "Fold", "FoltrError", "Interaction", "Model", "Ranker", "Result", "Searches", "Spec", "Update",
    "Updates", "load", "local_update", "register", "run", "run_rounds",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'foltr' has no attribute {name!r}")
    return getattr(import_module(_PUBLIC[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
