"""What a person does with a row: open it, show its folder, forget the choice, pin it, never show it here."""

from pathlib import PurePath
from typing import NamedTuple
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool

from foltr.errors import InputError
from foltr.node.node import Node
from foltr.node.page.search import ROWS, asked_of, known_list, number_of
from foltr.node.search import desktop, pins, ranking
from foltr.node.search.pins import Kind
from foltr.node.search.results import document_of
from foltr.node.search.snippets import printable

MESSAGES = {
    "open": "Opened.",
    "revealed": "Opened its folder instead: the file could run as a program, or is not what its name says.",
    "folder": "Opened its folder.",
    "forget": "Forgotten: this search does not remember that choice any more.",
    "pin": "Pinned: it comes first for this search from now on.",
    "unpin": "Not pinned any more.",
    "never": "It will not be shown for this search any more; the page History lists such wishes.",
}
WISHES: dict[str, Kind | None] = {"pin": "pinned", "never": "hidden", "unpin": None}
ACTIONS = ("open", "folder", "forget", "pin", "unpin", "never")


class Done(NamedTuple):
    name: str  # of MESSAGES
    message: str


async def in_thread(node: Node, form: dict[str, str]) -> Done:
    return await run_in_threadpool(act, node, form)


def act(node: Node, form: dict[str, str]) -> Done:
    """Does what the pressed button of a row says. The button's name is the action, its value the document's number."""
    named = [(action, form[action]) for action in ACTIONS if action in form]
    number = number_of(named[0][1]) if len(named) == 1 else None
    if number is None:
        raise InputError("expected one button of one row; load the page again")
    action = named[0][0]
    asked = asked_of(form.get("q", ""), form.get("sort", ""), number_of(form.get("n", "")) or ROWS)
    results = known_list(node, form.get("search_id", ""), asked)
    document = document_of(node.known_list(results), number)
    if action in ("open", "folder"):
        return _opened(node, results.search_id, number, document.path, action, form.get("returned", ""))
    if action == "forget":
        forgotten = node.forget_choice(asked.text, number)
        return Done(action, MESSAGES[action] if forgotten else "There was no choice to forget for this search.")
    kind, key = WISHES[action], ranking.key_of(document)
    if kind is None:
        pins.remove(node.log, results.query, key)
    else:
        pins.put(node.log, results.query, key, kind)
    return Done(action, MESSAGES[action])


def _opened(node: Node, search_id: str, number: int, path: str, action: str, returned: str) -> Done:
    """The choice is durable before a program starts; a choice that a person came back from at once is taken back."""
    node.choose(search_id, number)
    _take_back(node, returned, search_id, number)
    name, file = printable(PurePath(path).name), node.indexed_file(path)
    try:
        if action == "folder":
            desktop.show_folder(file)
            return Done("folder", f"Opened the folder of {name}.")
        reason = desktop.open_file(file)
    except InputError:  # nothing was opened, so that there is nothing to remember
        node.take_back(search_id, number)
        raise
    if reason:
        return Done("revealed", f"Opened the folder of {name} instead: {reason}.")
    return Done("open", f"Opened {name}.")


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
