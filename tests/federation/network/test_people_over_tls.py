"""Every machine of a federation as its own processes, through the commands that people run."""

import os
import resource
import sys
import time
from pathlib import Path

import pytest
from processes import foltr, free_port, running

NODES, ROUNDS, WINDOW = 5, 10, 12


@pytest.mark.slow
def test_ten_rounds_of_five_nodes_that_wake_send_and_leave(tmp_path):
    port, home, other = free_port(), tmp_path / "coordinator", tmp_path / "aggregator"
    created = foltr(
        "coordinator", "init", "--name", "Team", "--kind", "open", "--address", f"https://127.0.0.1:{port}",
        "--window-hours", WINDOW / 3600, "--days", WINDOW * 52 / 86_400, "--members", NODES, "--quorum", 0.6,
        "--folder", home, "--yes", "--json",
    )  # fmt: skip
    with running("coordinator", "serve", "--folder", home, says="serving", log=tmp_path / "coordinator.log") as server:
        foltr("aggregator", "join", created["operator_invitation"], "--folder", other, "--yes", "--json")
        with running("aggregator", "serve", "--folder", other, "--every", 2, says="asking", log=tmp_path / "a.log"):
            marks = foltr("coordinator", "status", "--folder", home, "--json")["fingerprints"]
            invited = foltr("coordinator", "invite", "--count", NODES, "--folder", home, "--json")["invitations"]
            for k, invitation in enumerate(invited):
                node(
                    tmp_path, k, "policy", "--set", "rounds_per_week=10000", "--set", "min_clients=3", "--yes", "--json"
                )
                node(tmp_path, k, "join", invitation["text"], "--yes", "--json",
                     "--fingerprint", marks[0], "--fingerprint", marks[1])  # fmt: skip
            visits = []
            begun, before = time.monotonic(), server_cpu(server.pid)
            while time.monotonic() < begun + 60 * ROUNDS:
                for k in range(NODES):  # one that comes when a window ends is told so, and comes again
                    started = resource.getrusage(resource.RUSAGE_CHILDREN)
                    node(tmp_path, k, "sync", "--json", fails=True)
                    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
                    visits.append(ended.ru_utime + ended.ru_stime - started.ru_utime - started.ru_stime)
                state = foltr("coordinator", "status", "--folder", home, "--json")
                if state["version"] >= ROUNDS:
                    break
            spent, memory = server_cpu(server.pid) - before, peak_memory(server.pid)
    failed = [round for round in state["rounds"] if round["state"] == "failed"]
    assert (state["version"], failed) == (ROUNDS, [])
    assert memory < 100e6
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    sys.stdout.write(f"\nall commands: {usage.ru_maxrss / 1024:.0f} MB at most\n")
    sys.stdout.write(f"a visit of a node: {sorted(visits)[len(visits) // 2]:.2f} s CPU (median of {len(visits)})\n")
    sys.stdout.write(f"coordinator: {spent / ROUNDS:.3f} s CPU a round, {memory / 1e6:.0f} MB\n")


def node(folder, k, *arguments, fails=False):
    home = folder / f"node-{k}"
    home.mkdir(exist_ok=True)
    return foltr("node", *arguments, fails=fails, FOLTR_NODE_HOME=str(home))


def server_cpu(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_memory(pid):
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024
