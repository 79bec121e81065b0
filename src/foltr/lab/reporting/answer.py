"""What `--json` prints: one object on standard output."""

import json
import math
import sys
from typing import Any


def print_json(content: Any) -> None:
    sys.stdout.write(json.dumps(_finite(content), indent=1, ensure_ascii=False, allow_nan=False) + "\n")


def _finite(value: Any) -> Any:
    """JSON knows no infinity, and no number that is none."""
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else "infinite"
    return value
