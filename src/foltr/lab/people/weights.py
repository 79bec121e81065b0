"""Weights of a linear ranker over named features, as the node stores them."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import foltr.node
from foltr.lab.people.machine import FOLDERS
from foltr.text.matching import FEATURES, NAMES, Feature
from foltr.types import Array

HISTORY = ("opened", "folder")  # what the person opened; local
SHIPPED = Path(foltr.node.__file__).parent / "learning" / "start_weights.json"
LEFT_OUT = Path(__file__).parent / "leave_one_out.json"  # corpus -> weights that were fitted without it


class Weights(NamedTuple):
    names: tuple[str, ...]
    values: Array  # [features]

    @property
    def places(self) -> Array:
        """Where the features of HISTORY are."""
        return np.array([self.names.index(name) for name in HISTORY])

    @property
    def chosen(self) -> tuple[Feature, ...]:
        return tuple(FEATURES[NAMES.index(name)] for name in self.names)


def shipped() -> Weights:
    """The start weights of the node."""
    return _read(json.loads(SHIPPED.read_text(encoding="utf-8"))["features"])


def weights_for(corpus: str) -> Weights:
    """Start weights that were fitted without this corpus; the node's where it was never used."""
    known = json.loads(LEFT_OUT.read_text(encoding="utf-8"))["without"]
    source = _source(corpus)
    return _read(known[source]) if source in known else shipped()


def _source(corpus: str) -> str:
    """The corpus of the fit that a folder's files belong to; the sources of Python have the docstrings in them."""
    if not Path(corpus).is_absolute():
        return corpus
    folder = Path(corpus)
    if any(folder.is_relative_to(one) or Path(one).is_relative_to(folder) for one in FOLDERS):
        return "machine"
    return "docstrings" if re.search(r"/python3?(\.\d+)?(/|$)", folder.as_posix()) else corpus


def _read(listed: list[dict[str, Any]]) -> Weights:
    return Weights(tuple(one["name"] for one in listed), np.array([float(one["weight"]) for one in listed]))


def digest(weights: Weights) -> str:
    """Changes with the weights: stored runs of other weights do not count."""
    content = json.dumps([weights.names, weights.values.tolist()], allow_nan=False)
    return hashlib.sha256(content.encode()).hexdigest()[:8]


def listed(weights: Weights) -> list[dict[str, Any]]:
    """Plain data, as a weight file has it."""
    return [
        {"name": feature.name, "scaling": feature.scaling, "weight": round(float(value), 4)}
        for feature, value in zip(weights.chosen, weights.values, strict=True)
    ]
