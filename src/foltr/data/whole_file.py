"""Arrays on disk, whole or not at all."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from foltr.errors import StorageError
from foltr.types import Array


def write_arrays(path: Path, arrays: Mapping[str, Array]) -> int:
    """An .npz file that appears when it is complete; returns its bytes."""
    named: dict[str, Any] = dict(arrays)
    beside = path.with_name(path.name + ".part")
    try:
        with beside.open("wb") as file:
            np.savez(file, **named)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise StorageError(f"{path} could not be written: {error.strerror or error}") from error
    return path.stat().st_size
