"""A plan in words and as a table for a terminal of 80 columns."""

from typing import Any

from rich import box
from rich.table import Table

from foltr.lab.runs.planner import FEWER, NEAR


def table(plan: dict[str, Any]) -> Table:
    """Every candidate that was simulated; the recommended one is marked."""
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("", "releases", "searches each", "clip", "noise / clip", "nDCG@10 ± sd"):
        made.add_column(name, justify="left" if name == "" else "right")
    for one in plan["candidates"]:
        mark = "→" if _same(one, plan["recommended"]) else ""
        who = f"{one['releases']}, halves" if one["halves"] else str(one["releases"])
        row = (mark, who, f"{one['interactions']:,}", f"{one['clip']:g}", f"{one['multiplier']:.3g}", _measured(one))
        made.add_row(*row, style="bold" if mark else "")
    made.add_section()
    for name, one in (("recommended", plan["recommended"]), *plan["references"].items()):
        made.add_row("", name, "further runs", "", "", _measured(one))
    return made


def _same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return all(one[key] == other[key] for key in ("releases", "halves", "clip"))


def _measured(one: dict[str, Any]) -> str:
    return f"{one['ndcg']:.4f} ± {one['sd']:.4f}"


def advice(plan: dict[str, Any]) -> list[str]:
    """What to do, how good it will be, how that is known, and what would help where it is not good enough."""
    said, *helps = _verdict(plan)
    if plan["verdict"] == "too small":  # nobody should read a recipe first
        return [said, *helps, f"The best that was tried. {_what(plan)}", _how_good(plan), _known_from(plan)]
    return [_what(plan), _how_good(plan), said, *helps, _known_from(plan)]


def _what(plan: dict[str, Any]) -> str:
    wish, best = plan["wish"], plan["recommended"]
    days = 7 * wish["weeks"] / best["releases"]
    who = "two halves of the people by turns" if best["halves"] else "everybody"
    times = "once" if best["releases"] == 1 else f"{best['releases']} times, every {days:.3g} days"
    return (
        f"For epsilon {wish['epsilon']:g} at delta {wish['delta']:g} of each of {wish['clients']:,} people over "
        f"{wish['weeks']} weeks: {who} should take part {times}, with {best['interactions']:,} searches in each "
        f"update; clip updates to an L2 norm of {best['clip']:g}; noise of deviation "
        f"{best['multiplier'] * best['clip']:.3g} in each sum, {best['multiplier']:.3g} times the clip, "
        f"in shares for {best['holders']:,} holders, so that "
        f"{100 * wish['dropout']:g} % may drop out. Sums through secure aggregation only."
    )


def _how_good(plan: dict[str, Any]) -> str:
    best, none, alone = plan["recommended"], plan["references"]["no privacy"], plan["references"]["alone"]
    return (
        f"Expected nDCG@10 {_measured(best)}; without privacy {_measured(none)}; each person alone {_measured(alone)}."
    )


def _verdict(plan: dict[str, Any]) -> list[str]:
    if plan["verdict"] == "good":
        return [f"That is within {NEAR:g} of no privacy: the wish is affordable."]
    clients = plan["wish"]["clients"]
    lost = plan["references"]["no privacy"]["ndcg"] - plan["recommended"]["ndcg"]
    if plan["verdict"] == "costly":
        said = f"Privacy costs {lost:.3f}, but people are still better off together than alone."
    else:
        said = (
            f"A federation of {clients:,} is too small for this wish: the noise leaves people no better off than alone."
        )
    return [said, _help(plan)]


def _help(plan: dict[str, Any]) -> str:
    helps = plan["help"]
    longer = f"{helps['weeks']} weeks instead bring {helps['ndcg_with_these_weeks']:.4f}"
    if helps["clients"] is None:
        return f"{1 / FEWER[-1]:g} times the people would not yet bring it within {NEAR:g} of no privacy; {longer}."
    return (
        f"What would help: {helps['clients']:,} people, or epsilon {helps['epsilon']:.2g}, bring it within {NEAR:g} of "
        f"no privacy; {longer}."
    )


def _known_from(plan: dict[str, Any]) -> str:
    how, clients = plan["simulated"], plan["wish"]["clients"]
    scaled = ""
    if how["people"] < clients:
        scaled = f", {how['people']:,} of the people simulated with the noise that {clients:,} have"
    note = f" ({how['note']})" if how["note"] else ""
    return (
        f"Known from simulation on {how['data']}{note}, fold 1, {how['users']} users: {how['runs']} runs of each "
        f"candidate, and {how['further_runs']} further ones of the choice and of what it is held against{scaled}; sd "
        f"over runs. Candidates this close may come in another order elsewhere, and real data may be harder or easier."
    )
