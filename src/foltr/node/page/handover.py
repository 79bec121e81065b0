"""Commands that change what is searched, while a page is served: its server does the work.

The server's follower holds the index, and the server knows how to stop it. A command begins a session of its own, sends
one form as a browser would, and ends the session. Whoever can write the folder of sessions is the owner of the node.
"""

import http.client
import json
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlencode

import msgspec
from fastapi import FastAPI
from fastapi.responses import JSONResponse

from foltr.errors import FoltrError, InputError
from foltr.node.index.follower import indexing_server
from foltr.node.page import sign_ins
from foltr.node.page.entrance import Served, served_pages
from foltr.node.page.security import Site, form_token_of
from foltr.node.places import Places

if TYPE_CHECKING:
    from foltr.node.page.app import Page

ACTIONS = ("add", "remove", "exclude", "scan")


class HandedOver(NamedTuple):
    """A change that a server has made."""

    served: Served
    follows: bool  # the server also indexes what is new


def hand_over(places: Places, action: str, values: list[str]) -> HandedOver | None:
    """Lets the server that indexes do it, or any other; None where no page is served. `values`: whole paths, or
    rules."""
    pages = served_pages(places)
    indexing = indexing_server(places)
    served = next((page for page in pages if page.process == indexing), pages[0] if pages else None)
    if served is None:
        return None
    site = Site(served.port, sign_ins.page_folder(places))
    with sign_ins.temporary_sign_in(site.folder) as cookie:
        form = urlencode(
            {"csrf": form_token_of(cookie), "action": action, "values": json.dumps(values, allow_nan=False)}
        )
        headers = {"cookie": f"{site.cookie_name}={cookie}", "content-type": "application/x-www-form-urlencoded"}
        connection = http.client.HTTPConnection(served.host.strip("[]"), served.port)
        try:
            connection.request("POST", "/folders", form, headers)
            response = connection.getresponse()
            answer = _answer(response.read())
        except ConnectionRefusedError:  # it ended just now
            return None
        except (OSError, http.client.HTTPException) as problem:
            raise InputError(f"{served.address}: the server of the page does not answer ({problem})") from None
        finally:
            connection.close()
    if "problem" in answer:
        raise InputError(answer["problem"])
    if "follows" not in answer:
        raise InputError(f"{served.address}: does not answer as the page of this version; start it again")
    return HandedOver(served, bool(answer["follows"]))


def _answer(body: bytes) -> dict[str, str]:
    try:
        return msgspec.convert(msgspec.json.decode(body), dict[str, str])
    except msgspec.MsgspecError:
        return {}


def add(app: FastAPI, page: "Page") -> None:
    """The route that `hand_over` asks for."""
    from foltr.node.page.app import Text

    @app.post("/folders")
    def folders(csrf: Text = "", action: Text = "", values: Text = "") -> JSONResponse:
        page.check(csrf)
        try:
            _change(page, action, _checked(values))
        except FoltrError as problem:
            return JSONResponse({"problem": str(problem)}, 400)
        return JSONResponse({"follows": "yes" if page.following else ""})


def _checked(values: str) -> list[str]:
    try:
        return msgspec.json.decode(values, type=list[str])
    except msgspec.MsgspecError:
        raise InputError("`values`: expected a list of texts") from None


def _change(page: "Page", action: str, values: list[str]) -> None:
    if action not in ACTIONS:
        raise InputError(f"no action {action[:20]!r}; there are {', '.join(ACTIONS)}")
    with page.standing_still():
        if action == "add":
            page.node.add(values)
        elif action == "remove":
            for path in values:
                page.node.remove(path)
        elif action == "exclude":
            page.node.exclude(values)
