"""Documents, clients and servers for the tests of the page."""

import asyncio
import html
import importlib
import inspect
import os
import re
import select
import subprocess
import sys

import httpx

from foltr.node.page import sign_ins

MODULES = ("argparse", "bisect", "calendar", "csv", "difflib", "fractions", "glob", "heapq", "json", "queue", "shutil",
           "statistics", "string", "tempfile", "textwrap", "threading", "zipfile")  # fmt: skip
PORT = 8390
HOST = f"http://127.0.0.1:{PORT}"
SCRIPT = "<script>window.attacked=1</script>"
IMAGE = '"><img src=x onerror=window.attacked=1>'

MAIL = f"""From: Ada {IMAGE} <ada@example.org>
To: Bob <bob@example.org>
Subject: Minutes {SCRIPT} of the meeting
Date: Mon, 3 Jun 2024 10:00:00 +0000
MIME-Version: 1.0
Content-Type: text/plain; charset=utf-8

quarterly minutes {SCRIPT} {IMAGE}
"""


def write_docstrings(folder):
    for module_name in MODULES:
        module = importlib.import_module(module_name)
        for name, value in sorted(vars(module).items()):
            text = inspect.getdoc(value) or ""
            if not name.startswith("_") and callable(value) and len(text) > 40:
                file = folder / module_name / f"{name}.md"
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(f"# {module_name}.{name}\n\n{text}\n", encoding="utf-8")
                os.utime(file, (1.6e9, 1.6e9))


def write_hostile(folder):
    """Documents with the word `hostile`, whose names, titles and bodies are HTML."""
    folder.mkdir(parents=True)
    (folder / f"hostile {IMAGE.replace('/', '')}.md").write_text(f"# hostile title {SCRIPT}\n\nbody {SCRIPT} {IMAGE}\n")
    (folder / "hostile.html").write_text(
        "<html><head><title>hostile &lt;script&gt;window.attacked=1&lt;/script&gt;</title></head>"
        f"<body>hostile page &lt;img src=x onerror=window.attacked=1&gt; {SCRIPT}</body></html>"
    )
    (folder / "mail.eml").write_text(MAIL)
    (folder / "launcher.txt").write_text("hostile launcher\n[Desktop Entry]\nExec=touch /tmp/attacked\n")
    (folder / "run.txt").write_text("#!/bin/sh\n# hostile program\n")
    executable = folder / "executable.txt"
    executable.write_text("hostile executable\n")
    executable.chmod(0o755)
    (folder / "letter.txt").write_text("hostile letter, a harmless one\n")
    (folder / "node_modules").mkdir()  # which a default rule leaves out


class Client:
    """A client of an application in this process; it keeps cookies and follows no redirect."""

    def __init__(self, application, **cookies):
        self._runner = asyncio.Runner()
        transport = httpx.ASGITransport(application, client=("127.0.0.1", 50_000))
        self._client = httpx.AsyncClient(transport=transport, base_url=HOST, cookies=cookies)
        self.cookies = self._client.cookies

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._runner.run(self._client.aclose())
        self._runner.close()

    def get(self, address, **options):
        return self._runner.run(self._client.get(address, **options))

    def post(self, address, **options):
        return self._runner.run(self._client.post(address, **options))


def form_of(text):
    """The hidden fields of the form around the rows."""
    fields = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', text)
    return {name: _unescaped(value) for name, value in fields}


def _unescaped(text):
    return html.unescape(text)


def numbers(text):
    """Documents of the rows, in their order."""
    return [int(one) for one in re.findall(r'name="open" value="(\d+)"', text)]


class Server:
    """`foltr node serve` in a process of its own."""

    def __init__(self, home, *options, port=0, **environment):
        command = [sys.executable, "-u", "-m", "foltr", "node", "serve", "--no-browser", "--port", str(port), *options]
        variables = {**os.environ, "FOLTR_NODE_HOME": str(home), "NO_COLOR": "1", **environment}
        self.process = subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        line = self.line()
        assert "http" in line, (line, self.process.stderr.read() if self.process.poll() is not None else "")
        self.base = re.search(r"http\S+", line)[0].rstrip("/")
        self.port = int(self.base.rpartition(":")[2])
        self._home = home

    def fresh_address(self):
        """An address with a token, as `foltr node page` prints it."""
        return f"{self.base}/?token={sign_ins.mint(self._home / 'data' / 'page')}"

    def line(self):
        ready, _, _ = select.select([self.process.stdout], [], [], 60)
        return self.process.stdout.readline().decode() if ready else ""

    def kill(self):
        self.process.kill()
        self.end()

    def end(self):
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait(30)
        self.process.stdout.close()
        self.process.stderr.close()
