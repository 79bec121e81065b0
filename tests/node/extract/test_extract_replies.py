"""A child that a file has taken over: whatever it answers costs its file, and the parent uses nothing unbounded."""

import os
import sys

import pytest
from sample_files import bodies, results

from foltr.node.extract import Extracted, child
from foltr.node.extract.confine import NUMBERS


@pytest.fixture
def texts(tmp_path):
    """100 small files."""
    paths = [tmp_path / f"{number:03}.txt" for number in range(100)]
    for path in paths:
        path.write_text(f"text of {path.stem}")
    return paths


HOSTILE = """
import sys; sys.path[:] = sys.argv[2:]
import os, struct, msgspec
from foltr.node.extract import worker
from foltr.node.extract.records import ExtractedDocument, Failure, Reply, frame
serve, encode = worker._serve, msgspec.msgpack.encode
def taken_over(channel, request, file, start):
    if b"evil" in request.name:
        send = lambda reply: channel.sendall(frame(encode(reply)))
        document = lambda **fields: ExtractedDocument(**{{"title": "", "body": "", "kind": "text"}} | fields)
        number = request.number
        {attack}
    serve(channel, request, file, start)
worker._serve = taken_over
worker.main(int(sys.argv[1]))
"""
INVALID = "the child process sent an invalid answer"
ATTACKS = {
    "os.abort()": "the child process ended (SIGABRT)",
    "os._exit(0)": "the child process ended (exit code 0)",
    "channel.close(); os._exit(3)": "the child process ended (exit code 3)",
    "channel.sendall(b'\\xff' * 100)": INVALID,
    "channel.sendall(frame(b'garbage'))": INVALID,
    "channel.sendall(frame(b''))": INVALID,
    "channel.sendall(frame(encode({'number': 1})))": INVALID,
    "channel.sendall(struct.pack('<I', 100) + b'cut'); os._exit(0)": "the child process ended (exit code 0)",
    "send(Reply(number + 1, []))": INVALID,
    "send(Reply(number - 1, []))": INVALID,
    "send(Reply(-1, []))": INVALID,
    "send(Reply(number, [])); send(Reply(number, []))": None,
    "send(Reply(number, [document(kind='program')]))": INVALID,
    "send(Reply(number, [document(body='x' * 2_000_001)]))": INVALID,
    "send(Reply(number, [document(title='x' * 10_000)]))": INVALID,
    "send(Reply(number, [document(part='x' * 10_000)]))": INVALID,
    "send(Reply(number, [document(body=7)]))": INVALID,
    "send(Reply(number, [], failure=Failure('indexed', 'x')))": INVALID,
    "send(Reply(number, [], failure=Failure('failed', 'x' * 100_000)))": INVALID,
    "[send(Reply(number, [document()] * 1000, last=False)) for _ in range(100_000)]": INVALID,
    "[send(Reply(number, [document(body='x' * 1_000_000)], last=False)) for _ in range(100_000)]": INVALID,
    "[send(Reply(number, [], last=False)) for _ in iter(int, 1)]": INVALID,
    "channel.sendall(frame(b'\\x91' * 1_000_000))": INVALID,
    "channel.sendall(frame(encode(Reply(number, [document(title='zzzz')])).replace(b'zzzz', b'\\xff' * 4)))": INVALID,
    "send(Reply(2**63, []))": INVALID,
    "send(Reply(-(2**63), []))": INVALID,
    "send(Reply(number, [], secrets=2**63))": INVALID,
    "send(Reply(number, [], secrets=50_001))": INVALID,
    "send(Reply(number, [], secrets=-1))": INVALID,
    "send(Reply(number, [], secrets=1.5))": INVALID,
    "send(Reply(number, [], memory=2**63))": INVALID,
    "send(Reply(number, [], memory=-1))": INVALID,
    "send(Reply(number, [], truncated=2**63))": INVALID,
    "send(Reply(number, [], last=2**63))": INVALID,
    "send(Reply(number, [], failure=2**63))": INVALID,
    "send(Reply(number, [], failure=Failure('failed', 7)))": INVALID,
    "send(Reply(number, 2**63))": INVALID,
    "send(Reply(number, [2**63]))": INVALID,
    "send(Reply(number, [document()] * 4001))": INVALID,
    "send(Reply(number, [document(kind='text' * 1000)]))": INVALID,
    "send(Reply(number, [document(sender='x' * 4001)]))": INVALID,
    "send(Reply(number, [document(recipients='x' * 4001)]))": INVALID,
    "send(Reply(number, [document(sender=None)]))": INVALID,
    "send(Reply(number, [document(truncated=1)]))": INVALID,
    "send(Reply(number, [document(date='today')]))": INVALID,
    "channel.sendall(frame(encode([number, [], True, None, 2**63, 2**63, False, 0, 0])))": INVALID,
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_child_that_was_taken_over(monkeypatch, tmp_path, texts, attack):
    monkeypatch.setattr(child, "_PROGRAM", HOSTILE.format(attack=attack))
    evil = tmp_path / "evil.txt"
    evil.write_text("take over")
    found = results([*texts[:5], evil, *texts[5:30]])
    assert set(bodies(found)) >= set(texts[:30])
    if ATTACKS[attack]:
        assert found[evil].state == "failed"
        assert found[evil].reason.startswith(ATTACKS[attack])


def test_dates_that_are_no_dates_are_dropped(monkeypatch, tmp_path):
    attack = "send(Reply(number, [document(date=date) for date in (float('nan'), float('inf'), 1e300, 2**63)])); return"
    monkeypatch.setattr(child, "_PROGRAM", HOSTILE.format(attack=attack))
    evil = tmp_path / "evil.txt"
    evil.write_text("take over")
    assert [document.date for document in results([evil])[evil].documents] == [None] * 4


def test_size_and_time_of_a_file_never_come_from_a_child(monkeypatch, tmp_path, texts):
    monkeypatch.setattr(child, "_PROGRAM", HOSTILE.format(attack="send(Reply(number, [document()])); return"))
    evil = tmp_path / "evil.txt"
    evil.write_text("take over")
    os.utime(evil, ns=(1, 1_600_000_000_123_456_789))
    found = results([evil])[evil]
    assert (found.size, found.modified) == (9, 1_600_000_000_123_456_789)


def test_control_characters_of_a_reply_reach_no_terminal(monkeypatch, tmp_path):
    forged = "document(title='\\x1b[2J', sender='\\x1b', recipients='\\0', part='\\x9b')"
    monkeypatch.setattr(child, "_PROGRAM", HOSTILE.format(attack=f"send(Reply(number, [{forged}])); return"))
    evil, rude = tmp_path / "evil.txt", tmp_path / "evil-too.txt"
    evil.write_text("take over")
    (document,) = results([evil])[evil].documents
    assert (document.title, document.sender, document.recipients, document.part) == (" [2J", " ", " ", " ")
    monkeypatch.setattr(
        child,
        "_PROGRAM",
        HOSTILE.format(attack="send(Reply(number, [], failure=Failure('failed', '\\x1b[2J'))); return"),
    )
    rude.write_text("take over")
    assert results([rude])[rude].reason == " [2J"


def test_a_child_that_lies_about_its_memory_is_only_replaced(monkeypatch, tmp_path, texts):
    monkeypatch.setattr(child, "_PROGRAM", HOSTILE.format(attack="send(Reply(number, [], memory=1 << 50)); return"))
    evil = tmp_path / "evil.txt"
    evil.write_text("take over")
    found = results([evil, *texts])
    assert isinstance(found[evil], Extracted)
    assert list(bodies(found)) == texts


HARMFUL_TO_ITSELF = {  # calls that the filter allows and that end, block or corrupt the caller
    "exit": (0,),
    "exit_group": (0,),
    "rt_sigreturn": (),
    "munmap": (0, 1 << 46),
    "mprotect": (0x10000, 1 << 46, 0),
    "mremap": (0, 1 << 46, 1 << 46, 1),
    "brk": (1,),
    "close": ("channel.fileno()",),
    "getrandom": ("id(channel)", 1 << 20, 0),
    "madvise": ("id(channel) & ~4095", 1 << 20, 4),
    "recvmsg": ("channel.fileno()", "id(channel)", 0),
    "futex": ("id(channel)", 128, "ctypes.c_uint.from_address(id(channel)).value", 0, 0, 0),
}


@pytest.mark.skipif(sys.platform != "linux" or os.uname().machine not in NUMBERS, reason="needs the table of calls")
@pytest.mark.parametrize("name", HARMFUL_TO_ITSELF)
def test_calls_that_harm_the_caller_cost_one_file(monkeypatch, tmp_path, texts, name):
    number, arguments = NUMBERS[os.uname().machine][name], ", ".join(map(str, HARMFUL_TO_ITSELF[name]))
    attack = f"import ctypes; ctypes.CDLL(None).syscall({number}, *map(ctypes.c_long, [{arguments}]))"
    monkeypatch.setattr(child, "_PROGRAM", HOSTILE.format(attack=attack))
    evil = tmp_path / "evil.txt"
    evil.write_text("take over")
    found = results([evil, *texts[:30]], timeout=5)
    assert set(bodies(found)) >= set(texts[:30])
