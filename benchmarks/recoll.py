"""The search node beside Recoll on the same files, in one run: indexing, size, and MRR@10 of known items.

python benchmarks/recoll.py [--scale 1.0] [--queries 300] [--seed 1] [--json]

Copies real files of this machine (manual pages in several languages, HTML, sources, plain documents; `known_items`)
below one folder, has both programs index it as it is, and asks both for the same known items.

Recoll (Debian: recollcmd python3-recoll groff aspell aspell-en) has its best working settings: the suffixes of manual
pages are mapped to its filter for them (by default only below /usr/share/man), groff is told that they are UTF-8, and
words are stemmed in English, German, French, Spanish and Russian. Its rows: all words (its default), any of the words,
and for names the search of file names. The node has its defaults and no click; its rows: start weights, one-field BM25.

± is the standard error over queries; the last column is node (start weights) less Recoll's best row, paired by query.
CPU is that of the indexing process and its children. Wall times mean something on an idle machine only.
"""

import argparse
import json
import math
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from known_items import KINDS, Known, collect, draw

STEMMED = "english german french spanish russian"
RECOLL = """
import json, sys, time
from recoll import recoll
db, answers = recoll.connect(confdir=sys.argv[1]), []
for text in json.load(sys.stdin):
    began = time.perf_counter()
    query = db.query()
    query.execute(text, stemming=1, stemlang=sys.argv[2])
    found = [one.url for one in query.fetchmany(10)]
    answers.append([found, time.perf_counter() - began])
print(json.dumps(answers))
"""
Lists = list[tuple[list[str], float]]  # of each query: paths in order, and seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0, help="1: about 7,000 files")
    parser.add_argument("--queries", type=int, default=300, help="of each kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    missing = [name for name in ("recollindex", "groff", "aspell") if shutil.which(name) is None]
    if missing:
        sys.exit(f"{', '.join(missing)} missing: apt-get install recollcmd python3-recoll groff aspell aspell-en")
    # Recoll's filter for manual pages writes HTML; without that device it indexes empty texts and reports no error
    if subprocess.run(["groff", "-Thtml"], input=b"", capture_output=True, check=False).returncode:
        sys.exit("groff has no html device, which Recoll's filter for manual pages needs: apt-get install groff")
    with tempfile.TemporaryDirectory(prefix="foltr-recoll-") as made:
        work = Path(made)
        texts = collect(work / "documents", scale=given.scale, seed=given.seed)
        queries = draw(texts, given.queries, seed=given.seed)
        recoll, node = ask_recoll(work, queries), ask_node(work, queries)
        out = {
            "files": len(texts), "mb": size_of(work / "documents"), "sorts": Counter(text.sort for text in texts),
            "languages": Counter(text.language for text in texts), "seed": given.seed,
            "recoll": without_rows(recoll), "node": without_rows(node),
            "kinds": {kind: compared(kind, queries, recoll["rows"], node["rows"]) for kind in KINDS},
        }  # fmt: skip
    print_all(out, as_json=given.json)


def without_rows(measured: dict[str, Any]) -> dict[str, Any]:
    spent = {name: latency(lists) for name, lists in measured["rows"].items()}
    return {key: value for key, value in measured.items() if key != "rows"} | {"latency_ms": spent}


def ask_recoll(work: Path, queries: list[Known]) -> dict[str, Any]:
    config = work / "recoll"
    config.mkdir()
    (config / "recoll.conf").write_text(
        f"topdirs = {work / 'documents'}\nindexstemminglanguages = {STEMMED}\naspellLanguage = en\n", "utf-8"
    )
    manuals = {path.name.removesuffix(".gz").rpartition(".")[2] for path in (work / "documents").rglob("man*/*.gz")}
    (config / "mimemap").write_text("".join(f".{ending} = text/x-man\n" for ending in sorted(manuals)), "utf-8")
    cpu, seconds = timed(["recollindex", "-c", str(config)], {**os.environ, "GROFF_ENCODING": "utf8"})
    forms: dict[str, Callable[[Known], str]] = {
        "all words": lambda query: query.text,
        "any word": lambda query: query.text if query.kind in ("phrase", "name") else " OR ".join(query.text.split()),
        "file names": lambda query: f'filename:"{query.text}*"' if query.kind == "name" else query.text,
    }
    rows = {name: recoll_lists(config, work / "documents", [form(one) for one in queries])
            for name, form in forms.items()}  # fmt: skip
    return {"index_cpu_s": cpu, "index_s": seconds, "index_mb": size_of(config), "rows": rows}


def recoll_lists(config: Path, documents: Path, asked: list[str]) -> Lists:
    child = subprocess.run(["/usr/bin/python3", "-c", RECOLL, str(config), STEMMED], input=json.dumps(asked),
                           capture_output=True, text=True, check=True)  # fmt: skip
    prefix = f"file://{documents}/"
    return [([url.removeprefix(prefix) for url in urls], spent) for urls, spent in json.loads(child.stdout)]


def ask_node(work: Path, queries: list[Known]) -> dict[str, Any]:
    home = work / "node"
    environment = {**os.environ, "FOLTR_NODE_HOME": str(home)}
    foltr = [sys.executable, "-m", "foltr", "node"]
    subprocess.run([*foltr, "init"], env=environment, check=True, capture_output=True)
    cpu, seconds = timed([*foltr, "add", str(work / "documents")], environment)
    child = subprocess.run([sys.executable, __file__, "--ask", str(home), str(work / "documents")],
                           input=json.dumps([one.text for one in queries]), capture_output=True, text=True,
                           check=True)  # fmt: skip
    answer: dict[str, Any] = json.loads(child.stdout)
    return {"index_cpu_s": cpu, "index_s": seconds, "index_mb": size_of(home), **answer}


def serve(home: str, documents: str) -> None:
    """In a process of its own, so that its memory is that of a serving node."""
    import msgspec

    import foltr.node
    from foltr.node.index.background import return_memory
    from foltr.node.learning import versions

    return_memory()
    queries = json.load(sys.stdin)
    rows: dict[str, list[Any]] = {"start weights": [], "BM25, one field": []}
    began = time.perf_counter()
    with foltr.node.open(home) as opened:
        opening = time.perf_counter() - began
        for name, lists in rows.items():
            for text in queries:
                began = time.perf_counter()
                found = [os.path.relpath(row.path, documents) for row in opened.search(text, limit=10).rows]
                lists.append((found, time.perf_counter() - began))
            if name == "start weights":
                memory, start = resident_mb(), versions.start_weights()
                only = tuple(msgspec.structs.replace(one, weight=float(one.name == "bm25")) for one in start.features)
                versions.adopt(opened.log, msgspec.structs.replace(start, features=only))
    sys.stdout.write(json.dumps({"memory_mb": memory, "open_s": opening, "rows": rows}))


def compared(kind: str, queries: list[Known], recoll: dict[str, Lists], node: dict[str, Lists]) -> dict[str, Any]:
    """MRR@10 of every row on the queries of a kind, and the paired difference to Recoll's best row."""
    places = [place for place, query in enumerate(queries) if query.kind == kind]
    used = {name: lists for name, lists in recoll.items() if name != "file names" or kind == "name"}
    ranks = {f"recoll, {name}": reciprocal(queries, lists, places) for name, lists in used.items()}
    best = max(ranks, key=lambda name: statistics.fmean(ranks[name]))
    ranks |= {f"node, {name}": reciprocal(queries, lists, places) for name, lists in node.items()}
    differences = [mine - other for mine, other in zip(ranks["node, start weights"], ranks[best], strict=True)]
    return {
        "queries": len(places), "best": best, "difference": mean_and_error(differences),
        "mrr": {name: mean_and_error(values) for name, values in ranks.items()},
    }  # fmt: skip


def reciprocal(queries: list[Known], lists: Lists, places: list[int]) -> list[float]:
    """The reciprocal rank of each target among the first ten; 0 behind them."""
    found = ((queries[place].target, lists[place][0]) for place in places)
    return [1 / (paths.index(target) + 1) if target in paths else 0.0 for target, paths in found]


def mean_and_error(values: list[float]) -> tuple[float, float]:
    return statistics.fmean(values), statistics.stdev(values) / math.sqrt(len(values))


def latency(lists: Lists) -> tuple[float, float]:
    """Median and 95th percentile in milliseconds."""
    spent = sorted(seconds * 1e3 for _, seconds in lists)
    return statistics.median(spent), spent[int(0.95 * len(spent))]


def resident_mb() -> float:
    """Of this process now; its peak would include that of the process which started it."""
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return pages * resource.getpagesize() / 1e6


def timed(command: list[str], environment: dict[str, str]) -> tuple[float, float]:
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
    listed = ", ".join(f"{count:,} {sort}" for sort, count in out["sorts"].items())
    say(f"{out['files']:,} files of this machine, {out['mb']:.0f} MB: {listed}; {len(out['languages'])} languages\n\n")
    say(f"{'':10}{'CPU s':>8}{'wall s':>8}{'index MB':>10}   median, 95th percentile of a search in ms\n")
    for name in ("recoll", "node"):
        one = out[name]
        spent = "; ".join(f"{row} {low:.1f}, {high:.1f}" for row, (low, high) in one["latency_ms"].items())
        say(f"{name:10}{one['index_cpu_s']:8.1f}{one['index_s']:8.1f}{one['index_mb']:10.0f}   {spent}\n")
    say(f"node: {out['node']['memory_mb']:.0f} MB, opens in {out['node']['open_s']:.2f} s\n")
    for kind, found in out["kinds"].items():
        mean, error = found["difference"]
        say(f"\n{kind}, {found['queries']} queries: node {mean:+.3f} ± {error:.3f} against {found['best']}\n")
        for name, (value, spread) in found["mrr"].items():
            say(f"  {name:24}{value:.3f} ± {spread:.3f}\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--ask"]:
        serve(*sys.argv[2:4])
    else:
        main()
