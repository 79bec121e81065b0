"""Adding to count sketches and reading estimates; see `silo.sketch`."""

from foltr._kernels.compile import callee, kernel
from foltr.types import Array


@kernel
def add_documents(offsets: Array, terms: Array, counts: Array, columns: Array, signs: Array, cells: Array) -> None:
    for document in range(offsets.size - 1):
        for entry in range(offsets[document], offsets[document + 1]):
            term = terms[entry]
            for row in range(columns.shape[1]):
                cells[document, row, columns[term, row]] += signs[term, row] * counts[entry]


@kernel
def fill_medians(cells: Array, columns: Array, signs: Array, room: Array, found: Array) -> None:
    rows = columns.shape[1]
    for document in range(cells.shape[0]):
        for term in range(columns.shape[0]):
            for row in range(rows):
                room[row] = signs[term, row] * cells[document, row, columns[term, row]]
            found[document, term] = median(room, rows)


@kernel
def fill_least(cells: Array, columns: Array, found: Array) -> None:
    for document in range(cells.shape[0]):
        for term in range(columns.shape[0]):
            least = cells[document, 0, columns[term, 0]]
            for row in range(1, columns.shape[1]):
                least = min(least, cells[document, row, columns[term, row]])
            found[document, term] = least


@callee
def median(values: Array, count: int) -> float:
    """Of the first `count` values, which get sorted; between two middle ones their mean."""
    for i in range(1, count):
        value, at = values[i], i
        while at > 0 and values[at - 1] > value:
            values[at] = values[at - 1]
            at -= 1
        values[at] = value
    return 0.5 * (values[(count - 1) // 2] + values[count // 2])
