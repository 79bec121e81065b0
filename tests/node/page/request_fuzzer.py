"""Hostile requests to every route of the page, made from a seed: wrong values, missing fields, strange bodies."""

import asyncio
import re
from collections import defaultdict
from pathlib import Path
from urllib.parse import quote_from_bytes, urlencode

from page_client import PORT, form_of, numbers

import foltr.node.page
from foltr.node.page import actions
from foltr.node.search.launchable import RISKS
from foltr.rng import stream

TEMPLATES = Path(foltr.node.page.__file__).with_name("templates")
INTEGERS = (0, 1, -1, 2, 7, 50, 100, 10**6, 2**31, 2**53, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 10**30, -(10**30))
NUMBERS = (
    "NaN",
    "inf",
    "-inf",
    "1e400",
    "1.5",
    "0x10",
    "1_000",
    "١٢",
    "²",
    " 3 ",
    "+4",
    "--5",
    "007",
    "1e3",
    "9" * 4400,
)
PATHS = ("~nosuchuser/x", "~", "~/", "~root/x", "/", "//", "/etc/passwd", "../" * 50, "/dev/zero", "/proc/self/mem",
         "C:\\x", "a/" * 3000, "/" + "n" * 300, ".", "..", "file:///etc/passwd")  # fmt: skip
TEXTS = ("", " ", "json", "json OR", '"', '"json', "-", "type:", "type:pdf json", "before:0000-00-00",
         "after:9999-99-99", "path:~nosuchuser", "from:@", "OR OR", "(((", "*", "%", "{{7*7}}", "<script>", "x" * 3000,
         "a " * 2000, "\u0301" * 2000, "ß" * 500, "ﷺ" * 500, "\u202e", "\ufeff", "\U0010ffff", "\r\n",
         "'; DROP TABLE files; --", "yes", "on", "pause", "forget me", "date", "2024-02-30", "2024-01-01",
         "99999-01-01", "0001-01-01", "en")  # fmt: skip
BYTES = (b"\0", b"a\0b", b"\xff\xfe", b"\xed\xa0\x80", b"\xc0\xaf", b"\xf8\x88\x80\x80\x80", b"%", b"%zz", b"%u1234",
         b"&&&", b"=", b"a=b=c", b"[]", b"\x1b[31m", b"\xe2\x80\xae")  # fmt: skip
CHARSETS = ("utf-8", "utf-16", "utf-7", "idna", "punycode", "unicode_escape", "raw_unicode_escape", "hex", "zlib",
            "latin-1", "no-such-charset", "undefined", "x\0y", "mbcs", "utf-32")  # fmt: skip
METHODS = ("GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "X")
HEADERS = (
    [], [(b"x-part", b"true")], [(b"x-sequence", b"9" * 40)], [(b"x-sequence", b"7")],
    [(b"sec-fetch-site", b"same-origin"), (b"origin", b"null")], [(b"sec-fetch-site", b"cross-site")],
    [(b"origin", b"\xff")], [(b"cookie", b"a=b; \xff=\xfe; foltr_8390=")], [(b"content-length", b"9" * 5000)],
    [(b"range", b"bytes=-1,5-2")], [(b"if-none-match", b"*")], [(b"if-modified-since", b"Mon, 99 Foo 99999")],
    [(b"accept-encoding", b"gzip;q=nan")], [(b"expect", b"100-continue")], [(b"transfer-encoding", b"chunked")],
)  # fmt: skip


class Fuzzer:
    """Makes requests; `values` are true ones of the node, so that requests get past the first check."""

    def __init__(self, routes, seed):
        self._seed, self._block, self._buffer = seed, 0, iter(())
        forms = fields_of_forms()
        self.routes = [
            (path_of(route), sorted(fields_of(route) | forms.get(route.path, set()) | {"csrf"})) for route in routes
        ]
        self.routes += [("/", ["token"]), ("/enter", ["token"])]  # answered before any route
        self._names = sorted({name for _, fields in self.routes for name in fields})
        self.values = {}

    def number(self, count):
        """A random number below a count."""
        value = next(self._buffer, None)
        if value is None:
            self._block += 1
            draws = stream(self._seed, round=self._block, purpose="attack")
            self._buffer = iter(draws.integers(2**31, size=4096).tolist())
            value = next(self._buffer)
        return value % count

    def one_of(self, choices):
        return choices[self.number(len(choices))]

    def value(self, name):
        """A field's value as bytes: a true one, a changed one, or a hostile one."""
        kind, true = self.number(10), self.values.get(name)
        if true and kind < 7:
            return str(self.one_of(true)).encode("utf-8", "replace")
        if true and kind == 7:
            return self._changed(str(self.one_of(true)).encode("utf-8", "replace"))
        pool = self.one_of((INTEGERS, NUMBERS, PATHS, TEXTS, TEXTS, BYTES))
        chosen = self.one_of(pool)
        return chosen if isinstance(chosen, bytes) else str(chosen).encode("utf-8", "replace")

    def _changed(self, text):
        place = self.number(len(text) + 1)
        piece = self.one_of((b"", b"\0", b"\xff", b"9", b"-", b"%", b"x" * 200, text))
        return text[:place] + piece + text[place + self.number(3) :]

    def fields(self, names):
        """Most fields of a route, some missing, some twice, some that it does not have."""
        button = self.one_of(actions.ACTIONS)  # a form sends the one that was pressed
        chosen = [name for name in names if self.number(12) and (name not in actions.ACTIONS or name == button)]
        chosen += [self.one_of(names)] * (self.number(6) == 0) + [self.one_of(self._names)] * (self.number(4) == 0)
        return [(name, self.value(name)) for name in chosen]

    def request(self, cookie):
        """Method, path, query, headers and body of one request."""
        path, names = self.one_of(self.routes)
        method = "POST" if self.number(2) else "GET"
        method = self.one_of(METHODS) if self.number(40) == 0 else method
        if "{" in path:
            path = re.sub(r"\{.*?\}", lambda _: self.value("path").decode("utf-8", "replace"), path)
        query = encoded(self.fields(names)) if method != "POST" or self.number(10) == 0 else b""
        kind, body = self._body(names) if method == "POST" else (b"", b"")
        headers = [(b"host", f"127.0.0.1:{PORT}".encode()), *([(b"content-type", kind)] if kind else [])]
        headers += [(b"cookie", cookie)] * (self.number(30) != 0) + self.one_of(HEADERS) * (self.number(4) == 0)
        return method, path, query, headers, body

    def _body(self, names):
        fields, kind = self.fields(names), self.number(12)
        if kind == 0:
            return b"application/json", self.one_of((b"{", b"null", b"[" * 5000, b'{"csrf": 1}', b"\xff"))
        if kind == 1:
            return b"multipart/form-data; boundary=b", self.one_of((b"", b"--b", b"--b--", b"--b\r\n\r\n", b"x" * 9000))
        if kind == 2:
            return b"application/x-www-form-urlencoded", b"&".join([self.value("q")] * self.number(60))
        if kind < 5:
            charset = self.one_of(CHARSETS)
            return f"multipart/form-data; boundary=b; charset={charset}".encode(), multipart(fields)
        return b"application/x-www-form-urlencoded", encoded(fields)


def fields_of(route):
    """The names that a route declares, of its address and of its form."""
    dependant = getattr(route, "dependant", None)
    return {field.name for field in [*dependant.query_params, *dependant.body_params]} if dependant else {"x"}


def fields_of_forms():
    """The names of fields in the forms of all templates, by the path that the form is sent to."""
    text = "\n".join(file.read_text("utf-8") for file in sorted(TEMPLATES.glob("*.html")))
    forms = re.findall(r'<form[^>]*action="([^"]*)"(.*?)</form>', text, re.DOTALL)
    names = defaultdict(set)
    for path, form in forms:
        names[path] |= set(re.findall(r'(?:name="|switch\(")(\w+)"', form))
    return names


def path_of(route):
    """The path of a route; where files are served, with a name of a file."""
    return route.path if hasattr(route, "methods") else f"{route.path}/{{file}}"


def encoded(fields):
    return b"&".join(name.encode() + b"=" + quote_from_bytes(value).encode() for name, value in fields)


def multipart(fields):
    parts = [b'--b\r\nContent-Disposition: form-data; name="%b"\r\n\r\n%b\r\n' % (name.encode(), value)
             for name, value in fields]  # fmt: skip
    return b"".join(parts) + b"--b--\r\n"


async def answer(application, method, path, query, headers, body):
    """Status, headers and body of what an application answers; an exception of it is raised."""
    scope = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method, "path": path,
             "raw_path": path.encode(), "query_string": query, "root_path": "", "scheme": "http", "headers": headers,
             "client": ("127.0.0.1", 50_000), "server": ("127.0.0.1", PORT)}  # fmt: skip
    half = len(body) // 2
    messages = [{"type": "http.request", "body": body[:half], "more_body": True},
                {"type": "http.request", "body": body[half:], "more_body": False}]  # fmt: skip
    sent = []

    async def receive():
        if messages:
            return messages.pop(0)
        await asyncio.sleep(0)
        return {"type": "http.disconnect"}

    async def send(message):
        sent.append(message)

    await application(scope, receive, send)
    start = sent[0]
    return start["status"], dict(start["headers"]), b"".join(message.get("body", b"") for message in sent[1:])


async def true_values(application, cookie):
    """Values of the node as it is: a list that it shows, its documents, the token of its forms."""
    headers = [(b"host", f"127.0.0.1:{PORT}".encode()), (b"cookie", cookie)]
    _, _, body = await answer(application, "GET", "/", urlencode({"q": "json"}).encode(), headers, b"")
    text = body.decode()
    fields, documents = form_of(text), numbers(text) or [1]
    names = ("open", "folder", "forget", "pin", "unpin", "never", "document")
    return {
        "csrf": [fields["csrf"]], "search_id": [fields.get("search_id", "")], "q": ["json", "queue", "hostile"],
        **dict.fromkeys(names, documents), "returned": [f"{fields.get('search_id', '')}:{documents[0]}"],
        "action": ["pause", "resume", "scan"], "confirmation": ["forget me"], "n": [10, 20], "sort": ["date", ""],
        "search": [1, 2, 3], "back_to": [0, 1], "since": ["2024-01-01"], "until": ["2030-01-01"], "workers": [1, 2],
        "retention_days": [30, 365], "language": ["english"], "exclude": ["*.log\njson/"], "before": [1, 5, 100],
        "kind": list(RISKS), "consent": list(RISKS), "file": range(1, 400),
    }  # fmt: skip
