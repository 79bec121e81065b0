"""`foltr demo`: the page of the story, and the command as a process that ends as it should."""

import re
import signal

import httpx
import psutil
import pytest
from demo_process import SMALL, Demo
from page_client import PORT, Client

from foltr.node.page import sign_ins
from foltr.node.page.app import create_app
from foltr.node.page.demo import Ending, Estimate, Point, Story, curve, decimal, distance, estimate, verdict

ROW = Estimate(0.7664, 0.0049)


def point(number, learned=0.80, error=0.002):
    gain = Estimate(learned - ROW.mean, error)
    return Point(number, 5 * number, ROW, Estimate(0.79, 0.004), Estimate(0.81, 0.004), Estimate(learned, 0.005), gain,
                 15 if number else 0, 3992 if number else 0, 6399 if number else 0)  # fmt: skip


@pytest.fixture
def story():
    return Story(corpus="docstrings of <Python>", documents=6249, people=20, seeds=(1, 2, 3), rounds=10, clicks=50,
                 own_folder="")  # fmt: skip


@pytest.fixture
def demo_client(node, page_folder, story):
    with Client(create_app(node, PORT, story=story)) as client:
        assert client.get("/", params={"token": sign_ins.mint(page_folder)}).status_code == 200
        yield client


# ---- the page


def test_numbers_are_printed_as_the_field_does():
    assert [decimal(one) for one in (0.7664, -0.051, 1.0, 0.0)] == [".766", "-.051", "1.000", ".000"]
    assert estimate(ROW) == ".766 ± .005"


@pytest.mark.parametrize(
    ("mean", "words"), [(0.05, "above BM25"), (-0.05, "below BM25"), (0.039, "not clearly different from BM25")]
)
def test_only_two_standard_errors_are_a_difference(mean, words):
    assert verdict(Estimate(mean, 0.02)) == words


def test_distances_are_counted_in_standard_errors():
    assert distance(Estimate(-0.05, 0.02)) == "2.5 standard errors"
    assert distance(Estimate(0.05, 0.0)) == "more than 10 standard errors"


def test_the_page_follows_the_story(demo_client, story):
    assert "5 of 3" not in demo_client.get("/demo").text
    story.indexed = 2
    assert "2 of 3 seeds are ready" in demo_client.get("/demo").text
    story.points = (point(0, ROW.mean, 0.0), point(1, 0.80))
    text = demo_client.get("/demo").text
    assert "Round 1 of 10" in text
    assert "<strong>above BM25</strong>" in text
    assert ".800 ± .005" in text
    assert '<noscript><meta http-equiv="refresh"' in text
    story.ending = Ending(ROW, ROW, ROW, 18)
    text = demo_client.get("/demo").text
    assert "at least 18 of 20 people are in every sum" in text
    assert "no epsilon" in text
    assert "refresh" not in text
    assert "data-refresh" not in text  # nothing is asked for any more


def test_a_ranker_that_learned_nothing_is_not_called_better(demo_client, story):
    story.points = (point(0, ROW.mean, 0.0), point(1, ROW.mean + 0.001, 0.002))
    text = demo_client.get("/demo").text
    assert "not clearly different from BM25" in text
    assert "above BM25" not in text


def test_a_part_is_sent_again_only_when_something_is_new(demo_client, story):
    story.points = (point(0),)
    asked = re.search(r'data-refresh="([^"]+)"', demo_client.get("/demo").text)[1]
    assert demo_client.get(asked, headers={"x-part": "true"}).status_code == 204
    story.points = (point(0), point(1))
    part = demo_client.get(asked, headers={"x-part": "true"})
    assert part.status_code == 200
    assert "<html" not in part.text


def test_a_failure_is_shown(demo_client, story):
    story.problem = "the simulation failed"
    assert "ended early: the simulation failed" in demo_client.get("/demo").text


def test_what_comes_from_outside_is_text(demo_client):
    text = demo_client.get("/demo").text
    assert "docstrings of &lt;Python&gt;" in text
    assert "<Python>" not in text


def test_columns_of_the_drawing(story):
    story.points = (point(0), point(1))
    found = curve(story)
    assert found["clicks"] == [0, 5]
    assert found["learned"] == [0.8, 0.8]
    assert found["last"] == 50


def test_only_the_demo_has_the_page(browser_client, demo_client):
    assert browser_client.get("/demo").status_code == 404
    assert "/demo" not in browser_client.get("/").text
    assert 'href="/demo"' in demo_client.get("/").text
    assert 'href="/demo"' in demo_client.get("/leaves").text


# ---- the command


@pytest.fixture
def start(tmp_path):
    started = []

    def run(*options, **how):
        started.append(Demo(tmp_path / str(len(started)), *options, **how))
        return started[-1]

    yield run
    for one in started:
        one.close()


def test_without_a_terminal_it_tells_the_story_and_leaves_nothing(start):
    demo = start("--exit-after", "300", *SMALL)
    base = demo.address
    with httpx.Client() as client:
        assert client.get(base).status_code == 401
        assert client.get(demo.fresh_address()).status_code == 200
        assert "This is the demo" in client.get(base).text
    text = demo.rest()
    assert demo.process.wait(60) == 0
    assert demo.process.stderr.read() == b""
    rounds = re.findall(r"^ +(\d+) +(\d+) +(?:\.\d{3} +){4}", text, re.MULTILINE)
    assert rounds == [(str(number), str(5 * number)) for number in range(11)]
    summary = text.partition("\nSummary\n")[2]
    for name in ("BM25", "start weights", "start weights, counting", "learned, each by itself", "learned together"):
        assert re.search(rf"^  {name} +\.\d{{3}} ± \.\d{{3}}", summary, re.MULTILINE), name
    assert re.search(
        r"Rounds: 10. Each person sent \d+0 masked numbers, [^.]+\s\d+\.\d\s+kB\.\s+No\s+document", summary
    )
    assert re.search(r"at least [45] of 5 people are in every sum, and\s+neither", summary)
    assert "no epsilon" in summary
    assert max(len(line) for line in text.splitlines()[2:]) <= 80  # below the address and a command with a path
    assert demo.members() == []
    assert list(demo.temporary.iterdir()) == []
    assert not demo.own.exists()


@pytest.fixture
def notes(tmp_path):
    """A folder of the person, which the demo must leave as it is."""
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "one.md").write_text("# one\n\nwords\n")
    yield str(tmp_path / "notes")
    assert [one.name for one in (tmp_path / "notes").iterdir()] == ["one.md"]
    assert (tmp_path / "notes" / "one.md").read_text() == "# one\n\nwords\n"


def test_ctrl_c_at_a_terminal_ends_it_and_erases_everything(start, notes):
    demo = start(notes, *SMALL, terminal=True)
    assert "Ctrl-C" in demo.until(r"Only you.*\n")[0]
    assert len(list(demo.temporary.iterdir())) == 1
    demo.until(r"round +choices")
    demo.process.send_signal(signal.SIGINT)
    assert demo.process.wait(120) == 0
    assert demo.members() == []
    assert list(demo.temporary.iterdir()) == []
    assert not demo.own.exists()


def test_a_killed_demo_leaves_no_process(start, notes):
    demo = start(notes, *SMALL, terminal=True)
    demo.until(r"round +choices")
    children = [one for one in demo.members() if one.pid != demo.process.pid]
    assert len(children) >= 2  # the simulation and the index
    demo.process.kill()
    _, alive = psutil.wait_procs(children, timeout=120)
    assert alive == []


def test_with_too_little_time_the_summary_says_so(start, notes):
    demo = start(notes, "--exit-after", "1")  # the whole story takes half a minute of computing
    told = demo.rest()
    assert "token=" not in told  # no terminal: what is printed may be kept
    assert re.search(r"To let a browser in: FOLTR_NODE_HOME=\S+/home foltr node page\n", told)
    assert demo.process.wait(120) == 0
    assert "The time was up after 0 of" in told
    assert demo.members() == []


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["/no/such/folder"], b"there is no such folder"),
        (["lab", "--seed", "3"], b"--seed: not for `foltr demo lab`"),
        (["--people", "2"], b"--people"),
    ],
)
def test_wrong_calls_are_explained(start, options, words):
    demo = start(*options)
    demo.rest()
    assert demo.process.wait(60) == 2
    assert words in demo.process.stderr.read()
