"""The inner loops of reading a collection: bytes of whole LETOR lines in, rows of numbers out; and their scaling.

`scan` fills rows until the text or the rows run out, or until a line is wrong. It says where it stopped, how
many rows and lines it took, and what is wrong at which byte; `lab.data.letor` turns that into words.

A number is the float32 nearest to its decimal text, unless that lies within one part in 10^15 of the middle
between two float32 numbers: then it may be the other of the two.

`standardise` and `scale_queries` scale features in place; see `lab.data.normalize`.
"""

import math
from typing import NamedTuple

import numpy as np

from foltr._kernels.compile import callee, inlined, kernel
from foltr.types import Array

(
    FINE,
    BAD_LABEL,
    LABEL_TOO_HIGH,
    NO_QID,
    BAD_QID,
    BAD_FEATURE,
    TOO_WIDE,
    TWICE,
    NOT_A_NUMBER,
    IS_NAN,
    IS_INFINITE,
    WRONG_COUNT,
) = range(12)

_LINE, _TAB, _RETURN, _SPACE, _HASH, _DOT, _COLON, _ZERO = 10, 9, 13, 32, 35, 46, 58, 48
_PLUS, _MINUS, _EXPONENT = 43, 45, 101
_LOWER_CASE = 32  # the bit that turns an ASCII capital into a small letter
_POWERS: Array = 10.0 ** np.arange(23)  # every one of them is exact in binary
_LONGEST = 2**63 - 1
_DIGITS = 18  # this many always fit 64 bits


@callee
def _ends(letter: int) -> bool:
    return letter in (_SPACE, _LINE, _TAB, _RETURN, _HASH)


@callee
def _is_word(text: Array, at: int, word: bytes) -> bool:
    for i in range(len(word)):
        if text[at + i] | _LOWER_CASE != word[i]:
            return False
    return _ends(text[at + len(word)])


@callee
def _scaled(mantissa: int, exponent: int) -> float:
    if exponent < -22 or exponent > 22:
        half = exponent // 2  # in two steps, since 10^exponent alone may leave the range of a double
        return (mantissa * math.pow(10.0, half)) * math.pow(10.0, exponent - half)
    if exponent < 0:
        return float(mantissa / _POWERS[-exponent])
    return float(mantissa * _POWERS[exponent])


@callee
def number(text: Array, at: int) -> tuple[float, int, bool]:
    """Any number at `at`: its value, the byte after it, and whether it was a number at all."""
    negative = text[at] == _MINUS
    if negative or text[at] == _PLUS:
        at += 1
    if _is_word(text, at, b"nan"):
        return math.nan, at + 3, True
    for word in (b"inf", b"infinity"):
        if _is_word(text, at, word):
            return -math.inf if negative else math.inf, at + len(word), True
    mantissa, stored, digits, exponent, after_dot = 0, 0, 0, 0, False
    while True:
        digit = text[at] - _ZERO
        if 0 <= digit <= 9:
            digits += 1
            if stored < _DIGITS:
                mantissa = mantissa * 10 + digit
                stored += mantissa > 0
                exponent -= after_dot
            else:
                exponent += not after_dot
        elif text[at] == _DOT and not after_dot:
            after_dot = True
        else:
            break
        at += 1
    if digits == 0:
        return 0.0, at, False
    if text[at] | _LOWER_CASE == _EXPONENT:
        at += 1
        sign = -1 if text[at] == _MINUS else 1
        if text[at] == _MINUS or text[at] == _PLUS:
            at += 1
        written, first = 0, at
        while 0 <= text[at] - _ZERO <= 9:
            written = min(written * 10 + int(text[at]) - _ZERO, 100_000)
            at += 1
        if at == first:
            return 0.0, at, False
        exponent += sign * written
    value = 0.0 if mantissa == 0 else _scaled(mantissa, exponent)
    return -value if negative else value, at, _ends(text[at])


@callee
def _query_id(text: Array, at: int) -> tuple[int, int, bool]:
    negative = text[at] == _MINUS
    if negative:
        at += 1
    value, first = 0, at
    while 0 <= text[at] - _ZERO <= 9:
        digit = text[at] - _ZERO
        if value > (_LONGEST - digit) // 10:
            return 0, at, False
        value = value * 10 + digit
        at += 1
    return -value if negative else value, at, at > first and _ends(text[at])


@inlined
def _digits(text: Array, at: int, value: int) -> tuple[int, int]:
    """A number continued by the digits from `at` on, and the byte after them."""
    while True:
        digit = text[at] - _ZERO
        if digit < 0 or digit > 9:
            break
        value = value * 10 + digit
        at += 1
    return value, at


class Form(NamedTuple):
    """Limits that a line must keep."""

    grades: int
    dense: bool  # every line must give every feature
    zero_nan: bool  # NaN is read as 0


class Rows(NamedTuple):
    """Arrays that are filled, a row for each document."""

    features: Array  # [rows, d] float32
    labels: Array  # [rows] int8
    queries: Array  # [rows] int64
    lines: Array  # [rows] int64, counted from 1


@kernel
def scan(
    text: Array,  # [bytes] uint8, the last of them a line end
    at: int,
    line: int,  # lines before `at`
    form: Form,
    rows: Rows,
    seen: Array,  # [d + 1] int64: the last line that gave this feature
) -> tuple[int, int, int, int, int]:
    """Rows filled, next byte, lines done, what is wrong, and at which byte."""
    features, labels, grades = rows.features, rows.labels, form.grades
    row, width, stop = 0, features.shape[1], text.size
    while at < stop and row < labels.size:
        while text[at] == _SPACE or text[at] == _TAB or text[at] == _RETURN:
            at += 1
        if text[at] == _LINE or text[at] == _HASH:
            while text[at] != _LINE:
                at += 1
            at += 1
            line += 1
            continue
        started = at
        label, at, fine = number(text, at)
        if not (fine and 0 <= label <= 127 and label == math.floor(label)):
            return row, at, line, BAD_LABEL, started
        if label >= grades:
            return row, at, line, LABEL_TOO_HIGH, started
        while text[at] == _SPACE or text[at] == _TAB:
            at += 1
        # nothing is read past the line end: each byte is looked at only after the one before it matched
        if not (text[at] == 113 and text[at + 1] == 105 and text[at + 2] == 100 and text[at + 3] == _COLON):
            return row, at, line, NO_QID, at
        started = at
        query, at, fine = _query_id(text, at + 4)
        if not fine:
            return row, at, line, BAD_QID, started
        given = 0
        for feature in range(width):
            features[row, feature] = 0.0
        while True:
            while text[at] == _SPACE or text[at] == _TAB or text[at] == _RETURN:
                at += 1
            if text[at] == _LINE or text[at] == _HASH:
                break
            started = at
            feature = 0
            while True:
                digit = text[at] - _ZERO
                if digit < 0 or digit > 9 or feature > 100_000_000:
                    break
                feature = feature * 10 + digit
                at += 1
            if feature == 0 or text[at] != _COLON:
                return row, at, line, BAD_FEATURE, started
            if feature > width:
                return row, at, line, TOO_WIDE, started
            if seen[feature] == line + 1:
                return row, at, line, TWICE, started
            seen[feature] = line + 1
            at += 1
            given += 1
            if text[at] == _ZERO and text[at + 1] == _SPACE:  # most values of a sparse collection, and set already
                at += 1
                continue
            # the common case: digits and perhaps a dot
            first = at
            negative = text[at] == _MINUS
            if negative:
                at += 1
            began, places = at, 0
            mantissa, at = _digits(text, at, 0)
            whole = at - began
            if text[at] == _DOT:
                began = at + 1
                mantissa, at = _digits(text, began, mantissa)
                places = at - began
            if _ends(text[at]) and 0 < whole + places <= _DIGITS:
                value = float(mantissa)
                if places > 0:
                    value /= _POWERS[places]
                if negative:
                    value = -value
            else:
                value, at, fine = number(text, first)
                if not fine:
                    return row, at, line, NOT_A_NUMBER, first
                if math.isnan(value):
                    if not form.zero_nan:
                        return row, at, line, IS_NAN, first
                    value = 0.0
                if math.isinf(np.float32(value)):
                    return row, at, line, IS_INFINITE, first
            features[row, feature - 1] = value
        if form.dense and given != width:
            return row, at, line, WRONG_COUNT, at
        while text[at] != _LINE:
            at += 1
        at += 1
        line += 1
        labels[row], rows.queries[row], rows.lines[row] = int(label), query, line
        row += 1
    return row, at, line, FINE, at


@kernel
def widest(text: Array) -> int:
    """The highest feature number before a colon, comments left out; wrong lines do no harm here."""
    highest, current, comment = 0, 0, False
    for letter in text:
        if letter == _LINE:
            comment = False
        elif letter == _HASH:
            comment = True
        digit = letter - _ZERO
        if 0 <= digit <= 9:
            current = current * 10 + digit if 0 <= current < 100_000_000 else -1
            continue
        if letter == _COLON and not comment:
            highest = max(highest, current)
        current = 0 if letter in (_SPACE, _TAB, _LINE) else -1
    return highest


@kernel
def standardise(features: Array, centre: Array, scale: Array) -> None:
    for row in range(features.shape[0]):
        for column in range(features.shape[1]):
            features[row, column] = (features[row, column] - centre[column]) * scale[column]


@kernel
def scale_queries(features: Array, offsets: Array, low: Array, high: Array) -> None:
    width = features.shape[1]
    for query in range(offsets.size - 1):
        first, last = offsets[query], offsets[query + 1]
        for column in range(width):
            low[column], high[column] = np.inf, -np.inf
        for row in range(first, last):
            for column in range(width):
                low[column] = min(low[column], features[row, column])
                high[column] = max(high[column], features[row, column])
        for row in range(first, last):
            for column in range(width):
                span = high[column] - low[column]
                features[row, column] = (features[row, column] - low[column]) / span if span > 0.0 else 0.0
