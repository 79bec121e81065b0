"""The history: each client's update of every dt-th round, kept on the client's side, in single precision.

Source: S2 section 6.1.2. Single precision halves what a phone has to keep and moves a length by less than 1e-7 of it.

Differs from the paper: nothing. But calibrated replay uses only the length of an update, so 8 bytes a kept round would
do where the paper keeps all P numbers.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from foltr.errors import StorageError
from foltr.types import Array
from foltr.unlearning import storage
from foltr.unlearning.rounds import Round

KIND = "history-1"  # of the file; changes with its layout


class History(NamedTuple):
    """One row an update, in the order of rounds; a row lies with its client."""

    rounds: Array  # [rows] int32: 1, 1 + dt, ...
    clients: Array  # [rows] int32
    steps: Array  # [rows] int32 interactions behind the update
    updates: Array  # [rows, P] float32


def gather(rounds: Iterable[Round]) -> History:
    """The kept updates of these rounds."""
    kept = [(done, done.updates) for done in rounds if done.updates is not None]
    if not kept:
        raise StorageError("no round kept its updates; give `federate` keep_every = 1 or more")
    return History(
        np.concatenate([np.full(len(done.clients), done.round, np.int32) for done, _ in kept]),
        np.concatenate([done.clients for done, _ in kept]).astype(np.int32),
        np.concatenate([done.steps for done, _ in kept]).astype(np.int32),
        np.concatenate([updates.astype(np.float32) for _, updates in kept]),
    )


def lengths(history: History) -> Array:
    """[rows] L2 norms, summed in double precision."""
    return np.linalg.norm(history.updates.astype(np.float64), axis=1)


def save(path: Path, history: History) -> int:
    """Writes the history; returns its size on disk in bytes."""
    return storage.write(path, KIND, history._asdict())


def load(path: Path) -> History:
    """A history as it was saved; a damaged file is an error that says so."""
    history = History(**storage.read(path, KIND, History._fields))
    rows = {len(column) for column in history}
    if len(rows) != 1 or history.updates.ndim != 2 or np.any(np.diff(history.rounds) < 0):
        raise storage.damaged(path, "its columns do not fit together")
    if not np.isfinite(history.updates).all():
        raise storage.damaged(path, "it holds updates that are not finite")
    return history
