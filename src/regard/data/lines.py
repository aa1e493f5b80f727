"""Text files, compressed or not → their lines, or one sentence that says what is wrong and where."""

import gzip
import json
import zlib
from pathlib import Path
from typing import Any, NoReturn

from regard.errors import DataError

MARKS = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16", b"\x1f\x8b": "gzip", b"PK\x03\x04": "zip"}
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def lines_of(path: Path) -> list[str]:
    """The lines of a UTF-8 file, without their ends. Only a line feed ends a line, with a carriage return or not."""
    data = content(path).removeprefix(BYTE_ORDER_MARK)
    kind = next((kind for mark, kind in MARKS.items() if data.startswith(mark)), None)
    if kind is not None:
        raise DataError(f"{path} is a {kind} file, but UTF-8 text was wanted; {advice(kind)}")
    if (at := data.find(b"\0")) >= 0:
        number = data.count(b"\n", 0, at) + 1
        refuse(path, number, f"byte {at} is NUL, which no text has; give a whole text file, saved as UTF-8")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        number = data.count(b"\n", 0, error.start) + 1
        wrong = f"byte {error.start} (0x{data[error.start]:02x}) is no UTF-8"
        refuse(path, number, f"{wrong}; save the file as UTF-8, for example with iconv -f LATIN1 -t UTF-8")
    lines = text.split("\n")
    if not lines[-1]:  # what stands after the last line feed is no line
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def objects_of(path: Path) -> list[dict[str, Any] | None]:
    """The JSON object of every line; None for an empty one."""
    objects: list[dict[str, Any] | None] = []
    for number, line in enumerate(lines_of(path), 1):
        try:
            one = json.loads(line) if line.strip() else None
        except (ValueError, RecursionError) as error:
            refuse(path, number, f"there is no JSON ({error}); write one object a line")
        if one is not None and not isinstance(one, dict):
            refuse(path, number, f"there is a JSON {type(one).__name__}; write one object a line")
        for key, value in (one or {}).items():
            if isinstance(value, str) and ("\0" in value or has_surrogate(value)):
                refuse(path, number, f"{key!r} holds NUL or half a character, which no text has; write it anew")
        objects.append(one)
    return objects


def content(path: Path) -> bytes:
    """The bytes of a file, unpacked if its name ends in .gz."""
    try:
        data = path.read_bytes()
        return gzip.decompress(data) if path.suffix == ".gz" else data
    except FileNotFoundError:
        raise DataError(f"there is no file {path}; give one that exists") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(f"{path} is no whole gzip file ({error}); fetch it again") from error
    except OSError as error:
        raise DataError(f"{path} cannot be read ({error.strerror or error}); give a file that can") from error


def stem_of(path: Path) -> str:
    """How the name ends, but for .gz."""
    return (path.with_suffix("") if path.suffix == ".gz" else path).suffix


def refuse(path: Path, number: int, why: str) -> NoReturn:
    raise DataError(f"{path}, line {number}: {why}")


def has_surrogate(text: str) -> bool:
    """Whether there is a surrogate, which JSON can escape but UTF-8 cannot write."""
    return any("\ud800" <= letter <= "\udfff" for letter in text)


def advice(kind: str) -> str:
    if kind == "UTF-16":
        return "save it as UTF-8, for example with iconv -f UTF-16 -t UTF-8"
    return "name it .gz" if kind == "gzip" else "unpack it first"
