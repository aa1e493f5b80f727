"""Texts that belong together, two by two: paraphrases, questions with answers; or single texts. Read, and held out."""

import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from regard.data.lines import refuse, stem_of, stream_lines
from regard.data.records import FORMS, Record, choose_column, stream_records, text_in
from regard.data.split import fold_text, hash_sentence
from regard.data.swallowed import must_swallow_none
from regard.errors import DataError

TEXT, OTHER = ("text", "sentence1", "anchor", "query"), ("other", "sentence2", "positive", "answer")
NEGATIVE, SCORE = "negative", "score"
NAMES = (TEXT[0], OTHER[0], NEGATIVE, SCORE, *TEXT[1:], *OTHER[1:])  # the first four are those of columns without names
EVERY = 5  # words, of which one is left out
LEAST = 3  # words that are left


class TextPair(NamedTuple):
    """A text, and one that belongs to it; of a single text, the text itself.

    >>> TextPair("A cat sat.", "A cat sat.").single
    True
    """

    text: str
    other: str
    negative: str = ""  # one that does not belong to it, though it looks so (a hard negative); "" where none is given
    score: float | None = None  # how near the two are, where somebody has said so

    @property
    def single(self) -> bool:
        """Whether it is one text alone."""
        return self.score is None and self.text == self.other


class TextPairs(list[TextPair]):
    """A list of pairs that also knows how many rows of the files were left out, because a text of them is empty."""

    def __init__(self, pairs: Iterable[TextPair] = (), skipped: int = 0) -> None:
        super().__init__(pairs)
        self.skipped = skipped


def read_text_pairs(paths: Sequence[Path]) -> TextPairs:
    r"""The pairs of files. A row without a text is left out and counted; what is no row is refused with its line.

    .tsv, .csv and .jsonl have the columns `text` and `other`, and perhaps `negative` and `score` (a number), in this
    order where they have no names; a file with `text` alone holds single texts. In any other file each line is a single
    text. Each may be compressed (.gz).

    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "few.tsv"
    >>> _ = file.write_text("text\tother\nHi.\tHello.\nBye.\t\n", encoding="utf-8")
    >>> pairs = read_text_pairs([file])
    >>> pairs, pairs.skipped
    ([TextPair(text='Hi.', other='Hello.', negative='', score=None)], 1)
    """
    pairs = TextPairs()
    for path in paths:
        for pair in stream_text_pairs(path):
            if pair is None:
                pairs.skipped += 1
            else:
                pairs.append(pair)
    if not pairs:
        raise DataError(f"{', '.join(map(str, paths))} holds no text; give a file with some, one to a line")
    return pairs


def stream_text_pairs(path: Path) -> Iterator[TextPair | None]:
    """The pairs of one file, None for a row that has an empty text."""
    if stem_of(path) not in FORMS:
        for line in stream_lines(path):
            text = line.strip()
            yield TextPair(text, text) if text else None
        return
    for row in check_rows(path, stream_records(path, NAMES)):
        text = text_in(path, row, choose_column(path, row, "", TEXT, "text"))
        column = next((name for name in OTHER if name in row.values), "")
        other = text_in(path, row, column) if column else text
        if not text or not other:
            yield None
            continue
        negative = text_in(path, row, NEGATIVE) if row.values.get(NEGATIVE) is not None else ""
        yield TextPair(text, other, negative, read_score(path, row))


def check_rows(path: Path, rows: Iterator[Record]) -> Iterator[Record]:
    """The same rows; refused where the first is a header of other names, or where a row of a .csv swallowed others."""
    before: Record | None = None
    for row in rows:
        is_second = before is not None and before.line == 1 and stem_of(path) != ".jsonl"
        if before is not None and is_second and is_named(before) and not is_named(row):
            shown = ", ".join(map(repr, before.values.values()))
            wrong = f"{shown[:80]} read as names of columns, but {TEXT[0]} and {OTHER[0]} were wanted"
            refuse(path, 1, f"{wrong}; rename them, or put a header with these above a row of words")
        if stem_of(path) == ".csv":
            must_swallow_none(path, row)
        yield row
        before = row


def is_named(row: Record) -> bool:
    """Whether each of several columns holds what could be the name of one: a single word of ASCII."""
    return len(row.values) > 1 and all(str(cell).isascii() and str(cell).isidentifier() for cell in row.values.values())


def tell_unread(paths: Iterable[Path]) -> list[str]:
    """A sentence for each file of single texts that has columns of other names: none of these is read."""
    found = []
    for path in paths:
        row = next(stream_records(path, NAMES), None) if stem_of(path) in FORMS else None
        others = [repr(name) for name in row.values if name not in NAMES] if row else []
        if row and others and not set(OTHER) & set(row.values):
            found.append(
                f"{path} has no column {OTHER[0]!r}, so each text stands alone; {', '.join(others)} is not read"
            )
    return found


def read_score(path: Path, row: Record) -> float | None:
    """The score of a row; None where the file has none."""
    if SCORE not in row.values:
        return None
    try:
        score = float(row.values[SCORE])
    except (TypeError, ValueError):
        score = math.nan
    if not math.isfinite(score):
        refuse(path, row.line, f"the score is {row.values[SCORE]!r:.40}, but a number was wanted; write such as 3.5")
    return score


def hold_out_pairs(pairs: TextPairs, count: int, *, seed: int) -> tuple[TextPairs, TextPairs]:
    """Those to learn from, and at most `count` to be judged by: no text stands in both.

    Pairs that have a text in common, directly or by others between them, stay together; `fold_text` says what counts as
    the same text. Single texts are held out only where there is nothing else. A `count` of 0 is a tenth, at most 500.

    >>> pairs = TextPairs([TextPair("a", "b"), TextPair("b.", "c"), TextPair("d", "e"), TextPair("A", "A")])
    >>> [[pair.text for pair in part] for part in hold_out_pairs(pairs, 1, seed=0)]
    [['a', 'b.', 'A'], ['d']]
    """
    groups = group_pairs(pairs)
    asked = [index for index, pair in enumerate(pairs) if not pair.single] or range(len(pairs))
    sizes: dict[str, int] = {}
    for index in asked:
        sizes[groups[index]] = sizes.get(groups[index], 0) + 1
    count = count or min(500, max(1, len(asked) // 10))
    chosen: set[str] = set()
    for group in sorted(sizes, key=lambda key: (hash_sentence(key, seed), key)):
        if sizes[group] <= count:
            chosen.add(group)
            count -= sizes[group]
    train = TextPairs((pair for pair, group in zip(pairs, groups) if group not in chosen), pairs.skipped)
    if not chosen or not train:
        raise DataError(
            f"of {len(asked)} pairs none can be held out so that others are left and no text stands in both parts; "
            "name a file for validation"
        )
    return train, TextPairs(pairs[index] for index in asked if groups[index] in chosen)


def group_pairs(pairs: Sequence[TextPair]) -> list[str]:
    """For each pair the least of all texts that it is connected with, folded: one name for what belongs together."""
    parent: dict[str, str] = {}

    def find(key: str) -> str:
        parent.setdefault(key, key)
        while parent[key] != key:
            parent[key] = key = parent[parent[key]]
        return key

    keys = [fold_text(pair.text) for pair in pairs]
    for key, pair in zip(keys, pairs):
        one, two = sorted((find(key), find(fold_text(pair.other))))
        parent[two] = one
    return [find(key) for key in keys]


def drop_words(text: str) -> str:
    """The text without every fifth word, from the third on; "" where too little would be left to know it by.

    A text without spaces, as in some scripts, loses characters.

    >>> drop_words("The black cat sat on the old mat."), drop_words("我们昨天去了北京。"), drop_words("Hi!")
    ('The black sat on the old', '我们天去了北。', '')
    """
    words = text.split()
    parts, joint = (words, " ") if len(words) > 1 else (list(text), "")
    kept = [part for number, part in enumerate(parts) if number % EVERY != 2]
    return joint.join(kept) if len(kept) >= LEAST else ""
