"""Text files, compressed or not → their lines, or one sentence that says what is wrong and where."""

import gzip
import json
import re
import zlib
from collections.abc import Iterator, Sequence
from io import BufferedIOBase
from pathlib import Path
from typing import Any, NoReturn

from regard.errors import DataError

MARKS = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16", b"\x1f\x8b": "gzip", b"PK\x03\x04": "zip"}
BROKEN = re.compile("[\0\ud800-\udfff]")  # asked of every text, which a loop over letters makes the slowest part
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
LONGEST = 2**28  # bytes of a line; the training part of SQuAD is one of 30 million
PIECE = 2**20  # bytes that are read before anybody asks what they are


def lines_of(path: Path) -> list[str]:
    """The lines of a UTF-8 file, without their ends. Only a line feed ends a line, with a carriage return or not."""
    return list(stream_lines(path))


def stream_lines(path: Path) -> Iterator[str]:
    """The same one by one, so that a file may be larger than the memory. A fault is told when its line is reached."""
    number, start = 1, 0
    for data in stream_content(path):
        if number == 1:
            kind = next((kind for mark, kind in MARKS.items() if data.startswith(mark)), None)
            if kind is not None:
                raise DataError(f"{path} is a {kind} file, but UTF-8 text was wanted; {advice(kind)}")
            start = len(data)
            data = data.removeprefix(BYTE_ORDER_MARK)
            start -= len(data)  # bytes are counted as they stand in the file
        if (at := data.find(b"\0")) >= 0:
            refuse(path, number, f"byte {start + at} is NUL, which no text has; give a whole text file, saved as UTF-8")
        if len(data) > LONGEST:
            refuse(path, number, f"the line goes on beyond {LONGEST:,} bytes; give a text file, with shorter lines")
        try:
            yield data.decode("utf-8").removesuffix("\n").removesuffix("\r")
        except UnicodeDecodeError as error:
            wrong = f"byte {start + error.start} (0x{data[error.start]:02x}) is no UTF-8"
            refuse(path, number, f"{wrong}; save the file as UTF-8, for example with iconv -f LATIN1 -t UTF-8")
        number, start = number + 1, start + len(data)


def objects_of(path: Path) -> list[dict[str, Any] | None]:
    """The JSON object of every line; None for an empty one."""
    return [one for _, one in stream_objects(path)]


def stream_objects(path: Path) -> Iterator[tuple[int, dict[str, Any] | None]]:
    """The same one by one, with the number of each line."""
    for number, line in enumerate(stream_lines(path), 1):
        try:
            one = json.loads(line) if line.strip() else None
        except (ValueError, RecursionError) as error:
            refuse(path, number, f"there is no JSON ({error}); write one object a line")
        if one is not None and not isinstance(one, dict):
            refuse(path, number, f"there is a JSON {type(one).__name__}; write one object a line")
        for key, value in (one or {}).items():
            if isinstance(value, str) and is_broken(value):
                refuse(path, number, f"{key!r} holds NUL or half a character, which no text has; write it anew")
        yield number, one


def stream_content(path: Path) -> Iterator[bytes]:
    """The bytes of a file line by line, unpacked if its name ends in .gz; of a line with NUL only the beginning."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            while line := file.readline(PIECE):
                yield line if len(line) < PIECE else b"".join(finish_line(file, line))
    except FileNotFoundError:
        raise DataError(f"there is no file {path}; give one that exists") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(f"{path} is no whole gzip file ({error}); fetch it again") from error
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror or error}); give a file that can") from error


def finish_line(file: BufferedIOBase, first: bytes) -> Iterator[bytes]:
    """The pieces of a long line, up to one that holds NUL, or to what no line should be longer than."""
    size, piece = 0, first
    while piece and size <= LONGEST:
        yield piece
        size += len(piece)
        piece = b"" if piece.endswith(b"\n") or b"\0" in piece else file.readline(PIECE)


def stem_of(path: Path) -> str:
    """How the name ends, but for .gz."""
    return (path.with_suffix("") if path.suffix == ".gz" else path).suffix


def refuse(path: Path, number: int, why: str) -> NoReturn:
    raise DataError(f"{path}, line {number}: {why}")


def name_lines(numbers: Sequence[int]) -> str:
    """How many lines these are, and which; of many the first.

    >>> name_lines([3]), name_lines([3, 4, 8, 9, 11])
    ('1 line (3)', '5 lines (3, 4, 8, …)')
    """
    listed = [*map(str, numbers[:3]), *("…" for _ in numbers[3:4])]
    return f"{len(numbers):,} line{'s' if len(numbers) != 1 else ''} ({', '.join(listed)})"


def is_broken(text: str) -> bool:
    """Whether there is NUL, or a surrogate, which JSON can escape but UTF-8 cannot write.

    >>> is_broken("half \\ud83d"), is_broken("a whole 😀")
    (True, False)
    """
    return BROKEN.search(text) is not None


def advice(kind: str) -> str:
    if kind == "UTF-16":
        return "save it as UTF-8, for example with iconv -f UTF-16 -t UTF-8"
    return "name it .gz" if kind == "gzip" else "unpack it first"
