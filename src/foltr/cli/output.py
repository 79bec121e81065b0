"""What all commands share: consoles, the `--json` option and its output, and the check that an extra is installed."""

import inspect
import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import Annotated, Any, get_type_hints

import typer
from rich.console import Console

from foltr.errors import InputError

Json = Annotated[bool, typer.Option("--json", help="One JSON object on standard output, nothing else there.")]

out = Console()
err = Console(stderr=True)

# extra -> modules that its commands import
EXTRAS = {
    "lab": ("numba", "scipy", "polars", "dp_accounting"),
    "report": ("matplotlib", "jinja2"),
    "text": ("Stemmer",),
    "node": ("pypdfium2", "selectolax", "tantivy", "watchfiles"),
}


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
    from foltr.atomic import dump_json

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
