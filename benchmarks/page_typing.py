"""How fast the list follows typing, measured in the browser: from a key to the new rows on the page.

    python benchmarks/page_typing.py HOME [QUERIES]     # the home of a node that has indexed documents

Needs the extra `dev` and a chromium. Every query is typed letter by letter, 80 ms apart; queries are titles of random
documents. The time of a letter ends with the frame after its rows are there.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

import foltr.node
from foltr.rng import stream

_PAUSE_MS = 80
_MEASURE = """() => {
  window.times = [];
  let pressed = 0;
  document.getElementById("q").addEventListener("input", () => { pressed = performance.now(); }, true);
  document.getElementById("results").addEventListener("displayed", () => {
    const since = pressed;
    requestAnimationFrame(() => window.times.push(performance.now() - since));
  });
}"""


def queries(home: Path, count: int) -> list[str]:
    """Two or three words of the titles of random documents."""
    with foltr.node.open(home) as node, node.reading() as reader:
        assert reader is not None
        rows = reader.store.connection.execute("SELECT title FROM documents WHERE length(title) > 8").fetchall()
    draws = stream(7, purpose="queries")
    chosen = draws.integers(len(rows), size=4 * count)
    words = (" ".join(re.findall(r"[A-Za-z]{3,12}", rows[int(i)][0])[:3]) for i in chosen)
    return [text for text in words if text][:count]


def measure(address: str, texts: list[str]) -> list[float]:
    from playwright.sync_api import sync_playwright

    found: list[float] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(address)
        page.wait_for_url(address.partition("?")[0])
        for text in texts:
            page.goto(address.partition("?")[0])
            page.evaluate(_MEASURE)
            page.locator("#q").press_sequentially(text, delay=_PAUSE_MS)
            page.wait_for_timeout(500)
            found += page.evaluate("window.times")
        browser.close()
    return found


def main(home: Path, count: int) -> None:
    texts = queries(home, count)
    command = [sys.executable, "-u", "-m", "foltr", "node", "serve", "--port", "0", "--no-browser", "--no-index"]
    environment = {**os.environ, "FOLTR_NODE_HOME": str(home)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert "http" in server.stdout.readline()
        page = [sys.executable, "-m", "foltr", "node", "page"]
        address = subprocess.run(page, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
        try:
            times = np.array(measure(address, texts))
        finally:
            server.terminate()
    figures: dict[str, float] = {"letters": len("".join(texts)), "lists": len(times)}
    figures |= {f"p{share}_ms": round(float(np.percentile(times, share)), 1) for share in (50, 95, 99)}
    print(json.dumps(figures))  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 40)
