"""Without the packages of an extra, a command that needs them says so before it computes; the others work."""

import os
import subprocess
import sys

import pytest
from laboratory import PATIENCE, TINY, Answer

from foltr import __version__
from foltr.cli.output import EXTRAS

# hides modules from this process as if they were not installed
WITHOUT = """\
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {hidden!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Hidden())
sys.argv = ["foltr", *{arguments!r}]
from foltr.cli.main import main
main()
"""


def without(hidden, *arguments):
    """`foltr` in a process that has none of these modules."""
    code = WITHOUT.format(hidden=sorted(hidden), arguments=[str(one) for one in arguments])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE, check=False)
    return Answer(done.returncode, done.stdout, done.stderr)


COMMANDS = [
    (("demo",), ["lab", "node"]),
    (("demo", "lab"), ["lab", "report"]),
    (("run", "tiny.toml"), ["lab"]),
    (("reproduce", "--list"), ["lab"]),
    (("reproduce", "fpdgd/fig5", "--quick"), ["lab", "report"]),
    (("report", "runs/nothing"), ["lab", "report"]),
    (("bench", "--smoke"), ["lab"]),
    (("data", "list"), ["lab"]),
    (("data", "show", "mq2007"), ["lab"]),
    (("privacy", "card", "runs/nothing"), ["lab"]),
    (("privacy", "plan", "--clients", 100, "--epsilon", 1, "--weeks", 1), ["lab"]),
    (("privacy", "audit", "runs/nothing"), ["lab"]),
]


@pytest.mark.parametrize(("arguments", "extra"), [(a, extra) for a, extras in COMMANDS for extra in extras], ids=str)
def test_a_command_without_its_extra_says_what_to_install_and_does_nothing(arguments, extra, tmp_path):
    (tmp_path / "tiny.toml").write_text(TINY)
    before = sorted(tmp_path.rglob("*"))
    answer = without(EXTRAS[extra], *arguments)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("foltr: this command needs packages that are not installed: pip install 'foltr[")
    assert answer.err.count("\n") == 1
    assert extra in answer.err
    assert sorted(tmp_path.rglob("*")) == before


def test_several_extras_are_asked_for_at_once():
    answer = without({"polars", "jinja2"}, "demo", "lab")
    assert answer.err == "foltr: this command needs packages that are not installed: pip install 'foltr[lab,report]'\n"


def test_help_and_version_need_no_extra():
    everything = {module for modules in EXTRAS.values() for module in modules}
    assert without(everything, "--version") == (0, f"foltr {__version__}\n", "")
    assert without(everything, "privacy", "plan", "--help").code == 0


def test_a_run_needs_no_report_extra(finished, tiny):
    answer = without(EXTRAS["report"], "run", tiny, "--out", finished, "--jobs", 1)
    assert answer.code == 0, answer.err
    assert os.fspath(finished) in answer.out
