"""The routes of the page over an open node. Changes are POST requests with the token of our forms.

    GET  /                     search; /?q=WORDS
    GET  /list                 the rows alone, for every keystroke
    GET  /filters              filters with counts, once a list has settled
    POST /settle               the person looked at a list
    POST /act                  open, show the folder, forget a choice, pin, never here
    GET  /explain, /preview    of a row: what every feature adds; the beginning of the text
    GET  /open-with            of a row: programs that open it
    GET  /why                  why a file is not here
    pages: /history /learning /leaves /index /settings /forget /help; /demo while `foltr demo` runs
    POST /sign-out             ends the session of this browser, or of all
    POST /folders              what a command hands over: add, remove, exclude, scan

A document is named by its number and the list that showed it, never by a path.
"""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

from fastapi import FastAPI, Form, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse
from fastapi.staticfiles import StaticFiles
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from foltr.errors import FoltrError, InputError, StorageError
from foltr.node.index.follower import Follower
from foltr.node.index.follower import read as read_follower
from foltr.node.learning.memory import split_key
from foltr.node.node import Node
from foltr.node.page import actions, demo, handover, pages, search, sign_ins, sign_out
from foltr.node.page.demo import Story
from foltr.node.page.following import Following
from foltr.node.page.request_queue import RequestQueue, serial_of
from foltr.node.page.search import Integer, asked_of, known_list
from foltr.node.page.security import Guard, Site, form_token, form_token_is_right
from foltr.node.search import desktop
from foltr.node.search.launchable import RISKS
from foltr.node.search.ranking import key_of
from foltr.node.search.results import document_of
from foltr.node.search.snippets import escaped

STATIC = Path(__file__).with_name("static")
Text = Annotated[str, Form()]
Number = Annotated[int, Form(ge=-(2**63), lt=2**63)]


class Page:
    """An open node with what its pages need."""

    def __init__(self, node: Node, site: Site, following: Following | None, story: Story | None = None) -> None:
        self.node, self.site, self.following, self.story = node, site, following, story
        self._templates = Environment(
            loader=PackageLoader("foltr.node.page"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
            lstrip_blocks=True,
        )  # fmt: skip
        self._templates.filters |= {"path": search.short_path, "day": search.day, "moment": search.moment,
                                    "printed": escaped, "size": pages.size, "decimal": demo.decimal,
                                    "estimate": demo.estimate, "breakable": search.breakable,
                                    "name": lambda path: search.short_path(path).rpartition("/")[2],
                                    "document": lambda key: search.place(*split_key(key))}  # fmt: skip
        self._templates.globals |= {"signed_in": lambda: sign_ins.last_uses(site.folder),
                                    "idle_days": sign_ins.IDLE_DAYS}  # fmt: skip

    def render(self, template: str, code: int = 200, **values: Any) -> HTMLResponse:
        return HTMLResponse(self.text(template, **values), code)

    def text(self, template: str, **values: Any) -> str:
        common = {"form_token": form_token(), "page": template, "demo": self.story, "follower": self.follower}
        return self._templates.get_template(template).render(**common, **values)

    def answer(self, heading: str, explanation: str) -> bytes:
        """A page for people who are not let in: it tells nothing about the node."""
        return self._templates.get_template("refused.html").render(heading=heading, explanation=explanation).encode()

    def rebuilding(self) -> str:
        """Progress of a new index: after an update that changed its tables the old one cannot be read."""
        state = self.following.state if self.following else {}
        if state.get("phase") not in ("scan", "names", "index"):
            return ""
        return f"It is being rebuilt: {state['done']:,} of {state['total']:,} files. Load the page again in a while."

    def follower(self) -> Follower | None:
        """Whether changes are followed; None for a page that does not follow any."""
        return read_follower(self.node.places) if self.following else None

    @contextlib.contextmanager
    def standing_still(self) -> Iterator[None]:
        """No indexing inside of it; where changes are followed, it begins anew afterwards."""
        with self.following.stopped() if self.following else contextlib.nullcontext():
            yield

    def check(self, token: str) -> None:
        if not form_token_is_right(token):
            raise HTTPException(403, "The form was not made by this page for this browser; load it again.")


def create_app(node: Node, port: int, following: Following | None = None, *, story: Story | None = None) -> Guard:
    """The page as an application, for a server on a port of this machine."""
    site = Site(port, sign_ins.page_folder(node.places))
    page = Page(node, site, following, story)
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    _add_search(app, page)
    pages.add(app, page)
    sign_out.add(app, page)
    handover.add(app, page)
    if story is not None:
        demo.add(app, page, story)
    app.add_exception_handler(FoltrError, _shown(page, 400))
    app.add_exception_handler(StorageError, _shown(page, 503))
    app.add_exception_handler(HTTPException, _shown(page, 404))
    app.add_exception_handler(ClientDisconnect, lambda *_: Response(status_code=400))  # nobody reads it
    app.add_exception_handler(RequestValidationError, _shown(page, 422))
    return Guard(app, site, page.answer)


_MISSING = {"Not Found": "There is no such page.", "Method Not Allowed": "Only forms of this page are sent there."}


def _shown(page: Page, status: int) -> Callable[[Request, Exception], Response]:
    """Errors as a page, or as one line where a part of a page was asked for."""

    def handler(request: Request, problem: Exception) -> Response:
        code = problem.status_code if isinstance(problem, HTTPException) else status
        text = _MISSING.get(problem.detail, problem.detail) if isinstance(problem, HTTPException) else str(problem)
        text = "A field of the form is missing or wrong." if isinstance(problem, RequestValidationError) else text
        if isinstance(problem, StorageError):
            text = f"{text} {page.rebuilding()}".strip()
        if "x-part" in request.headers:
            return page.render("message.html", code, message=text, wrong=True)
        return page.render("problem.html", code, message=text)

    return handler


def _add_search(app: FastAPI, page: Page) -> None:
    node, queue = page.node, RequestQueue()

    @app.get("/")
    async def home(request: Request, q: str = "", sort: str = "", n: Integer = search.ROWS, said: str = "") -> Response:
        def whole_page() -> Response:
            view = search.list_view(node, asked_of(q, sort, n))
            groups = search.filters(node, view.asked) if view.rows else []
            return page.render("search.html", view=view, groups=groups, message=actions.MESSAGES.get(said, ""))

        return await queue.answer(request, whole_page)

    @app.get("/list")
    async def rows(request: Request, q: str = "", sort: str = "", n: Integer = search.ROWS) -> Response:
        def only_rows() -> Response:
            return page.render("list.html", view=search.list_view(node, asked_of(q, sort, n)))

        response = await queue.answer(request, only_rows)
        serial = serial_of(request)
        if serial is not None:
            response.headers["x-sequence"] = str(serial)  # the page drops an answer that is older than the last one
        return response

    @app.get("/filters")
    async def filters(
        request: Request, search_id: str, q: str = "", sort: str = "", n: Integer = search.ROWS
    ) -> Response:
        def counted() -> Response:
            asked = asked_of(q, sort, n)
            results = known_list(node, search_id, asked)
            groups = search.filters(node, asked) if results.rows else []
            return page.render("filters.html", groups=groups, view=search.view_of(node, asked, results))

        return await queue.answer(request, counted)

    @app.post("/settle")
    def settle(
        csrf: Text = "", search_id: Text = "", q: Text = "", sort: Text = "", n: Number = search.ROWS
    ) -> Response:
        page.check(csrf)
        results = known_list(node, search_id, asked_of(q, sort, n))
        if results.search_id == search_id and results.query.strip():
            node.settle(results)
        return Response(status_code=204)

    @app.post("/act")
    async def act(request: Request) -> Response:
        form = {name: str(value) for name, value in (await request.form(max_files=0, max_fields=20)).items()}
        page.check(form.get("csrf", ""))
        done = await actions.in_thread(node, form)
        if done.question is not None:
            return page.render(_part(request, "question"), question=done.question, risks=RISKS, form=form)
        if "x-part" in request.headers:
            return page.render("message.html", message=done.message, wrong=False)
        back = actions.address(form, said=done.name)
        return RedirectResponse(back, status_code=303)

    @app.get("/explain")
    async def explain(
        request: Request, search_id: str, document: Integer, q: str = "", sort: str = "", n: Integer = 10
    ) -> Response:
        def explained() -> Response:
            results = known_list(node, search_id, asked_of(q, sort, n))
            row = next((row for row in results.rows if row.id == document), None)
            if row is None:
                raise InputError("the list does not show this document any more; search again")
            contributions = sorted(node.explain(results, document), key=lambda part: -abs(part.points))
            shown = [part for part in contributions if part.points]
            return page.render(_part(request, "explain"), row=row, contributions=shown, q=results.query)

        return await queue.answer(request, explained)

    @app.get("/preview")
    async def preview(
        request: Request, search_id: str, document: Integer, q: str = "", sort: str = "", n: Integer = 10
    ) -> Response:
        def previewed() -> Response:
            results = known_list(node, search_id, asked_of(q, sort, n))
            beginning = node.preview(results, document)
            lines = [search.marked(line.text, line.highlights) for line in beginning.lines]
            return page.render(
                _part(request, "preview"), document=document_of(node.known_list(results), document),
                text=Markup("\n").join(lines), complete=beginning.complete, q=results.query,
            )  # fmt: skip

        return await queue.answer(request, previewed)

    @app.get("/open-with")
    async def open_with(
        request: Request, search_id: str, document: Integer, q: str = "", sort: str = "", n: Integer = 10
    ) -> Response:
        def listed() -> Response:
            asked = asked_of(q, sort, n)
            results = known_list(node, search_id, asked)
            shown = document_of(node.known_list(results), document)
            programs = desktop.choices(node.file_to_open(key_of(shown), results.query))
            return page.render(
                _part(request, "open_with"), document=shown, programs=programs, asked=asked, search_id=results.search_id
            )

        return await queue.answer(request, listed)

    @app.get("/favicon.ico")
    def icon() -> Response:
        return FileResponse(STATIC / "icon.svg")

    @app.get("/opensearch.xml")
    def opensearch() -> Response:
        text = page.text("opensearch.xml", port=page.site.port)
        return Response(text, media_type="application/opensearchdescription+xml")


def _part(request: Request, name: str) -> str:
    """The template of a part of a page where a script asks for it, else of a whole page around it."""
    return f"{name}.html" if "x-part" in request.headers else f"{name}_page.html"
