"""The pages beside search: history, learning, what leaves this machine, index, settings, forgetting, help."""

from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import msgspec
from fastapi import FastAPI, Form, Request, Response
from fastapi.responses import RedirectResponse, StreamingResponse

from foltr.errors import FoltrError, InputError, SpecError
from foltr.node import places as node_places
from foltr.node import settings as node_settings
from foltr.node.index import files
from foltr.node.index.rules import is_default
from foltr.node.learning import curations, erasure, log_files
from foltr.node.learning import success as node_success
from foltr.node.learning import versions as node_learning
from foltr.node.learning.erasure import Erased
from foltr.node.learning.log import Displayed
from foltr.node.learning.versions import Opening
from foltr.node.node import Node
from foltr.node.page.search import Integer, clean, number_of
from foltr.node.page.syncing import is_member
from foltr.node.search import consents
from foltr.node.search import query as language
from foltr.node.search.conditions import seconds_of
from foltr.node.search.launchable import RISKS
from foltr.node.settings import Settings, check_root
from foltr.text.analysis import LANGUAGES

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
    is_empty: bool  # nothing was found


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
    def history(
        find: str = "", before: Integer | None = None, deleted: Integer | None = None, weights: str = "",
        complete: bool = True,
    ) -> Response:  # fmt: skip
        text = clean(find).strip()
        rows = node.history(_PAGE + 1, before, text=text)
        following = rows[_PAGE - 1].impression if len(rows) > _PAGE else None
        return page.render(
            "history.html", searches=[_searched(one) for one in rows[:_PAGE]], find=text, following=following,
            done=_deletion(deleted, weights, complete), curations=curations.every(node.log),
            retention=node.settings.retention_days, learned=bool(node.versions()),
        )  # fmt: skip

    @app.post("/history/delete")
    def delete(
        csrf: Text = "", search: Text = "", since: Text = "", until: Text = "", everything: Text = "",
        reset_weights: Text = "",
    ) -> Response:  # fmt: skip
        page.check(csrf)
        erased = _delete(node, search, since, until, everything, reset_weights)
        address = f"/history?deleted={erased.searches}&weights={erased.weights}&complete={int(erased.complete)}"
        return RedirectResponse(address, status_code=303)

    @app.post("/history/take-back")
    def take_back(csrf: Text = "", number: Text = "") -> Response:
        page.check(csrf)
        for curation in curations.every(node.log):
            if str(curation.time) == number:
                erasure.remove_curation(node.log, curation.query, curation.document)
        return RedirectResponse("/history", status_code=303)

    @app.get("/history/export")
    def export() -> Response:
        headers = {"content-disposition": 'attachment; filename="foltr-history.jsonl"'}
        lines = (f"{line}\n" for line in log_files.export_lines(node.log))
        return StreamingResponse(lines, media_type="application/x-ndjson", headers=headers)


def _deletion(deleted: int | None, weights: str, complete: bool) -> str:
    """Says what a deletion did, from the address that it led to."""
    if deleted is None:
        return ""
    fates: dict[str, Literal["unchanged", "reset"]] = {"unchanged": "unchanged", "reset": "reset"}
    return erasure.summary(Erased(deleted, fates.get(weights, "none"), complete))


def _delete(node: Node, search: str, since: str, until: str, everything: str, reset_weights: str) -> Erased:
    if search:
        number = number_of(search)
        if number is None:
            raise InputError(f"{search[:20]!r} is no number of a search")
        return node.delete_history([number])
    if everything:
        return node.delete_history(reset_weights=bool(reset_weights))
    for text in filter(None, (since, until)):
        if language.date_of(text) is None:
            raise InputError(f"{text[:20]!r} is no day; write YYYY-MM-DD")
    if not since and not until:
        raise InputError("choose a day: delete searches from it on, or before it")
    return node.delete_history(since=seconds_of(since) if since else None, until=seconds_of(until) if until else None)


def _searched(one: Displayed) -> SearchView:
    opened = [(choice.document, choice.position + 1, bool(choice.withdrawn))
              for choice in one.choices if choice.document is not None]  # fmt: skip
    return SearchView(one.impression, one.time, one.query, opened, not one.documents)


# ---- learning


def _add_learning(app: FastAPI, page: "Page") -> None:
    node = page.node

    @app.get("/learning")
    def learning(said: str = "") -> Response:
        status, points = node.status(), curve(node_learning.openings(node.log))
        return page.render(
            "learning.html", versions=node.versions(), current=status.version, points=points, clicks=status.clicks,
            said=_LEARNED.get(said, ""), settings=node.settings,
            success=node_success.sentence(node_success.success(node.log)),
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


def _releases(places: node_places.Places) -> dict[str, Any]:
    """Federations and messages of this node; what a federation needs is imported only where the node joined one."""
    if not is_member(places) and not any(places.data.glob("federation/ledger")):
        return {"federations": [], "releases": []}
    from foltr.node.learning import federated, released

    found = released.releases(places)
    joined = [membership.joined.invitation for membership in federated.memberships_of(places)]
    return {"federations": joined, "releases": found.rows[::-1], "figures": found.figures}


def _add_index(app: FastAPI, page: "Page") -> None:
    node = page.node

    @app.get("/leaves")
    def leaves() -> Response:
        values: dict[str, Any] = {"files": node_places.stored_files(node.places), "places": node.places}
        return page.render("leaves.html", **values, **_releases(node.places))

    @app.get("/index")
    def index(request: Request) -> Response:
        progress = page.following.state if page.following else {}
        values: dict[str, Any] = {"status": node.status(), "progress": progress, "states": _STATES}
        if "x-part" in request.headers:
            return page.render("index_state.html", **values)
        with node.reading() as reader:
            tables = reader.store.connection if reader else None
            values["reasons"] = files.reasons(tables) if tables else []
            values["secrets"] = files.secrets(tables) if tables else []
            values["problems"] = files.problems(tables) if tables else []
            values["root_problems"] = files.root_problems(tables) if tables else {}
        return page.render("index.html", **values)

    @app.get("/rule")
    def excluded_names(reason: str = "", folder: str = "") -> Response:
        """Names of what a rule leaves out of a folder: they appear only where the person opens the rule."""
        with node.reading() as reader:
            names = files.left_out(reader.store.connection, clean(reason), clean(folder)) if reader else []
        return page.render("excluded.html", reason=clean(reason), folder=clean(folder), names=names,
                           allowed=is_default(reason))  # fmt: skip

    @app.post("/rule")
    def allow(csrf: Text = "", file: Text = "") -> Response:
        page.check(csrf)
        with page.standing_still():
            node.index_anyway(number_of(file) or 0)
        return RedirectResponse("/index", status_code=303)

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
        return page.render("help_text.html" if "x-part" in request.headers else "help.html")


_STATES = {
    "indexed": "can be found",
    "waiting": "will be read next; found by its name where there are many",
    "excluded": "left out by a rule",
    "skipped": "has no text, or none that is read; found by its name unless it looks like a secret",
    "failed": "could not be read; found by its name",
}


def size(number: int) -> str:
    if number < 1000:
        return f"{number}\N{NO-BREAK SPACE}B"
    figure, unit = (number / 1e6, "MB") if number >= 1e5 else (number / 1e3, "kB")
    return f"{figure:,.1f}\N{NO-BREAK SPACE}{unit}"


# ---- settings


def _add_settings(app: FastAPI, page: "Page") -> None:
    node = page.node

    def shown(form: dict[str, str], code: int = 200, **values: Any) -> Response:
        usual = {"problem": "", "saved": False, "erased": [], "languages": LANGUAGES, "risks": RISKS,
                 "consents": sorted(consents.given(node.places))}  # fmt: skip
        return page.render("settings.html", code, **{**usual, "form": form, "node": node, **values})

    @app.get("/settings")
    def settings(saved: bool = False) -> Response:
        return shown(_form_of(node.settings), saved=saved)

    @app.post("/settings/ask-again")
    def ask_again(csrf: Text = "", kind: Text = "") -> Response:
        page.check(csrf)
        consents.revoke(node.places, kind)
        return RedirectResponse("/settings?saved=1#opening", status_code=303)

    @app.post("/settings")
    async def save(request: Request) -> Response:
        from starlette.concurrency import run_in_threadpool

        given = {name: str(value) for name, value in (await request.form(max_files=0, max_fields=40)).items()}
        page.check(given.get("csrf", ""))
        form = {**dict.fromkeys(_FIELDS, ""), **given}
        try:
            wanted = settings_of(given, node.settings)
            for root in wanted.roots:
                if root not in node.settings.roots:
                    check_root(root)
            removed = [root for root in node.settings.roots if root not in wanted.roots]
            if removed and _lines(given.get("erase", "")) != removed:  # the question named these folders
                return shown(form, 409, erased=removed)
            await run_in_threadpool(_save, page, wanted)
        except FoltrError as problem:
            return shown(form, 422, problem=str(problem))
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
        "language": form["language"],
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
    with page.standing_still():
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
        with page.standing_still():
            node.forget()
        return page.render("forget.html", problem="", done=True, confirmation=CONFIRMATION, status=node.status())
