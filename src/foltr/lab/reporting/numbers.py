"""Numbers as people read them: as many digits as mean something, and a dash where there is nothing to say."""

import math

NOTHING = "–"


def number(value: float | int | None, digits: int | None = None) -> str:
    """4,000,000 / 304.1 / 12.30 / 0.4071; the dash for what is missing or not a number."""
    if value is None or math.isnan(value):
        return NOTHING
    if isinstance(value, int):
        return f"{value:,}"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return _minus(f"{value:,.{decimals(value) if digits is None else digits}f}")


def decimals(value: float) -> int:
    """Digits after the point that leave about four that count."""
    size = abs(value)
    return 0 if size >= 1000 else 1 if size >= 100 else 2 if size >= 10 else 3 if size >= 1 else 4


def difference(value: float | None, left: float | None) -> str:
    """With its sign, and with the digits of the number that it was taken from."""
    shown = number(value, None if left is None or not math.isfinite(left) else decimals(left))
    return f"+{shown}" if value is not None and value > 0 else shown


def mean_sd(mean: float | None, sd: float | None, runs: int) -> str:
    """Mean ± sd with the same digits for both; a single run has no sd."""
    if mean is None or sd is None or runs < 2 or not math.isfinite(mean) or not math.isfinite(sd):
        return number(mean)
    digits = decimals(mean)
    return _minus(f"{mean:,.{digits}f} ± {sd:,.{digits}f}")


def p_value(p: float | None) -> str:
    """< .001 / .012 / 1, as papers print them."""
    if p is None or math.isnan(p):
        return NOTHING
    if p < 0.001:
        return "< .001"
    return "1" if p >= 0.9995 else f"{p:.3f}".removeprefix("0")


def duration(seconds: float | None) -> str:
    """12.3 s / 4 min 05 s / 2 h 07 min."""
    if seconds is None or not math.isfinite(seconds):
        return NOTHING
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def _minus(text: str) -> str:
    return text.replace("-", "−")
