"""How many numbers the functions of this folder take at a time, the same with and without hand-written SIMD."""

LANES = 8  # doubles of a vector
ROWS = 4  # documents whose products are summed together
UNITS = 2 * LANES  # hidden units whose sums are made together
BLOCK = 3 * LANES  # documents of an exponential race: three vectors hide the latency of one
GROUP = LANES * LANES  # keys that are sorted together
SMALLEST = 10  # keys that are found together
NORMALS = 6 * LANES  # normal numbers that are drawn together
PLACE_BITS = (1 << 20) - 1  # of a document's key in a race: the last digits hold its place
SCORE_PLACE_BITS = (1 << 29) - 1  # of a key made of a float32 score
