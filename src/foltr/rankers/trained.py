"""A trained ranker with its parameters: load, score, save."""

import io
import json
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from foltr import registry
from foltr.errors import InputError, SpecError, StorageError
from foltr.files import write_arrays
from foltr.types import Array


class Ranker(NamedTuple):
    """A scoring function with its parameters."""

    kind: Any
    parameters: Array

    def score(self, features: Array) -> Array:
        """[documents] higher is better; features [documents, d]."""
        given = np.atleast_2d(features)
        if self.kind.size(given.shape[1]) != len(self.parameters):
            raise InputError(
                f"this ranker has {len(self.parameters)} parameters, which does not fit {given.shape[1]} features"
            )
        scores: Array = self.kind.score(self.parameters, given)
        return scores

    def predict(self, features: Array) -> Array:
        """`score` under scikit-learn's name."""
        return self.score(features)

    def save(self, path: str | Path) -> None:
        """A file of the form of a run's ranker.npz, with this one ranker in it."""
        kind = json.dumps(msgspec.to_builtins(self.kind), allow_nan=False)
        write_arrays(Path(path), {"setting_0": self.parameters[None], "setting_0_ranker": np.array(kind)})

    @staticmethod
    def load(path: str | Path, *, setting: int = 0, index: int = 0) -> "Ranker":
        """One of the rankers in a run's ranker.npz."""
        try:
            with np.load(io.BytesIO(Path(path).read_bytes())) as arrays:
                content = json.loads(str(arrays[f"setting_{setting}_ranker"]))
                kind: Any = msgspec.convert(content, registry.kind("ranker", content.get("kind")))
                return Ranker(kind, arrays[f"setting_{setting}"][index])
        except FileNotFoundError:
            raise InputError(f"{path}: there is no such file; a run leaves its rankers in ranker.npz") from None
        except (OSError, ValueError, TypeError, EOFError, zipfile.BadZipFile, AttributeError, SpecError) as problem:
            raise StorageError(f"{path}: not a ranker file, or a damaged one ({problem})") from None
        except (KeyError, IndexError):
            raise InputError(f"{path}: there is no ranker {index} of setting {setting} in it") from None
