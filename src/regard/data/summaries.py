"""Texts with their summaries, read from files line by line; what is wrong is said with the line at fault."""

from collections.abc import Iterable, Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from regard.data.lines import is_broken, refuse, stem_of, stream_lines, stream_objects
from regard.data.split import fold_text, hash_sentence
from regard.errors import DataError

# What common data sets call them, the likeliest first.
TEXT_FIELDS = ("document", "text", "body", "article", "source", "dialogue")
SUMMARY_FIELDS = ("summary", "subject", "title", "headline", "highlights", "target")
REFERENCES = "annotations"  # the field of further summaries, a list


class SummaryExample(NamedTuple):
    """A text, its summary, and what others wrote instead, where that is known.

    >>> SummaryExample("Dear all, we meet on Monday.", "Meeting").references
    ()
    """

    text: str
    summary: str
    references: tuple[str, ...] = ()


class SummarySet(list[SummaryExample]):
    """A list of examples that also knows which lines of the file were left out: `skipped`, their numbers from 1 on."""

    def __init__(self, examples: Iterable[SummaryExample] = (), skipped: Sequence[int] = ()) -> None:
        super().__init__(examples)
        self.skipped = tuple(skipped)


class FieldNames(NamedTuple):
    """What the fields of a file are called; "" where that is to be found out."""

    text: str = ""
    summary: str = ""
    references: str = REFERENCES

    def resolve(self, path: Path, number: int, keys: Iterable[str]) -> "FieldNames":
        """The same with a name for each, taken from the keys of the first object.

        >>> FieldNames().resolve(Path("mails.jsonl"), 1, ["id", "body", "subject"])
        FieldNames(text='body', summary='subject', references='annotations')
        """
        there = list(keys)
        found = []
        for given, usual, flag in ((self.text, TEXT_FIELDS, "text"), (self.summary, SUMMARY_FIELDS, "summary")):
            name = given or next((one for one in usual if one in there), "")
            if not name:
                shown = ", ".join(map(repr, there[:5])) or "nothing"
                refuse(path, number, f"no field holds a {flag} (there is {shown}); name it with --{flag}-field")
            found.append(name)
        if found[0] == found[1]:
            refuse(path, number, f"{found[0]!r} cannot be both text and summary; name two fields")
        return FieldNames(found[0], found[1], self.references)


def read_summaries(
    path: str | PathLike[str], *, fields: FieldNames | None = None, skip_empty: bool = False
) -> SummarySet:
    """The examples in a file, in the order of its lines.

    A file is `.jsonl`, with one object a line (`fields` names those of text and summary; without, they are found among
    the usual names, document, text, body, article and summary, subject, title, headline; a list `annotations` holds
    further summaries), or `.tsv`, with text and summary separated by a tab, in another order where a first line with
    such names says so. Each may be compressed (`.gz`). All are UTF-8. Spaces around are left away.

    An empty line, text or summary is refused with its line number; with `skip_empty` such lines are left out, and
    `skipped` of what comes back holds their numbers.

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "mails.jsonl"
    >>> _ = file.write_text('{"body": "We meet on Monday.", "subject": "Meeting", "annotations": ["Monday"]}\\n')
    >>> read_summaries(file)
    [SummaryExample(text='We meet on Monday.', summary='Meeting', references=('Monday',))]
    """
    file = Path(path)
    found, skipped = SummarySet(), []
    for number, one in stream_examples(file, fields or FieldNames()):
        wrong = fault(one)
        if wrong and not skip_empty:
            refuse(file, number, f"{wrong}, or leave such lines out with skip_empty=True")
        elif wrong or one is None:
            skipped.append(number)
        else:
            found.append(one)
    if not found:
        raise DataError(f"{file} holds no text with a summary; give a file with at least one")
    found.skipped = tuple(skipped)
    return found


def stream_examples(file: Path, fields: FieldNames) -> Iterator[tuple[int, SummaryExample | None]]:
    """The number of each line and its example; None where it is empty."""
    if stem_of(file) == ".tsv":
        text = 0  # the column of the text
        for number, line in enumerate(stream_lines(file), 1):
            columns = split_columns(file, number, line)
            header = find_header(file, number, columns, fields) if number == 1 and columns else None
            if header is not None:
                text = header
            else:
                yield number, SummaryExample(columns[text], columns[1 - text]) if columns else None
    elif stem_of(file) == ".jsonl":
        names: FieldNames | None = None
        for number, one in stream_objects(file):
            if one is not None and names is None:
                names = fields.resolve(file, number, one)
            yield number, None if one is None or names is None else take_fields(file, number, one, names)
    else:
        raise DataError(f"{file} does not say what it holds; give a .jsonl or a .tsv file (also .gz)")


def find_header(file: Path, number: int, columns: Sequence[str], fields: FieldNames) -> int | None:
    """The column of the text, where a line names its columns as they are usually named or were said to be; else None.

    >>> find_header(Path("few.tsv"), 1, ["Summary", "Text"], FieldNames())
    1
    """
    there = [column.lower() for column in columns]
    given = FieldNames(fields.text.lower(), fields.summary.lower())
    if not {*given[:2], *TEXT_FIELDS, *SUMMARY_FIELDS}.intersection(there) - {""}:
        return None
    names = given.resolve(file, number, there)
    for name, flag in ((names.text, "text"), (names.summary, "summary")):
        if name not in there:
            refuse(file, number, f"there is no {name!r}, but {there[0]!r}, {there[1]!r}; name it with --{flag}-field")
    return there.index(names.text)


def split_columns(file: Path, number: int, line: str) -> list[str]:
    """The two columns of one line of a .tsv; nothing where the line is empty."""
    if not line.strip():
        return []
    columns = line.split("\t")
    if len(columns) != 2:
        wanted = "a text and a summary were wanted; separate them by one tab"
        refuse(
            file, number, f"there {'is 1 column' if len(columns) == 1 else f'are {len(columns)} columns'}, but {wanted}"
        )
    return [column.strip() for column in columns]


def take_fields(file: Path, number: int, one: dict[str, Any], names: FieldNames) -> SummaryExample:
    """Text, summary and further summaries of one JSON object."""
    for name, flag in ((names.text, "text"), (names.summary, "summary")):
        if name not in one:
            there = ", ".join(map(repr, list(one)[:5])) or "nothing"
            refuse(file, number, f"there is no {name!r}, but {there}; name the field with --{flag}-field")
        if not isinstance(one[name], str):
            refuse(file, number, f"{name!r} is {type(one[name]).__name__}, but a text was wanted; give a string")
    others = one.get(names.references) or []
    if not isinstance(others, list) or not all(isinstance(other, str) for other in others):
        refuse(file, number, f"{names.references!r} is no list of texts; give one, or leave the field out")
    if any(map(is_broken, others)):
        refuse(file, number, f"{names.references!r} holds NUL or half a character, which no text has; write it anew")
    further = tuple(other.strip() for other in others if other.strip())
    return SummaryExample(one[names.text].strip(), one[names.summary].strip(), further)


def fault(one: SummaryExample | None) -> str:
    """Why this example cannot be learned from, and what to do; nothing where it can."""
    if one is None:
        return "the line is empty; remove it"
    if not one.text:
        return "the text is empty; write it"
    return "" if one.summary else "the summary is empty; write it"


class SummaryParts(NamedTuple):
    """Examples to learn from, and those to be judged by."""

    train: SummarySet
    validation: SummarySet


def hold_out(examples: SummarySet, count: int, *, seed: int) -> SummaryParts:
    """About `count` distinct texts to be judged by; no text stands in both parts, and no order matters.

    >>> parts = hold_out(SummarySet([SummaryExample(text, "x") for text in ("a", "A!", "b", "c")]), 1, seed=1)
    >>> [one.text for one in parts.validation], len(parts.train)
    (['c'], 3)
    """
    keys = [hash_sentence(fold_text(one.text), seed) for one in examples]
    distinct = sorted(set(keys))
    if count >= len(distinct):
        raise DataError(
            f"{count} texts for validation leave nothing to learn from, as there are {len(distinct)} distinct ones; "
            "hold out fewer with --validation-size, or name a file with --validation"
        )
    held = set(distinct[:count])
    sides = [[one for one, key in zip(examples, keys) if (key in held) == inside] for inside in (False, True)]
    return SummaryParts(SummarySet(sides[0], examples.skipped), SummarySet(sides[1]))
