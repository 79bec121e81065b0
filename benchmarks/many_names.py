"""A node with many texts and many more files that have a name only: indexing, memory of serving, CPU of searches.

python benchmarks/many_names.py [--texts 20000] [--names 200000] [--queries 200] [--seed 1]

Texts are passages of real files of this machine (sources and documents of Python, /usr/share/doc), names are made as
cameras and people make them (IMG_20190304_0815.jpg, two words of a text and a number). Searches are typed letter by
letter in a process of its own, whose resident memory is printed; CPU is that of these processes.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from foltr.rng import stream
from recoll import resident_mb, size_of, timed

_LINES = 60  # of a passage
_KINDS = ("jpg", "png", "mp3", "mp4", "zip", "xlsx")


def passages(count: int, seed: int) -> list[str]:
    """Passages of consecutive lines, none twice."""
    roots = (Path(os.__file__).parent, Path("/usr/share/doc"))
    endings = (".py", ".txt", ".html", ".rst", ".md")
    files = sorted(path for root in roots for path in root.rglob("*") if path.suffix in endings and path.is_file())
    found: list[str] = []
    for place in stream(seed, purpose="data").permutation(len(files)):
        lines = files[place].read_text("utf-8", "replace").splitlines()
        found += ["\n".join(lines[start : start + _LINES]) for start in range(0, len(lines), _LINES)]
        if len(found) >= count:
            break
    return found[:count]


def write(folder: Path, texts: list[str], names: int, seed: int) -> None:
    words = sorted({word.lower() for text in texts[::50] for word in text.split() if word.isalpha() and len(word) > 2})
    draws = stream(seed, purpose="choice").integers(len(words), 2 * names + 1)
    for number, text in enumerate(texts):
        target = folder / f"texts/{number // 500}/{words[number % len(words)]} {number}.txt"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, "utf-8")
    for number in range(names):
        target = folder / f"files/{number // 1000}"
        target.mkdir(parents=True, exist_ok=True)
        kind, two = _KINDS[number % len(_KINDS)], draws[2 * number : 2 * number + 2]
        name = f"IMG_{20100101 + number // 40}_{number % 10000:04}" if number % 2 else " ".join(words[i] for i in two)
        (target / f"{name} {number}.{kind}").touch()


def serve(home: str, count: int, seed: int) -> None:
    """Types queries of two words, letter by letter, in a process that does nothing else."""
    import foltr.node
    from foltr.node.index.background import return_memory

    return_memory()
    with foltr.node.open(home) as node:
        with node.reading() as reader:
            assert reader is not None
            words = [
                word
                for (word,) in reader.store.connection.execute(
                    "SELECT word FROM words WHERE length(word) > 4 AND id % 101 = 0"
                )
            ]
        places = stream(seed, purpose="queries").integers(len(words), 2 * count)
        node.search("first")
        began, typed = time.process_time(), 0
        for number in range(count):
            text = " ".join(words[place] for place in places[2 * number : 2 * number + 2])
            for end in range(1, len(text) + 1):
                node.search(text[:end])
                typed += 1
        spent = time.process_time() - began
    sys.stdout.write(json.dumps({"ms": 1e3 * spent / typed, "letters": typed, "memory_mb": resident_mb()}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in (("texts", 20_000), ("names", 200_000), ("queries", 200), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=value)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="foltr-names-") as made:
        work = Path(made)
        write(work / "documents", passages(given.texts, given.seed), given.names, given.seed)
        command = [sys.executable, "-m", "foltr", "node", "add", str(work / "documents")]
        cpu, _ = timed(command, {**os.environ, "FOLTR_NODE_HOME": str(work / "node")})
        asked = [sys.executable, __file__, "--ask", str(work / "node"), str(given.queries), str(given.seed)]
        served = json.loads(subprocess.run(asked, capture_output=True, text=True, check=True).stdout)
        sys.stdout.write(
            f"{given.texts:,} texts, {given.names:,} names: indexed in {cpu:.0f} s of CPU, "
            f"{size_of(work / 'node'):.0f} MB; serving {served['memory_mb']:.0f} MB; "
            f"a letter {served['ms']:.1f} ms of CPU ({served['letters']:,} letters)\n"
        )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--ask"]:
        serve(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    else:
        main()
