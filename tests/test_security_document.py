"""The security document names code and tests: all of them exist, and every row of a table names both."""

import ast
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCUMENT = ROOT / "docs" / "security.md"
TEXT = DOCUMENT.read_text("utf-8")
MODULES = sorted(set(re.findall(r"`(foltr(?:\.\w+)+)`", TEXT)))
TESTS = sorted(set(re.findall(r"`(tests/[\w/.:]+)`", TEXT)))
ROWS = [line for line in TEXT.splitlines() if line.startswith("|") and "`tests/" in line]


def functions(path: Path) -> set[str]:
    return {node.name for node in ast.parse(path.read_text("utf-8")).body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("name", MODULES)
def test_the_code_exists(name: str):
    importlib.import_module(name)


@pytest.mark.parametrize("name", TESTS)
def test_the_test_exists(name: str):
    path, _, function = name.partition("::")
    assert (ROOT / path).exists()
    assert not function or function in functions(ROOT / path)


GUARANTEES = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for table in re.findall(r"^\| guarantee \| against \| code \| attacked by \|\n\|[-|]+\|\n((?:\|.*\n)+)", TEXT, re.M)
    for line in table.splitlines()
]


def test_every_guarantee_names_its_adversary_its_code_and_its_tests():
    assert len(GUARANTEES) > 80
    for cells in GUARANTEES:
        assert len(cells) == 4, cells
        guarantee, against, code, tests = cells
        assert len(guarantee) > 10
        assert len(against) > 3, guarantee
        assert re.search(r"`foltr\.\w", code), guarantee
        assert re.search(r"`tests/\w", tests), guarantee
    assert len(ROWS) == len(GUARANTEES)  # no row with tests stands in another kind of table


def test_functions_and_classes_that_a_guarantee_names_are_in_their_module():
    named = [
        (module, name)
        for _, _, code, _ in GUARANTEES
        for module, names in re.findall(r"`(foltr(?:\.\w+)+)` \(((?:`\w+`(?:, )?)+)\)", code)
        for name in re.findall(r"`(\w+)`", names)
    ]
    assert len(named) > 10
    assert not [f"{module}.{name}" for module, name in named if not hasattr(importlib.import_module(module), name)]


def test_a_test_file_that_a_guarantee_names_has_tests():
    for name in TESTS:
        path, _, function = name.partition("::")
        if not function and path.endswith(".py"):
            assert any(one.startswith("test_") for one in functions(ROOT / path)), path


PAGES = [ROOT / "README.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").glob("*.md"))]
EXPLAINING = [*PAGES[:2], *(page for page in PAGES if page.name.startswith("explanation-"))]
REFUTED = (
    "delay gains nothing", "and not the round", "also where nobody asks", "does so where nobody asks",
    "zero knowledge", "unbreakable", "fully private", "perfectly private", "completely anonymous", "military",
    "cannot be traced", "no information leaves", "mathematically impossible", "bulletproof", "100 % secure",
)  # fmt: skip


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_page_says_what_an_attack_has_refuted_or_nobody_can_keep(page: Path):
    text = " ".join(page.read_text("utf-8").lower().split())
    assert not [phrase for phrase in REFUTED if phrase in text]


@pytest.mark.parametrize("page", EXPLAINING, ids=lambda page: page.name)
def test_pages_that_promise_something_against_somebody_lead_to_this_document(page: Path):
    """Explanations name adversaries; what is promised against them stands in one document. The others report runs."""
    text = page.read_text("utf-8")
    speaks = re.search(r"malicious (server|coordinator|operator|client)|threat model|adversar(y|ies)\b", text)
    assert not speaks or "security.md" in text


def test_what_is_left_out_is_said():
    left_out = " ".join(TEXT.split("## Not protected")[1].split())
    for part in (
        "Taking part that depends on data", "Both operators see who takes part and when", "Budgets do not renew",
        "No third party has audited", "It runs on Linux", "Members who work for an operator",
        "Liars among the clients of one server", "No command deploys that protocol", "A copy of the whole machine",
    ):  # fmt: skip
        assert part in left_out, part
    assert "does not erase it on flash memory" in " ".join(TEXT.split())


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\]\(([^)#]+)\)", TEXT))))
def test_links_lead_somewhere(target: str):
    assert (DOCUMENT.parent / target).exists()
