"""Rankings by one feature of a LETOR set, beside which learned rankers stand: nDCG@10 and RR@10 on the test parts.

python benchmarks/single_feature.py mq2007 mq2008 [--folds 2] [--bm25 25]

Rows: BM25 of the whole document (column 25 of LETOR 4.0, no label is used), and the feature with the largest nDCG@10 on
the training part of the fold (one number is learned from labels: which column). Features of LETOR are larger for better
documents. Queries without a relevant document are left out, ties are neutral, as in `foltr run`. MaxRR is the expected
reciprocal rank of the first click, perfect / navigational / informational users, over all training queries: what users
would see online (`online_max_rr`) if this were the ranker.
"""

import argparse
import itertools
import sys
from collections.abc import Iterator, Sequence

import numpy as np

from foltr.clicks import Users, click_model
from foltr.lab.data import catalog
from foltr.metrics import CUT, expected_max_rr, ndcg, order, rr
from foltr.types import Array, Dataset

USERS = ("perfect", "navigational", "informational")


def queries(data: Dataset) -> Iterator[tuple[Array, Array]]:
    """Features and grades of every query with a relevant document."""
    for first, last in itertools.pairwise(data.offsets):
        if data.labels[first:last].any():
            yield data.features[first:last], data.labels[first:last]


def quality(data: Dataset, column: int) -> tuple[float, float]:
    """Mean nDCG@10 and RR@10 of the ranking by a column (from 0)."""
    scored = [(features[:, column], grades) for features, grades in queries(data)]
    return float(np.mean([ndcg(*pair) for pair in scored])), float(np.mean([rr(*pair) for pair in scored]))


def max_rr(data: Dataset, column: int, grades: int) -> list[float]:
    """Expected MaxRR of the displayed lists, for each kind of users."""
    lists = [
        data.labels[first:last][order(data.features[first:last, column])[:CUT]]
        for first, last in itertools.pairwise(data.offsets)
    ]
    models = [click_model(Users(clicks=name), grades=grades).click for name in USERS]
    return [float(np.mean([expected_max_rr(shown, click) for shown in lists])) for click in models]


def best_column(data: Dataset) -> int:
    """The column with the largest nDCG@10."""
    return int(np.argmax([quality(data, column)[0] for column in range(data.features.shape[1])]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", help="such as mq2007")
    parser.add_argument("--folds", type=int, default=5, help="the first so many folds")
    parser.add_argument("--bm25", type=int, default=25, help="the column of BM25, counted from 1")
    chosen = parser.parse_args()
    for name in chosen.names:
        folds = [catalog.load(name, fold=fold) for fold in catalog.folds(name)[: chosen.folds]]
        best = [best_column(fold.train) for fold in folds]
        report(f"{name}, BM25", folds, [chosen.bm25 - 1] * len(folds))
        report(
            f"{name}, best of the training part (column {', '.join(str(column + 1) for column in best)})", folds, best
        )


def report(row: str, folds: Sequence[catalog.Fold], columns: Sequence[int]) -> None:
    """Prints the means over the folds of the rankings by one column each."""
    pairs = list(zip(folds, columns, strict=True))
    tested = np.array([quality(fold.test, column) for fold, column in pairs])
    shown = np.mean([max_rr(fold.train, column, fold.grades) for fold, column in pairs], axis=0)
    of_folds = " ".join(f"{value:.3f}" for value in tested[:, 0])
    sys.stdout.write(
        f"{row}: nDCG@10 {tested[:, 0].mean():.3f} ({of_folds}), RR@10 {tested[:, 1].mean():.3f}, "
        f"MaxRR {' / '.join(f'{value:.3f}' for value in shown)}\n"
    )


if __name__ == "__main__":
    main()
