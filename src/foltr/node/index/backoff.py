"""Files that change all the time, such as logs, are read less and less often.

The first change of a file is read at once. While changes go on, the time between two readings doubles, from FIRST up to
LONGEST seconds; a file that stays unchanged for four times its last interval begins anew.
"""

from typing import NamedTuple

FIRST, LONGEST = 2.0, 120.0  # seconds between two readings
_QUIET = 4  # intervals without a change after which a file begins anew


class _Reading(NamedTuple):
    time: float
    interval: float  # until the next one
    changed: bool  # since then


class Backoff:
    """When each file was read last, and whether it has changed since."""

    def __init__(self) -> None:
        self._readings: dict[str, _Reading] = {}

    def changed(self, path: str, now: float) -> bool:
        """Whether a changed file is to be read now; else `due` returns it when its time has come."""
        last = self._readings.get(path)
        if last is None or now - last.time > _QUIET * last.interval:
            self._readings[path] = _Reading(now, FIRST, False)
            return True
        if now >= last.time + last.interval:
            self._readings[path] = _Reading(now, min(2 * last.interval, LONGEST), False)
            return True
        self._readings[path] = last._replace(changed=True)
        return False

    def due(self, now: float) -> list[str]:
        """Files that have waited long enough. Those that were quiet are forgotten."""
        ready = [path for path, last in self._readings.items() if last.changed and now >= last.time + last.interval]
        for path in ready:
            self.changed(path, now)
        self._readings = {
            path: last
            for path, last in self._readings.items()
            if last.changed or now - last.time <= _QUIET * last.interval
        }
        return ready
