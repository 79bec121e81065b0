"""Misspelt names of every kind get one suggestion, and `-h` shows the help of every command."""

import click
import pytest
import typer
from laboratory import own_data

from foltr.cli.main import app
from foltr.errors import SpecError, did_you_mean
from foltr.node import settings

OWN_SUGGESTION = "Did you mean"


def every_command(group: click.Command, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """The path of a command and of all below it."""
    commands = getattr(group, "commands", {})
    return [path, *(one for name, command in commands.items() for one in every_command(command, (*path, name)))]


@pytest.mark.parametrize("path", every_command(typer.main.get_command(app)), ids=" ".join)
def test_every_command_shows_its_help_with_h(path, command):
    short, long = command(*path, "-h"), command(*path, "--help")
    assert (short.code, short.err) == (0, "")
    assert short.out == long.out
    assert "Usage: foltr" in short.out


@pytest.mark.parametrize(
    ("arguments", "suggestion"),
    [
        (("dat",), "Did you mean 'data'?"),
        (("data", "lst"), "Did you mean 'list'?"),
        (("node", "serch", "x"), "Did you mean 'search' or 'serve'?"),
        (("privacy", "carf"), "Did you mean 'card'?"),
        (("silo", "biuld"), "Did you mean 'build'?"),
        (("run", "spec.toml", "--seed", "2"), "Did you mean '--seeds'"),
        (("data", "show", "mq2077"), "Did you mean 'mq2007'"),
        (("reproduce", "fpdgd/tabel2"), "Did you mean 'fpdgd/table2'"),
        (("reproduce", "unlerning"), "Did you mean 'unlearning'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_misspelt_name_on_the_command_line_gets_exactly_one_suggestion(arguments, suggestion, command):
    answer = command(*arguments)
    assert answer.code == 2
    assert suggestion in answer.err
    assert answer.err.count(OWN_SUGGESTION) == 1


@pytest.mark.parametrize(
    ("override", "suggestion"),
    [
        ("lerner.kind=pdgd", "Did you mean 'learner'?"),
        ("learner.learning_rat=0.1", "Did you mean 'learning_rate'?"),
        ("federation.aggregator=multikrum", "Did you mean 'multi_krum'"),
        ("privacy.kind=gausian", "Did you mean 'gaussian'?"),
        ("personal.kind=fedpr", "Did you mean 'fedper'?"),
        ("privacy.kind=fpdgd privacy.clip=half_delta", "Did you mean 'half-delta'"),
        ("users.clicks=perfekt", "Did you mean 'perfect'?"),
        ("data.normalize=zscor", "Did you mean 'zscore'?"),
        ("data.name=sythetic-mq2007", "Did you mean 'synthetic-mq2007'"),
    ],
)
def test_a_misspelt_word_in_a_spec_gets_exactly_one_suggestion(override, suggestion, tiny, refused):
    message = refused("run", tiny, *(part for one in override.split() for part in ("--set", one)))
    assert suggestion in message
    assert message.count(OWN_SUGGESTION) == 1


def test_a_data_set_of_ones_own_is_suggested_too(command, tmp_path):
    command("data", "add", "clinic", own_data(tmp_path / "clinic", 4))
    assert "Did you mean 'clinic'?" in command("data", "show", "clinc").err


def test_a_misspelt_setting_of_a_node_gets_a_suggestion(tmp_path):
    (tmp_path / "settings.toml").write_text("laguage = 'english'\n")
    with pytest.raises(SpecError, match="Did you mean 'language'"):
        settings.load(tmp_path / "settings.toml")


def test_a_name_that_is_close_to_none_gets_no_suggestion():
    assert did_you_mean("zzz", ["data", "node"]) == ""
