"""A real node over real files, asked as a browser asks: docstrings of the standard library, mail, hostile files."""

import shutil

import pytest
from browser_window import CHROMIUM, Windows
from fake_desktop import Desktop
from page_client import PORT, Client, Server, form_of, write_docstrings, write_hostile

import foltr.node
from foltr.node.page import sign_ins
from foltr.node.page.app import create_app


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    """Folders of documents and the home of a node that has indexed them; tests copy the home."""
    base = tmp_path_factory.mktemp("page")
    write_docstrings(base / "docs")
    write_hostile(base / "hostile")
    with foltr.node.open(base / "home") as node:
        node.add([base / "docs", base / "hostile"])
        assert list(node.index())[-1].phase == "done"
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
def page_folder(home):
    """Where the page keeps tokens and sessions."""
    return home / "data" / "page"


@pytest.fixture
def application(node):
    return create_app(node, PORT)


@pytest.fixture
def stranger(application):
    """A client that knows nothing."""
    with Client(application) as client:
        yield client


@pytest.fixture
def browser_client(stranger, page_folder):
    """A client that was let in."""
    assert stranger.get("/", params={"token": sign_ins.mint(page_folder)}).status_code == 200
    return stranger


@pytest.fixture
def csrf(browser_client):
    """The token in the forms of the client that was let in."""
    return form_of(browser_client.get("/settings").text)["csrf"]


@pytest.fixture(scope="module")
def chromium():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"], headless=True)
        yield browser
        browser.close()


@pytest.fixture
def windows(chromium):
    opened = Windows(chromium)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def server(library, tmp_path_factory):
    """One server for all tests of a module, with a desktop that writes down what it opens."""
    folder = tmp_path_factory.mktemp("served")
    shutil.copytree(library / "home", folder / "home")
    variables = {}
    desktop = Desktop(folder / "desktop", variables.__setitem__)
    desktop.program("xdg-open")
    started = Server(folder / "home", **variables)
    started.opened, started.home, started.documents = desktop, folder / "home", library
    yield started
    started.end()


@pytest.fixture
def visit(windows, server):
    """Opens an address of the server."""
    return lambda address="/", **options: windows.open(server.fresh_address(), address, **options)


@pytest.fixture
def serve(home):
    """Starts servers that are ended after the test."""
    started = []

    def start(*options, **environment):
        server = Server(home, *options, **environment)
        started.append(server)
        return server

    yield start
    for server in started:
        server.end()
