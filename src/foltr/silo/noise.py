"""The noise in an owner's answers, drawn once for every version of a document, and the privacy event of its answers.

Source: S3 section IV-B step 3 and equation 5 (`paper`). z rows; epsilon as the owner states it:

    none        no noise
    paper       ONE draw of Laplace noise of scale 1 / epsilon for all z cells of a document
    one_shot    a draw for every cell of a document's sketch, of scale z / epsilon, when it is released; with an
                `index` a draw for every word of a document, of scale 1 / epsilon

**Same question, same answer.** Noise that is drawn anew for every answer is averaged away by asking again: k answers
leave a k-th of its variance, and their epsilons add up to k epsilon. So no noise here is fresh. The noise of
`one_shot` follows from a stored secret and the content of the document, never from its name (`releases`): all answers
together cost epsilon; an edit is a new release and is charged. `paper` follows from a secret, the document and the
question (kind and columns).

Protected by `one_shot`, against whoever gets answers: whether one occurrence of one word is in one document (unit
`word`, adjacency zero-out: the occurrence is taken away, the documents stay). Exact copies of a document have the same
noise and count as one document; that they are copies is visible. Lengths are another release (`statistics`).

Sensitivity. A term has one column in each row, so one occurrence changes one cell of every row, by one: z cells of a
whole sketch, an L1 norm of exactly z. An answer shows one cell of every row; an asker of the word itself sees all z of
them change, so the bound is z there too, and not z1, since the asker chooses. To replace a word by another is twice as
much: a cell may lose one and gain one of the other sign, 2 z in all, so epsilon is then 2 epsilon. A whole document of
n words is n times as much, which is no guarantee.

`paper` has no finite epsilon: all differences of its cells are exact, so some outcomes are possible under one of two
neighbouring datasets only. Its event protects against nobody.

`one_shot` releases whole numbers: rounding costs no privacy and removes the low bits by which noise in floating point
can be undone (Mironov 2012).

Differs from the paper: `one_shot`. Its theorem 1 considers the median only, while the answer has z numbers. It draws
noise for every answer.
"""

import hashlib
import math
from collections.abc import Callable

import numpy as np

from foltr.errors import SpecError
from foltr.privacy.events import EVERYBODY, Event
from foltr.secagg.crypto import expand, label, new_secret
from foltr.silo.sketches import MAX_CELL, Sketch
from foltr.types import Array

VARIANTS = ("none", "paper", "one_shot")
Uniforms = Callable[[int], Array]  # so many numbers in [0, 1), new ones at every call
_STEP = 2.0**-53


def from_system(size: int) -> Array:
    """From the operating system, for deployed owners."""
    return from_secret(new_secret(), size)


def from_secret(secret: bytes, size: int) -> Array:
    """Numbers that follow from a secret alone."""
    return uniforms_of(expand(secret, 8 * size))


def uniforms_of(content: bytes) -> Array:
    """Numbers in [0, 1), one for each 8 pseudorandom bytes."""
    return (np.frombuffer(content, "<u8") >> np.uint64(11)) * _STEP


def laplace(shape: tuple[int, ...], scale: float, uniforms: Uniforms) -> Array:
    drawn = uniforms(math.prod(shape)).reshape(shape) - 0.5
    return -scale * np.sign(drawn) * np.log(np.maximum(1 - 2 * np.abs(drawn), _STEP))


def paper_draws(documents: int, what: str, columns: Array, epsilon: float, secret: bytes) -> Array:
    """[documents] `paper`: the draw of every document in answers to this question, always the same."""
    question = label(what, np.ascontiguousarray(columns, "<i4").tobytes())
    seed = hashlib.blake2b(question, key=secret, digest_size=32).digest()
    return laplace((documents,), 1 / epsilon, lambda size: from_secret(seed, size))


def of_content(secret: bytes, version: bytes) -> Uniforms:
    """The draws that belong to one content of a document: the same under any name, and when it comes back."""
    seed = hashlib.blake2b(version, key=secret, digest_size=32).digest()
    return lambda size: from_secret(seed, size)


def perturb_sketch(sketch: Sketch, epsilon: float, uniforms: Uniforms = from_system) -> Sketch:
    """`one_shot`: independent noise in every cell of every document's sketch."""
    check_noise("one_shot", epsilon)
    many = (-1, sketch.shape.rows, sketch.shape.columns)
    noisy = np.empty(sketch.cells.shape, sketch.cells.dtype)
    for cells, out in zip(sketch.cells.reshape(many), noisy.reshape(many), strict=True):
        drawn = laplace(cells.shape, sketch.shape.rows / epsilon, uniforms)
        out[...] = np.clip(np.rint(cells + drawn), -MAX_CELL, MAX_CELL)
    return sketch._replace(cells=noisy)


def event_of(variant: str, rows: int, epsilon: float) -> Event:
    """The event of all answers about one version of a document together; an index has one row."""
    check_noise(variant, epsilon)
    if variant == "none":  # nobody contributes noise
        return Event("laplace", "l1", float(rows), "l1", 1.0, unit="word", against=(), present=0, parameters=rows)
    if variant == "paper":
        return Event("laplace", "l1", float(rows), "l1", 1 / epsilon, unit="word", against=(), parameters=rows)
    return Event("laplace", "l1", float(rows), "l1", rows / epsilon, unit="word", against=EVERYBODY, parameters=rows)


def check_noise(variant: str, epsilon: float) -> None:
    if variant == "per_query":
        raise SpecError(
            "noise 'per_query' is gone: fresh noise on the same cell is averaged away by asking again; use one_shot, "
            "whose noise is stored with the document"
        )
    if variant not in VARIANTS:
        raise SpecError(f"no noise {variant!r}; there are {', '.join(VARIANTS)}")
    check_epsilon(epsilon)


def check_epsilon(epsilon: float) -> None:
    if not (epsilon > 0 and math.isfinite(epsilon)):
        raise SpecError(f"epsilon = {epsilon}; use a number above 0")
