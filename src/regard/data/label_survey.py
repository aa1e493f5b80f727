"""What labels there are, and which texts are held out: one pass over labelled texts, of which eight bytes each stay."""

from array import array
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from regard.data.labelled import LabelledText, LabelledTexts
from regard.data.lines import stem_of
from regard.data.split import fold_text, hash_sentence
from regard.errors import DataError

MOST = 10_000  # classes
TRAIN, VALIDATION, TEST = range(3)


@dataclass(frozen=True)
class LabelSurvey:
    """The classes of some texts with their numbers, where each came first, and a hash of every text, in order."""

    counts: dict[str, int]
    first: dict[str, tuple[Path, int]]
    hashes: np.ndarray
    tops: Mapping[str, int] = field(default_factory=dict)  # how often each stands in line 1 of a table

    @classmethod
    def read(cls, texts: LabelledTexts, *, seed: int) -> "LabelSurvey":
        """Go through all texts once. Texts that differ only in case, punctuation or spaces have one hash."""
        counts: Counter[str] = Counter()
        first: dict[str, tuple[Path, int]] = {}
        tops: Counter[str] = Counter()
        hashes = array("Q")
        for one in texts:
            counts[one.label] += 1
            first.setdefault(one.label, (one.path, one.line))
            if one.line == 1 and stem_of(one.path) in (".tsv", ".csv"):
                tops[one.label] += 1
            if len(counts) > MOST:
                raise too_many(one, len(counts), len(hashes) + 1)
            hashes.append(int.from_bytes(hash_sentence(fold_text(one.text), seed)[:8]))
        survey = cls(dict(sorted(counts.items())), first, np.frombuffer(hashes, dtype=np.uint64), tops)
        if not hashes:
            raise empty_error(texts)
        return survey

    @property
    def classes(self) -> list[str]:
        """The labels, sorted."""
        return list(self.counts)

    def must_teach(self) -> None:
        """Refuse labels from which nothing can be learned: one class, one for nearly every text, or a header."""
        total = len(self.hashes)
        if len(self.counts) == 1:
            ((name, (path, line)),) = self.first.items()
            raise DataError(
                f"{path}, line {line}: {name!r} is the only class of all {total:,} texts; give texts of two or more"
            )
        if total >= 20 and len(self.counts) > total // 2:
            name = max(self.first, key=len)
            path, line = self.first[name]
            raise DataError(
                f"{path}, line {line}: {name[:40]!r} is one of {len(self.counts):,} labels of {total:,} texts, but a "
                "label names a class; name the column of the labels with --label-field"
            )
        for name, count in self.tops.items():  # a header that is known as such is no text, and stands in none
            if self.counts[name] == count < max(self.counts.values()):
                path, line = self.first[name]
                raise DataError(
                    f"{path}, line {line}: {name[:40]!r} is the label of this row alone, as if the row were a header; "
                    "name its columns with --text-field and --label-field, or put a header (text, label) above it"
                )

    def rare(self) -> list[str]:
        """A sentence for each class that has one text alone."""
        return [
            f"{path}, line {line}: class {name!r} has this one text alone, too few to learn it"
            for name, (path, line) in self.first.items()
            if self.counts[name] == 1
        ]

    def split(self, *, validation: int, test: int) -> np.ndarray:
        """The part of each text, in order: `validation` and `test` count distinct texts, and the same fall together.

        >>> survey = LabelSurvey({"a": 3}, {}, np.array([7, 2, 7, 9, 4], dtype=np.uint64))
        >>> survey.split(validation=1, test=1)
        array([0, 2, 0, 0, 1], dtype=uint8)
        """
        distinct = np.unique(self.hashes)
        if validation + test >= len(distinct):
            raise DataError(
                f"{validation} texts for validation and {test} for the test leave nothing to learn from, as there are "
                f"{len(distinct)} distinct ones; ask for fewer"
            )
        parts = np.full(len(self.hashes), TRAIN, dtype=np.uint8)
        if validation:
            parts[self.hashes <= distinct[test + validation - 1]] = VALIDATION
        if test:
            parts[self.hashes <= distinct[test - 1]] = TEST
        return parts

    @property
    def tenth(self) -> int:
        """How many texts are held out unless somebody says: a tenth of the distinct ones, from 1 to 1,000."""
        return min(1000, max(1, len(np.unique(self.hashes)) // 10))


def empty_error(texts: LabelledTexts) -> DataError:
    return DataError(f"{', '.join(map(str, texts.paths))} holds no labelled text; give one with some rows")


def too_many(one: LabelledText, labels: int, texts: int) -> DataError:
    return DataError(
        f"{one.path}, line {one.line}: {one.label[:40]!r} is the {labels:,}th label of {texts:,} texts, but a label "
        "names a class; name the column of the labels with --label-field"
    )
