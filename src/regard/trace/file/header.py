"""The header of a safetensors file, of which nothing is believed before it was checked.

The format: 8 bytes say how long the header is (little-endian), the header is JSON, the rest are the bytes of the
arrays without a gap.
"""

import json
from collections.abc import Callable
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import torch

from regard.errors import TraceError
from regard.trace.file.digests import has_seal, has_valid_seal

DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}
LONGEST = 100_000_000  # bytes of a header; the library of the format draws the same line
AXES = 8


class Info(NamedTuple):
    """Where an array stands in the file and what it is."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    start: int  # bytes from the start of the file
    stop: int


class Header(NamedTuple):
    """What was said in words, where the arrays stand, where the first begins, and whether a seal was found right."""

    metadata: dict[str, str]
    infos: dict[str, Info]
    begin: int
    sealed: bool


def read_header(path: Path, size: int, read: Callable[[int, int], bytes]) -> Header:
    """The header of a file of this size; `read(start, stop)` gives its bytes."""
    start = read(0, min(9, size))
    length = int.from_bytes(start[:8], "little")
    if length == 0:
        raise TraceError(f"{path} was never finished: whoever wrote it stopped before the end; watch again").with_code(
            "file.unfinished"
        )
    if length > LONGEST or start[8:] != b"{":
        raise TraceError(
            f"{path} is no trace file: it does not begin like safetensors; give a file from trace.save"
        ).with_code("file.foreign")
    if length > size - 8:
        raise TraceError(
            f"{path} is cut off: its header alone has {length} bytes, the file {size}; copy it again"
        ).with_code("file.cut", size=size)
    text = read(8, 8 + length)
    if has_seal(text) and not has_valid_seal(text):
        raise TraceError(
            f"{path} is damaged: its header is not the one that was written; copy it again, or write it again"
        ).with_code("file.bytes")
    header = parse_json(path, text, at_most=max(1 << 18, size >> 4))
    if not isinstance(header, dict):
        raise TraceError(f"{path} has a header that is no JSON object; write it again").with_code("file.header")
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise TraceError(f"{path} has metadata that are not text by name; write it again").with_code("file.header")
    infos = {name: info_of(path, name, entry, 8 + length, size) for name, entry in header.items()}
    must_fill(path, infos, 8 + length, size)
    return Header(metadata, infos, 8 + length, has_seal(text))


def parse_json(path: Path, text: bytes | str, *, at_most: int) -> Any:
    """JSON as Python objects; refused where it is malformed, repeats a name, or would take far more memory."""
    text = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    if sum(text.count(mark) for mark in (b"[", b"{", b",")) > at_most:
        raise TraceError(
            f"{path} describes more than its size can hold; it is damaged or was made to do harm"
        ).with_code("file.greedy")
    try:
        return json.loads(str(text, "utf-8"), object_pairs_hook=once, parse_constant=no_number)
    except (ValueError, RecursionError) as error:
        why = "nested too deeply" if isinstance(error, RecursionError) else f"{error!s:.200}"
        raise TraceError(f"{path} has a header that cannot be read ({why}); it is damaged, write it again").with_code(
            "file.header"
        ) from error


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands there twice")
    return found


def no_number(text: str) -> None:
    raise ValueError(f"{text} is no number")


def info_of(path: Path, name: str, entry: Any, begin: int, size: int) -> Info:
    """What the header says of one array, if that can be true of a file of this size."""

    def wrong(what: str) -> TraceError:
        return TraceError(f"{path} {what}").with_code("file.array", array=f"{name:.80}")

    if not isinstance(entry, dict) or set(entry) != {"dtype", "shape", "data_offsets"}:
        raise wrong(f"describes the array {name!r:.80} by other words than dtype, shape and data_offsets")
    kind, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(kind, str) or kind not in DTYPES:
        raise wrong(f"holds the array {name!r:.80} as {kind!r:.40}; known are {', '.join(DTYPES)}")
    if not whole_numbers(shape) or len(shape) > AXES or prod(max(side, 1) for side in shape) > size:
        raise wrong(f"gives the array {name!r:.80} a shape that a file of {size} bytes cannot hold")
    if not whole_numbers(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise wrong(f"does not say where the array {name!r:.80} starts and stops")
    first, last = offsets
    dtype = DTYPES[kind]
    need = prod(shape) * dtype.itemsize
    if need != last - first:
        raise wrong(f"has {last - first} bytes for the array {name!r:.80}, but its shape needs {need}")
    if begin + last > size:
        raise TraceError(
            f"{path} is cut off: {name!r:.80} would end at byte {begin + last} of {size}; copy it again"
        ).with_code("file.cut", size=size)
    if first % dtype.itemsize:
        raise wrong(f"holds the array {name!r:.80} at byte {first} of its arrays, between two numbers")
    return Info(dtype, tuple(shape), begin + first, begin + last)


def whole_numbers(given: Any) -> bool:
    return isinstance(given, list) and all(type(one) is int and one >= 0 for one in given)


def must_fill(path: Path, infos: dict[str, Info], begin: int, size: int) -> None:
    """Raise unless the arrays follow each other from the header to the end of the file."""
    at = begin
    for name, info in sorted(infos.items(), key=lambda item: (item[1].start, item[1].stop)):
        if info.start != at:
            how = "overlaps with another" if info.start < at else "leaves a gap before it"
            raise TraceError(
                f"{path} holds an array, {name!r:.80}, that {how}; it is damaged, write it again"
            ).with_code("file.array", array=f"{name:.80}")
        at = info.stop
    if at != size:
        raise TraceError(f"{path} has {size - at} bytes at its end that belong to no array; it is damaged").with_code(
            "file.long", more=size - at
        )
