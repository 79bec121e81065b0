"""Kinds that break one law, and what is said of them."""

import itertools

import pytest


def broken(right, **changed):
    """A class that does what an instance does, but for what is changed."""
    names = [name for name in dir(right) if not name.startswith("__")]
    parts = {name: classmethod(lambda cls, *a, n=name, **k: getattr(right, n)(*a, **k))
             for name in names if callable(getattr(right, name))}  # fmt: skip
    traits = {name: getattr(right, name) for name in names if not callable(getattr(right, name))}
    return type("Broken", (), {**traits, **parts, **changed})


def refused(check, cls, law, **more):
    with pytest.raises(AssertionError, match=f"^Broken: .*{law}"):
        check(cls, **more)


def counted(call):
    """The call with a number that grows as last argument."""
    number = itertools.count()
    return lambda *a, **k: call(*a, next(number), **k)


def overwriting(at, call):
    """The call, after which one of its arguments is another."""

    def changed(self, *a, **k):
        result = call(self, *a, **k)
        a[at][...] = 0
        return result

    return changed
