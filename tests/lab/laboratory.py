"""A small spec on made-up data, the command as a process of its own, and what a run leaves."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from foltr.rng import stream

TINY = """\
name = "tiny"
data = { name = "synthetic-mq2007@60", folds = "1-2" }
federation = { clients = 8, interactions = 4, rounds = 20 }
runs = { seeds = 2 }
sweep = { "users.clicks" = ["navigational", "informational"] }
"""
PATIENCE = 120  # seconds for what takes two on an idle machine


class Answer(NamedTuple):
    code: int
    out: str
    err: str


def start(*arguments: Any, **options: Any) -> "subprocess.Popen[str]":
    """`foltr` as a process of its own, at the head of its own group: the one that Ctrl-C reaches in a terminal."""
    return subprocess.Popen(
        [sys.executable, "-m", "foltr.cli.main", *map(str, arguments)],
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "start_new_session": True, **options},
    )


def ended(process: "subprocess.Popen[str]") -> Answer:
    """What a process said, once it has ended; one that does not end is ended."""
    try:
        out, err = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        pytest.fail(f"did not end in {PATIENCE} s\n{out}\n{err}")
    return Answer(process.returncode, out, err)


def until(condition: Callable[[], Any], *, process: "subprocess.Popen[str] | None" = None) -> Any:
    """Waits for something to become true, as long as the process that is to bring it about lives."""
    clock = threading.Event()
    for _ in range(PATIENCE * 50):
        found = condition()
        if found:
            return found
        if process is not None and process.poll() is not None:
            pytest.fail(f"ended too early\n{process.communicate()}")
        clock.wait(0.02)
    return pytest.fail(f"did not come about in {PATIENCE} s")


def singles(out: Path) -> list[Path]:
    """Finished single runs."""
    return sorted((out / "singles").glob("[!.]*.npz"))


def the_run(out: Path) -> Path:
    """The folder of the only run in `out`."""
    (found,) = [path.parent for path in out.glob("*/manifest.json")]
    return found


def read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def strict_json(text: str) -> Any:
    """As every language reads it: without NaN and infinity."""

    def refuse(word: str) -> None:
        pytest.fail(f"{word} is not JSON")

    return json.loads(text, parse_constant=refuse)


def letor(*queries: int | list[int], features: int = 3, first: int = 1) -> str:
    """Lines of queries with so many documents of the grades 0, 1, 2, 0, ... (or with these grades)."""
    rows = []
    for number, query in enumerate(queries, first):
        grades = [document % 3 for document in range(query)] if isinstance(query, int) else query
        for document, grade in enumerate(grades):
            values = [grade, document / 10, number % 7, 1][:features]
            rows.append(f"{grade} qid:{number} " + " ".join(f"{i}:{value}" for i, value in enumerate(values, 1)))
    return "\n".join(rows) + "\n"


def own_data(folder: Path, *queries: int | list[int]) -> Path:
    """A collection with one fold, every part of it with these queries."""
    folder.mkdir()
    for place, part in enumerate(("train", "vali", "test")):
        (folder / f"{part}.txt").write_text(letor(*queries, first=100 * place + 1))
    return folder


TOPICS = ("fever", "rash", "cough", "sleep")


def write_clinics(folder: Path) -> None:
    """Sixty documents of four topics; a query names its topic, and long documents of a topic are its best."""
    folder.mkdir(parents=True)
    draws = stream(1, purpose="data").integers(1000, 60 * 30).reshape(60, 30)
    topics = [TOPICS[number % 4] for number in range(60)]
    bodies = [" ".join(topic if word % 5 == 0 else f"any{word % 40}" for word in row)
              for topic, row in zip(topics, draws, strict=True)]  # fmt: skip
    documents = [{"_id": f"d{i}", "title": f"note {i}", "text": body} for i, body in enumerate(bodies)]
    queries = [{"_id": f"q{i}", "text": f"{TOPICS[i % 4]} any{i % 40}"} for i in range(60)]
    graded = [f"q{q}\td{d}\t{1 + bodies[d].split().count(TOPICS[q % 4]) // 6}"
              for q in range(60) for d in range(60) if d % 4 == q % 4]  # fmt: skip
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, documents)))
    (folder / "queries.jsonl").write_text("\n".join(map(json.dumps, queries)))
    (folder / "qrels.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *graded]))
