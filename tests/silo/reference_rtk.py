"""RTK-sketches by hand, the same bounded structure: a cell is a sorted Python list, cut after every insertion."""

from collections import defaultdict
from statistics import median

MASK = 2**64 - 1


def mixed(word):
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB & MASK
    return word ^ (word >> 31)


def tables(hashes, counts):
    """The signed sum of a document in every cell."""
    rows, columns = hashes.shape[:2]
    table = {(row, column): 0 for row in range(rows) for column in range(columns)}
    for term, count in enumerate(counts):
        for row in range(rows):
            table[row, int(hashes.columns[term, row])] += int(hashes.signs[term, row]) * count
    return table


class ReferenceHeaps:
    """`paper` and `sound`: the best `capacity` by weight, equal ones by the cell's own order of documents."""

    def __init__(self, hashes, variant, top, capacity):
        self.width, self.variant, self.top, self.capacity = hashes.shape.columns, variant, top, capacity
        self.cells = defaultdict(list)  # (row, column) -> [(document, count)], the best first

    def better(self, cell, entry):
        document, count = entry
        weight = abs(count) if self.variant == "sound" else count
        return weight, mixed(document ^ ((cell[0] * self.width + cell[1]) << 32))

    def add(self, document, hashes, counts):
        for cell, count in tables(hashes, counts).items():
            if count or self.variant == "paper":
                self.cells[cell].append((document, count))
                self.cells[cell].sort(key=lambda entry, cell=cell: self.better(cell, entry), reverse=True)
                del self.cells[cell][self.capacity :]

    def delete(self, document):
        for cell in self.cells.values():
            cell[:] = [entry for entry in cell if entry[0] != document]

    def stored(self):
        return {cell: set(entries) for cell, entries in self.cells.items() if entries}

    def query(self, hashes, beta):
        found = defaultdict(list)
        for row in range(hashes.shape.rows):
            sign = 1 if self.variant == "paper" else int(hashes.signs[0, row])
            for document, count in self.cells[row, int(hashes.columns[0, row])]:
                found[document].append(sign * count)
        enough = {document: counts for document, counts in found.items() if len(counts) >= beta * hashes.shape.rows}
        return sorted(enough, key=lambda document: self.rank(document, enough[document]))[: self.top]

    def rank(self, document, counts):
        if self.variant == "paper":
            return -median(counts), document
        return -sum((count > 0) - (count < 0) for count in counts), -sum(counts), document


class ReferenceSamples:
    """`sampled`: of a tag the best `top`, of a cell the `capacity` smallest."""

    def __init__(self, _hashes, _variant, top, capacity):
        self.top, self.capacity = top, capacity
        self.cells = defaultdict(list)  # (row, column) -> [(tag, -count, document)] in rising order
        self.limits = defaultdict(lambda: 65_536)

    def add(self, document, hashes, counts):
        for term, count in enumerate(counts):
            for row in range(hashes.shape.rows):
                tag, place = int(hashes.tags[term, row]), (row, int(hashes.columns[term, row]))
                cell = self.cells[place]
                cell.append((tag, -min(count, 65_535), document))
                cell.sort()
                alike = [entry for entry in cell if entry[0] == tag]
                if len(alike) > self.top:
                    cell.remove(alike[-1])
                elif len(cell) > self.capacity:
                    self.limits[place] = min(self.limits[place], cell.pop()[0])

    def delete(self, document):
        for cell in self.cells.values():
            cell[:] = [entry for entry in cell if entry[2] != document]

    def stored(self):
        return {place: {(document, -less) for _, less, document in cell} for place, cell in self.cells.items() if cell}

    def query(self, hashes, _beta):
        complete, partial = [], []
        for row in range(hashes.shape.rows):
            tag, place = int(hashes.tags[0, row]), (row, int(hashes.columns[0, row]))
            most = {}
            for mark, less, document in self.cells[place]:
                if mark == tag:
                    most.setdefault(document, -less)
            (complete if tag < self.limits[place] else partial).append(most)
        votes = defaultdict(list)
        for most in complete or partial:
            for document, count in most.items():
                votes[document].append(count)
        enough = {document: counts for document, counts in votes.items() if 2 * len(counts) >= len(complete)}
        return sorted(enough, key=lambda document: (-median(enough[document]), document))[: self.top]


REFERENCES = {"paper": ReferenceHeaps, "sound": ReferenceHeaps, "sampled": ReferenceSamples}
