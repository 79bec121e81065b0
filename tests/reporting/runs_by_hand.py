"""A run from plain data, without files."""

from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from foltr.lab.records import Manifest, Run


def run_from(manifest: dict[str, Any], rows: pl.DataFrame) -> Run:
    """Rows without a client are of the whole federation."""
    if "client" not in rows.columns:
        rows = rows.with_columns(client=pl.lit(""))
    return Run(Path(), msgspec.convert(manifest, Manifest), rows)
