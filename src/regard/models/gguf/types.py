"""How GGUF stores numbers: each type by its number, its name, and how many values share how many bytes."""

from dataclasses import dataclass

from regard.errors import ModelError


@dataclass(frozen=True)
class StorageType:
    """A type of stored tensors: `bytes` hold a block of `values` that stand side by side in a row."""

    name: str
    values: int
    bytes: int


TYPES: dict[int, StorageType] = {
    0: StorageType("F32", 1, 4),
    1: StorageType("F16", 1, 2),
    2: StorageType("Q4_0", 32, 18),
    3: StorageType("Q4_1", 32, 20),
    6: StorageType("Q5_0", 32, 22),
    7: StorageType("Q5_1", 32, 24),
    8: StorageType("Q8_0", 32, 34),
    10: StorageType("Q2_K", 256, 84),
    11: StorageType("Q3_K", 256, 110),
    12: StorageType("Q4_K", 256, 144),
    13: StorageType("Q5_K", 256, 176),
    14: StorageType("Q6_K", 256, 210),
    20: StorageType("IQ4_NL", 32, 18),
    23: StorageType("IQ4_XS", 256, 136),
    30: StorageType("BF16", 1, 2),
}


def storage_type(number: int, what: str) -> StorageType:
    """The type of this number.

    >>> storage_type(3, "blk.0.attn_q.weight of a.gguf")
    StorageType(name='Q4_1', values=32, bytes=20)
    """
    if number not in TYPES:
        names = ", ".join(kind.name for kind in TYPES.values())
        raise ModelError(f"{what} is stored as type {number}, which is not read here; give a file of {names}")
    return TYPES[number]
