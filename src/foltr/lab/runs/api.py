"""The Python API: `foltr.run(Spec(...)) -> Result`, or `foltr.run("spec.toml")`."""

from pathlib import Path
from typing import Any, NamedTuple

from foltr.lab import records
from foltr.lab.records import Rows
from foltr.lab.runs.run import finish, prepare, results, run_missing
from foltr.lab.spec.parse import plan, read
from foltr.rankers.trained import Ranker


class Spec(dict[str, Any]):
    """A spec as keyword arguments, with the tables of a spec file: Spec(data={"name": "mq2007"}, ...)."""


class Result(NamedTuple):
    """A finished run."""

    run: records.Run

    @property
    def summary(self) -> dict[str, Any]:
        """The object that `foltr run --json` prints."""
        return results(self.run)

    @property
    def curves(self) -> Rows:
        """Mean, sd and runs of every metric by setting and round."""
        return records.all_curves(self.run.rows)

    @property
    def ranker(self) -> Ranker:
        """The ranker of the first setting, first fold and first seed."""
        return Ranker.load(self.run.dir / "ranker.npz")


def run(spec: Spec | dict[str, Any] | str | Path, *, out: str | Path = "runs", jobs: int = 1) -> Result:
    """Runs a spec, or the file of one, and reads the result back.

    With jobs > 1, call it under `if __name__ == "__main__":`.
    """
    planned = read(Path(spec)) if isinstance(spec, str | Path) else plan(dict(spec))
    prepared = prepare(planned, Path(out))
    for _ in run_missing(prepared, jobs=jobs):
        pass
    return Result(finish(prepared))
