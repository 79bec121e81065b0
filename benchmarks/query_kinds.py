"""Known items of eight kinds over real files: how often a node has the document first, and its MRR@10.

python benchmarks/query_kinds.py [--half 1] [--scale 0.5] [--queries 300] [--seed 1] [--floor before.json] [--json]

Files and queries are those of `known_items`; names of files that cannot be read among them. `--half` takes half of the
folders: what was tried on half 0 is claimed on half 1, with a fresh seed. `--json` prints every rank.
Run with the package of an earlier version (PYTHONPATH), the answer is a floor: `--floor` compares with it, paired by
query, and ends with exit code 1 where a kind lost more than two standard errors or names are first in less than .95.

Of a file that others of the same name stand beside, any of these counts for a query by name.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from known_items import KINDS, Known, collect, draw
from recoll import mean_and_error, resident_mb, size_of, timed

_NAMES_FIRST = 0.95


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", type=int, choices=(0, 1))
    parser.add_argument("--scale", type=float, default=0.5, help="1: about 9,000 files")
    parser.add_argument("--queries", type=int, default=300, help="of each kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--floor", type=Path, help="the answer of an earlier version with --json")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="foltr-queries-") as made:
        work = Path(made)
        texts = collect(work / "documents", scale=given.scale, seed=given.seed, half=given.half)
        queries = draw(texts, given.queries, seed=given.seed)
        out = {"files": len(texts), "seed": given.seed, **measured(work, queries)}
    if given.json:
        sys.stdout.write(json.dumps(out, allow_nan=False) + "\n")
        return
    before = json.loads(given.floor.read_text("utf-8"))["ranks"] if given.floor else {}
    sys.exit(print_all(out, before))


def measured(work: Path, queries: list[Known]) -> dict[str, Any]:
    import foltr.node

    home, documents = work / "node", work / "documents"
    command = [sys.executable, "-m", "foltr", "node", "add", str(documents)]
    cpu, seconds = timed(command, {**os.environ, "FOLTR_NODE_HOME": str(home)})
    ranks: dict[str, dict[str, int]] = {kind: {} for kind in KINDS}
    with foltr.node.open(home) as node:
        for query in queries:
            paths = [os.path.relpath(row.path, documents) for row in node.search(query.text, limit=10).rows]
            ranks[query.kind][f"{query.text}\t{query.target}"] = next(
                (place for place, path in enumerate(paths, start=1) if _is_target(query, path)), 0
            )
        memory = resident_mb()
    return {"index_cpu_s": cpu, "index_s": seconds, "index_mb": size_of(home), "memory_mb": memory, "ranks": ranks}


def _is_target(query: Known, path: str) -> bool:
    by_name = query.kind in ("name", "unread")
    return path == query.target or (by_name and Path(path).name == Path(query.target).name)


def print_all(out: dict[str, Any], before: dict[str, dict[str, int]]) -> int:
    say, code = sys.stdout.write, 0
    say(f"{out['files']:,} files, seed {out['seed']}; indexed in {out['index_cpu_s']:.0f} s of CPU, ")
    say(f"{out['index_mb']:.0f} MB; {out['memory_mb']:.0f} MB of memory\n\n")
    say(f"{'kind':10}{'queries':>8}{'first':>8}{'MRR@10':>16}{'less the floor':>20}\n")
    for kind, ranks in out["ranks"].items():
        if not ranks:
            continue
        first = statistics.fmean(rank == 1 for rank in ranks.values())
        mean, error = mean_and_error([reciprocal(rank) for rank in ranks.values()])
        line = f"{kind:10}{len(ranks):8}{first:8.3f}{mean:8.3f} ± {error:.3f}"
        known = [query for query in ranks if query in before.get(kind, {})]
        if known:
            change, spread = mean_and_error([reciprocal(ranks[one]) - reciprocal(before[kind][one]) for one in known])
            line += f"{change:+12.3f} ± {spread:.3f}"
            code = 1 if change < -2 * spread else code
        code = 1 if kind in ("name", "unread") and first < _NAMES_FIRST else code
        say(line + "\n")
    return code


def reciprocal(rank: int) -> float:
    return 1 / rank if rank else 0.0


if __name__ == "__main__":
    main()
