"""The how-to for five laptops of a team, followed with the commands that it names, as processes over TLS."""

import re
import time
from pathlib import Path

import pytest
from processes import foltr, free_port, running

NODES = 5
HOW_TO = Path(__file__).parents[3] / "docs" / "how-to-join-a-federation.md"


def test_every_command_of_the_how_to_exists():
    """Its options too: each stands in the help of its command."""
    blocks = re.findall(r"```bash\n(.*?)```", HOW_TO.read_text("utf-8"), re.DOTALL)
    lines = [line.partition("#")[0].split() for block in blocks for line in block.splitlines()]
    commands = {(words[1], words[2]): words[3:] for words in lines if words[:1] == ["foltr"]}
    assert {("node", name) for name in ("join", "sync", "members", "ledger", "policy", "leave")} <= set(commands)
    helps = {key: foltr(*key, "--help", COLUMNS="200") for key in commands}
    for words in lines:
        for option in [word for word in words[3:] if word.startswith("--")]:
            assert option in helps[words[1], words[2]], words


@pytest.mark.slow
def test_a_team_of_five_joins_confirms_sums_and_one_of_them_leaves(tmp_path):
    port, home, other = free_port(), tmp_path / "coordinator", tmp_path / "aggregator"
    created = foltr("coordinator", "init", "--name", "team", "--kind", "circle", "--address",
                    f"https://127.0.0.1:{port}", "--folder", home, "--yes", "--json")  # fmt: skip

    def node(k, *arguments):
        return foltr("node", *arguments, "--json", FOLTR_NODE_HOME=str(tmp_path / f"node-{k}"))

    def until(reached):
        for _ in range(60):
            state = foltr("coordinator", "status", "--folder", home, "--json")
            if reached(state):
                return state
            time.sleep(1)  # another process works meanwhile
        raise AssertionError(state)

    with running("coordinator", "serve", "--folder", home, says="serving", log=tmp_path / "coordinator.log"):
        foltr("aggregator", "join", created["operator_invitation"], "--folder", other, "--yes", "--json")
        with running("aggregator", "serve", "--folder", other, "--every", 0.5, says="asking", log=tmp_path / "a.log"):
            marks = foltr("coordinator", "status", "--folder", home, "--json")["fingerprints"]
            invited = foltr("coordinator", "invite", "--count", NODES, "--folder", home, "--json")["invitations"]
            for k, invitation in enumerate(invited):
                joined = node(
                    k, "join", invitation["text"], "--yes", "--fingerprint", marks[0], "--fingerprint", marks[1]
                )
                assert joined["state"] == "waiting"
            foltr("coordinator", "admit", "--folder", home, "--json")
            until(lambda state: state["rounds"])
            lists = set()
            for k in range(NODES):
                with pytest.raises(AssertionError, match="must be confirmed"):
                    node(k, "sync")
                listed = node(k, "members")
                assert not listed["confirmed"]
                lists.add(listed["list"])
                assert node(k, "members", "--confirm", listed["list"])["confirmed"]
                assert node(k, "sync")["federations"][0]["state"] == "sent"
            assert len(lists) == 1  # all see the same members
            assert until(lambda state: state["version"] == 1)["rounds"]
            assert node(0, "sync")["federations"][0]["version"] == 1
            assert node(0, "status")["trial"]["shared"]
            assert node(0, "sync", "--why")["federations"][0]["rounds"][-1]["included"]
            assert [row["size"] > 0 for row in node(0, "ledger")["releases"]] == [True] * len(
                node(0, "ledger")["releases"]
            )
            left = node(0, "leave", "--yes")
            assert left["reached"]
            assert left["stays"].startswith("What stays: a share in ")
