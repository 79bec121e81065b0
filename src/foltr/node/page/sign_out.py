"""Signing out: the session of this browser, or of all browsers."""

from typing import TYPE_CHECKING, Annotated

from fastapi import FastAPI, Form, Response
from fastapi.responses import HTMLResponse

from foltr.node.page import sign_ins
from foltr.node.page.security import HOW_TO_GET_IN, current_cookie

if TYPE_CHECKING:
    from foltr.node.page.app import Page

Text = Annotated[str, Form()]


def add(app: FastAPI, page: "Page") -> None:
    site = page.site

    @app.post("/sign-out")
    def sign_out(csrf: Text = "", everywhere: Text = "") -> Response:
        page.check(csrf)
        if everywhere:
            sign_ins.sign_out_all(site.folder)
        else:
            sign_ins.sign_out(site.folder, current_cookie())
        heading = "All browsers are signed out" if everywhere else "This browser is signed out"
        response = HTMLResponse(page.answer(heading, HOW_TO_GET_IN))
        response.delete_cookie(site.cookie_name, path="/", httponly=True, samesite="strict")
        return response
