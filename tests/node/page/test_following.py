"""The process that follows changes has what it needs of the server, and no more."""

import os
import sys
from pathlib import Path

import pytest

from foltr.node.page.following import Following
from foltr.node.places import find


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_the_follower_has_no_terminal_no_secrets_and_no_descriptors_of_the_server(tmp_path, monkeypatch):
    monkeypatch.setenv("FOLTR_TEST_SECRET", "a password")
    kept = os.open(tmp_path, os.O_RDONLY)
    os.set_inheritable(kept, True)
    following = Following(find(tmp_path / "home"))
    following.start()
    try:
        process = following._child.pid
        assert os.getsid(process) == process
        folder = Path("/proc", str(process))
        assert b"FOLTR_TEST_SECRET" not in (folder / "environ").read_bytes()
        assert tmp_path not in [link.readlink() for link in (folder / "fd").iterdir()]
    finally:
        following.stop()
        os.close(kept)
