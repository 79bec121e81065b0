"""A plan of the planner for a terminal: the table of candidates, and the advice in sentences.

Every sentence about privacy states epsilon, delta, unit, adjacency and adversary; the last one says what the figures of
quality rest on.
"""

from typing import Any

from rich import box
from rich.table import Table

from foltr.lab.runs.planner import AFFORDABLE, NOISE_FRACTIONS


def table(plan: dict[str, Any]) -> Table:
    """All candidates for a terminal of 80 columns; the recommended one is marked."""
    rows = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("", "releases", "searches each", "clip", "noise / clip", "nDCG@10 ± sd"):
        rows.add_column(name, justify="left" if name == "" else "right")
    for one in plan["candidates"]:
        mark = "→" if _same(one, plan["recommended"]) else ""
        who = f"{one['releases']}, halves" if one["halves"] else str(one["releases"])
        row = (mark, who, f"{one['interactions']:,}", f"{one['clip']:g}", f"{one['multiplier']:.3g}", _mean_sd(one))
        rows.add_row(*row, style="bold" if mark else "")
    rows.add_section()
    for name, one in (("recommended", plan["recommended"]), *plan["references"].items()):
        rows.add_row("", name, "further runs", "", "", _mean_sd(one))
    return rows


def _same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return all(one[key] == other[key] for key in ("releases", "halves", "clip"))


def _mean_sd(one: dict[str, Any]) -> str:
    return f"{one['ndcg']:.4f} ± {one['sd']:.4f}"


def advice(plan: dict[str, Any]) -> list[str]:
    """The recommendation, its expected quality, the verdict, what would help, and how it was simulated."""
    verdict, *helps = _verdict(plan)
    if plan["verdict"] == "too small":  # the verdict comes before the recipe
        best = f"The best candidate: {_what(plan)}"
        return [verdict, *helps, best, _how_good(plan), _promised(plan), _known_from(plan)]
    return [_what(plan), _how_good(plan), verdict, *helps, _promised(plan), _known_from(plan)]


def _what(plan: dict[str, Any]) -> str:
    target, best = plan["target"], plan["recommended"]
    days = 7 * target["weeks"] / best["releases"]
    who = "two alternating halves of the clients" if best["halves"] else "all clients"
    times = "once" if best["releases"] == 1 else f"{best['releases']} times, every {days:.3g} days"
    return (
        f"For epsilon {target['epsilon']:g} at delta {target['delta']:g}, {target['clients']:,} clients and "
        f"{target['weeks']} weeks: {who} take part {times}, with {best['interactions']:,} searches in each "
        f"update; updates are clipped to an L2 norm of {best['clip']:g}; the noise in each sum has a standard "
        f"deviation of {best['multiplier'] * best['clip']:.3g} ({best['multiplier']:.3g} times the clip) in the shares "
        f"of {best['noise_contributors']:,} clients: no sum has fewer than {best['survivors']:,} messages, and "
        f"{best['survivors'] - best['noise_contributors']:,} clients may work for the server. The epsilon is that of "
        f"one node (unit) whose update is replaced by zero while it still adds its noise (zero-out), against whoever "
        f"gets the ranker and a malicious server with these clients. Secure aggregation is required."
    )


def _promised(plan: dict[str, Any]) -> str:
    return f"What {plan['target']['clients']:,} nodes can promise: {plan['promise']}"


def _how_good(plan: dict[str, Any]) -> str:
    best, none, local_only = plan["recommended"], plan["references"]["no privacy"], plan["references"]["local only"]
    return (
        f"Expected nDCG@10 {_mean_sd(best)}; without privacy {_mean_sd(none)}; "
        f"local-only training {_mean_sd(local_only)}."
    )


def _verdict(plan: dict[str, Any]) -> list[str]:
    if plan["verdict"] == "good":
        return [f"This is within {AFFORDABLE:g} of no privacy: the target is affordable."]
    clients = plan["target"]["clients"]
    lost = plan["references"]["no privacy"]["ndcg"] - plan["recommended"]["ndcg"]
    if plan["verdict"] == "costly":
        verdict = f"Privacy costs {lost:.3f} nDCG@10, but the federation is still better than local-only training."
    else:
        verdict = (
            f"{clients:,} clients are too few for this target: with this noise a federation is no better than "
            f"local-only training."
        )
    return [verdict, _help(plan)]


def _help(plan: dict[str, Any]) -> str:
    helps = plan["help"]
    longer = f"{helps['weeks']} weeks would bring {helps['ndcg_with_these_weeks']:.4f}"
    if helps["clients"] is None:
        largest = 1 / NOISE_FRACTIONS[-1]
        return f"{largest:g} times the clients are not enough to come within {AFFORDABLE:g} of no privacy; {longer}."
    return (
        f"{helps['clients']:,} clients, or epsilon {helps['epsilon']:.2g}, would bring it within {AFFORDABLE:g} of "
        f"no privacy; {longer}."
    )


def _known_from(plan: dict[str, Any]) -> str:
    how, clients = plan["simulated"], plan["target"]["clients"]
    scaled = ""
    if how["clients"] < clients:
        scaled = f", {how['clients']:,} clients simulated with the noise of {clients:,}"
    note = f" ({how['note']})" if how["note"] else ""
    relevant, queries = how["relevant_queries"], how["queries"]
    return (
        f"nDCG@10 is the mean over the {relevant:,} of {queries:,} test queries with a relevant document; over all it "
        f"is {relevant / queries:.3f} times that. "
        f"Simulated on {how['data']}{note}, fold 1, {how['users']} users: {how['runs']} runs of each candidate, and "
        f"{how['further_runs']} further runs of the choice and of its references{scaled}; sd over runs. The order of "
        f"candidates this close may differ on other data, and real data may be harder or easier."
    )
