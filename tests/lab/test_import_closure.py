"""Imports are followed wherever they stand, within a package; only what computes counts of a source."""

import textwrap
from pathlib import Path

import pytest
from sources import written

from foltr.lab.runs import keys
from foltr.lab.runs.closure import code_in, import_closure

# --- what counts of a source ----------------------------------------------------------------------------------------


def digest(text):
    return code_in(textwrap.dedent(text).encode()).digest


FUNCTION = """
    LIMIT = 3
    def f(x, y=1):
        total = x + y
        return min(total, LIMIT)
    """


@pytest.mark.parametrize(
    "same",
    [
        '''
        """A module."""
        LIMIT: int = 3
        def f(x: float, y: "int" = 1) -> float:
            """A docstring."""
            total: float = x + y  # the sum
            return min(total, LIMIT)
        ''',
        """
        LIMIT = 3

        def f(
            x,
            y=1,
        ):
            total = (x + y)
            return min(total, LIMIT)
        """,
    ],
    ids=["docstrings, annotations and comments", "layout"],
)
def test_what_does_not_compute_does_not_count(same):
    plain = digest(FUNCTION.replace("LIMIT = 3", "LIMIT: None = 3").replace("total = x", "total: None = x"))
    assert digest(same) in (plain, digest(FUNCTION))


@pytest.mark.parametrize(
    ("old", "new"), [("LIMIT = 3", "LIMIT = 4"), ("y=1", "y=2"), ("min(", "max("), ("x + y", "y + x")]
)
def test_what_computes_counts(old, new):
    assert digest(FUNCTION.replace(old, new)) != digest(FUNCTION)


def test_annotations_of_fields_count():
    assert digest("class A:\n    x: int = 0") != digest("class A:\n    x: float = 0")


# --- imports --------------------------------------------------------------------------------------------------------


def followed(folder, first):
    """Names of the files of a folder that are reached from one of them."""
    found = import_closure([str((folder / first).resolve())], neutral=("foltr.*",))
    return {Path(one).relative_to(folder.resolve()).as_posix() for one in found}


def test_imports_are_found_wherever_they_stand(tmp_path):
    for name in ("direct", "renamed", "inner", "under_condition", "tried", "unrelated"):
        written(tmp_path, **{name: "X = 1"})
    written(
        tmp_path,
        first="""
        import direct
        import renamed as other
        import numpy, os.path
        if other:
            from under_condition import X
        try:
            from tried import X as Y
        except ImportError:
            pass
        def f():
            import inner
            return import_module("unrelated"), "unrelated:X"
        """,
    )
    names = ("first", "direct", "renamed", "inner", "under_condition", "tried")
    assert followed(tmp_path, "first.py") == {f"{name}.py" for name in names}


def test_a_package_is_followed_with_the_modules_that_are_imported_from_it(tmp_path):
    plug = tmp_path / "plug"
    written(plug, __init__="from plug import shared", shared="X = 1", median="from plug import other, NAME", unused="")
    written(plug, other="from .deep import leaf\nfrom . import beside", beside="import outside", NAME_="")
    written(plug / "deep", __init__="", leaf="from ..far import X", unused="")
    written(plug, far="X = 1")
    written(tmp_path, outside="X = 1")
    found = {"__init__", "shared", "median", "other", "beside", "far", "deep/__init__", "deep/leaf"}
    assert followed(tmp_path, "plug/median.py") == {f"plug/{name}.py" for name in found}


def test_files_side_by_side_among_installed_packages_are_unrelated(tmp_path):
    folder = written(tmp_path / "site-packages", median="import library", library="X = 1")
    assert followed(folder, "median.py") == {"median.py"}


def test_modules_of_foltr_bring_their_packages_and_what_they_import():
    found = import_closure(["foltr.lab.simulation.engines"], neutral=("foltr.errors",))
    assert {"foltr", "foltr.lab", "foltr.lab.simulation", "foltr.learners.foltr_es", "foltr.rng"} <= set(found)
    alone = import_closure(["foltr.lab.simulation.engines"], neutral=keys.NEUTRAL, switches=keys.SWITCHES)
    assert not {"foltr", "foltr.learners.foltr_es"} & set(alone)
