"""Functions that nothing but a test calls: none, but for those below, each with a reason."""

import ast
import re
from pathlib import Path

import pytest
from reachability import Package

import foltr
import foltr.node
import foltr.testing

PROJECT = Path(__file__).resolve().parents[2]
SOURCE = PROJECT / "src"

DEPLOYED = "a deployed federation: five nodes in processes of their own use it in tests/federation, a network will"
LOT = "choosing a cohort or groups by lot: for federations larger than one round, which no command sets up yet"
PARTIES = "parties that carry messages by means of their own (docs/explanation-cross-silo.md); tests/silo deploys them"
DEFINITION = "the definition in plain Python: compiled or batched code equals it in tests"

# "module:" stands for all of a module, "module." for all modules of a package
CALLED_BY_TESTS = {
    "foltr._kernels.cache:KernelCache": "numba calls these methods",
    "foltr.federation.coordinator:OneServer": DEPLOYED,
    "foltr.federation.coordinator:go_back": DEPLOYED,
    "foltr.federation.coordinator:publish": DEPLOYED,
    "foltr.federation.participant:end_round": DEPLOYED,
    "foltr.federation.network.desk:in_memory": "tests run the coordinator's desk without a network",
    "foltr.privacy.release:calibrated": DEPLOYED,
    "foltr.secagg.aggregator:accept": DEPLOYED,
    "foltr.federation.draws:": LOT,
    "foltr.secagg.groups:": LOT,
    "foltr.secagg.lot.": LOT,
    "foltr.silo.allowance:open_allowance": PARTIES,
    "foltr.silo.group_files:": PARTIES,
    "foltr.silo.owners:serve_releases": PARTIES,
    "foltr.silo.releases:": PARTIES,
    "foltr.metrics:": DEFINITION,
    "foltr.rankers.plackett_luce:": DEFINITION,
    "foltr.silo.rtk:add": DEFINITION,
    "foltr.silo.sketches:add": DEFINITION,
    "foltr.text.matching:features": DEFINITION,
    "foltr.node.extract.pool:Extractor.processes": "tests stop, kill and measure these processes",
}


def module_name(path):
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def examples():
    """Programs beside the package: benchmarks, and the Python of the documents."""
    for path in sorted((PROJECT / "benchmarks").glob("*.py")):
        yield path.read_text("utf-8")
    for path in (PROJECT / "README.md", PROJECT / "CONTRIBUTING.md", *sorted((PROJECT / "docs").glob("*.md"))):
        blocks = re.findall(r"(?ms)^```python\n(.*?)^```", path.read_text("utf-8"))
        yield from (block for block in blocks if "-> " not in block)  # signatures are no program


def words_of_templates():
    for path in (path for path in SOURCE.rglob("*") if path.suffix in (".html", ".j2", ".xml")):
        for expression in re.findall(r"(?s)\{[{%].*?[%}]\}", path.read_text("utf-8")):
            yield from re.findall(r"\w+", expression)


def public_names(package):
    """What a program may call: the exports of the package, its node and its contracts, and their public methods."""
    exports = [
        *((module, name) for name, module in foltr._PUBLIC.items()),
        *((f"foltr.node.{module}", name) for name, module in foltr.node._PLACES.items()),
        *(("foltr.testing", name) for name in foltr.testing.__all__),
    ]
    for place in [("foltr.cli.main", "main"), *exports]:
        yield place
        for module, name in package.resolved(place):
            node = package.definitions.get((module, name))
            if isinstance(node, ast.ClassDef):
                package.attributes.update(
                    method.name for method in node.body
                    if isinstance(method, ast.FunctionDef) and not method.name.startswith("_")
                )  # fmt: skip


@pytest.fixture(scope="module")
def package():
    modules = {module_name(path): ast.parse(path.read_text("utf-8")) for path in sorted(SOURCE.rglob("*.py"))}
    parsed = Package(modules, map(ast.parse, examples()), words_of_templates())
    parsed.reach(public_names(parsed))
    return parsed


@pytest.fixture(scope="module")
def unreached(package):
    return sorted(package.unreached())


def is_below(name, listed):
    return name == listed or name.startswith(f"{listed}.") or (listed[-1] in ":." and name.startswith(listed))


def test_no_function_is_called_by_tests_only(package, unreached):
    """What the exceptions call is no exception: only what tests call by name is listed."""
    excepted = [name for name in unreached if any(is_below(name, listed) for listed in CALLED_BY_TESTS)]
    package.reach([tuple(name.split(":")) for name in excepted])
    extra = [name for name in package.unreached() if name not in excepted]
    assert not extra, "delete, call or list with a reason:\n" + "\n".join(extra)


@pytest.mark.parametrize("listed", CALLED_BY_TESTS)
def test_every_exception_is_needed(unreached, listed):
    assert any(is_below(name, listed) for name in unreached)


def found_in(**sources):
    modules = {name: ast.parse(text) for name, text in sources.items()}
    package = Package(modules, [ast.parse("from main import run\nrun()")], ["shown"])
    package.reach([])
    return set(package.unreached())


@pytest.mark.parametrize(
    ("helper", "used"),
    [
        ("def f(): ...", "from helper import f\ndef run(): f()"),
        ("def f(): ...", "import helper\ndef run(): helper.f()"),
        ("def f(): ...", "import helper as h\ndef run(): return [h.f]"),
        ("def f(): ...", "import helper\ndef run(): use(helper).f()"),
        ("def f(): ...", "def run():\n    from helper import f as g\n    g()"),
        ("def f(): ...", "TABLE = {'f': 'helper:f'}\ndef run(): ..."),
        ("def f(): ...", "PROGRAM = 'import sys; from helper import f; f()'\ndef run(): ..."),
        ("def f(): g()\ndef g(): ...", "from helper import f\ndef run(): f()"),
        ("@app.command()\ndef f(): ...", "def run(): ..."),
        ("def f(): ...\nTABLE = {'f': f}", "def run(): ..."),
        ("class A:\n    def m(self): ...", "from helper import A\ndef run(): A().m()"),
        ("class A:\n    def m(self): self.n()\n    def n(self): ...", "from helper import A\ndef run(): A().m()"),
        ("class A:\n    def shown(self): ...", "from helper import A\ndef run(): A()"),
        ("class A(Thread):\n    def m(self): ...", "from helper import A\ndef run(): A()"),
    ],
)
def test_what_is_called_is_not_reported(helper, used):
    assert not found_in(main=used, helper=helper)


@pytest.mark.parametrize(
    ("helper", "used", "expected"),
    [
        ("def f(): ...", "def run(): ...", {"helper:f"}),
        ("def f(): ...", "from helper import f\ndef run(): ...", {"helper:f"}),
        ("def f(): g()\ndef g(): ...", "def run(): ...", {"helper:f", "helper:g"}),
        ("def f(): f()", "def run(): ...", {"helper:f"}),
        ("def f(): ...", "def run(f): f()", {"helper:f"}),
        ("def f(): ...", "from helper import f\ndef run(f): f()", {"helper:f"}),
        ("def f(): ...", "def run():\n    '''from helper import f'''", {"helper:f"}),
        ("class A:\n    def m(self): ...", "from helper import A\ndef run(): A()", {"helper:A.m"}),
        (
            "class A:\n    def m(self): f()\ndef f(): ...",
            "from helper import A\ndef run(): A()",
            {"helper:A.m", "helper:f"},
        ),
        ("@cache\ndef f(): ...", "def run(): ...", {"helper:f"}),
    ],
)
def test_what_nothing_calls_is_reported(helper, used, expected):
    assert found_in(main=used, helper=helper) == expected
