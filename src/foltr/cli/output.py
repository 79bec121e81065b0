"""Shared by all commands: consoles, the `--json` option and its output, and the check that an extra is installed."""

import inspect
import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import Annotated, Any, get_type_hints

import click
import typer
import typer.core
from rich.console import Console

from foltr.errors import InputError, did_you_mean

Json = Annotated[bool, typer.Option("--json", help="One JSON object on standard output, nothing else there.")]

out = Console()
err = Console(stderr=True)

# extra -> modules that its commands import
EXTRAS = {
    "lab": ("numba", "scipy", "polars", "dp_accounting"),
    "report": ("matplotlib", "jinja2"),
    "text": ("Stemmer",),
    "federation": ("httpx", "uvicorn"),
    "node": ("pypdfium2", "selectolax", "tantivy", "watchfiles"),
}


class Commands(typer.core.TyperGroup):
    """A group whose misspelt commands get one suggestion; typer and newer versions of click would add one each."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            ctx.fail(f"No such command {args[0]!r}.{did_you_mean(args[0], self.list_commands(ctx))}")
        return super().resolve_command(ctx, args)


def with_options(options: Any) -> Callable[[Callable[[Any], None]], Callable[..., None]]:
    """A command whose options are the fields of a NamedTuple, which it gets as its one argument."""

    def decorated(function: Callable[[Any], None]) -> Callable[..., None]:
        def command(**given: Any) -> None:
            function(options(**given))

        hints = get_type_hints(options, include_extras=True)
        signature = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=options._field_defaults.get(name, inspect.Parameter.empty),
                annotation=hints[name],
            )
            for name in options._fields
        ]
        command.__signature__ = inspect.Signature(signature)  # type: ignore[attr-defined]  # typer reads both
        command.__annotations__ = hints
        command.__doc__ = function.__doc__
        return command

    return decorated


def print_json(content: Any) -> None:
    from foltr.files import dump_json

    sys.stdout.write(dump_json(content) + "\n")


def require(*extras: str) -> None:
    """Ends a command before it computes anything when a package that it needs is not installed."""
    missing = [extra for extra in extras if not all(map(_installed, EXTRAS[extra]))]
    if missing:
        raise not_installed(*missing)


def not_installed(*extras: str) -> InputError:
    return InputError(f"this command needs packages that are not installed: pip install 'foltr[{','.join(extras)}]'")


def _installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):
        return False
