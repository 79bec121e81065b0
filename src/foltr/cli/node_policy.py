"""`foltr node policy`: what this node accepts of federations, and the only way to loosen it."""

import sys
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import msgspec
import typer

from foltr.cli.node_output import say, table
from foltr.cli.output import Json, print_json, with_options
from foltr.errors import InputError

if TYPE_CHECKING:
    from foltr.federation.policy import Limits, Policy

MEANING = {
    "epsilon": "most, of all federations together and for ever",
    "delta": "most, at which epsilon is counted",
    "noise_multiplier": "least noise of a sum, over the clip",
    "min_clients": "fewest members in a sum",
    "corrupt": "share of the members assumed to work for an operator",
    "failure": "most, probability that fewer are summed than promised",
    "rounds_per_week": "most",
    "growth_per_week": "most, share by which a federation may grow",
}
_YEAR = 52  # weeks


def add_to(app: typer.Typer) -> None:
    app.command("policy")(policy_)


class PolicyOptions(NamedTuple):
    """Options of `foltr node policy`."""

    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="LIMIT=VALUE", help="Change a limit. Repeatable.", show_default=False),
    ] = None
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before a limit is loosened.")] = False
    json_: Json = False


@with_options(PolicyOptions)
def policy_(options: PolicyOptions) -> None:
    """Show what this node accepts of federations; change it with --set, which shows the epsilon before it loosens.

    An invitation or a coordinator can make a limit tighter, never looser.
    """
    from foltr.federation.policy import Guarded, changed, loosened
    from foltr.node.learning.federated import policy_folder
    from foltr.node.places import find

    guarded = Guarded(policy_folder(find()))
    policy = guarded.load()
    limits = changed(policy.limits, options.set_ or ())
    looser = loosened(policy.limits, limits)
    if limits != policy.limits:
        if looser and not options.yes:
            _confirm(policy.limits, limits, looser, options)
        policy = msgspec.structs.replace(policy, limits=limits)
        guarded.save(policy)
    if options.json_:
        print_json(msgspec.to_builtins(policy) | {"file": str(guarded.path), "loosened": list(looser)})
    else:
        _show(policy, str(guarded.path))


def _confirm(before: "Limits", after: "Limits", looser: tuple[str, ...], options: PolicyOptions) -> None:
    changes = ", ".join(f"{name} {getattr(before, name):g} -> {getattr(after, name):g}" for name in looser)
    if options.json_ or not sys.stdin.isatty():
        raise InputError(f"{changes}: this loosens the policy; {_words(after)} Add --yes to accept that")
    say(f"This loosens the policy: {changes}.")
    say(_words(after))
    if not typer.confirm("Change it?"):
        raise typer.Exit(1)


def _words(limits: "Limits") -> str:
    from foltr.federation.policy import weekly_epsilon

    return (
        f"The ledger of this node stops at epsilon {limits.epsilon:g} (delta {limits.delta:g}), against one operator "
        f"with any number of members; unit: this node; adjacency: its updates replaced by zero. Without "
        f"that budget a federation with the least noise and the most rounds would reach epsilon "
        f"{weekly_epsilon(limits, 1):.3g} in a week and {weekly_epsilon(limits, _YEAR):.3g} in a year."
    )


def _show(policy: "Policy", path: str) -> None:
    values: dict[str, Any] = msgspec.to_builtins(policy.limits)
    table([(name, f"{values[name]:g}", MEANING[name]) for name in values], ("limit", "value", "meaning"), right=(1,))
    say("")
    say(_words(policy.limits))
    for federation, accepted in policy.federations.items():
        first, second = (identity[:16] for identity in accepted.operators)
        say(f"federation {federation}: operators {first}... and {second}...")
    say(f"stored in {path}")
