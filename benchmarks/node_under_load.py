"""A served node under load: memory, the list after aborted requests, the cost of counts, indexing beside busy loops.

    python benchmarks/node_under_load.py HOME       # a folder of its own; made at the first call, with 20,000 texts

The texts are files of this machine, docstrings and the corpora that are there (`foltr.lab.people.corpora`). Times are
those of a machine that may be busy; shares of a core are CPU time over time and need an idle one.
"""

import http.cookiejar
import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections import Counter
from contextlib import suppress
from itertools import combinations
from pathlib import Path

import numpy as np

import foltr.node
from foltr.errors import FoltrError
from foltr.lab.people.corpora import load_texts
from foltr.node.search import query as language

TEXTS, ABORTED, LISTS, PAIRS, SECONDS = 20_000, 200, 300, 400, 20.0
_REPEATS = 5
_CORPORA = ("machine", "docstrings", "nfcorpus", "vaswani", "msmarco-sample")


def write_texts(folder: Path) -> int:
    """Writes texts of the corpora that are on this machine, one file each; how many there are."""
    written = 0
    for name in _CORPORA:
        with suppress(FoltrError):
            texts = load_texts(name)
            for number, (title, body) in enumerate(zip(texts.titles, texts.bodies, strict=True)):
                if written == TEXTS:
                    return written
                file = folder / name / f"folder{texts.folders[number]}" / f"{number}.md"
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(f"# {title}\n\n{body}\n", "utf-8", "replace")
                written += 1
    return written


def build(home: Path) -> None:
    with foltr.node.open(home / "node") as node:
        written = write_texts(home / "texts")
        node.add([home / "texts"])
        for _ in node.index():
            pass
        print(f"{written:,} texts, {node.status().documents:,} documents", file=sys.stderr)  # noqa: T201


def frequent_words(home: Path, count: int) -> list[str]:
    """Words that many documents have, the most frequent first."""
    with foltr.node.open(home / "node") as node, node.reading() as reader:
        assert reader is not None
        rows = reader.store.connection.execute("SELECT id FROM documents ORDER BY id").fetchall()
        bodies = [reader.store.text(number) for (number,) in rows[::20]]
    having = Counter(word for body in bodies for word in set(re.findall(r"[a-z]{4,}", body.lower())))
    return sorted(having, key=lambda word: (-having[word], word))[:count]


def counts_ms(home: Path, words: list[str]) -> dict[str, float]:
    """CPU time of the counts of a list, each query once: frequent words, many of them, with an unfinished last word,
    with a condition."""
    pairs = [" ".join(pair) for pair in combinations(words, 2)][:PAIRS]
    kinds = {
        "pairs": pairs,
        "eight": [" ".join(words[place : place + 8]) for place in range(len(words) - 8)],
        "unfinished": [text[: -max(1, len(text.split()[-1]) - 3)] for text in pairs],
        "condition": [f"{text} type:markdown" for text in pairs],
    }
    return {f"counts_{kind}_max_ms": max(_counts_ms(home, texts)) for kind, texts in kinds.items()}


def _counts_ms(home: Path, texts: list[str]) -> list[float]:
    times = []
    with foltr.node.open(home / "node") as node, node.reading() as reader:
        assert reader is not None
        for text in texts:
            query = language.parse(text)
            asked = reader.asked(query)
            reader.candidates(query, asked, 1)  # a list is ranked before it is counted, and conditions are evaluated
            began = time.thread_time()
            if reader.count_with_all_words(query, asked) is None:
                reader.with_all_words(query, asked, 1001)
            times.append(1000 * (time.thread_time() - began))
    return times


class Served:
    """A serving node and a browser that was let in."""

    def __init__(self, home: Path) -> None:
        self._environment = {**os.environ, "FOLTR_NODE_HOME": str(home / "node")}
        serve = [sys.executable, "-u", "-m", "foltr", "node", "serve", "--port", "0", "--no-browser", "--no-index"]
        self.process = subprocess.Popen(serve, env=self._environment, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        assert "http" in self.process.stdout.readline()
        page = [sys.executable, "-m", "foltr", "node", "page"]
        address = subprocess.run(page, env=self._environment, stdout=subprocess.PIPE, text=True, check=True).stdout
        self.base = address.partition("?")[0].rstrip("/")
        self.port = int(self.base.rpartition(":")[2])
        self.cookies = http.cookiejar.CookieJar()
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self.cookies))
        self._opener.open(address.strip()).read()

    def list_ms(self, text: str) -> float:
        began = time.perf_counter()
        address = f"{self.base}/list?{urllib.parse.urlencode({'q': text})}"
        self._opener.open(urllib.request.Request(address, headers={"x-part": "true"})).read()  # noqa: S310 - loopback
        return 1000 * (time.perf_counter() - began)

    def abort(self, text: str) -> None:
        """Asks for a list and hangs up."""
        cookie = "; ".join(f"{one.name}={one.value}" for one in self.cookies)
        with socket.create_connection(("127.0.0.1", self.port)) as connection:
            target = f"/list?{urllib.parse.urlencode({'q': text})}"
            head = f"GET {target} HTTP/1.1\r\nHost: {self.base.partition('//')[2]}\r\nCookie: {cookie}\r\n\r\n"
            connection.sendall(head.encode())

    def memory_mb(self) -> dict[str, float]:
        status = Path(f"/proc/{self.process.pid}/status").read_text("ascii")
        found = dict(re.findall(r"(VmRSS|VmHWM):\s+(\d+) kB", status))
        return {"memory_mb": int(found["VmRSS"]) / 1000, "peak_mb": int(found["VmHWM"]) / 1000}


def served(home: Path, words: list[str]) -> dict[str, float]:
    node = Served(home)
    try:
        pairs = [" ".join(pair) for pair in combinations(words, 2)]
        usual = [node.list_ms(text) for text in pairs[:LISTS]]
        figures = {"list_p50_ms": float(np.median(usual)), **node.memory_mb()}
        after = []
        for repeat in range(_REPEATS):
            for text in pairs[LISTS : LISTS + ABORTED]:
                node.abort(f"{text} {repeat}")
            after.append(node.list_ms(pairs[-1 - repeat]))
        return figures | {"list_after_aborted_p50_ms": float(np.median(after)), "list_after_aborted_max_ms": max(after)}
    finally:
        node.process.terminate()
        node.process.wait()


def share_beside_busy_loops(home: Path) -> dict[str, float]:
    """Percent of a core that indexing gets on two cores with four busy loops, from the CPU time of its processes.

    Beside other load all of them get less; from the time of indexing over that of a loop follows what indexing gets
    where nothing else runs.
    """
    folder = home / f"again{time.time_ns()}"
    cores = sorted(os.sched_getaffinity(0))[:2]
    with foltr.node.open(folder) as node:
        node.add([home / "texts"])
    environment = {**os.environ, "FOLTR_NODE_HOME": str(folder)}
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(4)]
    command = [sys.executable, "-m", "foltr", "node", "index"]
    index = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    try:
        for process in (*loops, index):
            os.sched_setaffinity(process.pid, cores)
        time.sleep(15.0)  # until its workers have started
        began, before = time.monotonic(), [_cpu_seconds(process.pid) for process in (index, *loops)]
        time.sleep(SECONDS)
        indexing, *busy = np.array([_cpu_seconds(process.pid) for process in (index, *loops)]) - before
        ratio = indexing / np.mean(busy)
        return {
            "indexing_percent": 100 * indexing / (time.monotonic() - began),
            "indexing_percent_alone": 100 * 2 * ratio / (4 + ratio),
        }
    finally:
        for process in (index, *loops):
            process.terminate()
            process.wait()


def _cpu_seconds(pid: int) -> float:
    """Of a process and all that it started and that are alive."""
    fields = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    own = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()
    return own + sum(_cpu_seconds(int(child)) for child in children)


def main(home: Path) -> None:
    if not (home / "node").exists():
        build(home)
    words = frequent_words(home, 40)
    figures = counts_ms(home, words) | served(home, words) | share_beside_busy_loops(home)
    print(json.dumps({name: round(value, 2) for name, value in figures.items()}))  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
