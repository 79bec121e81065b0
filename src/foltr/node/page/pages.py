"""The pages beside search: history, learning, what leaves this machine, index, settings, forgetting, help."""

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import msgspec
from fastapi import FastAPI, Form, Request, Response
from fastapi.responses import RedirectResponse, StreamingResponse

from foltr.errors import FoltrError, InputError, SpecError
from foltr.node import places as node_places
from foltr.node import settings as node_settings
from foltr.node.index import files
from foltr.node.learning import log_files
from foltr.node.learning import versions as node_learning
from foltr.node.learning.log import Displayed
from foltr.node.learning.versions import Opening
from foltr.node.node import Node
from foltr.node.page.search import Integer, clean, number_of
from foltr.node.search import pins
from foltr.node.search import query as language
from foltr.node.search.conditions import seconds_of
from foltr.node.settings import Settings

if TYPE_CHECKING:
    from foltr.node.page.app import Page

Text = Annotated[str, Form()]
CONFIRMATION = "forget me"
_PAGE = 50  # searches on a page of the history
_WINDOW = 20  # openings in a mean of the curve
_FIELDS = ("roots", "exclude", "language", "workers", "retention_days")
_SWITCHES = ("learning", "memory", "exploration", "on_battery")


class SearchView(NamedTuple):
    number: int
    time: float
    query: str | None  # None: erased
    opened: list[tuple[str, int, bool]]  # key of the document, rank, taken back


class Point(NamedTuple):
    time: float
    reciprocal_rank: float
    mean: float  # of the last openings
    version: int


def add(app: FastAPI, page: "Page") -> None:
    _add_history(app, page)
    _add_learning(app, page)
    _add_index(app, page)
    _add_settings(app, page)
    _add_forgetting(app, page)


# ---- history


def _add_history(app: FastAPI, page: "Page") -> None:
    node = page.node

    @app.get("/history")
    def history(find: str = "", before: Integer | None = None, deleted: Integer | None = None) -> Response:
        text = clean(find).strip()
        rows = node.history(_PAGE + 1, before, text=text)
        following = rows[_PAGE - 1].impression if len(rows) > _PAGE else None
        return page.render(
            "history.html", searches=[_searched(one) for one in rows[:_PAGE]], find=text, following=following,
            deleted=deleted, statements=pins.every(node.log), retention=node.settings.retention_days,
        )  # fmt: skip

    @app.post("/history/delete")
    def delete(
        csrf: Text = "", search: Text = "", since: Text = "", until: Text = "", everything: Text = ""
    ) -> Response:
        page.check(csrf)
        deleted = _delete(node, search, since, until, everything)
        return RedirectResponse(f"/history?deleted={deleted}", status_code=303)

    @app.post("/history/take-back")
    def take_back(csrf: Text = "", number: Text = "") -> Response:
        page.check(csrf)
        for one in pins.every(node.log):
            if str(one.time) == number:
                pins.remove(node.log, one.query, one.document)
        return RedirectResponse("/history", status_code=303)

    @app.get("/history/export")
    def export() -> Response:
        headers = {"content-disposition": 'attachment; filename="foltr-history.jsonl"'}
        lines = (f"{line}\n" for line in log_files.export_lines(node.log))
        return StreamingResponse(lines, media_type="application/x-ndjson", headers=headers)


def _delete(node: Node, search: str, since: str, until: str, everything: str) -> int:
    if search:
        number = number_of(search)
        if number is None:
            raise InputError(f"{search[:20]!r} is no number of a search")
        return node.delete_history([number])
    if everything:
        pins.erase_all(node.log)  # they hold texts of searches too
        return node.delete_history()
    for text in filter(None, (since, until)):
        if language.date_of(text) is None:
            raise InputError(f"{text[:20]!r} is no day; write YYYY-MM-DD")
    if not since and not until:
        raise InputError("choose a day: delete searches from it on, or before it")
    return node.delete_history(since=seconds_of(since) if since else None, until=seconds_of(until) if until else None)


def _searched(one: Displayed) -> SearchView:
    opened = [(choice.document, choice.position + 1, bool(choice.withdrawn))
              for choice in one.choices if choice.document is not None]  # fmt: skip
    return SearchView(one.impression, one.time, one.query, opened)


# ---- learning


def _add_learning(app: FastAPI, page: "Page") -> None:
    node = page.node

    @app.get("/learning")
    def learning(said: str = "") -> Response:
        status, points = node.status(), curve(node_learning.openings(node.log))
        return page.render(
            "learning.html", versions=node.versions(), current=status.version, points=points, clicks=status.clicks,
            said=_LEARNED.get(said, ""), settings=node.settings,
        )  # fmt: skip

    @app.get("/learning/curve.json")
    def curve_data() -> list[list[float]]:
        points = curve(node_learning.openings(node.log))
        return [list(map(float, column)) for column in zip(*points, strict=True)] if points else [[], [], [], []]

    @app.post("/learning")
    def change(csrf: Text = "", back_to: Text = "", fit: Text = "") -> Response:
        page.check(csrf)
        if back_to:
            version = number_of(back_to)
            if version is None:
                raise InputError(f"{back_to[:20]!r} is no version")
            node.go_back(version)
            return RedirectResponse("/learning?said=back", status_code=303)
        said = ("fitted" if node.refit().version else "nothing") if fit else ""
        return RedirectResponse(f"/learning?said={said}", status_code=303)


_LEARNED = {
    "back": "Done: that version ranks from now on.",
    "fitted": "Fitted: a new version ranks from now on, on trial against the one before it.",
    "nothing": "Nothing changed: there are too few choices yet, or the new weights would have ranked them worse.",
}


def curve(openings: list[Opening]) -> list[Point]:
    """Reciprocal ranks of what was opened, and their mean over the last openings."""
    ranks = [1 / one.rank for one in openings]
    windows = [ranks[max(0, i + 1 - _WINDOW) : i + 1] for i in range(len(ranks))]
    return [
        Point(one.time, rank, sum(window) / len(window), one.version)
        for one, rank, window in zip(openings, ranks, windows, strict=True)
    ]


# ---- what leaves, index, why


def _add_index(app: FastAPI, page: "Page") -> None:
    node = page.node

    @app.get("/leaves")
    def leaves() -> Response:
        return page.render("leaves.html", files=node_places.stored_files(node.places), places=node.places)

    @app.get("/index")
    def index(request: Request) -> Response:
        progress = page.following.state if page.following else {}
        values: dict[str, Any] = {"status": node.status(), "progress": progress, "states": _STATES}
        if "hx-request" in request.headers:
            return page.render("index_state.html", **values)
        with node.reading() as reader:
            tables = reader.store.connection if reader else None
            values["reasons"] = files.reasons(tables) if tables else []
            values["problems"] = files.problems(tables) if tables else []
            values["root_problems"] = files.root_problems(tables) if tables else {}
        return page.render("index.html", **values)

    @app.post("/index")
    def change(csrf: Text = "", action: Text = "") -> Response:
        page.check(csrf)
        if action not in ("pause", "resume", "scan"):
            raise InputError(f"no action {action[:20]!r}; there are pause, resume and scan")
        if action == "pause":
            node.pause()
        if action == "resume":
            node.resume()
        if page.following and action != "pause":
            page.following.look_again()
        return RedirectResponse("/index", status_code=303)

    @app.get("/why")
    def why(path: str = "", q: str = "") -> Response:
        wanted = path.strip().replace("\0", "")[:4096]
        found = node.why(wanted) if wanted else None
        return page.render("why.html", path=wanted, found=found, q=clean(q), roots=node.settings.roots)

    @app.get("/help")
    def help_(request: Request) -> Response:
        return page.render("help_text.html" if "hx-request" in request.headers else "help.html")


_STATES = {
    "indexed": "can be found",
    "waiting": "will be read next",
    "excluded": "left out by a rule",
    "skipped": "left out because of its content or size",
    "failed": "could not be read",
}


def size(number: int) -> str:
    if number < 1000:
        return f"{number}\N{NO-BREAK SPACE}B"
    figure, unit = (number / 1e6, "MB") if number >= 1e5 else (number / 1e3, "kB")
    return f"{figure:,.1f}\N{NO-BREAK SPACE}{unit}"


# ---- settings


def _add_settings(app: FastAPI, page: "Page") -> None:
    node = page.node

    @app.get("/settings")
    def settings(saved: bool = False) -> Response:
        return page.render("settings.html", form=_form_of(node.settings), problem="", saved=saved, node=node)

    @app.post("/settings")
    async def save(request: Request) -> Response:
        from starlette.concurrency import run_in_threadpool

        given = {name: str(value) for name, value in (await request.form(max_files=0, max_fields=40)).items()}
        page.check(given.get("csrf", ""))
        try:
            await run_in_threadpool(_save, page, settings_of(given, node.settings))
        except FoltrError as problem:
            form = {**dict.fromkeys(_FIELDS, ""), **given}
            return page.render("settings.html", 422, form=form, problem=str(problem), saved=False, node=node)
        return RedirectResponse("/settings?saved=1", status_code=303)


def settings_of(form: dict[str, str], before: Settings) -> Settings:
    """Checked settings from a form; an error says which field is wrong. A missing field is not an empty one."""
    missing = [name for name in _FIELDS if name not in form]
    if missing:
        raise SpecError(f"the form has no field {', '.join(missing)}; load the page again")
    content: dict[str, Any] = {
        **msgspec.to_builtins(before),
        "roots": _lines(form["roots"]),
        "exclude": _lines(form["exclude"]),
        "language": form["language"].strip(),
        **{name: name in form for name in _SWITCHES},
        **{name: _whole(form, name) for name in ("workers", "retention_days")},
    }
    return node_settings.parse(content)


def _whole(form: dict[str, str], name: str) -> int:
    text = form[name].strip()
    number = number_of(text)
    if number is None or number > 1_000_000:
        raise SpecError(f"{name}: {text[:20]!r} is no whole number up to a million")
    return number


def _lines(text: str) -> list[str]:
    return list(dict.fromkeys(line.strip() for line in text.splitlines() if line.strip()))


def _form_of(settings: Settings) -> dict[str, str]:
    switches = {name: "on" for name in _SWITCHES if getattr(settings, name)}
    plain = {name: str(getattr(settings, name)) for name in ("language", "workers", "retention_days")}
    return {"roots": "\n".join(settings.roots), "exclude": "\n".join(settings.exclude), **plain, **switches}


def _save(page: "Page", wanted: Settings) -> None:
    """Roots that go away and new exclusions are erased from the index at once, so that indexing must stand still."""
    node, before = page.node, page.node.settings
    added = [one for one in wanted.roots if one not in before.roots]
    gone = [one for one in before.roots if one not in wanted.roots]
    excluded = [one for one in wanted.exclude if one not in before.exclude]
    if page.following:
        with page.following.stopped():
            _apply(node, wanted, added, gone, excluded)
    else:
        _apply(node, wanted, added, gone, excluded)


def _apply(node: Node, wanted: Settings, added: list[str], gone: list[str], excluded: list[str]) -> None:
    if added:
        node.add(added)
    for root in gone:
        node.remove(root)
    if excluded:
        node.exclude(excluded)
    node.save_settings(msgspec.structs.replace(wanted, roots=node.settings.roots))


# ---- forgetting


def _add_forgetting(app: FastAPI, page: "Page") -> None:
    node = page.node

    @app.get("/forget")
    def forget() -> Response:
        return page.render("forget.html", confirmation=CONFIRMATION, problem="", done=False, status=node.status())

    @app.post("/forget")
    def erase(csrf: Text = "", confirmation: Text = "") -> Response:
        page.check(csrf)
        values = {"confirmation": CONFIRMATION, "status": node.status()}
        if confirmation.strip().casefold() != CONFIRMATION:
            problem = f"Nothing was erased: type the words “{CONFIRMATION}” to confirm."
            return page.render("forget.html", 422, problem=problem, done=False, **values)
        if page.following:
            with page.following.stopped():
                node.forget()
        else:
            node.forget()
        return page.render("forget.html", problem="", done=True, confirmation=CONFIRMATION, status=node.status())
