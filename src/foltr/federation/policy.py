"""A node's own policy: in which rounds this machine takes part, whatever an invitation or a coordinator says.

    limits         for all federations; only a command on this machine loosens them, after it has shown the epsilon
    federations    what the person accepted of each: the identities of both operators, and limits of its invitation

An invitation may tighten a limit and never loosens one (`effective`). `check_setup` compares terms, registry and
operators with the policy before anything is learned; `admit` also bounds the rounds of a week. Sizes count from the
largest registry that the node ever accepted, so that a coordinator cannot shrink a federation around one member.

Without noise a sum shows what several sums over the same people tell. Such a federation is a closed circle: the person
has confirmed the fingerprint of every member, and a sum needs all of them.

Both files are readable by their owner only (0600): the policy, and beside it the history of rounds and registries. The
ledger enforces the budget and remembers the largest registry, and its witness notices a restored copy. The history has
no witness: a node whose history is lost or restored can exceed the rounds and the growth of a week, never the budget,
and takes part in no smaller registry.
"""

import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np

from foltr.errors import PrivacyError, SpecError, StorageError, did_you_mean
from foltr.files import locked, private_folders, write_durably
from foltr.privacy.events import Adversary, Event
from foltr.privacy.ledger import closed_epsilon
from foltr.privacy.release import event_of, release_to_servers
from foltr.secagg.ring import Ring
from foltr.secagg.terms import Registry, Terms, guaranteed, ring_of
from foltr.secagg.two_servers import Pair, fewest_of, min_clients, two_servers

POLICY, HISTORY = "policy.json", "policy-history.json"
WEEK = 7 * 86_400.0  # seconds
_MOST_ROUNDS = 10_000  # of a week
_ALWAYS_WELCOME = 5  # members that a registry may gain in a week, however small it is
_ADVERSARY: Adversary = "malicious"
Positive = Annotated[float, msgspec.Meta(gt=0)]
Share = Annotated[float, msgspec.Meta(ge=0, lt=1)]
Identity = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]  # Ed25519, hexadecimal


class Limits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The defaults are those of every new node."""

    epsilon: Positive = 4.0  # of all federations together and for ever, against one operator with any members
    delta: Annotated[float, msgspec.Meta(gt=0, lt=1)] = 1e-6
    noise_multiplier: Annotated[float, msgspec.Meta(ge=0)] = 1.0  # least, of a sum with noise, over the clip
    min_clients: Annotated[int, msgspec.Meta(ge=3)] = 5  # fewest in a sum
    corrupt: Share = 0.1  # share of the members that is assumed to work for an operator
    failure: Positive = 2.0**-40  # largest probability that fewer are summed than promised
    rounds_per_week: Annotated[int, msgspec.Meta(ge=1, le=_MOST_ROUNDS)] = 7
    growth_per_week: Annotated[float, msgspec.Meta(ge=0)] = 0.5  # of the registry; five new members are always welcome


class Accepted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the person of this node accepted of one federation."""

    operators: tuple[Identity, Identity]
    invited: Limits | None = None  # limits of the invitation
    circle: str = ""  # digest of the registry whose fingerprints the person has confirmed, hexadecimal


class Policy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    limits: Limits = Limits()
    federations: dict[str, Accepted] = {}


class History(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a node has seen of one federation."""

    largest: int = 0  # registry that was ever accepted
    sizes: tuple[tuple[float, int], ...] = ()  # (time, members) of registries, the last one before this week included
    rounds: tuple[float, ...] = ()  # times of this week's rounds
    newest: int = -1  # number of the newest round that was counted


class Guarded(NamedTuple):
    """A policy on the disk."""

    folder: Path

    @property
    def path(self) -> Path:
        return self.folder / POLICY

    def load(self) -> Policy:
        """The defaults where there is no file yet."""
        return _read(self.path, Policy) or Policy()

    def save(self, policy: Policy) -> None:
        private_folders(self.folder)
        write_durably(self.path, msgspec.json.format(msgspec.json.encode(policy), indent=2) + b"\n")

    def histories(self) -> dict[str, History]:
        return _read(self.folder / HISTORY, dict[str, History]) or {}


# --- changing a policy ----------------------------------------------------------------------------------------------

_TIGHTER: dict[str, Callable[[Any, Any], Any]] = {
    "epsilon": min, "delta": min, "noise_multiplier": max, "min_clients": max, "corrupt": max, "failure": min,
    "rounds_per_week": min, "growth_per_week": min,
}  # fmt: skip


def tightened(limits: Limits, invited: Limits) -> Limits:
    """The tighter value of each limit."""
    pairs = {name: (getattr(limits, name), getattr(invited, name)) for name in _TIGHTER}
    return Limits(**{name: _TIGHTER[name](*pair) for name, pair in pairs.items()})


def effective(policy: Policy, federation: str) -> Limits:
    """The limits of this node in one federation."""
    accepted = policy.federations.get(federation)
    return tightened(policy.limits, accepted.invited) if accepted and accepted.invited else policy.limits


def loosened(before: Limits, after: Limits) -> tuple[str, ...]:
    """The limits that a change loosens."""
    return tuple(
        name for name, tighter in _TIGHTER.items()
        if tighter(getattr(before, name), getattr(after, name)) != getattr(after, name)
    )  # fmt: skip


def changed(limits: Limits, settings: Iterable[str]) -> Limits:
    """Limits after `name=value` texts, as a command takes them."""
    values: dict[str, Any] = msgspec.to_builtins(limits)
    for setting in settings:
        name, equals, value = setting.partition("=")
        if name not in values or not equals:
            raise SpecError(
                f"{setting!r}: write limit=value, with one of {', '.join(values)}.{did_you_mean(name, values)}"
            )
        values[name] = value
    try:
        found = msgspec.convert(values, Limits, strict=False)
    except msgspec.ValidationError as problem:
        raise SpecError(f"{problem}; see `foltr node policy` for the present values") from None
    if not all(math.isfinite(value) for value in msgspec.to_builtins(found).values()):
        raise SpecError("a limit is a finite number")
    return found


def accept(
    policy: Policy, federation: str, operators: Pair, *, invited: Limits | None = None, circle: Registry | None = None
) -> Policy:
    """The policy after the person accepted an invitation. `circle`: a registry whose fingerprints are all confirmed."""
    identities = (operators[0].hex(), operators[1].hex())
    before = policy.federations.get(federation)
    if before is not None and before.operators != identities:
        raise PrivacyError(
            f"federation {federation} has other operators than those that were accepted; leave it before you join anew"
        )
    if before is not None and before.invited:
        invited = tightened(before.invited, invited) if invited else before.invited
    confirmed = circle.digest.hex() if circle is not None else before.circle if before else ""
    accepted = Accepted(identities, invited, confirmed)
    return msgspec.structs.replace(policy, federations={**policy.federations, federation: accepted})


def without(policy: Policy, federation: str) -> Policy:
    """The policy after the person left a federation."""
    others = {name: accepted for name, accepted in policy.federations.items() if name != federation}
    return msgspec.structs.replace(policy, federations=others)


def weekly_epsilon(limits: Limits, weeks: int) -> float:
    """Epsilon that these limits would allow in so many weeks without a budget: least noise, most rounds."""
    event = Event("gaussian", "l2", 1.0, "l2", max(limits.noise_multiplier, 1e-9))
    return closed_epsilon({event: weeks * limits.rounds_per_week}, limits.delta, _ADVERSARY)


# --- what a node asks before it takes part --------------------------------------------------------------------------


def check_setup(
    policy: Policy, history: History, terms: Terms, registry: Registry, operators: Pair | None, now: float
) -> Accepted:
    """What was accepted of this federation; refuses terms, a registry or operators beyond it, with every reason."""
    accepted = policy.federations.get(terms.federation)
    if accepted is None:
        raise PrivacyError(f"federation {terms.federation} was never accepted on this node; join it first")
    limits = effective(policy, terms.federation)
    sizes = _fewest_in_a_sum(terms, registry, operators)
    fewest = max(limits.min_clients, fewest_of(history.largest, terms))
    problems = _terms_problems(limits, terms)
    if sizes < fewest:
        problems.append(f"the fewest in a sum is {sizes}, this node's policy says at least {fewest}")
    if operators and accepted.operators != tuple(identity.hex() for identity in operators):
        problems.append("the operators are not those that were accepted")
    problems += _noise_problems(accepted, limits, terms, registry, operators)
    problems += _growth_problems(limits, history, len(registry.clients), now)
    if problems:
        raise PrivacyError(
            f"federation {terms.federation}: {'; '.join(problems)}. Nothing was sent; `foltr node policy` shows and "
            "changes what this node accepts"
        )
    return accepted


def check_terms(limits: Limits, terms: Terms) -> None:
    """Refuses terms that no registry makes acceptable, before a node joins; every round checks the rest."""
    problems = _terms_problems(limits, terms)
    if terms.noise_multiplier == 0:
        problems += _all_members_problems(terms)
    if problems:
        raise PrivacyError(
            f"this invitation is refused: {'; '.join(problems)}. Nothing was sent; `foltr node policy` shows and "
            "changes what this node accepts"
        )


def _terms_problems(limits: Limits, terms: Terms) -> list[str]:
    noise = terms.noise_multiplier or limits.noise_multiplier  # without noise other rules hold
    return [
        f"{name} is {value:g}, this node's policy says {word} {limit:g}"
        for name, value, word, limit in (
            ("failure", terms.failure, "at most", limits.failure),
            ("corrupt", terms.corrupt, "at least", limits.corrupt),
            ("noise_multiplier", noise, "at least", limits.noise_multiplier),
        )
        if (value < limit if word == "at least" else value > limit)
    ]


def admit(
    guarded: Guarded, terms: Terms, registry: Registry, operators: Pair | None, now: float, *, largest: int = 0
) -> Accepted:
    """Checks a round that is about to begin; refuses more rounds a week than the policy allows. `largest`: registry
    that the ledger remembers."""
    policy, history = guarded.load(), guarded.histories().get(terms.federation, History())
    history = msgspec.structs.replace(history, largest=max(history.largest, largest))
    accepted = check_setup(policy, history, terms, registry, operators, now)
    most = effective(policy, terms.federation).rounds_per_week
    if len(_recent(history.rounds, now)) >= most:
        raise PrivacyError(
            f"federation {terms.federation}: this node took part in {len(_recent(history.rounds, now))} rounds within "
            f"seven days, and its policy allows {most}; nothing was sent"
        )
    return accepted


def note_round(guarded: Guarded, terms: Terms, registry: Registry, now: float, *, round: int) -> None:
    """Counts a round once, before its message leaves: a node that was killed may come here again."""
    private_folders(guarded.folder)
    with locked(guarded.folder / HISTORY):
        histories = guarded.histories()
        before, members = histories.get(terms.federation, History()), len(registry.clients)
        sizes = before.sizes if before.sizes and before.sizes[-1][1] == members else (*before.sizes, (now, members))
        old = [size for size in sizes if size[0] <= now - WEEK][-1:]
        new = (now,) if round > before.newest else ()
        histories[terms.federation] = History(
            max(before.largest, members),
            tuple(old) + tuple(size for size in sizes if size not in old and size[0] > now - WEEK),
            (*_recent(before.rounds, now), *new),
            max(before.newest, round),
        )
        write_durably(guarded.folder / HISTORY, msgspec.json.encode(histories))


def _noise_problems(
    accepted: Accepted, limits: Limits, terms: Terms, registry: Registry, operators: Pair | None
) -> list[str]:
    if terms.noise_multiplier == 0:
        return _circle_problems(accepted, terms, registry, operators)
    epsilon = closed_epsilon({release_event(terms, registry, operators): 1}, limits.delta, _ADVERSARY)
    if epsilon > limits.epsilon:
        return [
            f"one round costs epsilon {epsilon:.3g} at delta {limits.delta:g}, and the budget is {limits.epsilon:g}"
        ]
    return []


def _circle_problems(accepted: Accepted, terms: Terms, registry: Registry, operators: Pair | None) -> list[str]:
    problems = []
    if operators is None:
        problems.append("a federation without noise needs two operators")
    problems += _all_members_problems(terms)
    if accepted.circle != registry.digest.hex():
        problems.append(
            "without noise the fingerprint of every member must be confirmed, and this registry was not (`foltr node "
            "members`)"
        )
    return problems


def _all_members_problems(terms: Terms) -> list[str]:
    if terms.dropouts == 0 and terms.quorum == 0:
        return []
    return [f"without noise a sum needs all members, and dropouts is {terms.dropouts:g}, quorum {terms.quorum:g}"]


def _growth_problems(limits: Limits, history: History, members: int, now: float) -> list[str]:
    earlier = [size for size in history.sizes if size[0] <= now - WEEK][-1:] or history.sizes[:1]
    if not earlier:
        return []
    base = earlier[0][1]
    most = base + max(_ALWAYS_WELCOME, math.floor(limits.growth_per_week * base))
    if members <= most:
        return []
    return [f"the registry grew from {base} to {members} members within a week, and this node's policy allows {most}"]


def release_event(terms: Terms, registry: Registry, operators: Pair | None) -> Event:
    """What one round costs this node."""
    if operators:
        ring = Ring(len(registry.clients), terms.bits, terms.fraction)
        return release_to_servers(
            np.zeros(terms.length), clip=terms.clip, multiplier=terms.noise_multiplier, ring=ring
        )[1]
    sizes = guaranteed(terms, registry)
    return event_of(
        clip=terms.clip, multiplier=terms.noise_multiplier, guarantee=sizes, ring=ring_of(terms, sizes),
        parameters=terms.length,
    )  # fmt: skip


def _fewest_in_a_sum(terms: Terms, registry: Registry, operators: Pair | None) -> int:
    if operators:
        return min_clients(two_servers(terms, registry, operators))
    return guaranteed(terms, registry).min_clients


def _recent(times: Iterable[float], now: float) -> tuple[float, ...]:
    """Times within the week before now; a time after now (the clock went back) counts as well."""
    return tuple(time for time in times if time > now - WEEK)


def _read(path: Path, kind: Any) -> Any:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise StorageError(
            f"{path}: cannot be read ({problem}); mend or delete the file, no round is joined meanwhile"
        ) from None
