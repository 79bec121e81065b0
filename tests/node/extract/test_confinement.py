"""A child that a file has taken over, started and confined as the pool does it, attacks everything around it."""

import ast
import errno
import json
import os
import pty
import re
import sys
from pathlib import Path

import pytest
from bpf import ALLOWED, verdict
from hostile_child import CALLS

from foltr.node.extract import Extractor, confine
from foltr.node.extract.confine import _AUDIT, NUMBERS, conditions, program

LINUX = sys.platform == "linux" and os.uname().machine in NUMBERS
MACHINE = os.uname().machine if LINUX else "x86_64"
needs_linux = pytest.mark.skipif(not LINUX, reason="needs Linux on x86_64 or aarch64")
PROCESS = 4711
LETHAL = {
    "exit",
    "exit_group",
    "rt_sigreturn",
    "munmap",
    "brk",
    "mremap",
    "mprotect",
    "close",
    "getrandom",
}  # hurt the child alone
BLOCKING = {"recvmsg", "futex"}
# A kernel without Landlock, a kernel with both, and Landlock alone, which need not stop every call
WITHOUT = ["nothing", "Landlock", "the filter"]
# what Landlock of every version stops, also where the filter should let it pass
LANDLOCK_STOPS = {
    "read the cookie", "read the environment of the parent", "read the memory of the parent", "read the system's users",
    "list a folder", "write", "append", "remove", "rename", "link", "make a folder", "type into the terminal",
    "message queue", "trace", "memory of another process", "write memory of another process",
}  # fmt: skip


def has_landlock():
    import ctypes

    return LINUX and ctypes.CDLL(None).syscall(444, None, ctypes.c_size_t(0), 1) > 0


def attacked(folder, **settings):
    """What a hostile child could do, below a terminal of its own."""
    victim = folder / "files"
    victim.mkdir()
    for name in ("cookie", "other", "evil.txt"):
        (victim / name).write_text(f"the content of {name}")
    driver = [sys.executable, str(Path(__file__).with_name("attack_driver.py")), str(victim), str(folder / "at.json")]
    (folder / "at.json").write_text(json.dumps(settings))
    process, terminal = pty.fork()
    if process == 0:
        try:
            os.execv(driver[0], driver)  # noqa: S606
        finally:
            os._exit(127)
    shown = b""
    try:
        while piece := os.read(terminal, 4096):
            shown += piece
    except OSError:  # the terminal has no process any more
        pass
    os.close(terminal)
    _, code = os.waitpid(process, 0)
    assert code == 0, shown.decode()
    assert {path.name: path.read_text() for path in victim.iterdir()} == {
        name: f"the content of {name}" for name in ("cookie", "other", "evil.txt")
    }
    assert os.listxattr(victim / "cookie") == []
    return json.loads((folder / "found.json").read_text())


@needs_linux
@pytest.mark.parametrize("without", WITHOUT)
def test_a_child_that_was_taken_over_reaches_nothing(tmp_path, without):
    if without == "the filter" and not has_landlock():
        pytest.skip("this kernel has no Landlock")
    skip = ["another filter", "limits of another process", "set an attribute with setxattrat", "chmod", "set a time",
            "set an attribute"] if without == "the filter" else []  # fmt: skip
    found = attacked(tmp_path, without=without, skip=skip)
    assert not LANDLOCK_STOPS.intersection(found["passed"])
    if without != "the filter":
        assert found["passed"] == []
        assert found["after"] == found["before"]
        assert found["after"]["running"]
    assert found["typed"] == 0
    assert len(set(found["session"])) == 1  # a session of its own
    own = [text for text in found["readable"] if text and not re.fullmatch(r"[\d ]+\n", text)]  # but for its memory
    assert own == ["the content of evil.txt"]


@needs_linux
@pytest.mark.parametrize("without", WITHOUT[:2])
def test_every_call_of_the_kernel_is_refused_but_for_the_table(tmp_path, without):
    """All numbers up to 600, with arguments for reading, writing, signalling and asking."""
    names = {number: name for name, number in NUMBERS[MACHINE].items()}
    hostile = [
        (0, 0, 0, 0, 0, 0),
        (-100, "path", 0, 0, 0, 0),
        (-100, "path", os.O_RDWR | os.O_CREAT, 0o777, 0, 0),
        ("path", "path", 1, 0, 0, 0),
        ("path", os.O_RDWR, 0, 0, 0, 0),
        (1, "path", 100, 0, 0, 0),
        (os.getpid(), 0, "path", "path", 0, 0),
        (os.getpid() | 1 << 32, os.getpid(), 0, 0, 0, 0),
    ]
    probes = (335, 336) if MACHINE == "x86_64" else ()  # newer kernels filter neither, and end a caller by SIGILL
    numbers = [number for number in range(600) if number not in probes and names.get(number) not in LETHAL | BLOCKING]
    calls = [(number, arguments) for number in numbers for arguments in hostile]
    calls += [(number | 0x40000000, hostile[1]) for number in range(600)]  # the second interface of x86_64
    found = attacked(tmp_path, without=without, sweep=calls)
    instructions = program(MACHINE, PROCESS)
    passed = set()
    for (number, arguments), error in zip(calls, found["sweep"], strict=True):
        plain = [1 << 40 if argument == "path" else argument for argument in arguments]
        expected = verdict(instructions, _AUDIT[MACHINE], number, plain)
        if expected == ALLOWED:
            passed.add(names[number])
        else:
            assert expected in (0x50000 | errno.EPERM, 0x50000 | errno.ENOSYS)
            assert error == expected & 0xFFFF, number
    assert passed <= set(NUMBERS[MACHINE])
    assert found["after"] == found["before"]
    assert not any("cookie" in text for text in found["readable"])


# ---- the filter itself, also of the architecture that this machine does not have


@pytest.mark.parametrize("machine", NUMBERS)
def test_the_filter_allows_its_table_and_nothing_else(machine):
    instructions = program(machine, PROCESS)
    architecture = _AUDIT[machine]
    limited = conditions(PROCESS)
    for name, number in NUMBERS[machine].items():
        for required in limited.get(name, ((),)):
            arguments = [0] * 6
            for condition in required:
                arguments[condition.position] = condition.value
            assert verdict(instructions, architecture, number, arguments) == ALLOWED, name
            for condition in required:
                for bit in range(64):
                    wrong = list(arguments)
                    wrong[condition.position] ^= 1 << bit & condition.mask
                    if wrong != arguments and not is_allowed(limited[name], wrong):
                        assert verdict(instructions, architecture, number, wrong) == 0x50000 | errno.EPERM, (name, bit)
    others = set(range(1024)) - set(NUMBERS[machine].values())
    assert {verdict(instructions, architecture, number) for number in others if number < 424} == {0x50000 | errno.EPERM}
    assert {verdict(instructions, architecture, number) for number in others if number >= 424} == {
        0x50000 | errno.ENOSYS
    }
    assert verdict(instructions, 0x40000003, 0) == 0x80000000  # calls of a 32-bit program end it


def is_allowed(alternatives, arguments):
    return any(all(arguments[one.position] & one.mask == one.value for one in required) for required in alternatives)


def header_numbers():
    """{name: number} of this machine's own C headers."""
    for path in (f"/usr/include/{MACHINE}-linux-gnu/asm/unistd_64.h", "/usr/include/asm/unistd_64.h"):
        if Path(path).exists():
            return {name: int(number) for name, number in re.findall(r"__NR_(\w+) (\d+)\n", Path(path).read_text())}
    return {}


def generic_numbers():
    """{name: number} of the table that aarch64 uses."""
    path = Path("/usr/include/asm-generic/unistd.h")
    found = re.findall(r"#define (?:__NR_|__NR3264_)(\w+) (\d+)\n", path.read_text()) if path.exists() else []
    return {name: int(number) for name, number in found}


@pytest.mark.parametrize("machine", NUMBERS)
def test_numbers_are_those_of_the_system_headers(machine):
    headers = header_numbers() if machine == MACHINE and machine == "x86_64" else generic_numbers()
    if not headers or machine == "x86_64" != MACHINE:
        pytest.skip("no C headers of the kernel for this architecture")
    assert {name: headers[name] for name in NUMBERS[machine]} == NUMBERS[machine]
    before = {"seccomp": confine._SECCOMP, "capset": confine._CAPSET, "ioprio_set": confine._IOPRIO_SET}
    assert {name: headers[name] for name in before} == {name: numbers[machine] for name, numbers in before.items()}
    column = 0 if machine == "x86_64" else 1
    attacked_calls = {name: numbers[column] for name, numbers in CALLS.items() if name in headers}
    assert {name: headers[name] for name in attacked_calls} == attacked_calls


def test_what_confines_the_children_is_told(tmp_path):
    (tmp_path / "a.txt").write_text("words")
    with Extractor() as extractor:
        assert extractor.protections is None
        list(extractor.extract([tmp_path / "a.txt"]))
    assert extractor.protections.system_calls == LINUX
    assert (extractor.protections.landlock > 0) == has_landlock()


def test_the_child_imports_nothing_when_it_runs():
    """Every import of the child's modules stands at the top, so that it happens before confinement."""
    folder = Path(sys.modules["foltr.node.extract"].__file__).parent
    for path in folder.glob("*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        late = [part for node in functions for part in ast.walk(node) if isinstance(part, ast.Import | ast.ImportFrom)]
        assert not late, path.name
