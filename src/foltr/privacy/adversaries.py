"""Against whom a release is worth what: each adversary of a federation, what it sees, and its epsilon.

Three adversaries have a figure for every release: whoever gets the ranker; a curious server, which follows the protocol
and reads what it sees; a malicious server, which lies and knows the noise shares of its colluders. They differ in how
much noise they do not know (one server, secure aggregation, n messages in the smallest sum, c colluders):

    whoever gets the ranker    the shares of all n
    a curious server           the shares of all n
    a malicious server         the shares of n - c
    two servers, one of them malicious, with any number of clients: the noise of the other, all that was asked for

Without secure aggregation either server sees single messages with one share each. Missing Gaussian shares mean less
noise; Laplace noise needs all of its shares. `c` is never below 1, whatever the spec assumes.
"""

import math
from typing import Any, NamedTuple

from foltr.privacy import accounting
from foltr.privacy.calibration import gaussian_epsilon
from foltr.privacy.events import Event, one_share, with_present, with_shares

INFINITE = "infinite"
_FEWER = (0.9, 0.5)  # fractions of the participants, for epsilons with missing noise shares

ADVERSARIES = {
    "recipients": {"who": "whoever gets the ranker", "sees": "the ranker after every round"},
    "client": {"who": "another client", "sees": "the ranker after every round, and knows its own share of the noise"},
    "server": {
        "who": "the server without secure aggregation",
        "sees": "every single message, with one share of the noise",
    },
    "server-sums": {
        "who": "a curious server with secure aggregation",
        "sees": "the sum of a round's messages only",
    },
    "server-pair": {
        "who": "a curious server, one of the two,",
        "sees": "the sum of a round's messages, and knows the noise that it added itself",
    },
    "server-local": {
        "who": "the server with or without secure aggregation",
        "sees": "messages that carry all of their noise",
    },
    "server-plain": {"who": "the server", "sees": "every single message as it is, from which clicks can be read"},
    "server-values": {
        "who": "the server",
        "sees": "the objective values of each user for known perturbations of the ranker",
    },
    "server-unknown": {"who": "the server", "sees": "messages whose protection is not known"},
    "malicious": {
        "who": "a malicious server with {colluders} colluding client{s}",
        "sees": "the sum of the honest messages, and knows its colluders' shares of the noise",
    },
    "malicious-single": {
        "who": "a malicious server with {colluders} colluding client{s}",
        "sees": "every single message, with one share of the noise",
    },
    "malicious-local": {
        "who": "a malicious server with any number of colluding clients",
        "sees": "messages that carry all of their noise",
    },
    "malicious-pair": {
        "who": "a malicious server, one of the two, with any number of colluding clients,",
        "sees": "the message of a single user under all of the other server's noise",
    },
    "both-servers": {"who": "an adversary who controls both servers", "sees": "every single message as it is"},
    "centre": {"who": "the central learner", "sees": "every search and every click"},
    "local-only": {"who": "anybody else", "sees": "no update, because none is sent"},
    "network": {
        "who": "an observer of the network",
        "sees": "which clients contact the server and when; message contents only where connections are not encrypted",
    },
}


class Circumstances(NamedTuple):
    """The properties of a federation that a card needs besides the mechanism."""

    taking_part: int  # clients in a sum: those of a round, or of a group of it
    rounds: int
    max_rounds: int  # that one user takes part in
    interactions: int  # in a message; the maximum where clients differ
    parameters: int
    seed: int | None = None  # in which `max_rounds` was counted; None: equal in all seeds
    sampled: bool = False  # a cohort of the clients takes part in each round
    values: bool = False  # messages are a public seed and values of an objective, not parameters
    weighted: bool = True  # messages state their number of interactions
    central: bool = False  # no federation: one place sees every search
    local_only: bool = False  # local-only training: no client sends anything
    lab: bool = False  # noise comes from addressed streams
    dropped: int = 0  # clients of a sum that may drop out
    colluders: int = 1  # clients that work for a malicious server; at least one is always assumed
    shared_queries: float = 0.0  # fraction of the queries that everybody gets, with documents and labels


def is_local(event: Event) -> bool:
    """Whether every message carries all of its noise (local privacy)."""
    return event.noise_contributors == 1 and event.present >= 1


def of_release(privacy: Any, event: Event, about: Circumstances, delta: float, whole: Any) -> list[dict[str, Any]]:
    """All adversaries of a release: epsilon of the run and of one round. `whole`: the run's composed epsilon."""
    named = {"delta": delta, "unit": "user", "adjacency": event.adjacency}  # over all contributions of a user

    def row(name: str, view: Event, here: bool = True) -> dict[str, Any]:
        run = whole if _same_noise(view, event) else reported(composed_epsilon(view, about.max_rounds, delta))
        each = about.interactions if event.unit == "interaction" else 1
        of_round = reported(composed_epsilon(view, each, delta)) if about.max_rounds else 0.0
        return adversary(name, run, here, colluders=about.colluders) | named | {"round": of_round}

    if is_local(event):
        known = [row("recipients", event), row("server-local", event), row("malicious-local", event)]
    elif event.noise_by == "servers":
        known = [
            row("recipients", with_shares(event, event.noise_contributors)),
            row("server-pair", event), row("malicious-pair", event),
            adversary("both-servers", INFINITE) | named | {"round": INFINITE},
        ]  # fmt: skip
    else:
        known = _of_shares(row, bool(getattr(privacy, "secure_aggregation", False)), event, about)
    return [*known, adversary("network", None)]


def _of_shares(row: Any, secure: bool, event: Event, about: Circumstances) -> list[dict[str, Any]]:
    lost = about.taking_part - event.present  # attackers that send no noise
    survivors = about.taking_part - about.dropped - lost
    single = one_share(event)
    honest = with_shares(event, survivors - about.colluders)
    return [
        row("recipients", with_shares(event, survivors)),
        row("client", with_shares(event, survivors - 1)),
        row("server", single, not secure),
        row("server-sums", with_shares(event, survivors), secure),
        row("malicious", honest) if secure else row("malicious-single", single),
    ]


def _same_noise(view: Event, event: Event) -> bool:
    """Whether an adversary meets the noise that the event is accounted with."""
    if "gaussian" not in event.mechanism:
        return view.present >= view.noise_contributors and event.present >= event.noise_contributors
    effective = [one.noise**2 * min(one.present / one.noise_contributors, 1.0) for one in (view, event)]
    return math.isclose(*effective, rel_tol=1e-12)


def without_mechanism(about: Circumstances, *, known: bool) -> list[dict[str, Any]]:
    """Adversaries without a mechanism: epsilon is infinite, or unknown for an unknown mechanism."""
    if about.local_only:
        return [adversary("local-only", 0.0)]
    if about.central:
        return [adversary("centre", INFINITE)]
    epsilon = INFINITE if known else None
    server = "server-unknown" if not known else "server-values" if about.values else "server-plain"
    return [adversary("recipients", epsilon), adversary(server, epsilon), adversary("network", None)]


def adversary(name: str, epsilon: float | str | None, here: bool = True, *, colluders: int = 1) -> dict[str, Any]:
    words = ADVERSARIES[name]
    who = words["who"].format(colluders=f"{colluders:,}", s="" if colluders == 1 else "s")
    return {"id": name, "who": who, "sees": words["sees"], "epsilon": epsilon, "here": here}


def composed_epsilon(event: Event, times: int, delta: float) -> float | None:
    """Composed epsilon with the noise shares that are present; Gaussian noise in closed form.

    With more than half of its shares Laplace noise still hides something, but no bound is known; with half or fewer
    its density is unbounded at zero and epsilon infinite.
    """
    there = min(event.present / event.noise_contributors, 1.0)
    if event.mechanism in ("laplace", "fpdgd") and 0.5 < there < 1:
        return None
    if event.mechanism == "gaussian" and event.present:
        return gaussian_epsilon(math.sqrt(times / there) * event.bound / event.noise, delta) if times else 0.0
    return accounting.epsilon({event: times}, delta).epsilon


def noise_shares(event: Event, about: Circumstances, delta: float) -> dict[str, Any] | None:
    """The clients' noise shares present, and the epsilon of the run with fewer contributors in every round."""
    if is_local(event) or event.noise_by == "servers":
        return None
    counts = [math.floor(share * about.taking_part) for share in _FEWER]
    fewer = [reported(composed_epsilon(with_present(event, there), about.max_rounds, delta)) for there in counts]
    return {
        "noise_contributors": event.noise_contributors,
        "present": event.present,
        "taking_part": about.taking_part,
        "all_or_void": "gaussian" not in event.mechanism,
        "fewer": [
            {"percent": round(100 * share), "present": there, "epsilon": epsilon}
            for share, there, epsilon in zip(_FEWER, counts, fewer, strict=True)
        ],
    }


def reported(epsilon: float | None) -> float | str | None:
    return INFINITE if epsilon is not None and math.isinf(epsilon) else epsilon
