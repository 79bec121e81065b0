"""Actions on a row: open it, with a chosen program too, show its folder, forget the choice, pin it, never show it."""

import time
from collections.abc import Callable
from pathlib import PurePath
from typing import NamedTuple
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool

from foltr.errors import InputError
from foltr.node.learning import curations, erasure
from foltr.node.learning.curations import Kind
from foltr.node.node import Node
from foltr.node.page.search import ROWS, asked_of, known_list, number_of
from foltr.node.search import consents, desktop, ranking
from foltr.node.search.desktop import Launch, Question
from foltr.node.search.results import document_of
from foltr.node.search.snippets import printable

MESSAGES = {
    "open": "Opened.",
    "revealed": "Opened its folder instead: the file is not what its name says, or cannot be read.",
    "folder": "Opened its folder.",
    "forget": "Forgotten: this search does not remember that choice any more.",
    "pin": "Pinned: it comes first for this search from now on.",
    "unpin": "Not pinned any more.",
    "never": "It will not be shown for this search any more; the page History lists what is hidden.",
}
CURATIONS: dict[str, Kind | None] = {"pin": "pinned", "never": "hidden", "unpin": None}
ACTIONS = ("open", "with", "folder", "forget", "pin", "unpin", "never")


class Done(NamedTuple):
    name: str  # of MESSAGES
    message: str
    question: Question | None = None  # nothing was opened yet


async def in_thread(node: Node, form: dict[str, str]) -> Done:
    return await run_in_threadpool(act, node, form)


def act(node: Node, form: dict[str, str]) -> Done:
    """Does what the pressed button of a row says. The button's name is the action, its value the document's number;
    for a chosen program the number, a colon and the program."""
    named = [(action, form[action]) for action in ACTIONS if action in form]
    value, _, application = named[0][1].partition(":") if len(named) == 1 else ("", "", "")
    number = number_of(value)
    if number is None or bool(application) != (named[0][0] == "with"):
        raise InputError("expected one button of one row; load the page again")
    action = named[0][0]
    asked = asked_of(form.get("q", ""), form.get("sort", ""), number_of(form.get("n", "")) or ROWS)
    results = known_list(node, form.get("search_id", ""), asked)
    document = document_of(node.known_list(results), number)
    if action == "folder":
        return _shown(node, Chosen(results.search_id, number, form.get("returned", "")), document.path)
    if action in ("open", "with"):
        file = node.file_to_open(ranking.key_of(document), results.query)
        allowed = consents.given(node.places) | {form.get("consent", "")}
        launch = desktop.opening(file, node.copies, allowed=allowed, application=application)
        if isinstance(launch, Question):
            return Done("question", "", launch)
        if form.get("consent"):
            consents.give(node.places, form["consent"])
        return _opened(node, Chosen(results.search_id, number, form.get("returned", "")), document.path, launch)
    if action == "forget":
        forgotten = node.forget_choice(asked.text, number)
        return Done(action, MESSAGES[action] if forgotten else "There was no choice to forget for this search.")
    kind, key = CURATIONS[action], ranking.key_of(document)
    if kind is None:
        erasure.remove_curation(node.log, results.query, key)
    else:
        curations.put(node.log, results.query, key, kind, time.time())
    return Done(action, MESSAGES[action])


class Chosen(NamedTuple):
    """A row that a person chose."""

    search_id: str
    number: int  # of the document
    returned: str  # list and document that the person left within ten seconds, if any


def _shown(node: Node, chosen: Chosen, path: str) -> Done:
    _start(node, chosen, lambda: desktop.revealing(node.indexed_file(path)))
    return Done("folder", f"Opened the folder of {printable(PurePath(path).name)}.")


def _opened(node: Node, chosen: Chosen, path: str, launch: Launch) -> Done:
    _start(node, chosen, lambda: launch)
    name = printable(PurePath(path).name)
    if launch.revealed:
        return Done("revealed", f"Opened the folder of {name} instead: {launch.revealed}.")
    return Done("open", f"Opened {name}.")


def _start(node: Node, chosen: Chosen, launch: Callable[[], Launch]) -> None:
    """The choice is durable before a program starts; a choice that a person came back from at once is taken back, and
    one that could not be opened."""
    node.choose(chosen.search_id, chosen.number)
    _take_back(node, chosen.returned, chosen.search_id, chosen.number)
    try:
        desktop.start(launch())
    except InputError:
        node.take_back(chosen.search_id, chosen.number)
        raise


def _take_back(node: Node, returned: str, search_id: str, number: int) -> None:
    """`returned` names the list and document that the person left within ten seconds."""
    name, _, document = returned.partition(":")
    left = number_of(document)
    if left is None or (name, left) == (search_id, number):
        return
    try:
        node.take_back(name, left)
    except InputError:  # the list is from before a restart
        return


def address(form: dict[str, str], **more: str) -> str:
    """The address of the search that a form came from."""
    asked = {name: form[name] for name in ("q", "sort", "n") if form.get(name)}
    return "/?" + urlencode(asked | more, errors="replace")
