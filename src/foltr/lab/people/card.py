"""The privacy card of a setting with simulated people: a node alone sends nothing; together, clipped differences."""

from typing import Any

from foltr.lab.spec.setting import PeopleSetting

_LOCAL = "Documents, queries, clicks and weights stay on the node: nothing is sent."
_SENT = (
    "Each release sends the difference of a person's weights to the shared ones, clipped at an L2 norm of {clip:g}, "
    "without noise: the server learns it unless sums are aggregated securely. There is no epsilon."
)


def card_of(setting: PeopleSetting) -> dict[str, Any]:
    """Plain data, as `privacy.card` has it."""
    together = setting.people.sends
    seen = [
        {"id": "server", "who": "the server", "sees": "clipped differences of weights", "here": True,
         "epsilon": "infinite", "unit": "person", "adjacency": "zero-out"},
    ] if together else []  # fmt: skip
    sentence = _SENT.format(clip=getattr(setting.people, "clip", 0.0)) if together else _LOCAL
    return {
        "kind": "people-together" if together else "people", "nominal_epsilon": None, "nominal": "none stated",
        "adversaries": seen, "shares": None, "visible": [], "amplification": None, "sentences": [sentence],
    }  # fmt: skip
