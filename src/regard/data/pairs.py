"""Sentences with their translations, read from files. A file is read whole, or refused with the line at fault."""

from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from regard.data.lines import lines_of, objects_of, refuse, stem_of
from regard.errors import DataError

LONGEST = 1000
LETTERS_PER_WORD = 5  # scripts without spaces have sentences of one long word, so characters are limited too
FIELDS = ("source", "target")


class Pair(NamedTuple):
    """A sentence, its translation, and whom to name for them where they are shown.

    >>> Pair("Hi.", "嗨。").target
    '嗨。'
    """

    source: str
    target: str
    credit: str = ""


class Pairs(list[Pair]):
    """A list of pairs that also knows which lines of the file were left out: `skipped`, their numbers from 1 on."""

    def __init__(self, pairs: Iterable[Pair] = (), skipped: Sequence[int] = ()) -> None:
        super().__init__(pairs)
        self.skipped = tuple(skipped)


def read_pairs(
    path: str | PathLike[str],
    other: str | PathLike[str] | None = None,
    *,
    swap: bool = False,
    fields: Any = FIELDS,
    skip_empty: bool = False,
    longest: int = LONGEST,
) -> Pairs:
    """The pairs in one file, or in two files whose lines belong together, in the order of the lines.

    One file is `.tsv` (or `.txt`: source, target and, if there is one, an attribution, separated by tabs, as in the
    downloads of manythings.org) or `.jsonl` (one object a line; `fields` names the keys of source and target, and
    `credit` may hold an attribution). Two files, `path` with the sources and `other` with the targets, have one
    sentence a line. Each may be compressed (`.gz`). All are UTF-8. `swap` takes the target for the source. Spaces
    around a sentence are left away.

    A side that is empty, or longer than `longest` words (or five times as many characters), is refused with its line
    number; with `skip_empty` such lines are left out, and `skipped` of what comes back holds their numbers.

    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "few.tsv"
    >>> _ = file.write_text("Hi.\\t嗨。\\tCC-BY 2.0 Tatoeba\\nRun!\\t跑！\\n", encoding="utf-8")
    >>> read_pairs(file)[0]
    Pair(source='Hi.', target='嗨。', credit='CC-BY 2.0 Tatoeba')
    >>> read_pairs(file, swap=True)[1]
    Pair(source='跑！', target='Run!', credit='')
    """
    first = Path(path)
    if other is not None:
        read = two_files(first, Path(other))
    elif stem_of(first) in (".tsv", ".txt"):
        read = [columns(first, number, line) for number, line in enumerate(lines_of(first), 1)]
    elif stem_of(first) == ".jsonl":
        names = names_of(fields)
        read = [members(first, number, one, names) for number, one in enumerate(objects_of(first), 1)]
    else:
        raise DataError(
            f"{first} does not say what it holds; give a .tsv or a .jsonl (also .gz), or two files, "
            "one with the sources and one with the targets"
        )
    pairs, skipped = Pairs(), []
    for number, pair in enumerate(read, 1):
        wrong = fault(pair, longest)
        if wrong and not skip_empty:
            refuse(first, number, f"{wrong}, or leave such lines out with skip_empty=True")
        elif wrong or pair is None:
            skipped.append(number)
        else:
            pairs.append(Pair(pair.target, pair.source, pair.credit) if swap else pair)
    if not pairs:
        raise DataError(f"{first} holds no pairs; give a file with at least one")
    pairs.skipped = tuple(skipped)
    return pairs


def two_files(first: Path, second: Path) -> list[Pair | None]:
    """Line n of one with line n of the other."""
    sources, targets = lines_of(first), lines_of(second)
    if len(sources) != len(targets):
        raise DataError(
            f"{first} has {len(sources)} lines, but {second} has {len(targets)}; "
            "give two files in which line n of one is the translation of line n of the other"
        )
    return [Pair(source.strip(), target.strip()) for source, target in zip(sources, targets)]


def columns(file: Path, number: int, line: str) -> Pair | None:
    """Source, target and attribution of one line; None where it is empty."""
    if not line.strip():
        return None
    source, *rest = line.split("\t")
    if not rest:
        refuse(file, number, "there is 1 column, but a source and a target were wanted; separate them by a tab")
    return Pair(source.strip(), rest[0].strip(), " ".join(rest[1:]).strip())


def names_of(fields: Any) -> tuple[str, str]:
    """Two different keys."""
    names = [fields] if isinstance(fields, str) else list(fields)
    if len(names) != 2 or not all(isinstance(name, str) for name in names) or names[0] == names[1]:
        raise DataError(f"fields is {fields!r}, but two different keys were wanted; give such as fields=('en', 'zh')")
    return names[0], names[1]


def members(file: Path, number: int, one: dict[str, Any] | None, names: tuple[str, str]) -> Pair | None:
    """Source, target and attribution of one JSON object; None where the line is empty."""
    if one is None:
        return None
    for name in names:
        if name not in one:
            there = ", ".join(sorted(one)[:5]) or "nothing"
            refuse(file, number, f"there is no {name!r}, but {there}; name the keys with fields=(source, target)")
        if not isinstance(one[name], str):
            refuse(file, number, f"{name!r} is {type(one[name]).__name__}, but a sentence was wanted; give a string")
    credit = one.get("credit", "")
    return Pair(one[names[0]].strip(), one[names[1]].strip(), credit.strip() if isinstance(credit, str) else "")


def fault(pair: Pair | None, longest: int) -> str:
    """Why this pair cannot be learned from, and what to do; nothing where it can."""
    if pair is None:
        return "the line is empty; remove it"
    for name, text in zip(FIELDS, pair):
        if not text:
            return f"the {name} is empty; write it"
        if len(text) > LETTERS_PER_WORD * longest:
            return f"the {name} has {len(text):,} characters, more than {LETTERS_PER_WORD * longest:,}; cut it"
        if len(words := text.split()) > longest:
            return f"the {name} has {len(words):,} words, more than {longest:,}; cut it"
    return ""
