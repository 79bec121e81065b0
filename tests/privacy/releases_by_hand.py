"""Events as tests need them."""

from foltr.privacy.events import Event


def gaussian(multiplier, **more):
    return Event("gaussian", "l2", 1.0, "l2", multiplier, **more)


def laplace(scale, **more):
    return Event("laplace", "l1", 1.0, "l1", scale, **more)


def response(p, outcomes, **more):
    return Event(
        "randomized-response", "outcome", 1.0, "outcome", p,
        unit="interaction", adjacency="replace", outcomes=outcomes, **more,
    )  # fmt: skip
