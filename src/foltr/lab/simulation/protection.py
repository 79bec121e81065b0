"""A mechanism's `protect` for a whole cohort: by kernels where there are some, else client by client.

Random numbers are those of the clients' own streams, so that the batch equals the map. They follow from the seed:
anybody who has it can subtract the noise, so what a lab run puts out is no release.
"""

import itertools
from typing import Any

import numpy as np

from foltr._kernels.noise import add_gamma_shares, add_gaussian_shares
from foltr.clipping import clipped_to
from foltr.federation.engine import Transform
from foltr.federation.round import Protection, Release
from foltr.lab.simulation.grouped import group_rows
from foltr.privacy.mechanisms import Fpdgd, Gaussian, Laplace
from foltr.rng import stream
from foltr.types import Array, Updates


def protect_rows(mechanism: Any, rows: Array, clients: Array, release: Release, *, seed: int, round: int) -> Array:
    """[n, V] protected deltas from [n, P] plain ones."""
    if mechanism.acts_on != "delta":
        return rows
    event, clip = release.event, release.state
    if event is None:
        return _one_by_one(mechanism, rows, clients, release, seed=seed, round=round)
    if type(mechanism) is Fpdgd:
        scale = mechanism.sensitivity / mechanism.epsilon
        add_gamma_shares(rows, clients, scale, 1.0 / event.noise_contributors, seed, round)
        return rows
    if type(mechanism) is Laplace:
        rows, _ = clipped_to(rows, clip=clip, norm="l1")
        scale = event.noise / event.bound * clip
        add_gamma_shares(rows, clients, scale, 1.0 / event.noise_contributors, seed, round)
        return rows
    if type(mechanism) is Gaussian and not mechanism.adaptive:
        rows, _ = clipped_to(rows, clip=clip, norm="l2")
        if event.noise_by == "servers":
            return rows
        stddev = event.noise / event.bound * clip / np.sqrt(event.noise_contributors)
        add_gaussian_shares(rows, clients, stddev, seed, round)
        return rows
    return _one_by_one(mechanism, rows, clients, release, seed=seed, round=round)


def server_noise(protection: Protection, *, seed: int, clients: int, groups: int = 1) -> Transform | None:
    """Noise that two servers add to a sum, each all of the noise; None with one server, where clients add it in shares.

    It is added to one row of each group: only sums are used. Rows that are not finite are left out of sums, so the row
    is the first that is. The servers' streams are those of clients after the last.
    """
    event = protection.event
    if event is None or event.noise_by == "clients":
        return None
    stddev = event.noise / np.sqrt(event.noise_contributors)

    def add_noise(updates: Updates, model: Array, round: int) -> Updates:
        values = updates.values.copy()
        everybody = [np.arange(len(values))]
        members = everybody if groups == 1 else group_rows(len(values), groups, seed=seed, round=round)
        rows = [int(one[np.isfinite(values[one]).all(axis=1).argmax()]) for one in members]
        for number, row in itertools.product(range(event.noise_contributors), rows):
            source = clients + number * groups + rows.index(row)
            values[row] += stddev * stream(seed, round=round, client=source, purpose="noise").normal(len(model))
        return updates._replace(values=values)

    return add_noise


def _one_by_one(mechanism: Any, rows: Array, clients: Array, release: Release, *, seed: int, round: int) -> Array:
    return np.stack([
        mechanism.protect(row, release.state, release.event, stream(seed, round=round, client=client, purpose="noise"))
        for row, client in zip(rows, clients.tolist(), strict=True)
    ])  # fmt: skip
