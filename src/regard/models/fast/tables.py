"""What a kernel is told, as NumPy records: compiled code reads them by the names that stand here.

Memory is given by address. Whoever fills a record keeps the arrays alive that it points to.
"""

import numpy as np

NAMES = ("F32", "Q4_0", "Q4_1", "Q8_0", "Q4_K", "Q6_K")  # how the numbers of a matrix lie in memory (packing.py)
F32, Q4_0, Q4_1, Q8_0, Q4_K, Q6_K = range(6)

WHOLE = np.int64

MATRIX = np.dtype(
    [
        ("address", WHOLE),
        ("code", WHOLE),  # F32, Q4_0, …
        ("rows", WHOLE),  # numbers that come out
        ("columns", WHOLE),  # numbers that go in
        ("bias", WHOLE),  # address of what is added to each row; 0: nothing
    ]
)

LAYER = np.dtype(
    [
        ("window", WHOLE),  # keys that a query may see, itself among them; 0: all
        ("attention_norm", WHOLE),  # addresses of weights
        ("query_norm", WHOLE),  # 0: none
        ("key_norm", WHOLE),
        ("hidden_norm", WHOLE),
        ("q", MATRIX),
        ("k", MATRIX),
        ("v", MATRIX),
        ("out", MATRIX),
        ("gate", MATRIX),
        ("up", MATRIX),
        ("down", MATRIX),
    ]
)

MODEL = np.dtype(
    [
        ("width", WHOLE),
        ("heads", WHOLE),
        ("kv_heads", WHOLE),
        ("head_width", WHOLE),
        ("hidden", WHOLE),
        ("norm", WHOLE),  # address of the last norm's weights
        ("norm_eps", np.float32),
        ("scale", np.float32),  # of scores
        ("embed", MATRIX),
        ("head", MATRIX),
    ]
)

TOKEN = np.dtype(
    [
        ("id", WHOLE),
        ("row", WHOLE),  # of the batch
        ("index", WHOLE),  # its place in the cache
        ("first", WHOLE),  # the first place in the cache that it may see
        ("cos", WHOLE),  # addresses of head_width / 2 numbers
        ("sin", WHOLE),
    ]
)

MEMORY = np.dtype(
    [
        ("keys", WHOLE),  # layer, row, kv head, block of 16 places, channel, place
        ("values", WHOLE),  # layer, row, kv head, place, channel (padded)
        ("rows", WHOLE),
        ("capacity", WHOLE),  # places, a multiple of 32
        ("x", WHOLE),  # activations: a row per token, each padded to 16
        ("qkv", WHOLE),
        ("mix", WHOLE),
        ("hidden", WHOLE),
        ("partial", WHOLE),  # per token, head and split: the mix of its keys, their largest score, their sum
        ("logits", WHOLE),
        ("room", WHOLE),  # bytes of the activations of one token where they are widest
        ("scratch", WHOLE),  # per thread
        ("scratch_size", WHOLE),  # bytes of one thread
    ]
)


def pad(size: int, to: int = 16) -> int:
    """The next multiple.

    >>> pad(17), pad(32)
    (32, 32)
    """
    return -(-size // to) * to
