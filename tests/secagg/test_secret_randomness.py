"""Keys, masks, shares and noise come from the operating system and from nowhere else."""

import ast
from pathlib import Path

import pytest
from small_rounds import content, counted, federation, run

import foltr
from foltr.secagg import messages

HERE = Path(foltr.__file__).parent
MODULES = [
    *sorted((HERE / "secagg").glob("*.py")),
    *(HERE / "privacy" / name for name in ("noise.py", "release.py")),
    *(HERE / "silo" / name for name in ("keys.py", "noise.py")),
]
SEEDED = ("random", "numpy.random", "foltr.rng", "foltr._kernels.compile", "scipy")
FED = federation(5, length=40, dropouts=0.2, corrupt=0.0)


def imported(module):
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Attribute) and ast.unparse(node) in ("np.random", "numpy.random"):
            yield "numpy.random"


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.stem)
def test_no_seeded_generator_is_imported(module):
    names = list(imported(module))
    assert [name for name in names if any(name == bad or name.startswith(f"{bad}.") for bad in SEEDED)] == []


def test_the_search_would_find_one(tmp_path):
    bad = tmp_path / "bad.py"
    bad.write_text("import random\nfrom foltr.rng import stream\nimport numpy as np\nnp.random.default_rng(1)\n")
    assert {"random", "foltr.rng.stream", "numpy.random"} <= set(imported(bad))


def everything_sent(**faults):
    sent = []

    def record(stage, direction, client, message):
        sent.append((stage, direction, client, message))
        return message

    run(FED, mutate=record, **faults)
    return sent


def test_a_round_depends_on_the_operating_systems_bytes_and_on_nothing_else(monkeypatch):
    counted(monkeypatch, 0)
    first = everything_sent()
    counted(monkeypatch, 0)
    assert everything_sent() == first
    counted(monkeypatch, 10**6)
    other = everything_sent()
    secret = ("advertise", "share", "mask", "unmask")
    replies = [(a, b) for a, b in zip(first, other, strict=True) if a[1] == "reply" and a[0] in secret]
    assert all(a[3] != b[3] for a, b in replies)


def test_no_key_seal_or_mask_is_used_twice():
    """Over clients and rounds with the same vectors, under the operating system's own bytes."""
    sent = everything_sent() + everything_sent(drop={"mask": {10}})
    replies = [(stage, message) for stage, direction, _, message in sent if direction == "reply"]
    keys = [content(message, messages.Keys) for stage, message in replies if stage == "advertise"]
    shares = [content(message, messages.Shares) for stage, message in replies if stage == "share"]
    masked = [content(message, messages.Masked).vector for stage, message in replies if stage == "mask"]
    for values in (
        [key for both in keys for key in (both.channel, both.mask)],
        [sealed for one in shares for sealed in one.sealed],
        [one.seed for one in shares],
        [vector[k : k + 16] for vector in masked for k in range(0, 160, 16)],
    ):
        assert len(set(values)) == len(values)
