"""A Merkle tree: one hash that stands for a list, and a short path that proves a place in it.

Source: Merkle, "A digital signature based on a conventional encryption function" (1987), with leaves and nodes hashed
apart as in RFC 6962. The last node of an odd level moves up as it is.

Differs from the paper: nothing.
"""

from collections.abc import Sequence
from hashlib import sha256


def leaf(content: bytes) -> bytes:
    return sha256(b"\x00" + content).digest()


def levels(leaves: Sequence[bytes]) -> list[list[bytes]]:
    """From the leaves to the root."""
    found = [list(leaves)]
    while len(found[-1]) > 1:
        below = found[-1]
        pairs = [_node(below[k], below[k + 1]) for k in range(0, len(below) - 1, 2)]
        found.append(pairs + below[len(below) & ~1 :])
    return found


def path(tree: Sequence[Sequence[bytes]], place: int) -> bytes:
    """The hashes beside the way from a leaf to the root, from below."""
    beside = []
    for level in tree[:-1]:
        if place ^ 1 < len(level):
            beside.append(level[place ^ 1])
        place //= 2
    return b"".join(beside)


def root_from(own: bytes, place: int, count: int, beside: bytes) -> bytes:
    """The root that a leaf at this place of `count` and its path lead to; anything wrong leads to another root."""
    steps = [beside[k : k + 32] for k in range(0, len(beside), 32)][::-1]
    while count > 1:
        if place ^ 1 < count:
            other = steps.pop() if steps else b""
            own = _node(other, own) if place & 1 else _node(own, other)
        place, count = place // 2, (count + 1) // 2
    return own if not steps else b""


def _node(left: bytes, right: bytes) -> bytes:
    return sha256(b"\x01" + left + right).digest()
