"""A queue of requests that compute on the node: one computes, the others wait without a thread.

A tab has one waiting place. While somebody types faster than lists are computed, a request with a newer serial takes
the place of the one that waits, which is answered at once with 204 (nothing to show). A request whose client has gone
when it is admitted is not computed, with or without a serial.
"""

import asyncio
from collections.abc import Callable, Hashable
from typing import NamedTuple

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from foltr.node.page.security import current_cookie

_MOST_CHARACTERS = 64  # of the name that a tab gives itself


class _Waiting(NamedTuple):
    serial: int
    admitted: asyncio.Future[bool]  # True: compute now; False: a newer request of this tab has come


class RequestQueue:
    """The waiting requests of one application, in the order of their tabs' first request."""

    def __init__(self) -> None:
        self._computing = False
        self._waiting: dict[Hashable, _Waiting] = {}

    async def answer(self, request: Request, compute: Callable[[], Response]) -> Response:
        """Computes the response in a thread when this request is admitted, unless nobody waits for it any more."""
        if not await self._admit(*_tab_and_serial(request)):
            return Response(status_code=204)
        try:
            if await request.is_disconnected():
                return Response(status_code=204)  # nobody reads it
            return await run_in_threadpool(compute)
        finally:
            self._next()

    async def _admit(self, tab: Hashable, serial: int) -> bool:
        if not self._computing:
            self._computing = True
            return True
        older = self._waiting.get(tab)
        if older is not None and not older.admitted.done():
            if older.serial > serial:
                return False
            older.admitted.set_result(False)
        admitted = asyncio.get_running_loop().create_future()
        self._waiting[tab] = _Waiting(serial, admitted)
        try:
            return bool(await admitted)
        except asyncio.CancelledError:  # the server ends
            if admitted.done() and not admitted.cancelled() and admitted.result():
                self._next()
            raise

    def _next(self) -> None:
        while self._waiting:
            tab = next(iter(self._waiting))
            admitted = self._waiting.pop(tab).admitted
            if not admitted.done():
                admitted.set_result(True)
                return
        self._computing = False


def serial_of(request: Request) -> int | None:
    """The number that the page gives to its requests for lists; None for a request of another kind."""
    serial = request.headers.get("x-sequence", "")
    return int(serial) if serial.isascii() and serial.isdecimal() and len(serial) < 16 else None


def _tab_and_serial(request: Request) -> tuple[Hashable, int]:
    """The tab of a request. One that names no tab or has no serial waits by itself."""
    tab, serial = request.headers.get("x-tab", ""), serial_of(request)
    if serial is None or not 0 < len(tab) <= _MOST_CHARACTERS:
        return object(), 0
    return (current_cookie(), tab), serial
