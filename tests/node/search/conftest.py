"""Real folders, a real index: the docstrings of the standard library as Markdown files."""

import importlib
import inspect
import os
import shutil
import subprocess
import sys

import pytest

import foltr.node

MODULES = [
    "argparse", "asyncio.queues", "base64", "bisect", "calendar", "cmd", "codecs", "collections",
    "configparser", "contextlib", "copy", "csv", "datetime", "decimal", "difflib", "dis", "email.message",
    "enum", "filecmp", "fileinput", "fnmatch", "fractions", "functools", "gettext", "glob", "graphlib",
    "gzip", "hashlib", "heapq", "html", "http.client", "imaplib", "inspect", "io", "ipaddress", "itertools",
    "json", "keyword", "linecache", "locale", "logging", "mailbox", "math", "mimetypes", "netrc", "numbers",
    "operator", "os.path", "pathlib", "pickle", "platform", "plistlib", "pprint", "queue", "quopri", "re",
    "reprlib", "sched", "secrets", "shelve", "shlex", "shutil", "signal", "smtplib", "socketserver",
    "sqlite3", "stat", "statistics", "string", "struct", "subprocess", "tarfile", "tempfile", "textwrap",
    "threading", "timeit", "tokenize", "trace", "traceback", "types", "unicodedata", "unittest",
    "urllib.parse", "uuid", "wave", "weakref", "xml.dom", "zipfile", "zoneinfo",
]  # fmt: skip


def docstrings():
    """(folder, name, docstring) of modules, their classes and functions."""
    for module_name in MODULES:
        module = importlib.import_module(module_name)
        yield module_name, "module", inspect.getdoc(module) or ""
        for name, value in sorted(vars(module).items()):
            if not name.startswith("_") and (inspect.isclass(value) or inspect.isroutine(value)):
                text = inspect.getdoc(value) or ""
                if len(text) > 40 and getattr(value, "__module__", module_name) in (module_name, None):
                    yield module_name, name, text


def write_docstrings(folder):
    for module_name, name, text in docstrings():
        file = folder / module_name / f"{name}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"# {module_name}.{name}\n\n{text}\n", encoding="utf-8")
        os.utime(file, (1.6e9, 1.6e9))


def run_index(node):
    return list(node.index())


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    """A folder of docstrings and the home of a node that has indexed it; tests copy the home."""
    base = tmp_path_factory.mktemp("library")
    write_docstrings(base / "docs")
    with foltr.node.open(base / "home") as node:
        node.add([base / "docs"])
        run_index(node)
    return base


@pytest.fixture
def home(library, tmp_path):
    shutil.copytree(library / "home", tmp_path / "home")
    return tmp_path / "home"


@pytest.fixture
def node(home):
    with foltr.node.open(home) as opened:
        yield opened


@pytest.fixture
def folder(tmp_path):
    """An empty folder for documents, and a function that makes a node of it."""
    (tmp_path / "documents").mkdir()
    return tmp_path / "documents"


@pytest.fixture
def node_of(tmp_path, folder):
    opened = []

    def build(**texts):
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
        node = foltr.node.open(tmp_path / "own")
        opened.append(node)
        node.add([folder])
        run_index(node)
        return node

    yield build
    for node in opened:
        node.close()


@pytest.fixture
def foltr_node(home):
    """Runs `foltr node ...` in a process of its own."""

    def run(*words, home=home, **environment):
        return subprocess.run(
            [sys.executable, "-m", "foltr", "node", *map(str, words)],
            capture_output=True,
            env={**os.environ, "FOLTR_NODE_HOME": str(home), "NO_COLOR": "1", "COLUMNS": "80", **environment},
            timeout=120,
        )

    return run
