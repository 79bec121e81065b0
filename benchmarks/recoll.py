"""The search node beside Recoll on the same documents, in one run: indexing, size, latency, MRR@10.

python benchmarks/recoll.py [--documents 20000] [--queries 300] [--seed 1] [--json] [FOLDER...]

Takes real documents of this machine (manual pages, documentation, sources), writes each as an HTML file with its title
below one folder, and has both programs index that folder: Recoll with its defaults (Debian's recollcmd and
python3-recoll), the node with its start weights and no click. Known-item queries, the same for both:

    title   two to four words of a title, in their order
    body    three words of the body that at most one in 200 documents has

Rows: Recoll (a conjunction, its default), Recoll with any of the words, one-field BM25, start weights. CPU is that of
the indexing process and its children.
"""

import argparse
import html
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from foltr.rng import stream
from foltr.text.analysis import stop_words, words

FOLDERS = ("/usr/share/man/man1", "/usr/share/man/man3", "/usr/share/man/man5", "/usr/share/man/man7",
           "/usr/share/man/man8", "/usr/share/doc", str(Path(os.__file__).parent))  # fmt: skip
RECOLL = """
import json, sys, time
from recoll import recoll
db, answers = recoll.connect(confdir=sys.argv[1]), []
for text in json.load(sys.stdin):
    began = time.perf_counter()
    query = db.query()
    query.execute(text)
    found = [one.url for one in query.fetchmany(10)]
    answers.append([found, time.perf_counter() - began])
print(json.dumps(answers))
"""


class Text(NamedTuple):
    path: str  # below the folder
    title: str
    body: str


class Known(NamedTuple):
    """A query for one document."""

    kind: str
    text: str
    target: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", default=FOLDERS)
    parser.add_argument("--documents", type=int, default=20_000)
    parser.add_argument("--queries", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    if shutil.which("recollindex") is None:
        sys.exit("recollindex is not installed: apt-get install recollcmd python3-recoll")
    with tempfile.TemporaryDirectory(prefix="foltr-recoll-") as made:
        work = Path(made)
        found = list(texts(given.folders, given.documents, seed=given.seed))
        size = write(found, work / "documents")
        queries = known_items(found, given.queries, seed=given.seed)
        out = {"documents": len(found), "html_mb": size / 1e6, "queries": Counter(one.kind for one in queries),
               "recoll": recoll(work, queries), "node": node(work, queries)}  # fmt: skip
    print_all(out, as_json=given.json)


def texts(folders: list[str], count: int, *, seed: int) -> Iterator[Text]:
    """Documents with a title and fifty words or more, in an order that the seed draws."""
    from foltr.node.extract import Extracted, Extractor

    files = sorted(str(path) for folder in folders for path in Path(folder).rglob("*") if path.is_file())
    order = stream(seed, purpose="data").permutation(len(files))
    taken = 0
    with Extractor() as extractor:
        for path, got in extractor.extract(files[place] for place in order):
            if not isinstance(got, Extracted):
                continue
            text = got.documents[0].body
            title = got.documents[0].title or first_line(text)
            if title and len(text.split()) >= 50:
                yield Text(visible(os.fsdecode(path)) + ".html", title, text)
                taken += 1
            if taken == count:
                return


def visible(path: str) -> str:
    """A path below the folder without hidden folders, which a node leaves out."""
    return "/".join(part.lstrip(".") for part in path.strip("/").split("/"))


def first_line(text: str) -> str:
    return next((line.strip(" #/*\"'=-") for line in text.splitlines() if len(line.split()) > 1), "")[:120]


def write(found: list[Text], folder: Path) -> int:
    size = 0
    for one in found:
        path = folder / one.path
        path.parent.mkdir(parents=True, exist_ok=True)
        page = (f"<html><head><meta charset='utf-8'><title>{html.escape(one.title)}</title></head><body><pre>"
                f"{html.escape(one.body)}</pre></body></html>")  # fmt: skip
        size += path.write_bytes(page.encode("utf-8", "replace"))
    return size


def known_items(found: list[Text], count: int, *, seed: int) -> list[Known]:
    draws = stream(seed, purpose="queries")
    bodies = [set(words(one.body)) for one in found]
    frequency = Counter(word for body in bodies for word in body)
    stops, rare = set(stop_words("english")), max(2, len(found) // 200)
    order, queries = draws.permutation(len(found)), []
    for kind in ("title", "body"):
        number = 0
        for place, number_drawn in zip(order, draws.skip(len(found)).integers(3, len(found)), strict=True):
            title = [word for word in words(found[place].title) if word not in stops and len(word) > 1]
            few = sorted(word for word in bodies[place] if frequency[word] <= rare and word.isalpha() and len(word) > 3)
            asked = title[: 2 + number_drawn] if kind == "title" else spread(few, 3)
            if len(asked) >= (2 if kind == "title" else 3):
                queries.append(Known(kind, " ".join(asked), found[place].path))
                number += 1
            if number == count:
                break
        order = order[::-1]
    return queries


def spread(few: list[str], count: int) -> list[str]:
    return [few[(2 * i + 1) * len(few) // (2 * count)] for i in range(count)] if len(few) >= count else []


def recoll(work: Path, queries: list[Known]) -> dict[str, Any]:
    config = work / "recoll"
    config.mkdir()
    (config / "recoll.conf").write_text(f"topdirs = {work / 'documents'}\n", "utf-8")
    cpu, seconds = timed(["recollindex", "-c", str(config)])
    rows = {}
    for name, form in (("all words", "{}"), ("any word", "{}")):
        asked = [form.format(one.text if name == "all words" else " OR ".join(one.text.split())) for one in queries]
        answer = subprocess.run(["/usr/bin/python3", "-c", RECOLL, str(config)], input=json.dumps(asked),
                                capture_output=True, text=True, check=True)  # fmt: skip
        prefix = f"file://{work / 'documents'}/"
        lists = [([url.removeprefix(prefix) for url in urls], spent) for urls, spent in json.loads(answer.stdout)]
        rows[name] = figures(queries, lists)
    return {"index_cpu_s": cpu, "index_s": seconds, "index_mb": size_of(config), "rows": rows}


def node(work: Path, queries: list[Known]) -> dict[str, Any]:
    home = work / "node"
    environment = {**os.environ, "FOLTR_NODE_HOME": str(home)}
    foltr = [sys.executable, "-m", "foltr", "node"]
    subprocess.run([*foltr, "init"], env=environment, check=True, capture_output=True)
    cpu, seconds = timed([*foltr, "add", str(work / "documents")], environment)
    child = subprocess.run([sys.executable, __file__, "--ask", str(home), str(work / "documents")],
                           input=json.dumps([one.text for one in queries]), capture_output=True, text=True,
                           check=True)  # fmt: skip
    answer = json.loads(child.stdout)
    rows = {name: figures(queries, lists) for name, lists in answer["rows"].items()}
    return {"index_cpu_s": cpu, "index_s": seconds, "index_mb": size_of(home), "memory_mb": answer["memory_mb"],
            "open_s": answer["open_s"], "rows": rows}  # fmt: skip


def ask(home: str, documents: str) -> None:
    """In a process of its own, so that its memory is that of a serving node."""
    import msgspec

    import foltr.node
    from foltr.node import learning
    from foltr.node.manners import return_memory

    return_memory()

    queries = json.load(sys.stdin)
    began = time.perf_counter()
    rows: dict[str, list[Any]] = {"start weights": [], "BM25, one field": []}
    with foltr.node.open(home) as opened:
        opening = time.perf_counter() - began
        for text in queries:
            began = time.perf_counter()
            found = [row.path for row in opened.search(text, limit=10).rows]
            rows["start weights"].append([found, time.perf_counter() - began])
        memory = resident_mb()
        start = learning.start_weights()
        only = tuple(msgspec.structs.replace(one, weight=float(one.name == "bm25")) for one in start.features)
        learning.adopt(opened.log, msgspec.structs.replace(start, features=only))
        for text in queries:
            rows["BM25, one field"].append([[row.path for row in opened.search(text, limit=10).rows], 0.0])
    for lists in rows.values():
        lists[:] = [([os.path.relpath(path, documents) for path in found], spent) for found, spent in lists]
    sys.stdout.write(json.dumps({"memory_mb": memory, "open_s": opening, "rows": rows}))


def figures(queries: list[Known], lists: list[tuple[list[str], float]]) -> dict[str, float]:
    out = {}
    for kind in ("title", "body"):
        ranks = [1 / (found.index(one.target) + 1) if one.target in found else 0.0
                 for one, (found, _) in zip(queries, lists, strict=True) if one.kind == kind]  # fmt: skip
        out[f"mrr_{kind}"] = statistics.fmean(ranks)
        out[f"se_{kind}"] = statistics.stdev(ranks) / len(ranks) ** 0.5
    spent = sorted(seconds * 1e3 for _, seconds in lists)
    return out | {"median_ms": statistics.median(spent), "p95_ms": spent[int(0.95 * len(spent))]}


def resident_mb() -> float:
    """Of this process now; its peak would include that of the process which started it."""
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * resource.getpagesize() / 1e6


def timed(command: list[str], environment: dict[str, str] | None = None) -> tuple[float, float]:
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, env=environment, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu, time.perf_counter() - began


def size_of(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def print_all(out: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(json.dumps(out, allow_nan=False) + "\n")
        return
    say = sys.stdout.write
    asked = ", ".join(f"{number} {kind}" for kind, number in out["queries"].items())
    say(f"{out['documents']:,} documents of this machine as HTML, {out['html_mb']:.0f} MB; queries: {asked}\n\n")
    say(f"{'':24}{'CPU s':>8}{'wall s':>8}{'index MB':>10}\n")
    for name in ("recoll", "node"):
        one = out[name]
        say(f"{name:24}{one['index_cpu_s']:8.1f}{one['index_s']:8.1f}{one['index_mb']:10.0f}\n")
    say(f"node: {out['node']['memory_mb']:.0f} MB, opens in {out['node']['open_s']:.2f} s\n\n")
    say(f"{'MRR@10':24}{'title words':>16}{'rare words':>16}{'median ms':>11}{'p95 ms':>9}\n")
    for name in ("recoll", "node"):
        for row, one in out[name]["rows"].items():
            title, body = (f"{one[f'mrr_{kind}']:.3f} ± {one[f'se_{kind}']:.3f}" for kind in ("title", "body"))
            times = f"{one['median_ms']:11.1f}{one['p95_ms']:9.1f}" if one["p95_ms"] else f"{'':20}"
            say(f"{name + ', ' + row:24}{title:>16}{body:>16}{times}\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--ask"]:
        ask(*sys.argv[2:4])
    else:
        main()
